package adapter

import (
	"testing"
	"time"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/store"
)

func TestNextPreview(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_000_000)
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	running := func(since time.Duration) *rows.PreviewTurn {
		return &rows.PreviewTurn{ID: 1, StartedAt: ago(since), ProgressAt: 7}
	}
	open, live, status := &rows.Preview{PlatformID: "p"}, rows.PreviewText, rows.PreviewLine
	for name, tt := range map[string]struct {
		facts previewFacts
		want  previewStep
	}{
		"open without an id":            {previewFacts{turn: running(time.Hour), open: &rows.Preview{}, every: messages, mode: live}, previewStep{do: previewLose}},
		"of before a move":              {previewFacts{turn: running(time.Hour), open: &rows.Preview{PlatformID: "old:5"}, every: messages, mode: live}, previewStep{do: previewLose}},
		"overtaken":                     {previewFacts{turn: running(time.Hour), open: &rows.Preview{PlatformID: "p", Ending: true}, every: messages, mode: live}, previewStep{do: previewRemove}},
		"overtaken, while a row waits":  {previewFacts{waiting: true, open: &rows.Preview{PlatformID: "p", Ending: true}}, previewStep{do: previewRemove}},
		"switched off":                  {previewFacts{turn: running(time.Hour), open: open, every: messages, mode: rows.PreviewOff}, previewStep{do: previewRemove}},
		"of a turn that is over":        {previewFacts{open: open}, previewStep{do: previewRemove}},
		"of one that is over, retried":  {previewFacts{open: open, known: knownPreview{waitUntil: now.Add(time.Second)}}, previewStep{wait: time.Second}},
		"of one that is over, waiting":  {previewFacts{open: open, waiting: true}, previewStep{}},
		"waiting":                       {previewFacts{turn: running(time.Hour), open: open, waiting: true, every: messages, mode: live}, previewStep{}},
		"not shown there":               {previewFacts{turn: running(time.Hour), mode: live}, previewStep{}},
		"refused":                       {previewFacts{turn: running(time.Hour), every: messages, mode: live, known: knownPreview{refused: true}}, previewStep{}},
		"too early":                     {previewFacts{turn: running(600 * time.Millisecond), every: messages, mode: live}, previewStep{wait: 400 * time.Millisecond}},
		"too early for status":          {previewFacts{turn: running(4 * time.Second), every: messages, mode: status}, previewStep{wait: 6 * time.Second}},
		"begun":                         {previewFacts{turn: running(time.Second), every: messages, mode: live}, previewStep{do: previewBegin}},
		"nothing to show":               {previewFacts{turn: running(time.Hour), every: messages, mode: live, known: knownPreview{progressAt: 7}}, previewStep{do: previewBegin}},
		"nothing to show yet":           {previewFacts{turn: running(4 * time.Second), every: messages, mode: live, known: knownPreview{progressAt: 7}}, previewStep{wait: 6 * time.Second}},
		"it was shown, and overtaken":   {previewFacts{turn: running(time.Hour), every: messages, mode: live, known: knownPreview{progressAt: 7, calledAt: now.Add(-time.Hour)}}, previewStep{}},
		"an agent that says nothing":    {previewFacts{turn: &rows.PreviewTurn{StartedAt: ago(time.Hour)}, every: messages, mode: live}, previewStep{do: previewBegin}},
		"that has an older turn":        {previewFacts{turn: &rows.PreviewTurn{StartedAt: ago(time.Hour), Behind: true}, every: messages, mode: live}, previewStep{}},
		"without its button":            {previewFacts{turn: &rows.PreviewTurn{StartedAt: ago(time.Hour)}, open: open, every: messages, mode: live}, previewStep{do: previewChange}},
		"news":                          {previewFacts{turn: running(time.Hour), open: open, every: messages, mode: live, known: knownPreview{calledAt: now.Add(-3 * time.Second)}}, previewStep{do: previewChange}},
		"news, too early":               {previewFacts{turn: running(time.Hour), open: open, every: messages, mode: live, known: knownPreview{calledAt: now.Add(-time.Second)}}, previewStep{wait: 2 * time.Second}},
		"no news":                       {previewFacts{turn: running(20 * time.Second), open: open, every: messages, mode: live, known: knownPreview{progressAt: 7, given: content{line: "Read…"}}}, previewStep{wait: 40 * time.Second}},
		"no news for long":              {previewFacts{turn: running(time.Hour), open: open, every: messages, mode: live, known: knownPreview{progressAt: 7, given: content{line: "Read…"}}}, previewStep{do: previewChange}},
		"no news for long, and said so": {previewFacts{turn: running(time.Hour), open: open, every: messages, mode: live, known: knownPreview{progressAt: 7, given: content{line: "Read…"}, quietSince: time.UnixMilli(7)}}, previewStep{}},
		"the clock was set back":        {previewFacts{turn: running(time.Hour), open: open, every: messages, mode: live, known: knownPreview{calledAt: now.Add(time.Hour)}}, previewStep{do: previewChange}},
	} {
		tt.facts.now = now
		if got := nextPreview(&tt.facts); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestPreviewFacts_Content_NamesWhoIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := previewFacts{turn: &rows.PreviewTurn{}, progress: &store.Progress{State: agentproto.StatusRequiresAction}, asked: "Ada"}
	if got := f.content().line; got != "Waiting for Ada to answer…" {
		t.Errorf("the line is %q", got)
	}
}

func TestContentOf(t *testing.T) {
	t.Parallel()
	tool := func(title string, s agentproto.ToolStatus) agentproto.Tool {
		return agentproto.Tool{ID: title, Title: title, Status: s}
	}
	step := agentproto.Step{Content: "Find it", Status: agentproto.StepInProgress}
	for name, tt := range map[string]struct {
		p            *store.Progress
		live, status content
	}{
		"nothing":       {nil, content{}, content{}},
		"running":       {&store.Progress{State: agentproto.StatusRunning}, content{}, content{}},
		"text":          {&store.Progress{Text: "One"}, content{text: "One"}, content{line: "Writing the answer…"}},
		"last tool":     {&store.Progress{Text: "One", Tools: []agentproto.Tool{tool("Read", agentproto.ToolRunning), tool("Run", agentproto.ToolPending), tool("Ask", agentproto.ToolDone)}}, content{"One", "Run…"}, content{line: "Run…"}},
		"step":          {&store.Progress{Plan: []agentproto.Step{step}}, content{line: "Find it…"}, content{line: "Find it…"}},
		"tools ended":   {&store.Progress{Tools: []agentproto.Tool{tool("Read", agentproto.ToolDone)}}, content{line: PreviewStart}, content{line: PreviewStart}},
		"waits for all": {&store.Progress{State: agentproto.StatusRequiresAction, Plan: []agentproto.Step{step}}, content{line: "Waiting for an answer…"}, content{line: "Waiting for an answer…"}},
	} {
		if live, status := contentOf(tt.p, rows.PreviewText), contentOf(tt.p, rows.PreviewLine); live != tt.live || status != tt.status {
			t.Errorf("%s: %+v and %+v, want %+v and %+v", name, live, status, tt.live, tt.status)
		}
	}
}
