package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/need"
)

// lineWith is the line of a text that has these words.
func lineWith(text, words string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, words) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// The model knows its name from the system text alone, in a new session, in further turns and after a resume.
func TestAgent_SystemText_ReachesModel(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.model.SetModel(func(in anthropic.Request) anthropic.Reply {
		return anthropic.Reply{Text: "I read: " + lineWith(in.System.Text(), "You are \"Fido\"")}
	})
	const system = "--resume=nothing\n# Where you are\n\nYou are \"Fido\", a member of chats; 'quoted' $HOME `id` \\ é.\n"
	const want = "I read: You are \"Fido\", a member of chats; 'quoted' $HOME `id` \\ é."
	s := r.open()
	start := agenttest.First("1", "", "who are you?")
	start.System = system
	s.Send(start)
	id := s.WantAnswer("1", want).NewSessionID
	s.Send(agenttest.Further("2", "and again?"))
	s.WantAnswer("2", want)
	s.WantExit(0)
	start = agenttest.First("3", id, "still?")
	start.System = system
	s = r.open()
	s.Send(start)
	s.WantAnswer("3", want)
	s.WantExit(0)
	calls := r.model.MessageCalls()
	if text := calls[0].Request.System.Text(); !strings.Contains(text, system[:len(system)-1]) {
		t.Errorf("the system prompt is %s", text)
	}
}

// Tools that make no sense in a chat cost room in every request.
func TestAgent_Tools_AreThoseOfAChat(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	s := newFixture(t).open()
	s.Send(agenttest.First("1", "", "say hello"))
	s.WantAnswer("1", "hello")
	s.WantExit(0)
	call := s.model.MessageCalls()[0]
	var body struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(call.Body, &body); err != nil {
		t.Fatal(err)
	}
	var names []string
	size := 0
	for i, tool := range call.Request.Tools {
		names = append(names, tool.Name)
		size += len(body.Tools[i])
		t.Logf("%6d bytes: %s", len(body.Tools[i]), tool.Name)
	}
	t.Logf("%d bytes of tools, %d in all", size, len(call.Body))
	slices.Sort(names)
	want := []string{"Agent", "Bash", "Edit", "NotebookEdit", "Read", "Skill", "TaskCreate", "TaskUpdate", "WebFetch", "WebSearch", "Write"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	const maxTools = 24 << 10
	if size > maxTools {
		t.Errorf("%d bytes of tools", size)
	}
}

func TestAgent_TextBeforeToolCall_IsPartOfAnswer(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	r := newFixture(t)
	r.model.SetModel(func(in anthropic.Request) anthropic.Reply {
		last := in.Messages[len(in.Messages)-1]
		for _, block := range last.Content {
			if block.Type == "tool_result" {
				return anthropic.Reply{Text: "Done."}
			}
		}
		return anthropic.Reply{Text: "The build is red since noon.", Tools: []anthropic.ToolUse{{Name: "Bash", Input: map[string]any{"command": "echo hi"}}}}
	})
	s := r.open("CLAUDE_ALLOWED_TOOLS=Bash")
	s.Send(agenttest.First("1", "", "how is the build?"), agenttest.Further("2", "again?"))
	s.WantAnswer("1", "The build is red since noon.\n\nDone.")
	s.WantAnswer("2", "The build is red since noon.\n\nDone.")
	s.WantExit(0)
}

// A turn that fails after a tool call is retried whole: nothing of it has been answered.
func TestAgent_FailureAfterToolCall_AnswersNothing(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	r := newFixture(t)
	r.model.SetModel(func(in anthropic.Request) anthropic.Reply {
		if in.Messages[len(in.Messages)-1].Content[0].Type == "tool_result" {
			return anthropic.Reply{Status: 400, Text: "no"}
		}
		return anthropic.Reply{Text: "I look.", Tools: []anthropic.ToolUse{{Name: "Bash", Input: map[string]any{"command": "echo hi"}}}}
	})
	s := r.open("CLAUDE_ALLOWED_TOOLS=Bash", "CLAUDE_CODE_MAX_RETRIES=0")
	s.Send(agenttest.First("1", "", "how is the build?"))
	if f := s.WantError("1", agentproto.KindPermanent, ""); f.Result != "" {
		t.Errorf("it has a result: %+v", f)
	}
	s.WantExit(1)
}
