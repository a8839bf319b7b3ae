package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/fakes/anthropic"
)

// worked is a turn as its events have shown it.
type worked struct {
	texts []string
	tools []string // title, kind and status of each event
	input []string // of tools, of each event
	plans []string // the first letters of the steps' states, then the steps
	usage agentproto.Usage
}

// work reads the events of a turn up to its frame.
func (s *session) work(turnID string) (w worked, answer agentproto.Frame) {
	s.t.Helper()
	s.Events = nil
	answer = s.Next()
	for _, e := range s.Events {
		switch {
		case e.Features != nil || e.Models != nil:
		case e.TurnID != turnID:
			s.t.Errorf("an event of turn %q: %+v", e.TurnID, e)
		case e.Text != nil:
			w.texts = append(w.texts, *e.Text)
		case e.Tool != nil:
			w.tools = append(w.tools, e.Tool.Title+", "+e.Tool.Kind+", "+string(e.Tool.Status))
			w.input = append(w.input, e.Tool.Input)
		case e.Plan != nil:
			states, steps := "", []string{}
			for _, step := range e.Plan.Entries {
				states, steps = states+string(step.Status[0]), append(steps, step.Content)
			}
			w.plans = append(w.plans, states+" "+strings.Join(steps, ", "))
		case e.Usage != nil:
			w.usage = *e.Usage
		}
	}
	return w, answer
}

// asked is how often the model has answered before.
func asked(q anthropic.Request) (n int) {
	for _, m := range q.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

func TestAgent_Events_ShowToolsTextAndUsage(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	if err := os.WriteFile(filepath.Join(r.group, "notes.md"), []byte("the build is red"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("Some words of a long answer. ", 200)
	r.model.SetModel(func(q anthropic.Request) anthropic.Reply {
		switch asked(q) {
		case 0:
			return anthropic.Reply{Text: "I look.", Tools: []anthropic.ToolUse{
				{Name: "Read", Input: map[string]any{"file_path": filepath.Join(r.group, "notes.md")}},
				{Name: "Read", Input: map[string]any{"file_path": "missing.md"}},
			}}
		case 1:
			return anthropic.Reply{Text: long}
		}
		return anthropic.Reply{Text: "again"}
	})
	s := r.open()
	s.Send(agenttest.First("1", "", "what is red?"))
	w, f := s.work("1")
	if want := "I look.\n\n" + strings.TrimSpace(long); f.Result != want || len(w.texts) == 0 || w.texts[len(w.texts)-1] != want {
		t.Errorf("answered %.80q, shown %.80q", f.Result, w.texts)
	}
	for i, text := range w.texts {
		if !strings.HasPrefix(f.Result, text) {
			t.Errorf("text %d is no beginning of the answer: %q", i, text)
		}
	}
	slices.Sort(w.tools)
	if !slices.Contains(w.input, `{"file_path":"missing.md"}`) {
		t.Errorf("inputs %q", w.input)
	}
	if got, want := strings.Join(w.tools, "; "), "Read missing.md, read, failed; Read missing.md, read, running; Read notes.md, read, done; Read notes.md, read, running"; got != want {
		t.Errorf("tools %s, want %s", got, want)
	}
	u := w.usage
	if u.Input < 1000 || u.Output == 0 || u.CostUSD <= 0 || u.ContextUsed < u.Input/4 || u.ContextUsed > u.Input || u.ContextSize < u.ContextUsed {
		t.Errorf("usage %+v", u)
	}
	s.Send(agenttest.Further("2", "and now?"))
	next, _ := s.work("2")
	if v := next.usage; v.Input == 0 || v.Input >= u.Input || v.CostUSD <= 0 || v.CostUSD >= u.CostUSD {
		t.Errorf("usage of the second turn %+v, of the first one %+v", v, u)
	}
	s.WantExit(0)
}

func TestAgent_Tasks_AreThePlan(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	calls := []anthropic.ToolUse{
		{Name: "TaskCreate", Input: map[string]any{"subject": "Read", "description": "d"}},
		{Name: "TaskCreate", Input: map[string]any{"subject": "Write", "description": "d"}},
		{Name: "TaskUpdate", Input: map[string]any{"taskId": "1", "status": "completed"}},
		{Name: "TaskUpdate", Input: map[string]any{"taskId": "7", "status": "completed"}},
		{Name: "TaskUpdate", Input: map[string]any{"taskId": "2", "status": "in_progress", "subject": "Write it"}},
		{Name: "TaskUpdate", Input: map[string]any{"taskId": "1", "status": "deleted"}},
	}
	r.model.SetModel(func(q anthropic.Request) anthropic.Reply {
		if n := asked(q); n < len(calls) {
			return anthropic.Reply{Tools: calls[n : n+1]}
		}
		return anthropic.Reply{Text: "done"}
	})
	s := r.open()
	s.Send(agenttest.First("1", "", "plan it"))
	w, _ := s.work("1")
	if got, want := strings.Join(w.plans, "; "), "p Read; pp Read, Write; cp Read, Write; ci Read, Write it; i Write it"; got != want {
		t.Errorf("plans %s, want %s", got, want)
	}
	if len(w.tools) > 0 {
		t.Errorf("tools %v", w.tools)
	}
	s.WantExit(0)
}

// Events in forms of other versions are left out, and cost no answer.
func TestAgent_OddEvents_AreLeftOut(t *testing.T) {
	t.Parallel()
	s := fixtureWith(t, os.Args[0]).open("SCRIPT=events")
	s.Send(agenttest.First("1", "", "one"))
	w, f := s.work("1")
	if f.Result != "fine" || f.Status != agentproto.StatusOK {
		t.Errorf("%+v", f)
	}
	if got, want := strings.Join(w.tools, "; "), "odd, , running; Run a command, execute, running; Run a command, execute, done"; got != want {
		t.Errorf("tools %s, want %s", got, want)
	}
	if got := strings.Join(w.plans, "; "); got != "ip a, b" {
		t.Errorf("plans %s", got)
	}
	s.WantExit(0)
}

// While the model is overloaded, the chat reads why nothing happens.
func TestAgent_ModelIsOverloaded_IsShown(t *testing.T) {
	t.Parallel()
	s := fixtureWith(t, os.Args[0]).open("SCRIPT=retry")
	s.Send(agenttest.First("1", "", "one"))
	w, _ := s.work("1")
	if got, want := strings.Join(w.tools, "; "), "Waiting: the model is overloaded (529), , running; "+
		"Waiting: the model cannot be reached, , running; Waiting: the model cannot be reached, , done"; got != want {
		t.Errorf("tools %s, want %s", got, want)
	}
	s.WantExit(0)
}

// The title of a call, which all users of a chat see, has none of the arguments that may hold a secret.
func TestCall_Title_HasNoArguments(t *testing.T) {
	t.Parallel()
	const secret = "example-pass"
	for _, tt := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"mysql -p'example-pass' -e 'select 1'"}`, "Run a command"},
		{"Bash", `{"command":"mysql -p'example-pass'","description":"Count users"}`, "Count users"},
		{"Grep", `{"pattern":"example-pass","path":"notes"}`, "Search files"},
		{"Glob", `{"pattern":"*example-pass*"}`, "Search files"},
		{"WebSearch", `{"query":"example-pass"}`, "Search the web"},
		{"WebFetch", `{"url":"https://ann:example-pass@example.com/example-pass?key=example-pass#example-pass","prompt":"example-pass"}`, "Read example.com"},
		{"WebFetch", `{"url":"%example-pass"}`, "Read a page"}, {"WebFetch", `{}`, "Read a page"},
		{"Read", `{"file_path":"notes.md","pages":"example-pass"}`, "Read notes.md"},
		{"Edit", `{"file_path":"notes.md","old_string":"example-pass"}`, "Edit notes.md"},
		{"Write", `{"file_path":"notes.md","content":"example-pass"}`, "Write notes.md"},
		{"Task", `{"prompt":"example-pass"}`, "Ask a subagent"},
		{"mcp__arizuko__send_message", `{"text":"example-pass"}`, "send_message"},
		{"mcp__db__query", `{"sql":"example-pass"}`, "mcp__db__query"},
	} {
		c := call{name: tt.tool}
		if err := json.Unmarshal([]byte(tt.input), &c.args); err != nil {
			t.Fatal(err)
		}
		if got := c.title(); got != tt.want || strings.Contains(got, secret) {
			t.Errorf("%s %s: %q, want %q", tt.tool, tt.input, got, tt.want)
		}
	}
}
