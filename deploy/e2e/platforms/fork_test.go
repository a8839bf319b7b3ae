package platforms

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// reach is how users reach a fork.
type reach int

const (
	byReply    reach = iota // in the parent's place
	byThread                // in a thread of its own
	byAnything              // in the parent's thread, whose messages are all for the fork
)

// A user corrects an answer: the agent settles it in a fork with two more questions, posts one corrected answer to the
// parent, and ends the fork. gated is killed twice on the way.
func TestFork_CorrectsAnswerBesideConversation(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		platform func() chatsim.Platform
		place    func(*fixture) chatsim.Conversation
		reach    reach
	}{
		"telegram group":  {newTelegram, (*fixture).askedGroup, byReply},
		"telegram topic":  {newTelegram, (*fixture).askedThread, byReply},
		"discord channel": {newDiscord, (*fixture).askedGroup, byThread},
		"discord thread":  {newDiscord, (*fixture).askedThread, byReply},
		"slack channel":   {newSlack, (*fixture).askedChannel, byThread},
		"slack thread":    {newSlack, (*fixture).askedThread, byAnything},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startWith(newInstance(t), tt.platform(), "caller")
			c := &correction{fixture: f, parent: tt.place(f), reach: tt.reach}
			c.run()
		})
	}
}

const wrongAnswer = "when?\nsay on Monday"

// askedGroup is a group in which the agent was called and has given the wrong answer.
func (f *fixture) askedGroup() chatsim.Conversation {
	group := f.NewGroup("team")
	f.ask(group, wrongAnswer)
	return group
}

func (f *fixture) askedThread() chatsim.Conversation {
	thread := f.NewThread("deploys")
	f.ask(thread, wrongAnswer)
	return thread
}

// askedChannel is a channel in which the agent answers everything, not in threads.
func (f *fixture) askedChannel() chatsim.Conversation {
	channel := f.NewGroup("team")
	f.OK(f.Routd.Do(f.T.Context(), http.MethodPost, "/v1/engagement", map[string]string{"jid": channel.Chat, "topic": "", "folder": "main"}, nil))
	f.say(channel, wrongAnswer)
	return channel
}

// correction is the conversation of the test.
type correction struct {
	*fixture
	parent chatsim.Conversation
	reach  reach
}

func (c *correction) run() {
	wrong := c.waitArrival("on Monday")
	c.WaitIdle()
	session := c.session(c.parent.Thread)
	fork := msg.CorrectionTopic(c.parent.Thread, 1)

	c.Kill(harness.Gated)
	c.StartDaemon(harness.Gated, "FAILPOINT="+string(fp.PutMessage.After())) // the question is stored, its turn is not over
	c.tell(c.parent, wrong.ID, fmt.Sprintf("no\ncall fork_topic {}\ncall send_message {\"text\":\"so when?\",\"topic\":%q}", fork))
	c.waitKilled(harness.Gated)
	if open := c.Query(`SELECT t.state FROM turns t JOIN messages m ON m.turn_id = t.id JOIN forks f WHERE m.content LIKE 'no%fork_topic%' AND f.topic = ?`, fork); len(open) != 1 || open[0] != "running" {
		c.T.Fatalf("turns that have forked: %q, want one that runs", open)
	}
	c.Restart(harness.Gated)
	question := c.waitArrival("so when?")
	c.WaitIdle()
	side := c.parent
	if side.Thread = question.Thread; (side != c.parent) != (c.reach == byThread) {
		c.T.Fatalf("the fork is in thread %q", side.Thread)
	}
	if c.reach != byAnything {
		c.say(c.parent, "and who?\nsay Bob is it")
		c.waitArrival("Bob is it")
		c.wantTopic("and who?", c.parent.Thread)
	}
	c.WaitIdle()
	window := c.window()

	c.tell(side, question.ID, "Tuesday\nsay of which week?")
	next := c.waitArrival("of which week?")
	c.wantTopic("Tuesday", fork)
	if reason := c.Value(`SELECT reason FROM messages WHERE content LIKE 'Tuesday%'`); reason != "engaged" {
		c.T.Errorf("the fork got a message for the reason %s", reason)
	}
	c.restartGated()
	settle := "the next one\ncall send_message {\"text\":\"it is next Tuesday\",\"topic\":%q}\ncall disengage {\"jid\":%q,\"topic\":%q}"
	c.tell(side, next.ID, fmt.Sprintf(settle, c.parent.Thread, c.parent.Chat, fork))
	if a := c.waitArrival("it is next Tuesday"); a.Chat != c.parent.Chat || a.Thread != c.parent.Thread {
		c.T.Errorf("the corrected answer is in %s %q", a.Chat, a.Thread)
	}
	c.wantTopic("the next one", fork)
	c.WaitIdle()
	c.wantEnded(fork, window, session)
	c.goOn(side, question)
}

// tell writes to the agent as users do there: plainly in a place of its own, else in reply to one of its messages.
func (c *correction) tell(in chatsim.Conversation, to, text string) {
	c.T.Helper()
	if c.reach == byReply {
		c.do(chatsim.Action{Conversation: in, Verb: msg.VerbReply, Target: to, Text: text})
		return
	}
	c.say(in, text)
}

// waitKilled waits until a daemon has reached its failpoint.
func (i *instance) waitKilled(daemon string) {
	i.T.Helper()
	p := i.Instance.Process(daemon)
	i.Until(daemon+" to end", func() bool { return !p.Running() })
	if !p.Killed() {
		i.T.Fatalf("%s ended with %s, want killed", daemon, p.State())
	}
}

// restartGated kills gated, whatever it does at the moment.
func (c *correction) restartGated() {
	c.T.Helper()
	c.Kill(harness.Gated)
	c.Restart(harness.Gated)
	c.WaitIdle()
}

func (i *instance) session(topic string) string {
	i.T.Helper()
	return i.Value(`SELECT session_id FROM sessions WHERE group_folder = 'main' AND topic = ?`, topic)
}

// wantTopic fails the test unless the message that begins with a line ran in a topic, once.
func (i *instance) wantTopic(line, topic string) {
	i.T.Helper()
	got := i.Query(`SELECT t.topic || ' ' || t.state FROM messages m JOIN turns t ON t.id = m.turn_id WHERE m.direction = 'in' AND m.content LIKE '%' || ? || '%'`, line+"\n")
	if len(got) != 1 || got[0] != topic+" running" && got[0] != topic+" done" {
		i.T.Errorf("%q ran in %q, want %q", line, got, topic)
	}
}

// window is the engagement of the parent's place as it is stored.
func (c *correction) window() [5]string {
	c.T.Helper()
	c.storeEngagement()
	var window [5]string
	for n, column := range []string{"engaged_folder", "ended_at", "engaged_at", "engaged_until", "last_reply_id"} {
		window[n] = c.Value(`SELECT `+column+` FROM chat_reply_state WHERE jid = ? AND topic = ?`, c.parent.Chat, c.parent.Thread)
	}
	return window
}

// storeEngagement makes routd store the deliveries so far, as every change of a window does.
func (c *correction) storeEngagement() {
	c.T.Helper()
	request := map[string]any{"jid": "telegram:-1", "topic": "nowhere", "ttl_seconds": 0}
	c.OK(c.Routd.Do(c.T.Context(), http.MethodPost, "/v1/engagement", request, nil))
}

// wantEnded fails the test unless the fork is over, and the parent is as it was, but for that answer.
func (c *correction) wantEnded(fork string, window [5]string, session string) {
	c.T.Helper()
	if got := c.Query(`SELECT topic FROM forks WHERE ended_at IS NOT NULL`); len(got) != 1 || got[0] != fork {
		c.T.Errorf("ended forks %q, want %q", got, fork)
	}
	for _, text := range []string{"so when?", "of which week?", "it is next Tuesday"} {
		if n := c.arrived(text); n != 1 {
			c.T.Errorf("%q arrived %d times", text, n)
		}
	}
	if n := c.Value(`SELECT count(*) FROM turns WHERE topic = ?`, fork); n != "2" {
		c.T.Errorf("%s turns ran in the fork, want 2", n)
	}
	if own := c.session(fork); own == "" || own == session || c.session(c.parent.Thread) != session {
		c.T.Errorf("the session of the fork is %q, that of the parent %q, was %q", own, c.session(c.parent.Thread), session)
	}
	got, want := c.window(), window
	if c.reach != byThread { // answers of the fork are answers in that place
		if got[3] < want[3] { // of one length
			c.T.Errorf("the window closes at %s, before at %s", got[3], want[3])
		}
		copy(want[2:], got[2:])
	}
	if got != want || got[0] != "main" {
		c.T.Errorf("the parent's window is %q, was %q", got, want)
	}
}

// arrived counts the messages with a text.
func (f *fixture) arrived(text string) (n int) {
	for _, a := range f.Arrivals() {
		if strings.Contains(a.Text, text) {
			n++
		}
	}
	return n
}

// goOn writes once more where the fork was: the parent answers there, in a thread of the fork's own only if it is called.
func (c *correction) goOn(side chatsim.Conversation, question chatsim.Arrival) {
	c.T.Helper()
	text := "thanks\nsay you are welcome"
	if c.reach == byThread {
		if folder := c.Value(`SELECT engaged_folder FROM chat_reply_state WHERE jid = ? AND topic = ?`, side.Chat, side.Thread); folder != "" {
			c.T.Errorf("%s is engaged in the fork's thread", folder)
		}
		c.do(chatsim.Action{Conversation: side, Verb: msg.VerbMention, Text: text})
	} else {
		c.tell(side, question.ID, text)
	}
	if a := c.waitArrival("you are welcome"); a.Chat != side.Chat || a.Thread != side.Thread {
		c.T.Errorf("answered in %s %q", a.Chat, a.Thread)
	}
	c.wantTopic("thanks", c.parent.Thread)
}
