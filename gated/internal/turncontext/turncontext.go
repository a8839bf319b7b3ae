// Package turncontext reads what a turn's prompt shows besides its messages: the chain
// of messages that these reply to, and the recent lines of the chat.
package turncontext

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"arizuko/gated/internal/window"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxChain is how far a reply chain is followed.
	maxChain = 20
	// maxRow and maxBlock bound one row of context, and each block of them, in bytes.
	maxRow   = 8 << 10
	maxBlock = 256 << 10
)

// Reader reads the context of turns.
type Reader struct{ Store store.Reader }

// Chain is the messages that the rows of a turn reply to, oldest first.
type Chain struct {
	Rows   []*msg.Message
	RowIDs map[string]int64 // row ids by platform id, of the chain and of the turn's rows
}

// ReplyChain follows the replies of a turn's rows, with edits up to row upto applied.
// It leaves out deleted messages, and those that known reports; it follows no chain
// beyond them.
func (r Reader) ReplyChain(ctx context.Context, batch []*msg.Message, upto int64, known func(id int64) bool) (Chain, error) {
	c := Chain{RowIDs: map[string]int64{}}
	seen := map[int64]bool{}
	for _, m := range batch {
		seen[m.ID] = true
		if m.PlatformID != "" {
			c.RowIDs[m.PlatformID] = m.ID
		}
	}
	follow := func(chatJID, link string) error {
		for range maxChain {
			if link == "" || c.RowIDs[link] != 0 {
				return nil
			}
			parent, err := r.Store.MessageByPlatformID(ctx, chatJID, link)
			if err != nil || parent == nil {
				return err
			}
			c.RowIDs[link] = parent.ID
			if seen[parent.ID] || known(parent.ID) {
				return nil
			}
			seen[parent.ID] = true
			if err := r.addChanged(ctx, &c, parent, upto); err != nil {
				return err
			}
			link = parent.ReplyToID
		}
		return nil
	}
	for _, m := range batch {
		if err := errors.Join(follow(m.ChatJID, m.ReplyToID), follow(m.ChatJID, m.TargetID)); err != nil {
			return c, err
		}
	}
	slices.SortFunc(c.Rows, func(a, b *msg.Message) int { return cmp.Compare(a.ID, b.ID) })
	c.Rows = Bound(c.Rows)
	return c, nil
}

// ForkLink stands for a reply to the message at which the fork that a turn runs in
// begins, so that its chain is followed; nil if the turn's topic is no fork.
func (r Reader) ForkLink(ctx context.Context, t *msg.Turn) (*msg.Message, error) {
	fork, err := r.Store.Fork(ctx, t.ChatJID, t.Topic)
	if err != nil || fork == nil || fork.Folder != t.Folder {
		return nil, err
	}
	m, err := r.Store.Message(ctx, fork.MessageID)
	if err != nil || m == nil || m.PlatformID == "" {
		return nil, err
	}
	return &msg.Message{ChatJID: m.ChatJID, ReplyToID: m.PlatformID}, nil
}

// addChanged adds a row to the chain as its last edit left it, unless it was deleted.
func (r Reader) addChanged(ctx context.Context, c *Chain, m *msg.Message, upto int64) error {
	change, err := r.Store.LastChange(ctx, m.ID, upto)
	switch {
	case err != nil:
		return err
	case change == nil:
	case change.Deleted:
		return nil
	default:
		m.Content = change.Content
	}
	c.Rows = append(c.Rows, m)
	return nil
}

// Newest is the highest id of a turn's rows: its context is of the time when that row
// was stored.
func Newest(batch []*msg.Message) (id int64) {
	for _, m := range batch {
		id = max(id, m.ID)
	}
	return id
}

// Shown is what the run of a turn has been shown.
type Shown struct {
	Upto int64                 // recent lines up to this row
	Rows map[int64]bool        // other rows, by id
	Own  func(turn int64) bool // reports its own turns, whose answers it wrote; nil for none
}

// Window writes the recent lines of a turn's chat as they were when its newest row was
// stored, without the turn's rows, the reply chain and what was shown; "" if none are
// left.
func (r Reader) Window(ctx context.Context, t *msg.Turn, batch, chain []*msg.Message, shown Shown, assistant string) (string, error) {
	if t.Kind == msg.Delegated { // its chat is another group's
		return "", nil
	}
	recent, err := r.Store.Recent(ctx, scope(t), Newest(batch))
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
	rows := make([]window.Row, len(recent))
	for i := range recent {
		m := &recent[i]
		rows[i] = window.Row{
			ID: m.ID, Parent: m.Parent, Time: m.Timestamp, Sender: m.Sender, Name: m.SenderName, Own: m.Own, Text: textOf(m), More: m.Omitted,
		}
		if m.ID <= shown.Upto || shown.Rows[m.ID] || m.Own && shown.Own != nil && shown.Own(m.TurnID) {
			except[m.ID] = true
		}
	}
	return window.Text(window.Input{
		Rows: rows, Except: func(id int64) bool { return except[id] }, You: trigger(t, batch), Assistant: assistant,
	}), nil
}

// scope is the part of the chat around a turn: its thread, the topic of a web chat,
// else all of it. A thread that the turn's answer opens has nothing in it yet.
func scope(t *msg.Turn) store.Scope {
	s := store.Scope{ChatJID: t.ChatJID}
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

// textOf is the text of a row, with what it has instead of a text or besides.
func textOf(m *store.Recent) string {
	var parts []string
	if m.Content != "" {
		parts = append(parts, m.Content)
	}
	if m.Kind == msg.KindPoll {
		if poll, err := msg.ParsePoll(m.Content); err == nil {
			parts[0] = fmt.Sprintf("[poll: %s %s]", poll.Question, strings.Join(poll.Options, " / "))
		}
	}
	const most = 5
	for i, a := range m.Attachments {
		if i == most {
			parts = append(parts, fmt.Sprintf("[%d more files]", len(m.Attachments)-most))
			break
		}
		parts = append(parts, fmt.Sprintf("[file: %.100s]", cmp.Or(a.Name, a.MIME, "unnamed")))
	}
	return strings.Join(parts, " ")
}

// Bound bounds a block of context: long rows are cut, and the newest rows kept.
func Bound(rows []*msg.Message) []*msg.Message {
	size := 0
	for i := len(rows) - 1; i >= 0; i-- {
		m := rows[i]
		if over := len(m.Content) - maxRow; over > 0 {
			m.Content = fmt.Sprintf("%s… [%d bytes more]", strings.ToValidUTF8(m.Content[:maxRow], ""), over)
		}
		if size += len(m.Content); size > maxBlock {
			return rows[i+1:]
		}
	}
	return rows
}

// Titles returns the titles of the chats of rows, by JID.
func (r Reader) Titles(ctx context.Context, rows []*msg.Message) (map[string]string, error) {
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
