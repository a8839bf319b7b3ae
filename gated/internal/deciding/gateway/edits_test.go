package gateway

import (
	"testing"
	"time"

	"arizuko/pkg/msg"
)

func TestEdit_OfAHeldRow_ReplacesItsText(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.routd.route(quietly)
	m, gone := h.put("hi"), h.put("oops")
	h.step()
	edit, deletion := h.put("hello", verb(msg.VerbEdit), on(m)), h.put("", verb(msg.VerbDelete), on(gone))
	h.step()
	h.is(edit, "dropped/edit_applied ")
	h.is(deletion, "dropped/edit_applied ")
	h.is(gone, "dropped/deleted ")
	h.wait(5 * time.Second)
	diff(t, "turns", h.dispatched(), [][]string{{"hello"}})
}

func TestEdit_OfADecidedRow_IsANote(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.put("hi")
	h.step()
	h.dispatched()
	edit, orphan := h.put("hello", verb(msg.VerbEdit), on(m)), h.put("hello", verb(msg.VerbEdit), func(m *msg.Message) { m.TargetID = "none" })
	h.step()
	h.is(edit, "observed/edit_note main")
	h.is(orphan, "dropped/edit_orphan ")
	diff(t, "turns", h.dispatched(), [][]string(nil))
}

// TestEdit_WithoutAChange_IsDropped: an edit of something that only apps show is no news to the agent, however often it comes.
func TestEdit_WithoutAChange_IsDropped(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.put("hi")
	h.step()
	for _, tt := range []struct{ text, want string }{
		{"hi", "dropped/edit_same "}, {"hello", "observed/edit_note main"}, {"hello", "dropped/edit_same "}, {"hi", "observed/edit_note main"},
	} {
		edit := h.put(tt.text, verb(msg.VerbEdit), on(m))
		h.step()
		h.is(edit, tt.want)
	}
}
