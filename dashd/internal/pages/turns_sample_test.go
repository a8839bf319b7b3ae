package pages_test

import (
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func turnsSamples() []sample {
	return []sample{
		{name: "turns", template: "turns.html", section: "/turns", data: sampleTurns},
		{name: "no-turns", template: "turns.html", section: "/turns", data: func(now int64) any { return pages.List[*msg.Turn]{Now: now, Choices: turnChoices()} }},
		{name: "turn", template: "turn.html", section: "/turns", data: sampleTurn},
		{name: "turn-queued", template: "turn.html", section: "/turns", data: func(now int64) any {
			return pages.TurnPage{Now: now, Turn: &msg.Turn{ID: 7, Folder: "main", ChatJID: "web:main", State: msg.TurnQueued, CreatedAt: now},
				Messages: []*msg.Message{{ID: 9, SenderName: "operator", Content: "hello"}}}
		}},
		{name: "turn-asks", template: "turn.html", section: "/turns", data: sampleAsks},
		{name: "prompt", template: "prompt.html", section: "/turns", data: func(int64) any {
			return pages.PromptPage{Prompt: "<messages>\n  <message id=\"9\" sender=\"Ada\" time=\"10:42\">" + strings.Repeat("Can you look at the build? ", 9) + "</message>\n</messages>"}
		}},
		{name: "no-prompt", template: "prompt.html", section: "/turns", data: func(int64) any { return pages.PromptPage{Problem: "gated does not answer: start it, then try again."} }},
	}
}

func turnChoices() []pages.Choice {
	return []pages.Choice{
		{Link: pages.Link{Path: "/turns", Text: "All"}, Current: true}, {Link: pages.Link{Path: "/turns?state=running", Text: "Running"}},
		{Link: pages.Link{Path: "/turns?state=queued", Text: "Queued"}}, {Link: pages.Link{Path: "/turns?state=failed", Text: "Failed"}},
		{Link: pages.Link{Path: "/turns?state=cancelled", Text: "Cancelled"}},
	}
}

func sampleTurns(now int64) any {
	return pages.List[*msg.Turn]{
		Now: now, Choices: turnChoices(), Next: "/turns?before=409",
		Titles: pages.Titles{"telegram:-1001234567": "Engineering", "slack:C0ABC": "ops"},
		Lines: []*msg.Turn{
			{ID: 412, Folder: "main", ChatJID: "web:main", Topic: "#deploy", State: msg.TurnRunning, CreatedAt: now - 95_000, StartedAt: now - 94_000},
			{ID: 411, Folder: "acme/eng", ChatJID: "telegram:-1001234567", State: msg.TurnFailed, Attempts: 3, CreatedAt: now - 600_000, StartedAt: now - 590_000, EndedAt: now - 400_000,
				Error: "exit status 1: the agent ended without an answer", Reason: msg.ReasonAgentError},
			{ID: 410, Folder: "acme/eng", ChatJID: "slack:C0ABC", State: msg.TurnQueued, CreatedAt: now - 700_000, WaitsFor: msg.WaitsFiles},
			{ID: 409, Folder: "main", ChatJID: "discord:99887766554433", State: msg.TurnDone, CreatedAt: now - 7_200_000, StartedAt: now - 7_199_000, EndedAt: now - 7_100_000},
		},
	}
}

func sampleRuns(now int64) []*factrows.RunResult {
	return []*factrows.RunResult{
		{Run: msg.Run{ID: 88, Runtime: "bwrap", StartedAt: now - 590_000, EndedAt: now - 580_000}, Result: "error", Error: "exit status 1"},
		{Run: msg.Run{ID: 89, Runtime: "bwrap", StartedAt: now - 570_000}},
	}
}

func sampleTurn(now int64) any {
	list := sampleTurns(now).(pages.List[*msg.Turn])
	turn := list.Lines[1]
	turn.ThreadID, turn.Surface = "1733", "telegram-group"
	return pages.TurnPage{
		Now: now, Turn: turn, Titles: list.Titles, Parent: 409, TookIn: []*msg.Turn{{ID: 412}, {ID: 413}},
		Messages: []*msg.Message{
			{ID: 5120, SenderName: "Ada Lovelace", Content: "@arizuko can you say why the nightly build is red? It has been since Tuesday.", Attachments: make([]msg.Attachment, 1)},
			{ID: 5121, SenderName: "Grace", Content: "TestWriteOrder looks like it waits for a lock that no process holds."},
		},
		Answers: []*msg.Message{{ID: 5140, Direction: msg.Out, SenderName: "arizuko", Content: "The agent could not answer. An operator can retry it.", OutState: msg.OutFailed, Error: "the chat does not exist any more"}},
		Used:    "tokens read: 5120, written: 310; US dollars: 0.0210; conversation: 3 % of its room",
		Work: &store.Progress{State: agentproto.StatusRunning, UpdatedAt: now - 2000, Text: "The build is red since Tuesday, when",
			Plan: []agentproto.Step{{Content: "Read the log of the build", Status: agentproto.StepCompleted}, {Content: "Find the change", Status: agentproto.StepInProgress},
				{Content: "Say who can fix it", Status: agentproto.StepPending}},
			Tools: []agentproto.Tool{{Title: "Read build.log", Status: agentproto.ToolDone}, {Title: "git bisect run go test ./pkg/store -run TestWriteOrder", Status: agentproto.ToolFailed}}},
		Tools:  []factrows.ToolCall{{Tool: "create_reminder", Result: []byte(`{"id":17}`), CreatedAt: now - 500_000}},
		Runs:   sampleRuns(now),
		LogRun: 89, LogCut: true, Log: strings.Repeat("2026-11-23T04:10:00Z tool: go test ./pkg/store -run TestWriteOrder -count 50 -v | tail -100\n", 12),
	}
}

func sampleAsks(now int64) any {
	question := func(id int64, state msg.AskState, who, text, hash string, options ...string) pages.Question {
		return pages.Question{Operator: operator, Ask: &msg.Ask{ID: id, TurnID: 7, MessageID: 5130 + id, Question: text, PayloadHash: hash, Options: options, Who: msg.Who{Label: who, Senders: []string{"telegram:42"}},
			State: state, CreatedAt: now - 80_000, ExpiresAt: now + 520_000, EndedAt: now - 60_000}}
	}
	answered := question(2, msg.AskAnswered, "operators", "Run Bash?\ngo test ./pkg/store", strings.Repeat("77aa01c4d5e6", 5), "Allow once", "Deny")
	answered.Option, answered.AnsweredBy = "Allow once", "telegram:42"
	return pages.TurnPage{
		Now:  now,
		Turn: &msg.Turn{ID: 7, Folder: "main", ChatJID: "telegram:-1001234567", State: msg.TurnRunning, CreatedAt: now - 90_000, StartedAt: now - 89_000},
		Asks: []pages.Question{
			question(4, msg.AskOpen, "operators", "Run Bash?\ngit push --force-with-lease origin HEAD:refs/heads/release/2026-11-23-hotfix-of-the-write-order\n# pushes the fix", strings.Repeat("3fa1b2c4d5e6", 5), "Allow once", "Deny"),
			question(5, msg.AskOpen, "Ada Lovelace", "Which of the two builds shall I restart?", "", "the nightly one, of the night from Sunday to Monday, all of it", "the release"),
			answered,
			question(3, msg.AskExpired, "", "Shall I go on?", "", "yes", "no"),
		},
		Messages: []*msg.Message{{ID: 5120, SenderName: "Ada Lovelace", Content: "fix the nightly build"}},
	}
}
