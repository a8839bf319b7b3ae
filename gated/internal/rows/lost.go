package rows

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Lost is an outbound row that failed, or that may have arrived and was given up. Times are unix milliseconds.
type Lost struct {
	ID       int64          `json:"id"`
	ChatJID  string         `json:"chat_jid"`
	ThreadID string         `json:"thread_id,omitempty"`
	Topic    string         `json:"topic,omitempty"`
	Kind     msg.Kind       `json:"kind"`
	Source   string         `json:"source"`
	Content  string         `json:"content"` // its beginning
	State    msg.OutState   `json:"state"`
	Class    msg.ErrorClass `json:"error_class,omitempty"`
	Error    string         `json:"error,omitempty"`
	Parts    int            `json:"parts"`
	Sent     int            `json:"sent"` // parts that arrived, or may have
	QueuedAt int64          `json:"queued_at"`
	EndedAt  int64          `json:"ended_at"`
	NoticeID int64          `json:"notice_id,omitempty"` // the row that tells the chat
	CopyID   int64          `json:"copy_id,omitempty"`   // the last copy that was sent in its place
}

// LostRows lists the rows that were queued since a time, in unix ms, and were not delivered, the newest
// first, of one chat if chatJID is not empty. It reads an index of such rows alone, however many others there are.
func LostRows(ctx context.Context, r store.Reader, since int64, chatJID string, limit int) ([]Lost, error) {
	// Of the parts, the first one that did not arrive says why.
	const query = `SELECT m.id, m.chat_jid, m.thread_id, m.topic, m.kind, m.source, substr(m.content, 1, 200), m.out_state,
		ifnull(d.error_class,''), ifnull(d.error,''), (SELECT count(*) FROM deliveries p WHERE p.message_id = m.id),
		(SELECT count(*) FROM deliveries p WHERE p.message_id = m.id AND p.state IN ('sent', 'ambiguous')), m.received_at,
		ifnull((SELECT max(p.updated_at) FROM deliveries p WHERE p.message_id = m.id), m.received_at),
		ifnull((SELECT max(n.id) FROM messages n INDEXED BY messages_derived WHERE n.derived_from = m.id AND n.direction = 'out' AND n.source = 'notice'), 0),
		ifnull((SELECT max(n.id) FROM messages n INDEXED BY messages_derived WHERE n.derived_from = m.id AND n.direction = 'out' AND n.source <> 'notice'
			AND n.kind = m.kind), 0)
		FROM messages m INDEXED BY messages_lost LEFT JOIN deliveries d ON d.message_id = m.id
		AND d.part = (SELECT min(f.part) FROM deliveries f WHERE f.message_id = m.id AND f.state = m.out_state)
		WHERE m.out_state IN ('failed', 'ambiguous') AND m.received_at >= ?1 AND m.source <> 'waiting' AND (?2 = '' OR m.chat_jid = ?2)
		ORDER BY m.received_at DESC, m.id DESC LIMIT ?3+0`
	return store.All(ctx, r, func(scan store.Scan) (l Lost, err error) {
		err = scan(&l.ID, &l.ChatJID, &l.ThreadID, &l.Topic, &l.Kind, &l.Source, &l.Content, &l.State, &l.Class,
			&l.Error, &l.Parts, &l.Sent, &l.QueuedAt, &l.EndedAt, &l.NoticeID, &l.CopyID)
		return l, err
	}, query, since, chatJID, limit)
}

// PutLossNotice inserts the notice of a row that was not delivered, into its chat, and returns its id: 0 if
// the row has one already, or a copy.
func PutLossNotice(tx *store.Tx, of *Lost, text string, now int64) (id int64, err error) {
	known, err := tx.DerivedFrom(store.Uncancelled(), of.ID)
	if err != nil {
		return 0, err
	}
	for _, m := range known {
		if m.Direction == msg.Out && !m.Kind.Changes() {
			return 0, nil
		}
	}
	notice := &msg.Message{
		ChatJID: of.ChatJID, ThreadID: of.ThreadID, Topic: of.Topic, Direction: msg.Out, IsBot: true, Content: text,
		Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice, DerivedFrom: of.ID,
		OutState: msg.OutStateOf(of.ChatJID),
	}
	_, _, err = tx.PutMessage(notice)
	return notice.ID, err
}
