package gateway

import (
	"testing"
	"time"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// begin gives the turns dispatched so far to an agent, and returns the last.
func (h *harness) begin() (t *msg.Turn) {
	h.t.Helper()
	for _, t = range h.agents.turns {
		h.write(func(tx *store.Tx) error {
			r := &msg.Run{Folder: t.Folder, Topic: t.Topic, ChatJID: t.ChatJID, ThreadID: t.ThreadID, Runtime: "process"}
			return rows.StartRun(tx, r, t.ID)
		})
	}
	h.agents.turns = nil
	return t
}

// TestTakenBack: until an agent has begun a turn, a deletion takes its message out of it, and an edit changes it.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	addressed := func(m *msg.Message) { m.Addressed = true }
	for name, tt := range map[string]struct {
		rows   []string
		verb   string
		text   string // of the change, which is of the first row
		change func(*msg.Message)
		want   string // how that row ends
		left   [][]string
	}{
		"edited":                  {[]string{"hi"}, msg.VerbEdit, "hello", nil, "routed/route main", [][]string{{"hello"}}},
		"edited, of several":      {[]string{"hi", "you"}, msg.VerbEdit, "hello", nil, "routed/route main", [][]string{{"hello", "you"}}},
		"edited, calls the bot":   {[]string{"hi"}, msg.VerbEdit, "@ari hi", addressed, "routed/route main", [][]string{{"@ari hi"}}},
		"deleted":                 {[]string{"hi"}, msg.VerbDelete, "", nil, "dropped/deleted ", nil},
		"deleted, of several":     {[]string{"hi", "you"}, msg.VerbDelete, "", nil, "dropped/deleted ", [][]string{{"you"}}},
		"with a prefix":           {[]string{"#trip hi"}, msg.VerbEdit, "#trip hello", nil, "prefix/prefix_topic main", [][]string{{"hello"}}},
		"with a prefix, deleted":  {[]string{"#trip hi"}, msg.VerbDelete, "", nil, "dropped/deleted ", nil},
		"into another topic":      {[]string{"#trip hi"}, msg.VerbEdit, "#home hi", nil, "prefix/prefix_topic main", [][]string{{"hi"}}},
		"into another group":      {[]string{"hi"}, msg.VerbEdit, "@eng hi", nil, "prefix/prefix_group main/eng", [][]string{{"hi"}}},
		"a prefix is taken away":  {[]string{"@eng hi"}, msg.VerbEdit, "hi", nil, "routed/route main", [][]string{{"hi"}}},
		"into a command":          {[]string{"hi", "you"}, msg.VerbEdit, "/ping", nil, "command/command ", [][]string{{"you"}}},
		"into a bare token":       {[]string{"hi"}, msg.VerbEdit, "#trip", nil, "sticky/sticky_topic ", nil},
		"into words with a slash": {[]string{"hi"}, msg.VerbEdit, "/etc is a folder", nil, "routed/route main", [][]string{{"/etc is a folder"}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := parallel(t)
			var first *msg.Message
			for i, text := range tt.rows {
				if m := h.put(text); i == 0 {
					first = m
				}
			}
			h.step()
			h.restart()
			h.is(h.take(tt.text, verb(tt.verb), on(first), tt.change), "dropped/edit_applied ")
			h.is(first, tt.want)
			diff(t, "turns", h.open(), tt.left)
			if len(h.agents.changed) == 0 {
				t.Error("the agents got no note")
			}
		})
	}
}

// open returns the texts of the turns that have not ended.
func (h *harness) open() (all [][]string) {
	h.t.Helper()
	h.agents.turns = nil
	turns := storetest.Must(storetest.OpenTurns(h.t.Context(), h.st.Reader))(h.t)
	h.agents.turns = turns
	return h.dispatched()
}

// TestTakenBack_Begun: once an agent has the turn, changes are notes. The deletion of all that was asked cancels it.
func TestTakenBack_Begun(t *testing.T) {
	h := parallel(t)
	m := h.take("hi")
	turn := h.begin()
	edit := h.take("hello", verb(msg.VerbEdit), on(m))
	h.is(edit, "observed/edit_note main")
	diff(t, "open", h.open(), [][]string{{"hi"}})
	h.write(func(tx *store.Tx) error { return rows.RequeueTurn(tx, turn.ID, rows.Requeue{}) })
	again := h.put("hi!", verb(msg.VerbEdit), on(m)) // no agent has it now
	h.step()
	h.is(edit, "observed/edit_superseded main")
	h.is(again, "dropped/edit_applied ")
	diff(t, "open", h.open(), [][]string{{"hi!"}})
	h.write(func(tx *store.Tx) error { return rows.CloseRun(tx, 1, 1) })
	h.agents.turns = []*msg.Turn{turn}
	h.begin()
	h.is(h.take("", verb(msg.VerbDelete), on(m)), "observed/edit_note main")
	now, err := h.st.Turn(t.Context(), turn.ID)
	if err != nil || now.State != msg.TurnCancelled || now.Reason != msg.ReasonDeleted {
		t.Errorf("turn %+v, %v; want it cancelled", now, err)
	}
}

// TestEdit_WithoutAChange_IsDropped: an edit of something that only apps show is no news to the agent, however often it comes.
func TestEdit_WithoutAChange_IsDropped(t *testing.T) {
	h := parallel(t)
	m := h.take("hi")
	h.begin()
	h.is(h.take("hello", verb(msg.VerbEdit), func(m *msg.Message) { m.TargetID = "none" }), "dropped/edit_orphan ")
	for _, tt := range []struct{ text, want string }{
		{"hi", "dropped/edit_same "}, {"hello", "observed/edit_note main"}, {"hello", "dropped/edit_same "}, {"hi", "observed/edit_note main"},
	} {
		h.is(h.take(tt.text, verb(msg.VerbEdit), on(m)), tt.want)
	}
}

// TestDeletion_EndsContextObjects: those of a message, of the row that was made from it, and of an answer; others stay.
func TestDeletion_EndsContextObjects(t *testing.T) {
	h := parallel(t)
	ttls := contextobjects.TTLs{Medium: time.Hour, Media: time.Hour, Short: time.Hour, PollGrace: time.Hour, Max: time.Hour}
	objects := &contextobjects.Objects{Weights: contextobjects.DefaultWeights(), TTLs: ttls}
	h.g.cfg.Objects = objects
	seen, prefixed, kept := h.put("see the picture"), h.put("#plans see the plan"), h.put("stay")
	h.step()
	made, err := h.st.DerivedFrom(t.Context(), prefixed.ID)
	if err != nil || len(made) != 1 {
		t.Fatal(made, err)
	}
	poll := h.poll(dm, "77", false)
	h.write(func(tx *store.Tx) error {
		for _, o := range []contextobjects.Object{
			{Kind: msg.ContextImage, SourceMessageID: seen.ID}, {Kind: msg.ContextMessage, SourceMessageID: seen.ID},
			{Kind: msg.ContextArticle, SourceMessageID: made[0].ID}, {Kind: msg.ContextBotMessage, SourceMessageID: poll.MessageID},
			{Kind: msg.ContextMessage, SourceMessageID: kept.ID},
		} {
			o.ChatJID = dm
			if _, err := objects.Activate(tx, contextobjects.FollowupAttached, o, h.clock.UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
	h.put("", verb(msg.VerbDelete), on(seen))
	h.put("", verb(msg.VerbDelete), on(prefixed))
	h.put("", verb(msg.VerbDelete), func(m *msg.Message) { m.TargetID = "77" })
	h.take("changed", verb(msg.VerbEdit), on(kept))
	found := storetest.Must(objects.Lookup(t.Context(), h.st.Reader, &contextobjects.Query{ChatJID: dm, Max: 20, Now: h.clock.UnixMilli()}))(t)
	var left []string
	for _, m := range found.Matches {
		left = append(left, m.Object.ID)
	}
	diff(t, "objects", left, []string{msg.ContextObjectID(msg.ContextMessage, kept.ID)})
}
