package turncontext

import (
	"context"
	"path"
	"slices"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/shown/window"
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
		Rows: rows, Except: except, You: trigger(q.Turn, batch),
		Assistant: q.Group.AssistantName, Reserved: reserved,
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
