package adapter

import (
	"testing"
	"time"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestNextPreview(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_000_000)
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	// The turn runs for so long, or is over.
	turn := func(since time.Duration) rows.Preview {
		return rows.Preview{TurnID: 1, Running: since > 0, StartedAt: ago(since), ProgressAt: 7, Mode: msg.PreviewText}
	}
	with := func(p rows.Preview, change ...func(*rows.Preview)) rows.Preview {
		for _, c := range change {
			c(&p)
		}
		return p
	}
	opened := func(id string) func(*rows.Preview) {
		return func(p *rows.Preview) { p.ID, p.PlatformID = 1, id }
	}
	open, ending := opened("p"), func(p *rows.Preview) { p.Ending = true }
	waiting, behind := func(p *rows.Preview) { p.Waiting = true }, func(p *rows.Preview) { p.Behind = true }
	silent := func(p *rows.Preview) { p.ProgressAt = 0 }
	mode := func(m msg.PreviewMode) func(*rows.Preview) { return func(p *rows.Preview) { p.Mode = m } }
	for name, tt := range map[string]struct {
		preview rows.Preview
		every   time.Duration
		known   knownPreview
		want    previewStep
	}{
		"open without an id":            {with(turn(time.Hour), opened("")), messages, knownPreview{}, previewStep{do: previewLose}},
		"of before a move":              {with(turn(time.Hour), opened("old:5")), messages, knownPreview{}, previewStep{do: previewLose}},
		"overtaken":                     {with(turn(time.Hour), open, ending), messages, knownPreview{}, previewStep{do: previewRemove}},
		"overtaken, while a row waits":  {with(turn(0), open, ending, waiting), 0, knownPreview{}, previewStep{do: previewRemove}},
		"switched off":                  {with(turn(time.Hour), open, mode(msg.PreviewOff)), messages, knownPreview{}, previewStep{do: previewRemove}},
		"of a turn that is over":        {with(turn(0), open), 0, knownPreview{}, previewStep{do: previewRemove}},
		"of one that is over, retried":  {with(turn(0), open), 0, knownPreview{waitUntil: now.Add(time.Second)}, previewStep{wait: time.Second}},
		"of one that is over, waiting":  {with(turn(0), open, waiting), 0, knownPreview{}, previewStep{}},
		"waiting":                       {with(turn(time.Hour), open, waiting), messages, knownPreview{}, previewStep{}},
		"not shown there":               {turn(time.Hour), 0, knownPreview{}, previewStep{}},
		"refused":                       {turn(time.Hour), messages, knownPreview{refused: true}, previewStep{}},
		"too early":                     {turn(600 * time.Millisecond), messages, knownPreview{}, previewStep{wait: 400 * time.Millisecond}},
		"too early for status":          {with(turn(4*time.Second), mode(msg.PreviewLine)), messages, knownPreview{}, previewStep{wait: 6 * time.Second}},
		"begun":                         {turn(time.Second), messages, knownPreview{}, previewStep{do: previewBegin}},
		"nothing to show":               {turn(time.Hour), messages, knownPreview{progressAt: 7}, previewStep{do: previewBegin}},
		"nothing to show yet":           {turn(4 * time.Second), messages, knownPreview{progressAt: 7}, previewStep{wait: 6 * time.Second}},
		"it was shown, and overtaken":   {turn(time.Hour), messages, knownPreview{progressAt: 7, calledAt: now.Add(-time.Hour)}, previewStep{}},
		"an agent that says nothing":    {with(turn(time.Hour), silent), messages, knownPreview{}, previewStep{do: previewBegin}},
		"that has an older turn":        {with(turn(time.Hour), silent, behind), messages, knownPreview{}, previewStep{}},
		"without its button":            {with(turn(time.Hour), silent, open), messages, knownPreview{}, previewStep{do: previewChange}},
		"news":                          {with(turn(time.Hour), open), messages, knownPreview{calledAt: now.Add(-3 * time.Second)}, previewStep{do: previewChange}},
		"news, too early":               {with(turn(time.Hour), open), messages, knownPreview{calledAt: now.Add(-time.Second)}, previewStep{wait: 2 * time.Second}},
		"no news":                       {with(turn(20*time.Second), open), messages, knownPreview{progressAt: 7, given: content{line: "Read…"}}, previewStep{wait: 40 * time.Second}},
		"no news for long":              {with(turn(time.Hour), open), messages, knownPreview{progressAt: 7, given: content{line: "Read…"}}, previewStep{do: previewChange}},
		"no news for long, and said so": {with(turn(time.Hour), open), messages, knownPreview{progressAt: 7, given: content{line: "Read…"}, quietSince: time.UnixMilli(7)}, previewStep{}},
		"the clock was set back":        {with(turn(time.Hour), open), messages, knownPreview{calledAt: now.Add(time.Hour)}, previewStep{do: previewChange}},
	} {
		if got := nextPreview(&previewFacts{tt.preview, now, tt.every, &tt.known, nil, ""}); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestPreviewFacts_Content_NamesWhoIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := previewFacts{progress: &store.Progress{State: agentproto.StatusRequiresAction}, asked: "Ada"}
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
		if live, status := contentOf(tt.p, msg.PreviewText), contentOf(tt.p, msg.PreviewLine); live != tt.live || status != tt.status {
			t.Errorf("%s: %+v and %+v, want %+v and %+v", name, live, status, tt.live, tt.status)
		}
	}
}
