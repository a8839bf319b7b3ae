package turncontext

import (
	"context"
	"path"
	"slices"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/shown/prompt"
	"arizuko/gated/internal/shown/window"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// window writes the recent lines of a turn's chat as they were when its newest row was
// stored, without the turn's rows, the reply chain and the rows that were shown; "" if none
// are left.
func (r Reader) window(ctx context.Context, q *Request, batch, chain []*msg.Message) (string, error) {
	if !q.Facts.Unseen || q.Turn.WorksForGroup() { // its chat is another group's
		return "", nil
	}
	recent, err := rows.Recent(ctx, r.Store, scope(q.Turn), newest(batch))
	if err != nil {
		return "", err
	}
	except := map[int64]bool{}
	for _, m := range batch {
		except[m.ID], except[m.DerivedFrom] = true, true
	}
	for _, m := range chain {
		except[m.ID] = true
	}
	shown := &q.Shown
	rows := make([]window.Row, len(recent))
	for i := range recent {
		m := &recent[i]
		rows[i] = window.Row{
			ID: m.ID, Parent: m.Parent, Place: m.ThreadID, Opens: m.Opens, Time: m.Timestamp,
			Sender: m.Sender, Name: m.SenderName, Own: m.Own, Quoted: m.Quoted,
			Text: msg.TextOf(m.Kind, m.Content, m.Attachments), More: m.Omitted,
		}
		if !m.Own {
			rows[i].Agent = msg.AgentOf(m.Sender)
		}
		if m.ID <= shown.Upto || shown.Rows[m.ID] || m.Own && shown.Own != nil && shown.Own(m.TurnID) {
			except[m.ID] = true
		}
	}
	reserved, err := r.reserved(ctx, q.Turn.Folder)
	if err != nil {
		return "", err
	}
	return window.Text(window.Input{
		Rows: rows, Except: except, You: trigger(q.Turn, batch), Assistant: q.Group.AssistantName, Reserved: reserved,
	}), nil
}

// reserved are names of a group and of its assistant.
func (r Reader) reserved(ctx context.Context, folder string) ([]string, error) {
	names := append(slices.Clone(r.Names), folder, path.Base(folder))
	group, err := r.Store.Group(ctx, folder)
	if group != nil {
		names = append(names, group.Name)
	}
	return names, err
}

// scope is the part of the chat around a turn: its thread, the topic of a web chat,
// else all of it. A thread that the turn's answer opens has nothing in it yet.
func scope(t *msg.Turn) rows.Scope {
	s := rows.Scope{ChatJID: t.ChatJID}
	if platform, _ := msg.SplitJID(t.ChatJID); platform == msg.PlatformWeb {
		s.WebTopic = &t.Place
	} else if t.ThreadID != t.ReplyTo {
		s.ThreadID = t.ThreadID
	}
	return s
}

// trigger is the sender of the message that the turn answers.
func trigger(t *msg.Turn, batch []*msg.Message) (sender string) {
	for _, m := range batch {
		if sender = m.Sender; m.ID == t.TriggerMessageID {
			break
		}
	}
	return sender
}

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
	if !q.Facts.Elsewhere {
		return q.Facts.LastDecision, nil
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
