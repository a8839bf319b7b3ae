package store

import (
	"context"
	"slices"

	"arizuko/pkg/msg"
)

// Readable rows of a web chat are those that its users see: inbound rows, and
// outbound rows that are delivered. A row derived from another one of the same
// tab, as after /new, is not shown next to it. Edits, reactions and deletions are
// shown with the row that they change: WebAfter returns them, for the change, and
// WebHistory does not.

// WebHistory returns the readable rows of a web chat before row id before, in
// one topic unless topic is nil, oldest first; at most limit, the newest.
func (r Reader) WebHistory(ctx context.Context, chatJID string, topic *string, before int64, limit int) (rows []*msg.Message, err error) {
	if topic == nil {
		rows, err = r.messages(ctx, queryWebBefore, chatJID, before, limit)
	} else {
		rows, err = r.messages(ctx, queryWebTopicBefore, chatJID, *topic, before, limit)
	}
	slices.Reverse(rows)
	return rows, err
}

// WebAfter returns the readable rows of a web chat after a row id, oldest first,
// at most limit. It stops at the first row that is not delivered yet: that one
// will become readable, and must not follow one with a higher id. next is the id
// to continue after.
func (r Reader) WebAfter(ctx context.Context, chatJID string, after int64, limit int) (rows []*msg.Message, next int64, err error) {
	all, err := r.messages(ctx, queryWebAfter, chatJID, after, limit)
	next = after
	for _, m := range all {
		if m.OutState == msg.OutQueued || m.OutState == msg.OutSending {
			break
		}
		next = m.ID
		rows = append(rows, m)
	}
	return rows, next, err
}

// Changes returns the delivered edits, reactions and deletions of a row by agents,
// oldest first.
func (r Reader) Changes(ctx context.Context, m *msg.Message) ([]*msg.Message, error) {
	switch {
	case m.Direction == msg.Out:
		return r.messages(ctx, queryChangesOfRow, m.ID)
	case m.PlatformID != "":
		return r.messages(ctx, queryChangesOfPost, m.ChatJID, m.PlatformID)
	}
	return nil, nil
}

// Changed returns the row that an outbound edit, reaction or deletion changes, nil if
// it is gone.
func (r Reader) Changed(ctx context.Context, change *msg.Message) (*msg.Message, error) {
	if change.DerivedFrom != 0 {
		return r.Message(ctx, change.DerivedFrom)
	}
	return r.MessageByPlatformID(ctx, change.ChatJID, change.TargetID)
}

// WebEnd is the row id from which a page that has read the history of a web chat
// continues with WebAfter: the highest one with no undelivered row before it.
func (r Reader) WebEnd(ctx context.Context, chatJID string) (id int64, err error) {
	_, err = r.q.get(ctx, []any{&id}, queryWebEnd, chatJID)
	return id, err
}

// WebTopic is a tab of a web chat.
type WebTopic struct {
	Topic  string
	LastID int64 // of its newest row
	LastAt int64 // when that row arrived, unix ms
}

// WebTopics lists the topics of a web chat that have rows, in no order.
func (r Reader) WebTopics(ctx context.Context, chatJID string) ([]WebTopic, error) {
	return collect(ctx, r.q, func(scan scanner) (t WebTopic, err error) {
		err = scan(&t.Topic, &t.LastID, &t.LastAt)
		return t, err
	}, queryWebTopics, chatJID)
}

// LastWebMessage is the newest readable row of a web chat, nil in an empty one.
func (r Reader) LastWebMessage(ctx context.Context, chatJID string) (*msg.Message, error) {
	const end = 1<<63 - 1
	return first(r.messages(ctx, queryWebBefore, chatJID, int64(end), 1))
}
