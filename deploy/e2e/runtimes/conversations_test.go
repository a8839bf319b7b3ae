package runtimes

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/anthropic"
)

// conversation is what people and Claude Code may go through, and the group that it is with.
type conversation struct {
	name   string
	folder string
	env    string // of the group's agent besides the instance's, as a shell takes it before a command
	run    func(*talk)
}

var conversations = []conversation{
	{"the first answer", "first", "", firstAnswer},
	{"two messages while it works", "piped", "", twoWhileItWorks},
	{"gated is killed in the middle", "resumed", "", gatedKilled},
	{"Claude Code is killed in the middle", "killed", "", claudeKilled},
	{"stop in the middle", "stopped", "", stopped},
	{"new", "anew", "", anew},
	{"its session is gone", "gone", "", sessionGone},
	{"an invalid key", "key", "ANTHROPIC_API_KEY=$WRONG_KEY CLAUDE_CODE_MAX_RETRIES=0", invalidKey},
	{"no room for a while", "room", "CLAUDE_CODE_MAX_RETRIES=1", noRoom},
}

func firstAnswer(c *talk) {
	c.answers("say hello", "hello")
	c.answers("tool Bash echo key $ANTHROPIC_API_KEY", "The tool said: key [redacted]")
}

// lookingAround is for agents that are confined: others may read what gated's user may.
func lookingAround(c *talk) {
	for _, file := range []string{"secret", "arizuko.db", "groups/first"} {
		if got := c.Answer(c.say("tool Bash cat " + filepath.Join(c.Data, file))); !strings.Contains(got, "No such file") {
			c.t.Errorf("%s: it said %q", file, got)
		}
	}
}

func twoWhileItWorks(c *talk) {
	rows := []int64{c.asks("slow 2 say one"), c.say("say two")}
	c.WaitDecided(rows[1])
	rows = append(rows, c.say("say three"))
	first := c.WaitEnded(rows[0])
	for i, row := range rows {
		turn := c.WaitEnded(row)
		if turn.RunID != first.RunID || turn.Attempts != 0 || i > 0 && turn.ID == first.ID {
			c.t.Errorf("turn %+v, the first one %+v", turn, first)
		}
	}
	if said := c.said(); !slices.Equal(said, []string{"one", "two", "three"}) {
		c.t.Errorf("it said %q", said)
	}
}

func gatedKilled(c *talk) {
	c.answers("say hello", "hello")
	row := c.asks("slow 1 recall")
	c.Kill(harness.Gated)
	c.Restart(harness.Gated)
	got := c.Answer(row)
	if !strings.HasPrefix(got, "Before: say hello") || len(c.said()) != 2 { // without a line on a lost session
		c.t.Errorf("it said %q, in all %q", got, c.said())
	}
	if turn := c.Turn(row); turn.Attempts != 0 {
		c.t.Errorf("turn %+v", turn)
	}
}

func claudeKilled(c *talk) {
	row := c.asks("slow 600 say never; say late")
	if err := syscall.Kill(c.cli(), syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	if turn := c.WaitEnded(row); turn.State != msg.TurnDone || turn.Attempts != 1 {
		c.t.Errorf("turn %+v", turn)
	}
	if said := c.said(); !slices.Equal(said, []string{"late"}) {
		c.t.Errorf("it said %q", said)
	}
}

func stopped(c *talk) {
	row := c.asks("slow 600 say never")
	stop := c.say("/stop")
	c.asked("slow 600 say never", func(call anthropic.Call) bool { return !call.Open && call.Broken })
	if turn := c.WaitEnded(row); turn.State != msg.TurnCancelled || c.Answer(row) != "" {
		c.t.Errorf("turn %+v, answered %q", turn, c.Answer(row))
	}
	c.answers("say after", "after")
	if said := c.said(); !slices.Equal(said, []string{c.Reply(stop).Content, "after"}) {
		c.t.Errorf("it said %q", said)
	}
}

func anew(c *talk) {
	c.answers("say hello", "hello")
	c.answers("recall", "Before: say hello")
	c.WantReply(c.say("/new"), "new session")
	c.answers("recall", "Before:")
}

func sessionGone(c *talk) {
	c.answers("say hello", "hello")
	if code := c.Stop(harness.Gated); code != 0 { // and its agents with it
		c.t.Errorf("gated ended with %d", code)
	}
	if err := os.RemoveAll(filepath.Join(c.dir, ".claude", "projects")); err != nil {
		c.t.Fatal(err)
	}
	c.Restart(harness.Gated)
	c.answers("recall", "(I have lost our earlier conversation and start afresh.)\n\nBefore:")
	c.answers("recall", "Before: recall")
}

func invalidKey(c *talk) {
	turn := c.WaitEnded(c.say("say hello"))
	if turn.State != msg.TurnFailed || !strings.Contains(turn.Error, "check ANTHROPIC_API_KEY") {
		c.t.Errorf("turn %+v", turn)
	}
	if said := c.said(); len(said) != 1 || !strings.HasPrefix(said[0], "Sorry, I could not answer this: the agent failed 2 times.") {
		c.t.Errorf("it said %q", said)
	}
}

// noRoom uses up what Claude Code tries by itself, and then some of what gated does.
func noRoom(c *talk) {
	row := c.say("error 429; error 529; error 529; say here")
	if turn := c.WaitEnded(row); turn.State != msg.TurnDone || turn.Attempts != 1 {
		c.t.Errorf("turn %+v", turn)
	}
	if said := c.said(); !slices.Equal(said, []string{"here"}) {
		c.t.Errorf("it said %q", said)
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
