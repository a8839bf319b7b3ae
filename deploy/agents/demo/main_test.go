package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/gobuild"
)

// build compiles the agent.
func build(t *testing.T) string {
	t.Helper()
	return gobuild.Program(t, gobuild.Options{}, "arizuko/deploy/agents/demo")
}

// open starts the agent.
func open(t *testing.T, binary string) *agenttest.Run {
	t.Helper()
	cmd := exec.Command(binary)
	cmd.Dir = t.TempDir()
	return agenttest.Start(t, cmd, 30*time.Second)
}

func first(id, sessionID, text string) agentproto.Start {
	line := agenttest.First(id, sessionID, text)
	line.Topic, line.EngageTopic, line.Surface = "#deploy", "77", "telegram-topic"
	return line
}

func TestDemo_EachInstruction_AnswersInOrder(t *testing.T) {
	binary := build(t)
	t.Run("conversation", func(t *testing.T) {
		s := open(t, binary)
		s.Send(first("1", "", "<b> & hello"))
		f := s.Next()
		if !strings.HasPrefix(f.NewSessionID, "demo-") {
			t.Errorf("session %q", f.NewSessionID)
		}
		want := "You said: <b> & hello\n(topic #deploy · place 77 · surface telegram-topic · turn 1)"
		if diff := cmp.Diff(agentproto.Frame{Status: "ok", Result: want, TurnID: "1", NewSessionID: f.NewSessionID}, f); diff != "" {
			t.Errorf("first frame (-want +got):\n%s", diff)
		}
		s.Send(agenttest.Further("2", "one", "two"))
		want = "You said: one\nYou said: two\n(topic #deploy · place 77 · surface telegram-topic · turn 2)"
		if diff := cmp.Diff(agentproto.Frame{Status: "ok", Result: want, TurnID: "2"}, s.Next()); diff != "" {
			t.Errorf("second frame (-want +got):\n%s", diff)
		}
		s.WantExit(0)
	})
	t.Run("models", func(t *testing.T) {
		for model, want := range map[string]agentproto.Frame{
			"":      {Status: "ok", TurnID: "1", Result: "You said: hello\n(topic #deploy · place 77 · surface telegram-topic · turn 1)"},
			"loud":  {Status: "ok", TurnID: "1", Result: "You said: HELLO\n(topic #deploy · place 77 · surface telegram-topic · turn 1)"},
			"other": {Status: "error", TurnID: "1", Kind: agentproto.KindPermanent, Error: `there is no model "other": the demo agent has quiet and loud`},
		} {
			s := open(t, binary)
			start := first("1", "old", "hello")
			start.Model = model
			s.Send(start)
			var offered *agentproto.Models
			if diff := cmp.Diff(want, s.Next()); diff != "" {
				t.Errorf("model %q (-want +got):\n%s", model, diff)
			}
			for _, e := range s.Events {
				if e.Models != nil {
					offered = e.Models
				}
			}
			if offered == nil || len(offered.Models) != 2 || offered.Current != map[string]string{"": "quiet"}[model]+model {
				t.Errorf("model %q: offered %+v", model, offered)
			}
		}
	})
	t.Run("events", func(t *testing.T) {
		s := open(t, binary)
		s.Send(first("1", "old", "work stream slow 0.1 show it"))
		var steps, tools []string
		var text string
		var used *agentproto.Usage
		answer := s.Next()
		for _, e := range s.Events {
			switch {
			case e.Features != nil || e.Models != nil:
			case e.TurnID != "1":
				t.Errorf("an event of turn %q", e.TurnID)
			case e.Text != nil:
				if !strings.HasPrefix(*e.Text, text) {
					t.Errorf("%q is followed by %q", text, *e.Text)
				}
				text = *e.Text
			case e.Tool != nil:
				tools = append(tools, e.Tool.ID+" "+string(e.Tool.Status))
			case e.Plan != nil:
				for _, step := range e.Plan.Entries {
					steps = append(steps, string(step.Status[0]))
				}
			case e.Usage != nil:
				used = e.Usage
			}
		}
		if answer.Result != text {
			t.Errorf("streamed %q, answered %q", text, answer.Result)
		}
		if got := strings.Join(tools, ", "); got != "1 running, 1 done, 2 running, 2 done, 3 running, 3 done" {
			t.Errorf("tools %s", got)
		}
		if got := strings.Join(steps, ""); got != "ipp"+"cip"+"cip"+"cci"+"cci"+"ccc" {
			t.Errorf("plans %s", got)
		}
		if used == nil || used.Input == 0 || used.Output == 0 || used.CostUSD == 0 {
			t.Errorf("usage %+v", used)
		}
		s.WantExit(0)
	})
	t.Run("spend", func(t *testing.T) {
		s := open(t, binary)
		s.Send(first("1", "old", "spend 0.5 slow 0.1"))
		said, before := 0, 0.0
		s.Next()
		for _, e := range s.Events {
			if u := e.Usage; u != nil {
				if u.CostUSD <= before {
					t.Errorf("%v after %v", u.CostUSD, before)
				}
				said, before = said+1, u.CostUSD
			}
		}
		if said != 10 || before != 0.5 {
			t.Errorf("said %d times, the last time %v", said, before)
		}
		s.WantExit(0)
	})
	t.Run("fold", func(t *testing.T) {
		s := open(t, binary)
		s.Send(first("1", "old", "fold slow 0.1 until go first"), agenttest.Foldable("2", "second"), agenttest.Further("3", "third"))
		s.Until("turn 2 to be folded", func(e agentproto.Event) bool { return e.TurnID == "2" && e.Status == agentproto.StatusRunning })
		if err := os.WriteFile(filepath.Join(s.Cmd.Dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		rest, code := s.End()
		tail := "\n(topic #deploy · place 77 · surface telegram-topic · turn "
		want := []agentproto.Frame{
			{Status: "ok", TurnIDs: []string{"1", "2"}, Result: "You said: fold slow 0.1 until go first\nYou said: second" + tail + "1)"},
			{Status: "ok", TurnID: "3", Result: "You said: third" + tail + "3)"},
		}
		if diff := cmp.Diff(want, rest); diff != "" || code != 0 {
			t.Errorf("exit code %d, frames (-want +got):\n%s", code, diff)
		}
	})
	t.Run("questions", func(t *testing.T) {
		s := open(t, binary)
		s.Send(first("1", "old", "ask_permission ask_user red green"))
		for _, want := range []agentproto.Answer{{AskID: "permission", Option: "Allow once", By: "telegram:1"}, {AskID: "ask", Option: "green", Reason: agentproto.AskAnswered}} {
			ask := s.Question()
			if ask.ID != want.AskID || ask.Check() != nil {
				t.Fatalf("%+v", ask)
			}
			want.TurnID, want.PayloadHash = "1", ask.PayloadHash
			s.Send(want)
		}
		if f := s.Next(); !strings.HasPrefix(f.Result, "Permission: allowed by telegram:1.\nAnswer: green (answered)\nYou said: ") {
			t.Errorf("answer %q", f.Result)
		}
		s.WantExit(0)
	})
	t.Run("permissions", func(t *testing.T) {
		// A retried turn gets the same answer, and one that was given for something else is none.
		s := open(t, binary)
		for i, tt := range []struct {
			turn, option, hash string // hash "" is that of the question
			want               string
		}{
			{"1", "Deny", "", "Permission: denied."},
			{"2", "", "", "Permission: denied."},
			{"3", "Allow once", "sha256:of another line", "Permission: denied."},
			{"4", "Allow once", "", "Permission: allowed by telegram:1."},
			{"4", "Allow once", "", "Permission: allowed by telegram:1."},
			{"5", "Allow once", "", "Permission: allowed by telegram:1."},
		} {
			if i == 0 {
				s.Send(first(tt.turn, "old", "ask_permission x"))
			} else {
				s.Send(agenttest.Further(tt.turn, "ask_permission x"))
			}
			hash := s.Question().PayloadHash
			if tt.hash != "" {
				hash = tt.hash
			}
			s.Send(agentproto.Answer{TurnID: tt.turn, AskID: "permission", Option: tt.option, By: "telegram:1", PayloadHash: hash})
			if f := s.Next(); !strings.HasPrefix(f.Result, tt.want+"\nYou said: ask_permission x") {
				t.Errorf("answer %d: %q, want %q", i, f.Result, tt.want)
			}
		}
		s.WantExit(0)
		got, err := os.ReadFile(filepath.Join(s.Cmd.Dir, permittedFile))
		want := `{"turn":"4","text":"ask_permission x"}` + "\n" + `{"turn":"5","text":"ask_permission x"}` + "\n"
		if string(got) != want || err != nil {
			t.Errorf("it has done %q, %v, want %q", got, err, want)
		}
	})
	t.Run("long parts are within the limits of a turn", func(t *testing.T) {
		s := open(t, binary)
		s.Send(first("1", "old", "frames 9\n"+strings.Repeat("long ", 50_000)))
		rest, code := s.End()
		size := 0
		for _, f := range rest {
			if f.More() {
				size += len(f.Result)
			}
		}
		if len(rest) != 9 || code != 0 || size > agentproto.MaxParts {
			t.Errorf("%d frames, exit code %d, %d bytes before the last frame", len(rest), code, size)
		}
	})
	t.Run("slow answers in order after the end of input", func(t *testing.T) {
		s := open(t, binary)
		began := time.Now()
		s.Send(first("1", "old", "slow 0.3"), agenttest.Further("2", "fast"))
		rest, code := s.End()
		if len(rest) != 2 || rest[0].TurnID != "1" || rest[1].TurnID != "2" || code != 0 {
			t.Errorf("frames %+v, exit code %d", rest, code)
		}
		if took := time.Since(began); took < 300*time.Millisecond {
			t.Errorf("answered after %v, want 300ms", took)
		}
	})
	t.Run("until a file is there", func(t *testing.T) {
		cmd := exec.Command(binary)
		cmd.Dir = t.TempDir()
		s := agenttest.Start(t, cmd, 30*time.Second)
		s.Send(first("1", "old", "work slow 0.1 until go"))
		s.Until("the last step of the plan to be done", func(e agentproto.Event) bool {
			return e.Plan != nil && e.Plan.Entries[2].Status == agentproto.StepCompleted
		})
		if err := os.WriteFile(filepath.Join(cmd.Dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if f := s.Next(); f.TurnID != "1" || f.Status != agentproto.StatusOK {
			t.Errorf("frame %+v", f)
		}
	})
}

// Each run gets some lines, nil for an invalid one, and the end of its input.
func TestDemo_Run_EndsWithFramesAndCode(t *testing.T) {
	binary := build(t)
	const tail = "\n(topic #deploy · place 77 · surface telegram-topic · turn "
	more, system := new(bool), "# Where you are\n<here>"
	withSystem := first("1", "old", "system")
	withSystem.System = system
	left := agenttest.Further("2", "left to the next run")
	requested := func(turn string) agentproto.Frame {
		return agentproto.Frame{Status: "error", TurnID: turn, Error: "error requested"}
	}
	ofKind := func(kind agentproto.Kind, seconds float64) []agentproto.Frame {
		f := requested("1")
		f.Kind, f.RetryAfter = kind, seconds
		return []agentproto.Frame{f}
	}
	partial := requested("1")
	partial.Result = "You said: error result" + tail + "1)"
	for name, tt := range map[string]struct {
		lines []agentproto.Input
		want  []agentproto.Frame
		code  int
	}{
		"instructions": {
			[]agentproto.Input{first("1", "old", "frames 3"), agenttest.Further("2", "silent"), agenttest.Further("3", "first", "frames 2"), agenttest.Further("4", "error")},
			[]agentproto.Frame{
				{Status: "ok", TurnID: "1", Final: more, Result: "1/3 You said: frames 3" + tail + "1)"},
				{Status: "ok", TurnID: "1", Final: more, Result: "2/3 You said: frames 3" + tail + "1)"},
				{Status: "ok", TurnID: "1", Result: "3/3 You said: frames 3" + tail + "1)"},
				{Status: "ok", TurnID: "2"},
				{Status: "ok", TurnID: "3", Final: more, Result: "1/2 You said: first\nYou said: frames 2" + tail + "3)"},
				{Status: "ok", TurnID: "3", Result: "2/2 You said: first\nYou said: frames 2" + tail + "3)"},
				requested("4"),
			}, 1,
		},
		"system text": {
			[]agentproto.Input{withSystem, agenttest.Further("2", "slow 0 system")},
			[]agentproto.Frame{{Status: "ok", TurnID: "1", Result: system}, {Status: "ok", TurnID: "2", Result: system}}, 0,
		},
		"no system text": {
			[]agentproto.Input{first("1", "old", "system")},
			[]agentproto.Frame{{Status: "ok", TurnID: "1", Result: "The start line has no system text."}}, 0,
		},
		"a transient error ends the run": {[]agentproto.Input{first("1", "old", "error transient 40"), left}, ofKind("transient", 40), 1},
		"a permanent error":              {[]agentproto.Input{first("1", "old", "error permanent"), left}, ofKind("permanent", 0), 1},
		"an error of the session":        {[]agentproto.Input{first("1", "old", "error session"), left}, ofKind("session", 0), 1},
		"an error with an answer": {
			[]agentproto.Input{first("1", "old", "error result"), agenttest.Further("2", "silent")},
			[]agentproto.Frame{partial, {Status: "ok", TurnID: "2"}}, 0,
		},
		"crash": {[]agentproto.Input{first("1", "old", "crash")}, nil, 1},
		"interrupt": {
			[]agentproto.Input{first("1", "old", "slow 600"), agenttest.Further("2", "after it"), agentproto.Interrupt{}, agenttest.Further("3", "silent")},
			[]agentproto.Frame{{Status: "ok", TurnID: "3"}}, 0,
		},
		"interrupt without a turn": {[]agentproto.Input{agentproto.Interrupt{}}, nil, 0},
		"an invalid line":          {[]agentproto.Input{first("1", "old", "silent"), nil}, []agentproto.Frame{{Status: "ok", TurnID: "1"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, binary)
			for _, line := range tt.lines {
				if line != nil {
					s.Send(line)
				} else if _, err := io.WriteString(s.Stdin, "nonsense\n"); err != nil {
					t.Fatal(err)
				}
			}
			rest, code := s.End()
			if diff := cmp.Diff(tt.want, rest); diff != "" || code != tt.code {
				t.Errorf("exit code %d, frames (-want +got):\n%s", code, diff)
			}
		})
	}
}
