package store_test

import (
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// quotedPost stores a post as one that came along, and reports whether it was new.
func quotedPost(t *testing.T, s *store.Store, m *msg.Message) (fresh bool) {
	t.Helper()
	write(t, s, func(tx *store.Tx) (err error) {
		fresh, err = tx.PutQuoted(m)
		return err
	})
	return fresh
}

func original(id string) *msg.Message {
	return &msg.Message{
		ChatJID: chat, PlatformID: id, Direction: msg.In, Sender: "telegram:8", SenderName: "Ann", Content: "/stop what I said", Topic: "7", ThreadID: "7",
		Timestamp: 1, ReceivedAt: 1 << 40,
	}
}

func TestPutQuoted_UnknownPost_IsDecidedAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inbound(t, s, chat, "before")
	if !quotedPost(t, s, original("1")) {
		t.Fatal("the post is not stored")
	}
	m := must(s.MessageByPlatformID(t.Context(), chat, "1"))(t)
	if m.Disposition != msg.Observed || m.Reason != msg.ReasonQuoted || m.RoutedTo != "" || m.TurnID != 0 || m.DecisionSeq == 0 ||
		m.DecidedAt != m.ReceivedAt || m.Topic != "7" || m.ThreadID != "7" || m.Content != "/stop what I said" {
		t.Errorf("stored as %+v", m)
	}
	if waiting := must(s.Undecided(t.Context(), chat, 0, 10))(t); len(waiting) != 1 {
		t.Errorf("%d rows are undecided, want the one before", len(waiting))
	}
	if quotedPost(t, s, original("1")) {
		t.Error("it is stored again")
	}
	if _, user, err := s.LastUser(t.Context(), chat); err != nil || user != "telegram:7" {
		t.Errorf("the last user is %q: a quoted post counts", user)
	}
}

func TestPutQuoted_KnownPost_ChangesNothing(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	in := stored(t, s, &msg.Message{ChatJID: chat, PlatformID: "1", Direction: msg.In, Content: "mine", Timestamp: 1, ReceivedAt: 2})
	out := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.Out, Content: "long", Timestamp: 1, ReceivedAt: 2, OutState: msg.OutQueued})
	write(t, s, func(tx *store.Tx) error {
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
	if m := must(s.Message(t.Context(), in.ID))(t); m.Disposition != "" || m.Content != "mine" {
		t.Errorf("changed to %+v", m)
	}
}

// A post may come after a message that quotes it: a gap is filled behind live events.
func TestPutMessage_PostThatWasQuoted_IsDecidedLikeAnyOther(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m := original("1")
	quotedPost(t, s, m)
	post := original("1")
	post.Content, post.Verb = "@bot do it", msg.VerbMention
	if stored(t, s, post); post.ID <= m.ID {
		t.Fatalf("row %d is not behind row %d: no reader finds it", post.ID, m.ID)
	}
	if got := must(s.MessageByPlatformID(t.Context(), chat, "1"))(t); got.ID != post.ID || got.Disposition != "" {
		t.Errorf("the post is row %d, %s", got.ID, got.Disposition)
	}
	if got := must(s.Message(t.Context(), m.ID))(t); got.Disposition != msg.Dropped || got.Reason != msg.ReasonDuplicate {
		t.Errorf("the quoted row is %s/%s", got.Disposition, got.Reason)
	}
	if recent := must(s.Recent(t.Context(), store.Scope{ChatJID: chat}, post.ID))(t); len(recent) != 1 || recent[0].ID != post.ID {
		t.Errorf("the window has %+v", recent)
	}
	if again := original("1"); quotedPost(t, s, again) || again.ID != post.ID {
		t.Errorf("quoted again it is row %d", again.ID)
	}
	if _, fresh, err := s.PutMessage(t.Context(), original("1")); fresh || err != nil {
		t.Errorf("redelivered: fresh %v, %v", fresh, err)
	}
}

// A user may answer a post of the bot before its adapter has recorded that it was sent.
func TestPutDelivery_PartThatWasQuoted_BelongsToItsMessage(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	out := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.Out, Content: "hi", Timestamp: 1, ReceivedAt: 2, OutState: msg.OutQueued})
	own := original("9")
	own.IsBot = true
	quotedPost(t, s, own)
	write(t, s, func(tx *store.Tx) error {
		if err := tx.ClaimOutbound(out.ID, 1, 5); err != nil {
			return err
		}
		if err := tx.PutDelivery(store.Delivery{MessageID: out.ID, State: msg.OutSent, PlatformID: "9"}, 5); err != nil {
			return err
		}
		return tx.SettleOutbound(out.ID, msg.OutSent, "9")
	})
	if m := must(s.MessageByPlatformID(t.Context(), chat, "9"))(t); m.ID != out.ID || m.PlatformID != "9" {
		t.Errorf("post 9 is row %d, want %d", m.ID, out.ID)
	}
}
