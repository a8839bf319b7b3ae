package store_test

import (
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestPutQuoted_KnownPost_ChangesNothing(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	in := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, PlatformID: "1", Direction: msg.In, Content: "mine", Timestamp: 1, ReceivedAt: 2})
	out := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Content: "long", Timestamp: 1, ReceivedAt: 2, OutState: msg.OutQueued})
	storetest.Write(t, s, func(tx *store.Tx) error {
		if err := tx.ClaimOutbound(out.ID, 2, 5); err != nil {
			return err
		}
		return tx.PutDelivery(store.Delivery{MessageID: out.ID, Part: 1, State: msg.OutSent, PlatformID: "3"}, 5)
	})
	for id, want := range map[string]int64{"1": in.ID, "3": out.ID} {
		m := storetest.Quoted(id)
		if gatedtest.PutQuoted(t, s, m) || m.ID != want {
			t.Errorf("post %s: row %d, want the known row %d", id, m.ID, want)
		}
	}
	if m := storetest.Must(s.Message(t.Context(), in.ID))(t); m.Disposition != "" || m.Content != "mine" {
		t.Errorf("changed to %+v", m)
	}
}

// A user may answer a post of the bot before its adapter has recorded that it was sent.
func TestPutDelivery_PartThatWasQuoted_BelongsToItsMessage(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	out := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Content: "hi", Timestamp: 1, ReceivedAt: 2, OutState: msg.OutQueued})
	own := storetest.Quoted("9")
	own.IsBot = true
	gatedtest.PutQuoted(t, s, own)
	storetest.Write(t, s, func(tx *store.Tx) error {
		if err := tx.ClaimOutbound(out.ID, 1, 5); err != nil {
			return err
		}
		if err := tx.PutDelivery(store.Delivery{MessageID: out.ID, State: msg.OutSent, PlatformID: "9"}, 5); err != nil {
			return err
		}
		return tx.SettleOutbound(out.ID, msg.OutSent, "9")
	})
	if m := storetest.Must(s.MessageByPlatformID(t.Context(), storetest.Chat, "9"))(t); m.ID != out.ID || m.PlatformID != "9" {
		t.Errorf("post 9 is row %d, want %d", m.ID, out.ID)
	}
}
