package tools

import (
	"cmp"
	"context"
	"errors"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Names of the tools by which an agent makes others work. They share one limit.
const (
	delegateName = "delegate"
	escalateName = "escalate"
	injectName   = "inject_message"
)

// errTooMuch and errTooDeep end loops and storms of agents.
var (
	errTooMuch = refuse("the request that you work on has been passed on %d times, which is the limit: do the rest yourself, or say in your answer what is left undone", msg.MaxDelegations)
	errTooDeep = refuse("the request that you work on has been passed on %d levels deep, which is the limit: answer it yourself, or say in your answer what is left undone", msg.MaxDelegationDepth)
)

// limitNotice is sent to the chat, once for each of its requests.
const limitNotice = "(My agents passed this request on to each other more often than they may. What is left of it is not done.)"

// forward writes a row by which an agent makes a group work, in the transaction of the
// call. It counts against the request from which the turn comes.
func forward[In any](ctx context.Context, c *Caller, in In,
	write func(tx *store.Tx) (*msg.Message, error)) (out messageOut, err error) {
	out, err = once(ctx, c, in, func(tx *store.Tx) (out messageOut, err error) {
		if c.Turn.Depth >= msg.MaxDelegationDepth {
			return out, errTooDeep
		}
		n, err := rows.CountCallsOfRoot(ctx, tx.Reader, c.Turn.Root(), [...]string{delegateName, escalateName,
			injectName})
		if err != nil {
			return out, err
		}
		if n >= msg.MaxDelegations {
			return out, errTooMuch
		}
		m, err := write(tx)
		if err != nil {
			return out, err
		}
		m.OnBehalfOf = c.origin.Sender
		now := c.Services.now()
		m.Direction, m.Sender, m.SenderName = msg.In, msg.AgentSender(c.Turn.Folder),
			cmp.Or(m.SenderName, c.Turn.Folder)
		m.Timestamp, m.ReceivedAt = now, now
		out.MessageID, _, err = tx.PutMessage(m)
		return out, err
	})
	return out, c.noticeLimit(ctx, err)
}

// noticeLimit returns the error of a call. If it is one of the limits of a request, it notifies the chat of the
// request, once.
func (c *Caller) noticeLimit(ctx context.Context, err error) error {
	if !errors.Is(err, errTooMuch) && !errors.Is(err, errTooDeep) && !errors.Is(err, errReminderDepth) {
		return err
	}
	return errors.Join(err, c.write(ctx, func(tx *store.Tx) error {
		root, err := tx.Turn(ctx, c.Turn.Root())
		if err != nil || root == nil {
			return err
		}
		notified, err := rows.HasNotice(ctx, tx.Reader, root.ID, limitNotice)
		if err != nil || notified {
			return err
		}
		return rows.PutInterimNotice(tx, root, limitNotice, c.Services.now())
	}))
}

// returnAddress is where the answer to a turn's row for another group goes: to the place of the turn. A group that
// waits for the answer of the turn itself also gets that of work passed on below, straight from the group that has it.
func returnAddress(ctx context.Context, tx *store.Tx, t *msg.Turn, kind msg.ReturnKind) (*msg.ReturnAddress, error) {
	if kind == msg.Delegation {
		asker, err := rows.Asker(ctx, tx.Reader, t)
		if err != nil {
			return nil, err
		}
		if asker != nil {
			back := *asker
			back.TurnID, back.Depth = t.ID, t.Depth+1
			return &back, nil
		}
	}
	return &msg.ReturnAddress{
		Kind: kind, TurnID: t.ID, RootTurnID: t.RootOfWork(), Depth: t.Depth + 1, Folder: t.Folder, ChatJID: t.ChatJID,
		Topic: t.Topic, ThreadID: t.ThreadID, Place: t.Place, ReplyTo: t.ReplyTo, Surface: t.Surface,
		Ceiling: t.Ceiling, Claims: t.ClaimsEngagement,
	}, nil
}

// request is a row by which the caller asks another group to work, or a refusal.
func (c *Caller) request(ctx context.Context, tx *store.Tx, kind msg.ReturnKind, folder,
	prompt string) (*msg.Message, error) {
	if err := c.checkWork(ctx, tx, folder); err != nil {
		return nil, err
	}
	address, err := returnAddress(ctx, tx, c.Turn, kind)
	if err != nil {
		return nil, err
	}
	return &msg.Message{
		ChatJID: msg.GroupJID(folder), IsBot: true, Content: prompt, Source: msg.SourceDelegate, ForwardedFrom: address,
	}, nil
}
