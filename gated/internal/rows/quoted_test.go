package rows_test

import (
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

func TestPutQuoted_UnknownPost_IsDecidedAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	storetest.Inbound(t, s, storetest.Chat, "before")
	if !gatedtest.PutQuoted(t, s, storetest.Quoted("1")) {
		t.Fatal("the post is not stored")
	}
	m := storetest.Must(s.MessageByPlatformID(t.Context(), storetest.Chat, "1"))(t)
	if m.Disposition != msg.Observed || m.Reason != msg.ReasonQuoted || m.RoutedTo != "" || m.TurnID != 0 || m.DecisionSeq == 0 ||
		m.DecidedAt != m.ReceivedAt || m.Topic != "7" || m.ThreadID != "7" || m.Content != "/stop what I said" {
		t.Errorf("stored as %+v", m)
	}
	if waiting := storetest.Must(rows.Undecided(t.Context(), s.Reader, storetest.Chat, 0, 10))(t); len(waiting) != 1 {
		t.Errorf("%d rows are undecided, want the one before", len(waiting))
	}
	if gatedtest.PutQuoted(t, s, storetest.Quoted("1")) {
		t.Error("it is stored again")
	}
	if _, user, err := s.LastUser(t.Context(), storetest.Chat); err != nil || user != "telegram:7" {
		t.Errorf("the last user is %q: a quoted post counts", user)
	}
}

// A post may come after a message that quotes it: a gap is filled behind live events.
func TestPutMessage_PostThatWasQuoted_IsDecidedLikeAnyOther(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m := storetest.Quoted("1")
	gatedtest.PutQuoted(t, s, m)
	post := storetest.Quoted("1")
	post.Content, post.Verb = "@bot do it", msg.VerbMention
	if storetest.Stored(t, s, post); post.ID <= m.ID {
		t.Fatalf("row %d is not behind row %d: no reader finds it", post.ID, m.ID)
	}
	if got := storetest.Must(s.MessageByPlatformID(t.Context(), storetest.Chat, "1"))(t); got.ID != post.ID || got.Disposition != "" {
		t.Errorf("the post is row %d, %s", got.ID, got.Disposition)
	}
	if got := storetest.Must(s.Message(t.Context(), m.ID))(t); got.Disposition != msg.Dropped || got.Reason != msg.ReasonDuplicate {
		t.Errorf("the quoted row is %s/%s", got.Disposition, got.Reason)
	}
	if recent := storetest.Must(rows.Recent(t.Context(), s.Reader, rows.Scope{ChatJID: storetest.Chat}, post.ID))(t); len(recent) != 1 || recent[0].ID != post.ID {
		t.Errorf("the window has %+v", recent)
	}
	if again := storetest.Quoted("1"); gatedtest.PutQuoted(t, s, again) || again.ID != post.ID {
		t.Errorf("quoted again it is row %d", again.ID)
	}
	if _, fresh, err := storetest.Put(t.Context(), s, storetest.Quoted("1")); fresh || err != nil {
		t.Errorf("redelivered: fresh %v, %v", fresh, err)
	}
}
