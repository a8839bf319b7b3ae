package turncontext

import (
	"context"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/shown/prompt"
	"arizuko/gated/internal/shown/window"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

const (
	// maxObserved is how many rows of other chats a prompt shows.
	maxObserved = 100
	// observedFor is how far back the first turn of a session looks.
	observedFor = 24 * time.Hour
	// maxRow and maxBlock bound one row of context, and each block of them, in bytes.
	maxRow   = 8 << 10
	maxBlock = 256 << 10
)

// observed adds the rows of other chats that the session has not seen, none to a turn that
// is isolated, and returns the last decision that it has now seen.
func (r Reader) observed(ctx context.Context, q *Request, isolated bool, in *prompt.Input) (through int64, err error) {
	after := q.Shown.Through
	if !q.Shown.Prompted {
		before, err := rows.LastAnswered(ctx, r.Store, q.Turn.Folder, q.Turn.Topic, q.Moment.BeforeTurn)
		if err != nil {
			return 0, err
		}
		after = before.ObservedUpto
	}
	if isolated || q.Group.Observe == groupconfig.ObserveNone {
		return after, nil
	}
	var since int64
	if after == 0 {
		since = q.Moment.At.Add(-observedFor).UnixMilli()
	}
	rows, left, err := rows.Observed(ctx, r.Store, rows.ObservedQuery{
		Folder: q.Turn.Folder, ExceptChat: q.Turn.ChatJID, After: after, Through: q.Moment.Through, Since: since,
		Shared: q.Group.Observe == groupconfig.ObserveShared, Limit: maxObserved,
	})
	if err != nil {
		return 0, err
	}
	through = q.Facts.LastDecision
	for _, row := range rows { // rows may have been decided since
		through = max(through, row.DecisionSeq)
	}
	in.Observed = bound(rows)
	for _, m := range in.Observed { // an agent gets their files by get_attachment
		withoutPath(m)
	}
	in.ObservedLeft = left + len(rows) - len(in.Observed)
	in.ChatTitles, err = r.titles(ctx, in.Observed)
	return through, err
}

// withoutPath removes the paths of a message's files, which are not in the folder of the group.
func withoutPath(m *msg.Message) {
	for i := range m.Attachments {
		m.Attachments[i].Path = ""
	}
}

// bound bounds a block of context: long rows are cut, and the newest rows kept.
func bound(rows []*msg.Message) []*msg.Message {
	size := 0
	for i := len(rows) - 1; i >= 0; i-- {
		m := rows[i]
		m.Content = window.Cut(m.Content, maxRow, 0)
		if size += len(m.Content); size > maxBlock {
			return rows[i+1:]
		}
	}
	return rows
}

// titles are the titles of the chats of rows, by JID.
func (r Reader) titles(ctx context.Context, rows []*msg.Message) (map[string]string, error) {
	titles := map[string]string{}
	for _, row := range rows {
		if _, known := titles[row.ChatJID]; known {
			continue
		}
		chat, err := r.Store.Chat(ctx, row.ChatJID)
		if err != nil {
			return nil, err
		}
		if chat != nil {
			titles[row.ChatJID] = chat.Title
		}
	}
	return titles, nil
}
