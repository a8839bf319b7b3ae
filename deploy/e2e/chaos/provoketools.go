package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
)

// newToolChat is a conversation of provokedTools that was not used before.
func (p *provoker) newToolChat() chatsim.Conversation {
	p.load.written++
	return chatsim.Conversation{Chat: fmt.Sprintf("matrix:%s%d", provokedToolsRoom, p.load.written)}
}

// callTool has an agent call a tool n times.
func (p *provoker) callTool(ctx context.Context, n int) error {
	c := p.newToolChat()
	var e toolMessage
	for range n {
		more := sendTwice(p.load, c, p.load.plainText())
		more.effects[0].want = 1
		line, _, _ := strings.Cut(more.content, "\n")
		e.content, e.effects = strings.TrimPrefix(e.content+"\n"+line, "\n"), append(e.effects, more.effects...)
	}
	p.load.sendToolMessage(ctx, c, e)
	return p.awaitDelivered(ctx, c)
}

// fireReminders has n reminders fire at once.
func (p *provoker) fireReminders(ctx context.Context, n int) error {
	c, at := p.newToolChat(), time.Now().Add(2*time.Duration(p.seconds)*time.Second).UTC().Format(time.RFC3339)
	var lines []string
	for range n {
		lines = append(lines, fmt.Sprintf(`call reminder_create {"kind":"text","body":%q,"due_at":%q}`,
			p.load.plainText(), at))
	}
	p.say(ctx, c, strings.Join(lines, "\n"))
	return p.await(ctx, "reminders to fire", `SELECT count(*) = ? FROM reminders WHERE chat_jid = ? AND state = 'done'`,
		n, c.Chat)
}

// broadcast makes an operator send n broadcasts, and repeat each until gated has taken it.
func (p *provoker) broadcast(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	chats := []string{p.load.toolChats[0].Chat, p.load.toolChats[1].Chat}
	for range n {
		text := p.load.plainText()
		p.load.broadcasts = append(p.load.broadcasts,
			effect{`SELECT (SELECT count(DISTINCT chat_jid) + count(*) FROM messages WHERE source = 'broadcast' AND content = ?1)
			- 4 * (SELECT count(*) FROM broadcasts WHERE text = ?1)`, []any{text}, 0})
		for p.gated.Do(ctx, http.MethodPost, "/v1/broadcasts",
			map[string]any{"chats": chats, "text": text, "by": "web:operator", "key": text}, nil) != nil {
			if !p.process().Running() {
				return errReached
			}
			if ctx.Err() != nil {
				return fmt.Errorf("broadcast: %w", ctx.Err())
			}
			pause(ctx, approvalInterval)
		}
	}
	return nil
}

// vote has a user vote n times in a poll.
func (p *provoker) vote(ctx context.Context, n int) error {
	c := p.newToolChat()
	p.say(ctx, c, fmt.Sprintf(`call poll_create {"question":%q,"options":["yes","no"]}`, p.load.plainText()))
	const poll = `SELECT platform_id FROM messages WHERE chat_jid = ? AND kind = 'poll' AND out_state = 'sent'`
	if err := p.await(ctx, "a poll to be delivered", `SELECT EXISTS (`+poll+`)`, c.Chat); err != nil {
		return err
	}
	var target string
	if err := p.db.QueryRow(poll, c.Chat).Scan(&target); err != nil {
		return err
	}
	for i := range n {
		vote := msg.Vote{Options: []int{1 + i%2}}
		p.load.perform(ctx, chatsim.Action{Conversation: c, Verb: msg.VerbVote, Target: target, Text: vote.JSON()})
		if err := p.awaitDecided(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// endPolls has n polls closed.
func (p *provoker) endPolls(ctx context.Context, n int) error {
	c := p.newToolChat()
	var e toolMessage
	for range n {
		more := closePoll(p.load, c, p.load.plainText())
		e.content, e.effects = strings.TrimPrefix(e.content+"\n"+more.content, "\n"), append(e.effects, more.effects...)
	}
	p.load.sendToolMessage(ctx, c, e)
	return p.await(ctx, "polls to end",
		`SELECT count(*) = ? FROM polls WHERE chat_jid = ? AND end_pending = 0 AND state = 'closed'`, n, c.Chat)
}

// undo has an agent change a file and takes that back, n times.
func (p *provoker) undo(ctx context.Context, n int) error {
	c := p.newToolChat()
	for done := range n {
		text := p.load.plainText()
		p.load.sendToolMessage(ctx, c, toolMessage{content: "write undone.txt " + text + "\nsay " + text,
			effects: []effect{answerLine(c, text)}})
		sent := len(p.load.toolMessages) - 1
		if err := p.awaitDelivered(ctx, c); err != nil {
			return err // before the undo was asked for
		}
		p.say(ctx, c, msg.CommandIn(c.Chat, msg.CommandUndo))
		p.load.toolMessages[sent].effects = append(p.load.toolMessages[sent].effects, effect{
			`SELECT count(*) FROM undos u JOIN turns t ON t.id = u.turn_id JOIN messages m ON m.id = t.trigger_message_id
				WHERE t.undone_at IS NOT NULL AND u.state = 'done' AND instr(u.answer, 'files restored: 1') > 0
				AND instr(m.content, ?) > 0`, []any{text}, 1})
		err := p.await(ctx, "a turn to be taken back", `SELECT count(*) = ? FROM undos u JOIN turns t ON t.id = u.turn_id
			WHERE t.chat_jid = ? AND u.state = 'done'`, done+1, c.Chat)
		if err != nil {
			return err
		}
	}
	return nil
}
