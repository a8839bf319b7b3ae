package store

import (
	"context"

	"arizuko/pkg/msg"
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
// first, of one chat if chatJID is not empty.
func (r Reader) LostRows(ctx context.Context, since int64, chatJID string, limit int) ([]Lost, error) {
	return collect(ctx, r, func(scan scanner) (l Lost, err error) {
		err = scan(&l.ID, &l.ChatJID, &l.ThreadID, &l.Topic, &l.Kind, &l.Source, &l.Content, &l.State, &l.Class,
			&l.Error,
			&l.Parts, &l.Sent, &l.QueuedAt, &l.EndedAt, &l.NoticeID, &l.CopyID)
		return l, err
	}, queryLostRows, since, chatJID, limit)
}

// PutLossNotice inserts the notice of a row that was not delivered, into its chat, and returns its id: 0 if
// the row has one already, or a copy.
func (tx *Tx) PutLossNotice(of *Lost, text string, now int64) (id int64, err error) {
	known, err := tx.DerivedFrom(uncancelled(), of.ID)
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
		Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice, DerivedFrom: of.ID, OutState: OutStateOf(of.ChatJID),
	}
	_, _, err = tx.PutMessage(notice)
	return notice.ID, err
}
