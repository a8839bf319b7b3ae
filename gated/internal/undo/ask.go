// Package undo takes back what a turn has done, and does it again. Rows stay and are marked; what cannot be taken back
// is said.
package undo

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// MaxUndone is how many turns of a topic may be taken back one after another.
const MaxUndone = 10

// Request asks for a turn to be taken back, or with Redo to count again.
type Request struct {
	Turn     int64  // 0: the last one of Topic
	Folder   string // the chat's group
	Topic    string
	Redo     bool
	Rest     bool   // files that have changed since stay as they are
	ChatJID  string // where it is asked, "" for a page
	Message  int64  // the command, 0 for none
	By       string
	Operator bool // By operates the instance
}

// Ask stores a request, which closes the topic's run, and returns it with the run, 0 for none. Where the turn cannot be
// taken back, refusal says why. It is "" for the press of a button by a user who may not: the adapter tells them.
func Ask(tx *store.Tx, q Request, now int64) (u *rows.Undo, run int64, refusal string, err error) {
	a := asked{Request: q, tx: tx}
	if err := a.find(); err != nil {
		return nil, 0, "", err
	}
	if err := tx.Within(a.Folder); err != nil {
		return nil, 0, "", err
	}
	if a.Turn != 0 && a.ChatJID != "" {
		if theirs, err := a.notTheirs(context.Background(), a.Turn); err != nil || theirs != "" {
			return nil, 0, "", err
		}
	}
	turn, refusal, err := a.turn()
	if err != nil || refusal != "" {
		return nil, 0, refusal, err
	}
	u = &rows.Undo{TurnID: turn, Redo: q.Redo, Rest: q.Rest, Folder: a.Folder, Topic: a.Topic, MessageID: q.Message,
		By: q.By, CreatedAt: now}
	run, err = rows.PutUndo(tx, u)
	return u, run, "", err
}

type asked struct {
	Request

	tx     *store.Tx
	undone bool // the turn that is named is taken back
}

// find sets the group and the topic: of the turn that is named, else of the one that answered last in the topic of the
// chat, which need not be the chat's own group.
func (a *asked) find() error {
	ctx := context.Background()
	if a.Turn != 0 {
		t, err := a.tx.Turn(ctx, a.Turn)
		if err == nil && t != nil {
			a.Turn, a.Folder, a.Topic, a.undone = cmp.Or(t.AnsweredWith, t.ID), t.Folder, t.Topic, t.UndoneAt != 0
		}
		return err
	}
	folder, err := rows.LastGroup(ctx, a.tx.Reader, a.ChatJID, a.Topic, a.Redo)
	a.Folder = cmp.Or(folder, a.Folder)
	return err
}

// turn is the turn that the request is about.
func (a *asked) turn() (id int64, refusal string, err error) {
	ctx := context.Background()
	open, err := rows.UndoOpen(ctx, a.tx.Reader, a.Folder, a.Topic)
	if err != nil {
		return 0, "", err
	}
	last, err := rows.LastBegun(ctx, a.tx.Reader, a.Folder, a.Topic)
	if err != nil {
		return 0, "", err
	}
	after := int64(0)
	if last != nil {
		after = last.ID
	}
	undone, err := rows.Undone(ctx, a.tx.Reader, a.Folder, a.Topic, after)
	if err != nil {
		return 0, "", err
	}
	undone = sinceNewest(undone)
	t := last
	switch {
	case open:
		return 0, "A turn of this topic is being taken back or done again right now.", nil
	case a.Redo:
		t, refusal = a.redone(undone)
	default:
		refusal = a.refusal(last, undone)
	}
	if refusal == "" {
		refusal, err = a.notTheirs(ctx, t.ID)
	}
	if err != nil || refusal != "" {
		return 0, refusal, err
	}
	return t.ID, "", nil
}

// sinceNewest are those of the turns, oldest first, that were taken back since the newest of them began.
func sinceNewest(undone []*msg.Turn) []*msg.Turn {
	if len(undone) == 0 {
		return nil
	}
	began := undone[len(undone)-1].StartedAt
	return slices.DeleteFunc(undone, func(t *msg.Turn) bool { return t.UndoneAt < began })
}

// redone is the turn to do again: of those that were taken back the oldest one.
func (a *asked) redone(undone []*msg.Turn) (t *msg.Turn, refusal string) {
	switch {
	case len(undone) == 0:
		return nil, "There is nothing to do again here: nothing was taken back, or a newer turn has begun since."
	case a.Turn != 0 && a.Turn < undone[0].ID:
		return nil, fmt.Sprintf("A newer turn than %d has begun since it was taken back.", a.Turn)
	case a.Turn != 0 && a.Turn != undone[0].ID:
		return nil, fmt.Sprintf("Turn %d was taken back after it: do that one again first.", undone[0].ID)
	case undone[0].ChatJID != a.ChatJID && a.ChatJID != "":
		return nil, fmt.Sprintf(textElsewhere, undone[0].ID)
	}
	return undone[0], ""
}

const textElsewhere = "The last turn of this topic, %d, is of another chat, which shares the session. " +
	"Do that there, or on the dashboard."

// refusal says why the last turn of a topic cannot be taken back, "" if it can.
func (a *asked) refusal(last *msg.Turn, undone []*msg.Turn) string {
	switch {
	case a.undone:
		return fmt.Sprintf("Turn %d is taken back already.", a.Turn)
	case last == nil:
		return "There is nothing to take back here."
	case a.Turn != 0 && a.Turn != last.ID:
		return fmt.Sprintf("Turn %d came after it: take that one back first.", last.ID)
	case last.State.IsOpen():
		return fmt.Sprintf("The agent is at work on turn %d. Stop it first, with %s.", last.ID,
			msg.CommandIn(last.ChatJID, msg.CommandStop))
	case last.ChatJID != a.ChatJID && a.ChatJID != "":
		return fmt.Sprintf(textElsewhere, last.ID)
	case len(undone) >= MaxUndone:
		return fmt.Sprintf("%d turns are taken back here, and no more can be. %s does the last of them again.",
			MaxUndone, msg.CommandIn(last.ChatJID, msg.CommandRedo))
	}
	return ""
}

// notTheirs says who may take a turn back if the asker may not.
func (a *asked) notTheirs(ctx context.Context, turn int64) (refusal string, err error) {
	if a.Operator {
		return "", nil
	}
	asking, err := rows.TurnQuestions(ctx, a.tx.Reader, turn)
	if err != nil {
		return "", err
	}
	name := "its sender"
	for _, m := range asking {
		if m.Payer() == a.By {
			return "", nil
		}
		if m.SenderName != "" {
			name = msg.EscapeLine(m.SenderName)
		}
	}
	if operates, err := a.operatesGroup(ctx); err != nil || operates {
		return "", err
	}
	return fmt.Sprintf("Only %s, who asked for it, or an operator can do that.", name), nil
}

// operatesGroup reports whether the asker operates the turn's group, which need not be that of the chat.
func (a *asked) operatesGroup(ctx context.Context) (bool, error) {
	g, err := a.tx.Group(ctx, a.Folder)
	if err != nil || g == nil {
		return false, err
	}
	members, _ := groupconfig.ReadMembers(g.Config) // an invalid one gives the least
	own, err := factrows.MembersFor(ctx, a.tx.Reader, &members, a.ChatJID, a.By)
	return err == nil && own.Operates(a.By), err
}
