package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// stage is a part of a provocation.
type stage func(p *provoker, ctx context.Context, n int) error

// provocation makes a daemon reach a failpoint n times, whatever the random load does. Its parts run
// before the daemon is killed, while it is down, and while it runs with the failpoint.
type provocation struct{ before, down, up stage }

// provocations are those of the failpoints that not every message reaches.
var provocations = []struct {
	points []fp.Point
	how    provocation
}{
	{[]fp.Point{fp.Checkpoint}, provocation{up: (*provoker).awaitCheckpoint}},
	{append(around(fp.RequeueTurn), fp.Recovering), provocation{before: (*provoker).occupyAgent}},
	{[]fp.Point{fp.Piping}, provocation{up: (*provoker).steer}},
	{append(around(fp.EndRun), fp.Exited), provocation{up: (*provoker).endRuns}},
	{around(fp.ChangeContent), provocation{down: (*provoker).editUnread}},
	{around(fp.CancelTurn), provocation{up: (*provoker).stopAgents}},
	{around(fp.Pin), provocation{up: (*provoker).pin}},
	{around(fp.ResetSession, fp.TakeSystem), provocation{up: (*provoker).resetSession}},
	{append(around(fp.TakeUp, fp.ConnectChat), fp.Requested), provocation{up: (*provoker).connect}},
	{around(fp.PutEngagement), provocation{up: (*provoker).mention}},
	{around(fp.PutToolCall), provocation{up: (*provoker).callTool}},
	{around(fp.FireReminder), provocation{up: (*provoker).fireReminders}},
	{undoPoints, provocation{up: (*provoker).undo}},
	{around(fp.PutBroadcast), provocation{up: (*provoker).broadcast}},
	{around(fp.PutVote), provocation{up: (*provoker).vote}},
	{around(fp.PutProgress), provocation{up: (*provoker).showWork}},
	{around(fp.PutAsk, fp.AnswerAsk), provocation{up: (*provoker).answerAsks}},
	{around(fp.ExpireAsk), provocation{up: (*provoker).stopAsks}},
	{[]fp.Point{fp.Pressed}, provocation{up: (*provoker).pressButtons}},
	{append(around(fp.BeginPreview, fp.KeepPreview), fp.Previewing, fp.Previewed),
		provocation{up: (*provoker).showPreviews}},
	{append(around(fp.EndPreview), fp.Unshown), provocation{up: (*provoker).removePreviews}},
	{around(fp.EndPoll), provocation{up: (*provoker).endPolls}},
}

// provocationOf is the provocation of a daemon's failpoint, by default of one that every message reaches.
func provocationOf(c crash) provocation {
	for _, of := range provocations {
		if slices.Contains(of.points, c.point) {
			return of.how
		}
	}
	switch c.daemon {
	case "onbod":
		return provocation{up: (*provoker).connect}
	case "gated", "routd":
		return provocation{up: (*provoker).converse}
	}
	return provocation{up: (*provoker).converseOnPlatform}
}

const (
	// provokedGroup answers only provocations, so that its agents are never busy with anything else.
	provokedGroup = "provoked"
	// provokedRoom begins the rooms of the foreign platform that are routed to it.
	provokedRoom = "p"
	// workSeconds is how long an agent works that must be at work when something else happens. Each
	// further try of a provocation doubles it.
	workSeconds = 3
	// effectTimeout bounds how long the effect of one action may take.
	effectTimeout = 30 * time.Second
)

// provoker runs one provocation. Each has chats of its own on the foreign platform, where neither a fault of
// a platform nor the random load interferes.
type provoker struct {
	load    *generator
	db      *sql.DB
	daemon  string
	seconds int                     // how long an agent works
	process func() *harness.Process // of the daemon
	gated   *httpx.Client
}

func (l *loadedInstance) newProvoker(daemon string, seconds int) *provoker {
	return &provoker{l.load, l.db, daemon, seconds, func() *harness.Process { return l.instance.Process(daemon) },
		l.gated}
}

// run runs a part of a provocation, if there is one. It returns why that may have had no effect.
func (p *provoker) run(ctx context.Context, does stage, n int) error {
	if does == nil {
		return nil
	}
	if err := does(p, ctx, n); !errors.Is(err, errReached) {
		return err
	}
	return nil
}

// errReached ends a provocation whose failpoint is reached.
var errReached = errors.New("failpoint is reached")

// await waits until a query returns a true value. It returns errReached if the daemon has ended.
func (p *provoker) await(ctx context.Context, what, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	return harness.Await(ctx, what, func() (holds bool, err error) {
		if !p.process().Running() {
			return false, errReached
		}
		err = p.db.QueryRow(query, args...).Scan(&holds)
		return holds, err
	})
}

// newChat is a conversation that was not used before.
func (p *provoker) newChat() chatsim.Conversation {
	p.load.written++
	return chatsim.Conversation{Chat: fmt.Sprintf("matrix:%s%d", provokedRoom, p.load.written)}
}

// say sends a message whose fate is not checked, and returns its id.
func (p *provoker) say(ctx context.Context, c chatsim.Conversation, text string) (id string) {
	return p.load.perform(ctx, chatsim.Action{Conversation: c, Verb: msg.VerbMessage, Text: text})
}

// work is a text whose answer takes a while.
func (p *provoker) work() string { return fmt.Sprintf("slow %d %s", p.seconds, p.load.plainText()) }

func (p *provoker) awaitDecided(ctx context.Context, c chatsim.Conversation) error {
	return p.await(ctx, "messages to be decided", `SELECT NOT EXISTS (SELECT 1 FROM messages
		WHERE chat_jid = ? AND direction = 'in' AND disposition IS NULL)`, c.Chat)
}

func (p *provoker) awaitRunning(ctx context.Context, c chatsim.Conversation) error {
	return p.await(ctx, "an agent to work on the message",
		`SELECT EXISTS (SELECT 1 FROM turns WHERE chat_jid = ? AND state = 'running')`, c.Chat)
}

func (p *provoker) awaitDelivered(ctx context.Context, c chatsim.Conversation) error {
	return p.await(ctx, "the answer to be delivered", `SELECT count(CASE WHEN out_state = 'sent' THEN 1 END) > 0
		AND count(CASE WHEN direction = 'in' AND disposition IS NULL OR out_state IN ('queued', 'sending') THEN 1 END) = 0
		AND NOT EXISTS (SELECT 1 FROM turns WHERE chat_jid = ?1 AND ended_at IS NULL) FROM messages WHERE chat_jid = ?1`, c.Chat)
}

// inNewChats does something in n chats, each of its own.
func (p *provoker) inNewChats(n int, do func(i int, c chatsim.Conversation) error) error {
	for i := range n {
		if err := do(i, p.newChat()); err != nil {
			return err
		}
	}
	return nil
}

// converse has n messages answered, each by a run of its own.
func (p *provoker) converse(ctx context.Context, n int) error { return p.send(ctx, n, msg.VerbMessage) }

// mention is converse with mentions: each answer opens an engagement window.
func (p *provoker) mention(ctx context.Context, n int) error { return p.send(ctx, n, msg.VerbMention) }

func (p *provoker) send(ctx context.Context, n int, verb string) error {
	return p.inNewChats(n, func(_ int, c chatsim.Conversation) error {
		p.load.sendText(ctx, c, p.load.plainText(), verb)
		return p.awaitDelivered(ctx, c)
	})
}

// converseOnPlatform sends n messages on the platform of the daemon, each in a chat of its own: answers of
// one chat may be delayed by the platform's rate limit, or be one answer.
func (p *provoker) converseOnPlatform(ctx context.Context, n int) error {
	chats := p.load.answeredChats(p.daemon)
	for i := range n {
		p.load.sendText(ctx, chats[i%len(chats)], p.load.plainText(), msg.VerbMessage)
	}
	return nil
}

// showWork has n messages answered by agents that report their work.
func (p *provoker) showWork(ctx context.Context, n int) error {
	return p.inNewChats(n, func(_ int, c chatsim.Conversation) error {
		p.load.sendText(ctx, c, "work stream slow 0.5 "+p.load.plainText(), msg.VerbMessage)
		return p.awaitDelivered(ctx, c)
	})
}

// showPreviews has n messages answered by agents that take long enough to be shown at work, on the platform of the
// daemon.
func (p *provoker) showPreviews(ctx context.Context, n int) error {
	return p.preview(ctx, n, "work stream slow 2 ")
}

// removePreviews is showPreviews, without answers.
func (p *provoker) removePreviews(ctx context.Context, n int) error {
	return p.preview(ctx, n, "silent work stream slow 2 ")
}

func (p *provoker) preview(ctx context.Context, n int, order string) error {
	chats := p.load.previewChats(p.daemon)
	for i := range n {
		c := chats[i%len(chats)]
		p.load.sendText(ctx, c, order+p.load.plainText(), verbIn(c))
		err := p.await(ctx, "the preview to end",
			`SELECT NOT EXISTS (SELECT 1 FROM turns WHERE chat_jid = ?1 AND ended_at IS NULL)
			AND NOT EXISTS (SELECT 1 FROM messages WHERE chat_jid = ?1 AND (direction = 'in' AND disposition IS NULL OR out_state IN ('queued', 'sending')))
			AND NOT EXISTS (SELECT 1 FROM previews WHERE chat_jid = ?1 AND state = 'open')`, c.Chat)
		if err != nil {
			return err
		}
	}
	return nil
}

// endRuns lets n runs end for want of work.
func (p *provoker) endRuns(ctx context.Context, n int) error {
	for range n {
		if err := p.converse(ctx, 1); err != nil {
			return err
		}
		if err := p.await(ctx, "the run to end",
			`SELECT NOT EXISTS (SELECT 1 FROM runs WHERE folder = ? AND ended_at IS NULL)`, provokedGroup); err != nil {
			return err
		}
	}
	return nil
}

// steer sends n messages to an agent at work.
func (p *provoker) steer(ctx context.Context, n int) error {
	c := p.newChat()
	p.say(ctx, c, p.work())
	if err := p.awaitRunning(ctx, c); err != nil {
		return err
	}
	for range n {
		p.say(ctx, c, p.load.plainText())
		if err := p.awaitDecided(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// occupyAgent leaves an agent at work on n turns.
func (p *provoker) occupyAgent(ctx context.Context, n int) error { return p.steer(ctx, n-1) }

// stopAgents stops n agents at work.
func (p *provoker) stopAgents(ctx context.Context, n int) error {
	return p.inNewChats(n, func(_ int, c chatsim.Conversation) error {
		p.say(ctx, c, p.work())
		if err := p.awaitRunning(ctx, c); err != nil {
			return err
		}
		p.say(ctx, c, msg.CommandIn(c.Chat, "stop"))
		return p.awaitDecided(ctx, c)
	})
}

// editUnread edits n messages before gated has read them.
func (p *provoker) editUnread(ctx context.Context, n int) error {
	return p.inNewChats(n, func(_ int, c chatsim.Conversation) error {
		id := p.say(ctx, c, p.load.plainText())
		p.load.perform(ctx, chatsim.Action{Conversation: c, Verb: msg.VerbEdit, Target: id, Text: p.load.plainText()})
		return nil
	})
}

// pin pins n chats to a topic.
func (p *provoker) pin(ctx context.Context, n int) error {
	return p.inNewChats(n, func(_ int, c chatsim.Conversation) error {
		p.say(ctx, c, "#pinned")
		return p.awaitDecided(ctx, c)
	})
}

// resetSession resets a session n times. The next prompt carries a system message about it.
func (p *provoker) resetSession(ctx context.Context, n int) error {
	c := p.newChat()
	for range n {
		p.say(ctx, c, msg.CommandIn(c.Chat, "new "+p.load.plainText()))
		if err := p.awaitDelivered(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// awaitCheckpoint waits for gated's next checkpoints, which need no message.
func (p *provoker) awaitCheckpoint(ctx context.Context, _ int) error {
	return p.await(ctx, "a checkpoint", `SELECT 0`)
}
