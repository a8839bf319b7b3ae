package storetest

import (
	"context"
	"errors"
	"testing"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Replies returns the outbound rows of a turn.
func Replies(t *testing.T, s *store.Store, turnID int64) (all []msg.Message) {
	t.Helper()
	for _, m := range Must(factrows.TurnReplies(t.Context(), s.Reader, turnID))(t) {
		m.ID = 0
		all = append(all, *m)
	}
	return all
}

// Park parks a new row of a chat.
func Park(t testing.TB, s *store.Store, jid, content string) *msg.Message {
	t.Helper()
	m := Inbound(t, s, jid, content)
	Decide(t, s, m.ID, store.Decision{Disposition: msg.Onboarding, Reason: msg.ReasonAwaitingApproval})
	return m
}

// Deliver stores the delivery of a part.
func Deliver(t *testing.T, s *store.Store, d store.Delivery, now int64) {
	t.Helper()
	Write(t, s, func(tx *store.Tx) error { return tx.PutDelivery(d, now) })
}

// Quoted is a post that came along with a message that quotes it.
func Quoted(id string) *msg.Message {
	return &msg.Message{
		ChatJID: Chat, PlatformID: id, Direction: msg.In, Sender: "telegram:8", SenderName: "Ann", Content: "/stop what I said", Topic: "7", ThreadID: "7",
		Timestamp: 1, ReceivedAt: 1 << 40,
	}
}

// WithFiles stores a row whose attachments are still to be downloaded.
func WithFiles(t testing.TB, s *store.Store, chatJID string, set ...func(*msg.Message)) *msg.Message {
	t.Helper()
	m := &msg.Message{ChatJID: chatJID, Direction: msg.In, PendingFiles: 2, Attachments: []msg.Attachment{
		{Name: "a", MIME: "text/plain", Size: 3, Ref: "f1"}, {Name: "b", Ref: "f2"},
	}}
	for _, f := range set {
		f(m)
	}
	return Stored(t, s, m)
}

// OldChat stores n inbound rows of a chat, decided but for the last undecided ones, n outbound
// rows with a delivery and n queued turns.
func OldChat(t testing.TB, s *store.Store, jid string, n, undecided int) {
	t.Helper()
	Write(t, s, func(tx *store.Tx) error {
		return errors.Join(
			tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
				INSERT INTO messages (chat_jid, platform_id, reply_to_id, direction, timestamp, received_at, disposition, reason, decided_at, decision_seq)
				SELECT ?3, i, i - 1, 'in', i, i, CASE WHEN i > ?1 - ?2 THEN NULL ELSE 'dropped' END, CASE WHEN i > ?1 - ?2 THEN NULL ELSE 'no_route' END,
					CASE WHEN i > ?1 - ?2 THEN NULL ELSE i END, CASE WHEN i > ?1 - ?2 THEN NULL ELSE i END FROM n`, n, undecided, jid),
			tx.Exec(`INSERT INTO messages (chat_jid, platform_id, direction, timestamp, received_at, out_state)
				SELECT chat_jid, 'o' || platform_id, 'out', timestamp, received_at, 'sent' FROM messages`),
			tx.Exec(`INSERT INTO deliveries (message_id, part, state, platform_id) SELECT id, 0, 'sent', platform_id FROM messages WHERE direction = 'out'`),
			tx.Exec(`INSERT INTO turns (kind, folder, chat_jid, topic, reply_to, trigger_message_id, surface, ceiling, state, created_at)
				SELECT 'conversation', 'main', chat_jid, '', platform_id, id, '', 0, 'queued', 1 FROM messages WHERE direction = 'in'`),
			tx.Exec(`INSERT INTO router_state (key, value) VALUES ('decision_seq', ?)`, n))
	})
}

// OpenTurns returns every turn that has not ended, oldest first.
func OpenTurns(ctx context.Context, r store.Reader) ([]*msg.Turn, error) {
	return r.ReadTurns(ctx, `SELECT `+store.TurnColumns+
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running') ORDER BY t.id`)
}

// NewOutbound returns the texts of the new outbound rows after the floor.
func NewOutbound(ctx context.Context, r store.Reader, floor *store.Floor) (texts []string, err error) {
	if err := floor.Ask(ctx, r); err != nil {
		return nil, err
	}
	last := int64(0)
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		var out bool
		var text string
		err := scan(&last, &out, &text)
		if err == nil && floor.See(last) && out {
			texts = append(texts, text)
		}
		return true, err
	}, `SELECT id, direction = 'out', CASE direction WHEN 'out' THEN content ELSE '' END FROM messages WHERE id > ? ORDER BY id`, floor.At)
	if err == nil {
		floor.Raise(r, last)
	}
	return texts, err
}
