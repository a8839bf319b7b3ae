package tools

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/layers"
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
	errTooMuch = refuse("the request that you work on has been passed on %d times, which is the limit: "+
		"do the rest yourself, or say in your answer what is left undone", msg.MaxDelegations)
	errTooDeep = refuse("the request that you work on has been passed on %d levels deep, which is the limit: "+
		"answer it yourself, or say in your answer what is left undone", msg.MaxDelegationDepth)
)

// limitNotice is sent to the chat, once for each of its requests.
const limitNotice = "(My agents passed this request on to each other more often than they may. " +
	"What is left of it is not done.)"

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

type delegateIn struct {
	Folder string `json:"folder" jsonschema:"the group below yours that is to do the work, by its full name such as acme/eng"`
	Prompt string `json:"prompt" jsonschema:"the work, with everything that the other agent must know: it reads neither the messages of this chat nor your session"`
}

func delegate() Tool {
	return define(Tool{
		Name: delegateName, Title: "Delegate work to a group below", Kind: Adds,
		Description: "Gives work to the agent of a group below yours, which answers straight into this chat, " +
			"beside your own answer. Use it for what that group knows or owns. You get no answer back: " +
			"do not wait for one, and do not do the same work yourself. Tell the user briefly who works on what.",
		Bounds: map[string]Bound{"folder": Text(1, maxTopic), "prompt": Text(1, maxText)},
	}, func(ctx context.Context, c *Caller, in delegateIn) (out messageOut, err error) {
		if err := c.CheckFolder(in.Folder); err != nil {
			return out, err
		}
		in.Prompt = c.clean(in.Prompt)
		if in.Prompt == "" {
			return out, refuse("prompt is empty: say what the other agent is to do")
		}
		return forward(ctx, c, in, func(tx *store.Tx) (*msg.Message, error) {
			if err := checkBelow(ctx, tx, c.Turn.Folder, in.Folder); err != nil {
				return nil, err
			}
			return c.request(ctx, tx, msg.Delegation, in.Folder, in.Prompt)
		})
	})
}

// checkBelow returns a refusal unless a folder is that of a group below the own one.
func checkBelow(ctx context.Context, tx *store.Tx, own, folder string) error {
	groups, err := tx.Groups(ctx)
	if err != nil {
		return err
	}
	var below []string
	for _, g := range groups {
		if g.Folder != own && msg.Within(g.Folder, own) {
			if g.Folder == folder {
				return nil
			}
			below = append(below, g.Folder)
		}
	}
	if len(below) == 0 {
		return refuse("there is no group below %s: do the work yourself", own)
	}
	const maxNamed = 20
	if len(below) > maxNamed {
		below = append(below[:maxNamed], "…")
	}
	return refuse("%s is not a group below yours: choose one of %s", folder, strings.Join(below, ", "))
}

type escalateIn struct {
	Prompt string `json:"prompt" jsonschema:"the question, with everything that the other agent must know: it reads neither the messages of this chat nor your session"`
}

func escalate() Tool {
	return define(Tool{
		Name: escalateName, Title: "Ask the group above", Kind: Adds,
		Description: "Asks the agent of the group above yours, whose answer comes back to you as a message in " +
			"this topic. Use it for a decision or for knowledge that you do not have. Finish your turn after the " +
			"call, with a short word to the user if the answer may take a while: you continue when the answer arrives.",
		Bounds: map[string]Bound{"prompt": Text(1, maxText)},
	}, func(ctx context.Context, c *Caller, in escalateIn) (out messageOut, err error) {
		in.Prompt = c.clean(in.Prompt)
		if in.Prompt == "" {
			return out, refuse("prompt is empty: say what you want to know")
		}
		return forward(ctx, c, in, func(tx *store.Tx) (*msg.Message, error) {
			above, err := groupAbove(ctx, tx, c.Turn.Folder)
			if err != nil {
				return nil, err
			}
			return c.request(ctx, tx, msg.Escalation, above, in.Prompt)
		})
	})
}

// groupAbove returns the nearest group above the own one, since not each parent is a group.
func groupAbove(ctx context.Context, tx *store.Tx, own string) (string, error) {
	for folder := msg.Parent(own); folder != ""; folder = msg.Parent(folder) {
		group, err := tx.Group(ctx, folder)
		if err != nil {
			return "", err
		}
		if group != nil {
			return folder, nil
		}
	}
	return "", refuse("there is no group above %s: decide it yourself, or ask the user", own)
}

type injectMessageIn struct {
	ChatJID    string `json:"chat_jid" jsonschema:"a chat that your group or one below it answers, such as telegram:-100123 or group:acme/eng"`
	Content    string `json:"content" jsonschema:"the text, which is treated as if a user had written it there: #name at its start runs it in that topic, and a bare #name pins the chat to the topic for all users until a bare #, where the user for whom you work may do that"`
	Topic      string `json:"topic,omitempty" jsonschema:"the topic of the chat, such as #deploy, or a thread of it"`
	SenderName string `json:"sender_name,omitempty" jsonschema:"the name shown as the sender's; left out: your group's"`
}

func injectMessage() Tool {
	return define(Tool{
		Name: injectName, Title: "Write into a chat like a user", Kind: Adds,
		Description: "Puts a message into a chat as if a user had written it there, so that the chat's agent sees or " +
			"answers it by the chat's own rules. It is not sent to the platform. " +
			"Use it to start work in another chat or topic. In this chat it starts a further turn of your own, " +
			"which answers the text: do not answer yourself with it. To write to the users of this chat, " +
			"use send_message; to give work to a group below and have it answered here, use delegate. " +
			"Commands such as /new and names of groups such as @eng are refused.",
		Bounds: map[string]Bound{"chat_jid": Text(3, maxJID), "content": Text(1, maxText), "topic": Text(0, maxTopic),
			"sender_name": Text(0, maxTopic)},
	}, func(ctx context.Context, c *Caller, in injectMessageIn) (out messageOut, err error) {
		if platform, room := msg.SplitJID(in.ChatJID); platform == "" || room == "" {
			return out, refuse("chat_jid %.100q is no address of a chat: it reads platform:room, such as %s",
				in.ChatJID, c.Turn.ChatJID)
		}
		in.Content = strings.TrimSpace(c.clean(in.Content))
		if in.Content == "" {
			return out, refuse("content is empty: there is nothing to write")
		}
		if _, isCommand := layers.ParseCommand(in.Content, msg.FamilyOf(in.ChatJID),
			func(string) bool { return true }); isCommand || strings.HasPrefix(in.Content, "@") {
			return out, refuse("commands and @names are for users: write plain text; reset_session begins a " +
				"new session, delegate asks a group below yours")
		}
		return forward(ctx, c, in, func(tx *store.Tx) (*msg.Message, error) {
			if err := c.CheckChat(ctx, tx.Reader, in.ChatJID); err != nil {
				return nil, err
			}
			if err := c.checkInjection(ctx, tx, in); err != nil {
				return nil, err
			}
			thread, place, err := placeOf(ctx, tx.Reader, c.turnIn(in.ChatJID), in.Topic)
			if err != nil {
				return nil, err
			}
			if err := checkTakes(ctx, tx.Reader, in.ChatJID, thread,
				"give the id of a post as topic, so that the answer has a place"); err != nil {
				return nil, err
			}
			return &msg.Message{
				ChatJID: in.ChatJID, Verb: msg.VerbMessage, Content: in.Content, SenderName: in.SenderName,
				Topic: place, ThreadID: thread,
				Source: msg.SourceTool, ForwardedFrom: &msg.ReturnAddress{Kind: msg.Injection, TurnID: c.Turn.ID,
					RootTurnID: c.Turn.RootOfWork(), Depth: c.Turn.Depth + 1, Folder: c.Turn.Folder},
			}, nil
		})
	})
}

// checkInjection returns a refusal unless the chat's group may be made to work, and unless the text pins no chat that
// the turn's sender may not pin.
func (c *Caller) checkInjection(ctx context.Context, tx *store.Tx, in injectMessageIn) error {
	home, err := c.Services.Chats.Home(ctx, tx.Reader, in.ChatJID)
	if err != nil {
		return err
	}
	if err := c.checkWork(ctx, tx, home); err != nil {
		return err
	}
	return c.checkPin(ctx, tx.Reader, in.ChatJID, in.Content)
}
