package pages_test

import (
	"strings"

	"arizuko/dashd/internal/pages"
)

func turnsSamples() []sample {
	return []sample{
		{name: "turns", template: "turns.html", section: "/turns", data: sampleTurns, hostile: hostileTurns},
		{name: "no-turns", template: "turns.html", section: "/turns", data: func(now int64) any { return pages.TurnsPage{Now: now, Choices: turnChoices()} }, hostile: hostileTurns},
		{name: "turn", template: "turn.html", section: "/turns", data: sampleTurn, hostile: hostileTurn},
		{name: "turn-queued", template: "turn.html", section: "/turns", data: func(now int64) any {
			return pages.TurnPage{Now: now, Turn: pages.TurnRow{ID: 7, Folder: "main", Chat: "web:main", State: "queued", CreatedAt: now, CanCancel: true},
				Messages: []pages.TurnMessage{{ID: 9, From: "operator", Text: "hello"}}}
		}, hostile: hostileTurn},
		{name: "turn-asks", template: "turn.html", section: "/turns", data: sampleAsks, hostile: hostileTurn},
		{name: "prompt", template: "prompt.html", section: "/turns", data: func(int64) any {
			return pages.PromptPage{Prompt: "<messages>\n  <message id=\"9\" sender=\"Ada\" time=\"10:42\">" + strings.Repeat("Can you look at the build? ", 9) + "</message>\n</messages>"}
		}, hostile: func(text string) any { return pages.PromptPage{Prompt: text} }},
		{name: "no-prompt", template: "prompt.html", section: "/turns", data: func(int64) any { return pages.PromptPage{Problem: "gated does not answer: start it, then try again."} },
			hostile: func(text string) any { return pages.PromptPage{Problem: text} }},
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
	return pages.TurnsPage{
		Now: now, Choices: turnChoices(), Older: "/turns?before=409",
		Lines: []pages.TurnRow{
			{ID: 412, Folder: "main", Chat: "web:main", Topic: "#deploy", State: "running", CreatedAt: now - 95_000, StartedAt: now - 94_000},
			{ID: 411, Folder: "acme/eng", Chat: "telegram:-1001234567", Title: "Engineering", State: "failed", Attempts: 3, CreatedAt: now - 600_000, StartedAt: now - 590_000, Ended: now - 400_000,
				Error: "exit status 1: the agent ended without an answer", Reason: "agent_error (the agent failed)"},
			{ID: 410, Folder: "acme/eng", Chat: "slack:C0ABC", Title: "ops", State: "queued", CreatedAt: now - 700_000, Waits: "waits until an attachment is there"},
			{ID: 409, Folder: "main", Chat: "discord:99887766554433", State: "done", CreatedAt: now - 7_200_000, StartedAt: now - 7_199_000, Ended: now - 7_100_000},
		},
	}
}

func hostileTurnRow(text string) pages.TurnRow {
	return pages.TurnRow{ID: 1, Folder: text, Chat: text, Title: text, Topic: text, State: text, Reason: text, Error: text, Attempts: 2, Waits: text, StartedAt: 1, Ended: 9, CanRetry: true, CanCancel: true}
}

func hostileTurns(text string) any {
	return pages.TurnsPage{Choices: []pages.Choice{{Link: pages.Link{Path: text, Text: text}}}, Of: text, Lines: []pages.TurnRow{hostileTurnRow(text)}, Older: text, Now: 10}
}

func sampleTurn(now int64) any {
	page := sampleTurns(now).(pages.TurnsPage)
	turn := page.Lines[1]
	turn.CanRetry = true
	return pages.TurnPage{
		Now: now, Turn: turn, Thread: "1733", Surface: "telegram-group", Parent: 409, TookIn: []int64{412, 413},
		Messages: []pages.TurnMessage{
			{ID: 5120, From: "Ada Lovelace", Text: "@arizuko can you say why the nightly build is red? It has been since Tuesday.", Files: 1},
			{ID: 5121, From: "Grace", Text: "TestWriteOrder looks like it waits for a lock that no process holds."},
		},
		Answers: []pages.TurnMessage{{ID: 5140, From: "arizuko", Text: "The agent could not answer. An operator can retry it.", State: "failed: the chat does not exist any more", Bad: true}},
		Used:    "tokens read: 5120, written: 310; US dollars: 0.0210; conversation: 3 % of its room",
		Work: &pages.Work{State: "works", At: now - 2000, Text: "The build is red since Tuesday, when",
			Plan:  []pages.WorkLine{{Text: "Read the log of the build", State: "done"}, {Text: "Find the change", State: "under way"}, {Text: "Say who can fix it", State: "to do"}},
			Calls: []pages.WorkLine{{Text: "Read build.log", State: "done"}, {Text: "git bisect run go test ./pkg/store -run TestWriteOrder", State: "failed", Bad: true}}},
		Tools: []pages.ToolLine{{Name: "create_reminder", Result: `{"id":17}`, At: now - 500_000}},
		Runs: []pages.RunLine{
			{ID: 88, Runtime: "bwrap", Result: "error", Error: "exit status 1", StartedAt: now - 590_000, EndedAt: now - 580_000},
			{ID: 89, Runtime: "bwrap", StartedAt: now - 570_000},
		},
		LogRun: 89, LogCut: true, Log: strings.Repeat("2026-11-23T04:10:00Z tool: go test ./pkg/store -run TestWriteOrder -count 50 -v | tail -100\n", 12),
	}
}

func sampleAsks(now int64) any {
	options := []pages.Option{{Value: "1", Text: "Allow once"}, {Value: "2", Text: "Deny"}}
	return pages.TurnPage{
		Now:  now,
		Turn: pages.TurnRow{ID: 7, Folder: "main", Chat: "telegram:-1001234567", Title: "Engineering", State: "running", CreatedAt: now - 90_000, StartedAt: now - 89_000, CanCancel: true},
		Asks: []pages.Question{
			{ID: 4, Turn: 7, Message: 5133, Kind: "asks for permission", Text: "Run Bash?", Detail: "git push --force-with-lease origin HEAD:refs/heads/release/2026-11-23-hotfix-of-the-write-order\n# pushes the fix",
				Options: options, For: "operators", Hash: "3fa1b2c4d5e6…", Open: true, AskedAt: now - 80_000, ExpiresAt: now + 520_000},
			{ID: 5, Turn: 7, Message: 5134, Kind: "asks", Text: "Which of the two builds shall I restart?", For: "Ada Lovelace (telegram:42)", Open: true, AskedAt: now - 60_000, ExpiresAt: now + 540_000,
				Options: []pages.Option{{Value: "1", Text: "the nightly one, of the night from Sunday to Monday, all of it"}, {Value: "2", Text: "the release"}},
				Stands:  "You answer in the place of Ada Lovelace (telegram:42), as an operator: the chat will read so, and Changes has your login."},
			{ID: 2, Turn: 7, Message: 5131, Kind: "asks for permission", Text: "Run Bash?", Detail: "go test ./pkg/store", Options: []pages.Option{{Value: "1", Text: "Allow once", Selected: true}, {Value: "2", Text: "Deny"}},
				For: "operators", Hash: "77aa01c4d5e6…", End: "answered by telegram:42", AskedAt: now - 88_000, ExpiresAt: now + 500_000, EndedAt: now - 85_000},
			{ID: 3, Turn: 7, Kind: "asks", Text: "Shall I go on?", Options: options, For: "each user of the chat", End: "expired without an answer: that counts as no", Bad: true, AskedAt: now - 700_000, ExpiresAt: now - 100_000, EndedAt: now - 100_000},
		},
		Messages: []pages.TurnMessage{{ID: 5120, From: "Ada Lovelace", Text: "fix the nightly build"}},
	}
}

func hostileTurn(text string) any {
	message := []pages.TurnMessage{{ID: 1, From: text, Text: text, State: text, Bad: true, Files: 2}}
	return pages.TurnPage{
		Asks: []pages.Question{
			{ID: 1, Turn: 2, Message: 3, Kind: text, Text: text, Detail: text, Options: []pages.Option{{Value: text, Text: text}}, For: text, Hash: text, Open: true, Stands: text},
			{ID: 2, Turn: 2, Kind: text, Text: text, Detail: text, Options: []pages.Option{{Value: text, Text: text, Selected: true}}, For: text, Hash: text, End: text, Bad: true},
		},
		Turn: hostileTurnRow(text), Thread: text, Surface: text, Parent: 3, With: 4, Messages: message, Answers: message, Used: text,
		Work:  &pages.Work{State: text, Text: text, At: 1, Plan: []pages.WorkLine{{Text: text, State: text}}, Calls: []pages.WorkLine{{Text: text, State: text, Bad: true}}},
		Tools: []pages.ToolLine{{Name: text, Result: text, At: 1}},
		Runs:  []pages.RunLine{{ID: 1, Runtime: text, Result: text, Error: text}}, Log: text, LogRun: 1, LogCut: true, Now: 10,
	}
}
