package main

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// askTimeout is how long questions of agents are open, as ASK_TIMEOUT: some of the random load are never answered.
const askTimeout = "5s"

// asking is a text whose answer comes once a question is answered, or has expired: every second one asks for
// permission.
func (p *provoker) asking(i int) string {
	if i%2 == 1 {
		return "ask_permission " + p.load.plainText()
	}
	return "ask_user red green " + p.load.plainText()
}

// shownAsk is the open question of a chat, once the user can see it.
const shownAsk = `SELECT a.id, m.platform_id, a.options FROM asks a JOIN messages m ON m.id = a.message_id
	WHERE a.state = 'open' AND m.chat_jid = ? AND m.out_state = 'sent' ORDER BY a.id DESC LIMIT 1`

// question waits until a user of a chat can see a question.
func (p *provoker) question(ctx context.Context, c chatsim.Conversation) (a msg.Ask, target string, err error) {
	if err = p.await(ctx, "a question to be delivered", `SELECT EXISTS (`+shownAsk+`)`, c.Chat); err != nil {
		return a, "", err
	}
	var options []byte
	if err = p.db.QueryRow(shownAsk, c.Chat).Scan(&a.ID, &target, &options); err != nil {
		return a, "", err
	}
	return a, target, json.Unmarshal(options, &a.Options)
}

// answerAsks has n questions asked and answered.
func (p *provoker) answerAsks(ctx context.Context, n int) error {
	return p.inNewChats(n, func(i int, c chatsim.Conversation) error {
		p.load.sendText(ctx, c, p.asking(i), msg.VerbMessage)
		a, target, err := p.question(ctx, c)
		if err != nil {
			return err
		}
		press := msg.Press{Ask: a.ID, Option: 1 + i/2%len(a.Options)}
		p.load.perform(ctx, chatsim.Action{Conversation: c, Verb: msg.VerbAnswer, Target: target, Text: press.JSON()})
		return p.awaitDelivered(ctx, c)
	})
}

// stopAsks has n questions asked, whose turns are then stopped.
func (p *provoker) stopAsks(ctx context.Context, n int) error {
	return p.inNewChats(n, func(i int, c chatsim.Conversation) error {
		p.say(ctx, c, p.asking(i))
		if _, _, err := p.question(ctx, c); err != nil {
			return err
		}
		p.say(ctx, c, msg.CommandIn(c.Chat, "stop"))
		return p.awaitDecided(ctx, c)
	})
}

// pressButtons has n buttons pressed on the platform of the daemon: of questions, and every other time the one that
// stops an agent.
func (p *provoker) pressButtons(ctx context.Context, n int) error {
	chats := p.load.answeredChats(p.daemon)
	for i := range n {
		if i%2 == 1 {
			if err := p.stopByButton(ctx); err != nil {
				return err
			}
			continue
		}
		c := chats[i%len(chats)]
		p.load.sendText(ctx, c, p.asking(i), msg.VerbMessage)
		a, target, err := p.question(ctx, c)
		if err != nil {
			return err
		}
		platform, _ := msg.SplitJID(c.Chat)
		_, err = p.load.platforms[platform].Press(c, target, a.Options[0], false)
		if err != nil && p.process().Running() {
			return fmt.Errorf("press: %w", err)
		}
	}
	return nil
}

// stopByButton has an agent at work on the platform of the daemon, and stops it by the button under its preview.
func (p *provoker) stopByButton(ctx context.Context) error {
	c, found := p.load.stoppableChat(p.daemon)
	if !found {
		return fmt.Errorf("no chat for agents that are stopped by %s", p.daemon)
	}
	p.load.perform(ctx, chatsim.Action{Conversation: c, Verb: verbIn(c),
		Text: "work stream slow 20 " + p.load.plainText()})
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	return harness.Await(ctx, "a button that stops the agent", func() (bool, error) {
		if !p.process().Running() {
			return false, errReached
		}
		return p.load.pressStop(c), nil
	})
}

// stoppableChat is a conversation of an adapter's platform in which agents may be stopped, and previews are messages.
func (g *generator) stoppableChat(daemon string) (c chatsim.Conversation, found bool) {
	for _, c := range g.mutating {
		platform, _ := msg.SplitJID(c.Chat)
		if p := g.platforms[platform]; p != nil && p.Info().Daemon == daemon && (c.NeedsMention || daemon != "teled") {
			return c, true
		}
	}
	return c, false
}

// pressStop presses a button that stops an agent, if there is one in a conversation. It reports whether it has.
func (g *generator) pressStop(c chatsim.Conversation) bool {
	platform, _ := msg.SplitJID(c.Chat)
	p := g.platforms[platform]
	if p == nil {
		return false
	}
	messages := p.Stoppable(c)
	if len(messages) == 0 {
		return false
	}
	_, err := p.Press(c, messages[len(messages)-1], msg.StopLabel, false)
	return err == nil // else the agent has just ended
}

// verbIn is the verb of a message in a conversation that is certain to be answered.
func verbIn(c chatsim.Conversation) string {
	if c.NeedsMention {
		return msg.VerbMention
	}
	return msg.VerbMessage
}
