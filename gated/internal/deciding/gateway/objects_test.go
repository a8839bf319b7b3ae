package gateway

import (
	"testing"
	"time"

	"arizuko/gated/internal/contextobjects"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// TestDeletion_EndsContextObjects: those of a message, of the row that was made from it, and of an answer; others stay.
func TestDeletion_EndsContextObjects(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
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
	found, err := objects.Lookup(t.Context(), h.st.Reader, &contextobjects.Query{ChatJID: dm, Max: 20, Now: h.clock.UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, m := range found.Matches {
		left = append(left, m.Object.ID)
	}
	diff(t, "objects", left, []string{msg.ContextObjectID(msg.ContextMessage, kept.ID)})
}
