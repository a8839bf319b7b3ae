package adapter

import (
	"strings"
	"time"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// The preview of a turn is a table of states. nextPreview returns the next step; it is pure.
//
//	a preview that is                             | is
//	open without an id                            | lost: a crash, or a call without an answer, left it
//	open with an id of before its chat was moved  | lost: no call can name it any more
//	overtaken by a row, or of mode off            | removed
//	open, its turn not running, a row waits       | left to that row, which takes it over or overtakes it
//	open, its turn not running                    | removed
//	of a running turn, while rows of its lane wait| left
//	not there, nothing to show yet                | left; begun after ten seconds, as a line
//	not there                                     | begun, once its time has come
//	open, with news                               | changed, once its time has come
//	open, without news for a minute               | changed once, to say so

const (
	// liveDelay is how long a turn runs before its answer is shown as it grows: shorter ones need no preview.
	liveDelay = time.Second
	// statusDelay is the same for a line about the agent's work.
	statusDelay = 10 * time.Second
	// quietDelay is how long an agent says nothing before its users hear that: its model may be overloaded, or gone.
	quietDelay = time.Minute
	// previewRetry is the pause after a call that failed, unless the platform asks for a longer one.
	previewRetry = 5 * time.Second
	// previewOld begins the platform ids of a chat that was moved.
	previewOld = "old:"
)

// previewDo is an action on a preview.
type previewDo int

// The actions.
const (
	previewLeave  previewDo = iota // nothing, until previewStep.wait has passed, if it is not 0
	previewBegin                   // make it
	previewChange                  // show the changes
	previewRemove                  // delete its message
	previewLose                    // store that nothing more can be done about it
)

// previewStep is the next action on a preview, and when to look again if there is none yet.
type previewStep struct {
	do   previewDo
	wait time.Duration
}

// previewFacts are all that the next step depends on.
type previewFacts struct {
	rows.Preview
	now   time.Time
	every time.Duration // see Previewer
	known *knownPreview

	progress *store.Progress // nil if the agent has said nothing, or if it was not read
	asked    string          // who may answer the question that the agent waits for, "" for none
}

// knownPreview is this process's memory of the preview of a turn. It is empty after a start.
type knownPreview struct {
	calledAt   time.Time // of the last call for it
	waitUntil  time.Time // no call before
	reserved   bool      // the pacer has counted the call that removes it
	progressAt int64     // of the progress that it shows, or that has nothing to show
	given      content   // of the preview
	quietSince time.Time // the last sign of the agent, once users have heard that there is none since
	refused    bool      // the platform shows none for this turn
}

// nextPreview decides the next step for the preview of a turn.
func nextPreview(f *previewFacts) previewStep {
	hidden := f.Mode == msg.PreviewOff || f.every == 0
	switch {
	case f.Open() && (f.PlatformID == "" || strings.HasPrefix(f.PlatformID, previewOld)):
		return f.once(previewLose, f.known.waitUntil)
	case f.Open() && (f.Ending || f.Running && hidden || !f.Running && !f.Waiting):
		return f.once(previewRemove, f.known.waitUntil)
	case !f.Running || f.Waiting || hidden || f.known.refused:
		return previewStep{}
	}
	delay := liveDelay
	if f.Mode == msg.PreviewLine {
		delay = statusDelay
	}
	if f.known.calledAt.After(f.now) { // the clock was set back
		f.known.calledAt, f.known.waitUntil = time.Time{}, time.Time{}
	}
	began, due := f.began().Add(delay), later(f.known.waitUntil, f.known.calledAt.Add(f.every))
	switch {
	case f.ProgressAt == f.known.progressAt: // no news, or the agent says nothing
		return f.nextSilent(due)
	case !f.Open():
		return f.once(previewBegin, later(began, due))
	}
	return f.once(previewChange, due)
}

// nextSilent is nextPreview of a turn whose agent says nothing new. If there is nothing to show of it, after a while a
// line says that it is at work.
func (f *previewFacts) nextSilent(due time.Time) previewStep {
	do := previewBegin
	switch {
	case f.Behind, !f.Open() && !f.known.calledAt.IsZero(), f.known.quietSince.Equal(f.lastSign()):
		return previewStep{}
	case f.Open() && f.known.given != content{}:
		return f.once(previewChange, later(f.lastSign().Add(quietDelay), due))
	case f.Open(): // its button is still missing
		do = previewChange
	}
	return f.once(do, later(f.began().Add(statusDelay), due))
}

func (f *previewFacts) began() time.Time { return time.UnixMilli(f.StartedAt) }

// lastSign is when the agent gave a sign of its work on the turn last.
func (f *previewFacts) lastSign() time.Time {
	return time.UnixMilli(max(f.StartedAt, f.ProgressAt))
}

// quiet reports whether the agent has given no sign for long.
func (f *previewFacts) quiet() bool { return !f.now.Before(f.lastSign().Add(quietDelay)) }

// content returns the content of the preview now.
func (f *previewFacts) content() content {
	c := contentOf(f.progress, f.Mode)
	switch {
	case !f.Behind && f.quiet() && (f.progress == nil || !busy(f.progress)):
		c.line = quietLine
	case c.line == waitingLine && f.asked != "":
		c.line = "Waiting for " + f.asked + " to answer…"
	case c == content{} && !f.Behind && !f.now.Before(f.began().Add(statusDelay)):
		c.line = PreviewStart
	}
	return c
}

// once is an action, or the wait until it is due.
func (f *previewFacts) once(do previewDo, due time.Time) previewStep {
	if wait := due.Sub(f.now); wait > 0 {
		return previewStep{wait: wait}
	}
	return previewStep{do: do}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// waitingLine is the line of a turn that waits for the answer to a question.
const waitingLine = "Waiting for an answer…"

// quietLine is the line of a turn whose agent gives no sign.
const quietLine = "No sign of the agent or its model for over a minute…"

// busy reports whether an agent is known to wait for a user, or for a tool, which may take long.
func busy(p *store.Progress) bool {
	return p.State == agentproto.StatusRequiresAction || toolLine(p.Tools) != ""
}

// content is the content of a preview.
type content struct{ text, line string }

// contentOf describes the agent's work in a few words, with the answer so far in mode live. p is nil if it has said
// nothing.
func contentOf(p *store.Progress, mode msg.PreviewMode) content {
	if p == nil {
		return content{}
	}
	doing := toolLine(p.Tools)
	if doing == "" {
		doing = planLine(p.Plan)
	}
	switch {
	case p.State == agentproto.StatusRequiresAction:
		doing = waitingLine
	case doing != "":
	case p.Text == "" && len(p.Tools)+len(p.Plan) > 0:
		doing = PreviewStart
	case p.Text != "" && mode == msg.PreviewLine:
		doing = "Writing the answer…"
	}
	if mode == msg.PreviewLine {
		return content{line: doing}
	}
	return content{text: p.Text, line: doing}
}

// toolLine names the tool that was begun last and has not ended.
func toolLine(tools []agentproto.Tool) string {
	for i := len(tools) - 1; i >= 0; i-- {
		if t := tools[i]; t.Title != "" && (t.Status == agentproto.ToolRunning || t.Status == agentproto.ToolPending) {
			return t.Title + "…"
		}
	}
	return ""
}

// planLine names the step of a plan that is in progress.
func planLine(plan []agentproto.Step) string {
	for _, step := range plan {
		if step.Content != "" && step.Status == agentproto.StepInProgress {
			return step.Content + "…"
		}
	}
	return ""
}
