package runtimes

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/anthropic"
)

// conversation is a scenario with Claude Code in its own group.
type conversation struct {
	name   string
	folder string
	env    string // further environment of the group's agent, in shell syntax
	run    func(*chat)
}

var conversations = []conversation{
	{"the first answer", "first", "", firstAnswer},
	{"two messages during a run", "piped", "", twoDuringRun},
	{"messages during a tool call", "folded", "", foldedIntoRun},
	{"gated is killed with messages taken in", "folded-killed", "", foldedAndKilled},
	{"gated is killed during a run", "resumed", "", gatedKilled},
	{"Claude Code is killed during a run", "killed", "", claudeKilled},
	{"stop during a run", "stopped", "", stopped},
	{"a tool of arizuko", "tools", "", toolCalled},
	{"new session", "new", "", newSession},
	{"its session is gone", "gone", "", sessionGone},
	{"an invalid key", "key", "ANTHROPIC_API_KEY=$WRONG_KEY CLAUDE_CODE_MAX_RETRIES=0", invalidKey},
	{"the model is overloaded for a while", "room", "CLAUDE_CODE_MAX_RETRIES=1", overloaded},
	{"the model is overloaded until the turn fails", "busy", "CLAUDE_CODE_MAX_RETRIES=0", overloadedForLong},
}

func firstAnswer(c *chat) {
	c.wantAnswer("say hello", "hello")
	c.wantAnswer("tool Bash echo key $ANTHROPIC_API_KEY", "The tool said: key [redacted]")
	for _, call := range c.model.MessageCalls() {
		system := call.Request.System.Text()
		for _, words := range []string{`You are "arizuko", a member of chats that arizuko connects you to.`, "## What you get", "<internal>a reason</internal>", "Your working folder stays; all chats and topics of your group share it"} {
			if !strings.Contains(system, words) {
				c.t.Errorf("the system prompt has no %q:\n%s", words, system)
			}
		}
	}
}

// confinedFiles is for confined agents: others can read what the user of gated can.
func confinedFiles(c *chat) {
	for _, file := range []string{"secret", "arizuko.db", "groups/first"} {
		if got := c.Answer(c.say("tool Bash cat " + filepath.Join(c.Data, file))); !strings.Contains(got, "No such file") {
			c.t.Errorf("%s: answer %q", file, got)
		}
	}
}

func twoDuringRun(c *chat) {
	rows := []int64{c.ask("slow 2 say one"), c.say("say two")}
	c.WaitDecided(rows[1])
	rows = append(rows, c.say("say three"))
	first := c.WaitEnded(rows[0])
	for i, row := range rows {
		turn := c.WaitEnded(row)
		if turn.RunID != first.RunID || turn.Attempts != 0 || i > 0 && turn.ID == first.ID {
			c.t.Errorf("turn %+v, the first one %+v", turn, first)
		}
	}
	// There is no tool call to fold them into: Claude Code begins both as one turn, and the fake answers the last message.
	if texts := c.outbound(); !slices.Equal(texts, []string{"one", "three"}) || c.Turn(rows[2]).AnsweredWith != c.Turn(rows[1]).ID {
		c.t.Errorf("outbound texts %q, the last turn %+v", texts, c.Turn(rows[2]))
	}
}

func foldedIntoRun(c *chat) {
	row := c.ask("tool Bash sleep 3 && echo done")
	c.wantFolded(row, c.say("say more"))
	if texts := c.outbound(); !slices.Equal(texts, []string{"The tool said: done"}) {
		c.t.Errorf("outbound texts %q", texts)
	}
}

// wantFolded fails the test unless the turn of a row is answered with that of another one.
func (c *chat) wantFolded(row, more int64) {
	c.t.Helper()
	turn, folded := c.WaitEnded(row), c.WaitEnded(more)
	if turn.Reason != msg.ReasonAnswered || folded.Reason != msg.ReasonFolded || folded.AnsweredWith != turn.ID {
		c.t.Errorf("turns %+v and %+v", turn, folded)
	}
}

// foldedAndKilled kills gated while the model works on both messages: both are asked again, and answered once.
func foldedAndKilled(c *chat) {
	row := c.ask("tool Bash sleep 2 && echo done")
	c.model.InjectFault(anthropic.Fault{Delay: time.Minute})
	more := c.say("say more")
	c.WaitDecided(more)
	c.Until("Claude Code has taken it in", func() bool {
		return len(c.Query(`SELECT turn_id FROM turn_progress WHERE turn_id = ?`, c.Turn(more).ID)) == 1
	})
	c.Kill(harness.Gated)
	if texts := c.outbound(); len(texts) != 0 {
		c.t.Errorf("outbound texts %q before the answer", texts)
	}
	c.model.ClearFaults()
	c.Restart(harness.Gated)
	if a, b := c.WaitEnded(row), c.WaitEnded(more); a.Attempts != 0 || b.Attempts != 0 {
		c.t.Errorf("turns %+v and %+v", a, b)
	}
	want := []string{"The tool said: done"}
	if c.Turn(more).AnsweredWith == 0 { // the tool was quicker than the second message
		want = append(want, "more")
	}
	if texts := c.outbound(); !slices.Equal(texts, want) {
		c.t.Errorf("outbound texts %q, want %q", texts, want)
	}
}

func gatedKilled(c *chat) {
	c.wantAnswer("say hello", "hello")
	row := c.ask("slow 1 recall")
	c.Kill(harness.Gated)
	c.Restart(harness.Gated)
	got := c.Answer(row)
	if !strings.HasPrefix(got, "Before: say hello") || len(c.outbound()) != 2 { // without the line about a lost session
		c.t.Errorf("answer %q, outbound texts %q", got, c.outbound())
	}
	if turn := c.Turn(row); turn.Attempts != 0 {
		c.t.Errorf("turn %+v", turn)
	}
}

func claudeKilled(c *chat) {
	c.wantAnswer("say hello", "hello")
	row := c.ask("slow 600 say never; say late")
	if err := syscall.Kill(c.cli(), syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	if turn := c.WaitEnded(row); turn.State != msg.TurnDone || turn.Attempts != 1 {
		c.t.Errorf("turn %+v", turn)
	}
	if texts := c.outbound(); !slices.Equal(texts, []string{"hello", "late"}) {
		c.t.Errorf("outbound texts %q", texts)
	}
	if got := c.Answer(c.say("recall")); !strings.HasPrefix(got, "Before: say hello") {
		c.t.Errorf("answer %q", got)
	}
}

func stopped(c *chat) {
	row := c.ask("slow 600 say never")
	stop := c.say("/stop")
	c.waitCall("slow 600 say never", func(call anthropic.Call) bool { return !call.Open && call.Broken })
	if turn := c.WaitEnded(row); turn.State != msg.TurnCancelled || c.Answer(row) != "" {
		c.t.Errorf("turn %+v, answered %q", turn, c.Answer(row))
	}
	c.wantAnswer("say after", "after")
	if texts := c.outbound(); !slices.Equal(texts, []string{c.Reply(stop).Content, "after"}) {
		c.t.Errorf("outbound texts %q", texts)
	}
}

func newSession(c *chat) {
	c.wantAnswer("say hello", "hello")
	c.wantAnswer("recall", "Before: say hello")
	c.WantReply(c.say("/new"), "new session")
	c.wantAnswer("recall", "Before:")
}

func sessionGone(c *chat) {
	c.wantAnswer("say hello", "hello")
	if code := c.Stop(harness.Gated); code != 0 { // which stops its agents
		c.t.Errorf("gated ended with %d", code)
	}
	if err := os.RemoveAll(filepath.Join(c.dir, ".claude", "projects")); err != nil {
		c.t.Fatal(err)
	}
	c.Restart(harness.Gated)
	if got := c.Answer(c.say("recall")); !strings.HasSuffix(got, "Before:") {
		c.t.Errorf("answer %q", got)
	}
	if texts := c.outbound(); len(texts) != 3 || !strings.HasPrefix(texts[1], "(I have lost our earlier conversation") {
		c.t.Errorf("outbound texts %q", texts)
	}
	c.wantAnswer("recall", "Before: recall")
}

func invalidKey(c *chat) {
	turn := c.WaitEnded(c.say("say hello"))
	if turn.State != msg.TurnFailed || turn.Attempts != 1 || !strings.Contains(turn.Error, "check ANTHROPIC_API_KEY") {
		c.t.Errorf("turn %+v", turn)
	}
	if texts := c.outbound(); len(texts) != 1 || !strings.HasPrefix(texts[0], "Sorry, I could not answer this") {
		c.t.Errorf("outbound texts %q", texts)
	}
}

// overloaded exhausts the retries of Claude Code and then uses one of gated.
func overloaded(c *chat) {
	row := c.say("error 429; error 529; error 529; say here")
	if turn := c.WaitEnded(row); turn.State != msg.TurnDone || turn.Attempts != 1 {
		c.t.Errorf("turn %+v", turn)
	}
	if texts := c.outbound(); !slices.Equal(texts, []string{"here"}) {
		c.t.Errorf("outbound texts %q", texts)
	}
}

// overloadedForLong fails a turn, which costs the conversation nothing.
func overloadedForLong(c *chat) {
	c.wantAnswer("say hello", "hello")
	c.model.InjectFault(anthropic.Fault{Status: anthropic.StatusOverloaded, Times: -1})
	turn := c.WaitEnded(c.say("say lost"))
	if turn.State != msg.TurnFailed || !strings.Contains(turn.Error, "overloaded (529)") {
		c.t.Errorf("turn %+v", turn)
	}
	c.model.ClearFaults()
	c.wantAnswer("recall", "Before: say hello")
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// toolCalled lets the model send a message of its own before its answer, and one to a
// group out of its reach.
func toolCalled(c *chat) {
	got := c.Answer(c.ask(`tool mcp__arizuko__send_message {"text":"one moment"}`))
	texts := c.outbound()
	if len(texts) != 2 || texts[0] != "one moment" || !strings.Contains(got, `The tool said: {"message_id":`) {
		c.t.Errorf("answer %q, outbound texts %q", got, texts)
	}
	if got := c.Answer(c.say(`tool mcp__arizuko__reset_session {"groupFolder":"first"}`)); !strings.Contains(got, "out of reach") {
		c.t.Errorf("answer %q", got)
	}
}
