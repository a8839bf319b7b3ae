package pages

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/why"
)

// Choice is one of several links, such as filters; the current one is marked.
type Choice struct {
	Link
	Current bool
}

// List is a page of a list.
type List[T any] struct {
	Choices []Choice // of other lists
	Of      string   // the subject of the list in words, "" for all
	Lines   []T
	Titles  Titles // of the chats
	// Asked are, of a list of turns, the messages that began them, by id.
	Asked  map[int64]*msg.Message
	Failed bool   // of turns, all of them failed
	Next   string // address of what follows, "" for nothing
	Later  bool   // it is not the beginning
	Now    int64
}

// turnAt is a turn at a time, in unix ms.
type turnAt struct {
	*msg.Turn
	now int64
}

func newTurnAt(t *msg.Turn, now int64) turnAt { return turnAt{t, now} }

// Words says in what state it is.
func (t turnAt) Words() string { return cmp.Or(t.Reason.Words(), string(t.State)) }

// Took is how long it was worked on, in ms; 0 while it is not over.
func (t turnAt) Took() int64 {
	if t.StartedAt == 0 || t.EndedAt == 0 {
		return 0
	}
	return t.EndedAt - t.StartedAt
}

// Since is when its run started, or when it was queued if none runs.
func (t turnAt) Since() int64 {
	if t.State == msg.TurnQueued { // also after a requeue
		return t.CreatedAt
	}
	return cmp.Or(t.StartedAt, t.CreatedAt)
}

// CanCancel reports whether it has not ended.
func (t turnAt) CanCancel() bool { return t.State == msg.TurnQueued || t.State == msg.TurnRunning }

// CanRetry reports whether an operator can put it into the queue again.
func (t turnAt) CanRetry() bool {
	return t.State == msg.TurnFailed || t.State == msg.TurnCancelled || t.State == msg.TurnQueued && t.NotBefore > t.now
}

// Waits says what a queued turn waits for, "" if it may start.
func (t turnAt) Waits() string {
	if t.State != msg.TurnQueued {
		return ""
	}
	words := t.WaitsFor.Meaning()
	if left := t.NotBefore - t.now; left > 0 {
		words = cmp.Or(words, "it waits") + fmt.Sprintf(", %d s left", (left+999)/1000)
	}
	return words
}

// TurnPage is one turn: its messages and answers, and how it ran.
type TurnPage struct {
	Turn   *why.Turn
	Titles Titles
	Parent int64       // the turn that delegated it, 0 for none
	TookIn []*msg.Turn // turns that were answered with this one
	Asks   []Question
	Work   *store.Progress // the agent's report on its work, nil for none
	Log    string          // the end of the last run's log
	LogRun int64           // that run, 0 if there is no log
	LogCut bool            // the log is longer
	Now    int64
}

// Asking reports whether a question is open.
func (p TurnPage) Asking() bool { return len(p.Asks) > 0 && p.Asks[0].Open() }

// Reversal is what the buttons of a turn's page take back, or do again.
type Reversal struct {
	Verb string // "undo" or "redo", "" for neither
	Rest bool   // it was refused: files have changed since
}

// Reversal is what can be done about a turn now; gated says if that has changed.
func (p TurnPage) Reversal() (r Reversal) {
	var last *factrows.Undo
	if len(p.Turn.Undos) > 0 {
		last = p.Turn.Undos[len(p.Turn.Undos)-1]
	}
	switch {
	case last != nil && last.State == factrows.UndoOpen:
		return r
	case p.Turn.UndoneAt != 0:
		r.Verb = "redo"
	case p.Turn.StartedAt != 0 && p.Turn.EndedAt != 0:
		r.Verb = "undo"
	}
	r.Rest = last != nil && last.FilesChanged()
	return r
}

// Question is a question of an agent, or of gated, to users, as an operator sees it.
type Question struct {
	*msg.Ask
	Operator string
}

// Text is its first line.
func (q Question) Text() string {
	text, _, _ := strings.Cut(q.Question, "\n")
	return Cut(text, agentproto.MaxQuestion)
}

// Detail is the rest, as much of it as its chat has, "" for nothing.
func (q Question) Detail() string {
	_, detail, _ := strings.Cut(q.Question, "\n")
	return Cut(detail, 2*agentproto.MaxDetail)
}

// For words who may answer.
func (q Question) For() string { return Line(why.For(q.Who)) }

// Hash is that of a permission, shortened.
func (q Question) Hash() string {
	if !q.IsPermission() {
		return ""
	}
	return Line(why.ShortHash(q.PayloadHash))
}

// Open reports whether it can be answered.
func (q Question) Open() bool { return q.State == msg.AskOpen }

// Bad reports whether it has ended without an answer.
func (q Question) Bad() bool { return !q.Open() && q.State != msg.AskAnswered }

// End words how it has ended.
func (q Question) End() string {
	if q.State == msg.AskAnswered && q.RuleID == 0 {
		return "answered by " + Line(q.AnsweredBy)
	}
	return why.AskState(q.Ask)
}

// Choices are its options, with their numbers.
func (q Question) Choices() (all []Option) {
	for i, option := range q.Options {
		all = append(all, Option{Value: strconv.Itoa(i + 1), Text: Line(option),
			Selected: q.State == msg.AskAnswered && option == q.Chosen()})
	}
	return all
}

// operatorsLabel is the label of a question that is for operators.
const operatorsLabel = "operators"

// Stands warns an operator who answers for another user, "" if the question is for operators.
func (q Question) Stands() string {
	if q.Who.May(q.Operator) || q.Who.Label == operatorsLabel {
		return ""
	}
	return fmt.Sprintf("You answer for %s, as an operator: the chat will say so, and Changes has your login.",
		q.For())
}

// States of the work of agents in words.
var (
	workStates = map[agentproto.Status]string{
		agentproto.StatusRunning: "works", agentproto.StatusIdle: "waits for something",
		agentproto.StatusRequiresAction: "waits for a user",
	}
	stepStates = map[agentproto.StepStatus]string{
		agentproto.StepPending: "to do", agentproto.StepInProgress: "under way", agentproto.StepCompleted: "done",
	}
	callStates = map[agentproto.ToolStatus]string{
		agentproto.ToolPending: "not begun", agentproto.ToolRunning: "under way", agentproto.ToolDone: "done",
		agentproto.ToolFailed: "failed",
	}
)

// PromptPage is the prompt of an agent.
type PromptPage struct {
	Prompt, Problem string
}

// Retry is the failed turns by what went wrong.
type Retry struct {
	Causes  []FailedCause
	Chosen  *FailedCause // nil for none
	Batch   Batch        // to retry: turns of the chosen cause
	Titles  Titles       // of its chats
	Bounded bool         // there may be more
	Now     int64
}

// FailedCause is turns that failed alike, the newest first.
type FailedCause struct {
	Key   string // in addresses
	Turns []*msg.Turn
}
