package store_test

import (
	"fmt"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// marks are the reactions on messages that wait, as "target content state".
func marks(t *testing.T, s *store.Store) string {
	t.Helper()
	return storetest.Value[string](t, s, `SELECT ifnull(group_concat(target_id || ' ' || content || ' ' || out_state, '; '), '') FROM
		(SELECT * FROM messages WHERE source = 'waiting' ORDER BY id) w`)
}

func sent(t *testing.T, s *store.Store) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`UPDATE messages SET out_state = 'sent' WHERE source = 'waiting'`)
	})
}

// What the table of reasons says of a mark is what the sender of a message sees.
func TestDecide_EachReason_MessageHasItsMark(t *testing.T) {
	t.Parallel()
	for _, r := range msg.Reasons {
		s := storetest.Open(t)
		row := &msg.Message{ChatJID: "telegram:-1", Direction: msg.In, PlatformID: "41", Addressed: true, Timestamp: 1, ReceivedAt: 2}
		aside := &msg.Message{ChatJID: "telegram:-1", Direction: msg.In, PlatformID: "42", Timestamp: 1, ReceivedAt: 2}
		foreign := &msg.Message{ChatJID: "matrix:1", Direction: msg.In, PlatformID: "43", Verb: msg.VerbReply, Timestamp: 1, ReceivedAt: 2}
		for _, m := range []*msg.Message{row, aside, foreign} {
			storetest.Stored(t, s, m)
			storetest.Decide(t, s, m.ID, store.Decision{Disposition: msg.Dropped, Reason: r.Code})
		}
		want := ""
		if r.Shown.Mark != "" {
			want = fmt.Sprintf("41 %[1]s queued; 43 %[1]s queued", r.Shown.Mark)
		}
		if got := marks(t, s); got != want {
			t.Errorf("%s: the marks are %q, want %q", r.Code, got, want)
		}
	}
}

func TestMarkAsleep_AddressedRowsThatWait_MarkedUntilDecided(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const now = 200_000
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutChat("slack:D1", msg.ChatDM, "", 1) })
	put := func(jid, id string, at int64, change ...func(*msg.Message)) *msg.Message {
		m := &msg.Message{ChatJID: jid, Direction: msg.In, PlatformID: id, Timestamp: at, ReceivedAt: at}
		for _, f := range change {
			f(m)
		}
		return storetest.Stored(t, s, m)
	}
	mention := func(m *msg.Message) { m.Verb = msg.VerbMention }
	old := put("slack:C1", "1", now-msg.AsleepAfter*1000, mention)
	put("slack:C1", "2", 1)
	put("slack:C1", "3", now-1000, mention)
	put("slack:C1", "4", 1, func(m *msg.Message) { m.Verb, m.Addressed = msg.VerbReaction, true })
	put("slack+work:C1", "5", 1, mention)
	put("slack:D1", "6", 1)
	for range 2 {
		storetest.Write(t, s, func(tx *store.Tx) error {
			return tx.MarkAsleep("slack", now-msg.AsleepAfter*1000, now)
		})
	}
	sent(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Decide(old.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonEditNote}, now)
	})
	if got, want := marks(t, s), "1 😴 sent; 6 😴 sent; 1 -😴 queued"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
