package store_test

import (
	"testing"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// quotedPost stores a post as one that came along, and reports whether it was new.
func quotedPost(t *testing.T, s *store.Store, m *msg.Message) (fresh bool) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		fresh, err = rows.PutQuoted(tx, m)
		return err
	})
	return fresh
}

func original(id string) *msg.Message {
	return &msg.Message{
		ChatJID: storetest.Chat, PlatformID: id, Direction: msg.In, Sender: "telegram:8", SenderName: "Ann", Content: "/stop what I said", Topic: "7", ThreadID: "7",
		Timestamp: 1, ReceivedAt: 1 << 40,
	}
}

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
		m := original(id)
		if quotedPost(t, s, m) || m.ID != want {
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
	own := original("9")
	own.IsBot = true
	quotedPost(t, s, own)
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
