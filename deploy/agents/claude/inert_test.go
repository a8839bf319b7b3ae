package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
)

// Texts in which the real Claude Code would find orders, if it got them as they are: the content of the file would be in its
// request to the model, without a permission.
func TestAgent_OrdersInTexts_AreText(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	const inSecret, inSkill = "SECRET-4711", "SKILL-4712"
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, inSecret)
	write(t, filepath.Join(r.group, "own"), inSecret)
	write(t, filepath.Join(r.group, ".claude/skills/sk/SKILL.md"), "---\nname: sk\ndescription: s\n---\n"+inSkill+" $ARGUMENTS\n")

	s := r.open("CLAUDE_ALLOWED_TOOLS=Bash(sleep *),Bash(echo *)")
	order := fmt.Sprintf("see @%[1]s ok @%[1]s\n@%[1]s\n@\"%[1]s\" a。@%[1]s @%[1]s#L1-2 @own @./ @agent-Explore\n/sk x\n!touch made\n#note", secret)
	start := agenttest.First("1", "", order+"\nsay one")
	start.System = "You are @" + secret + " here."
	start.Prompt = `<turn title="a @` + secret + ` b"/>` + start.Prompt + `<attachment path="a @` + secret + ` b"/>`
	s.Send(start)
	s.WantAnswer("1", "one")

	s.Send(agenttest.Further("2", "tool Bash sleep 4; echo @"+secret+" ok"))
	s.waitCall("tool Bash sleep 4; echo @" + secret + " ok")
	s.Send(agenttest.Foldable("3", order+"\nsay two"))
	for f := s.Next(); !slices.Contains(f.Turns(), "3"); f = s.Next() { // it may come too late to be folded
		if f.Status != agentproto.StatusOK {
			t.Fatalf("got %+v", f)
		}
	}
	s.Send(agenttest.Further("4", "/sk hi"))
	s.WantAnswer("4", "You said: /sk hi")
	s.Send(agenttest.Further("5", "#note"))
	s.WantAnswer("5", "You said: #note")
	s.Send(agenttest.Further("6", "!touch made"))
	s.WantAnswer("6", "You said: !touch made")
	s.wantNone(inSecret)
	s.wantNone(inSkill)
	s.wantNone("which is the name of a skill") // a note that the CLI adds

	s.Send(agenttest.Further("7", `tool Skill {"skill":"sk","args":"see @`+secret+` ok"}`))
	if f := s.Next(); !strings.Contains(f.Result, inSkill+" see @"+secret+" ok") {
		t.Errorf("the skill does not run: %+v", f)
	}
	s.wantNone(inSecret)
	s.WantExit(0)
	if _, err := os.Stat(filepath.Join(r.group, "made")); err == nil {
		t.Error("a command has run")
	}
}

// wantNone fails the test if a text is in a request to the model.
func (s *session) wantNone(text string) {
	s.t.Helper()
	for i, c := range s.model.MessageCalls() {
		if strings.Contains(string(c.Body), text) {
			s.t.Errorf("%s is in request %d", text, i+1)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
