package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Step is an event with its stored time. Times are unix ms.
type Step struct {
	At      int64
	After   time.Duration // since the step before
	Text    string        // on one line; it may have texts of users, agents and platforms
	Words   string        // the same without codes, "" if it has none
	Reason  msg.Reason    // why, "" if no code says it
	Meaning string        // of the reason
	Owner   string        // the daemon that did it
	// The row, turn and run that it is about, 0 for none.
	Row, Turn, Run int64
	From           *Origin // of the row
	Earlier        bool    // before the message: the start of an agent that was running already
	Main           bool    // one of the few that matter most: decisions, ends of turns, deliveries
}

// Open is a row, a turn or a question that has not ended yet.
type Open struct {
	Text      string
	Owner     string // who is to act: a daemon, or an operator
	Row, Turn int64
	Page      facts.Page // where an operator does that, for a reader of the dashboard
}

// gated is the owner of most steps.
const gated = "gated"

// Steps are the events of a message, in the order of their times.
func Steps(p *Path) []Step {
	var all []Step
	for _, m := range p.Rows {
		all = append(all, p.Choice.explain(m, rowSteps(m, p.Origins[m.ID]))...)
	}
	all = append(all, choiceSteps(p.Choice)...)
	for _, t := range p.Turns {
		all = append(all, turnSteps(t)...)
	}
	for _, r := range p.Replies {
		all = append(all, replySteps(r)...)
	}
	all = slices.DeleteFunc(all, func(s Step) bool { return s.At == 0 })
	slices.SortStableFunc(all, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	for i := 1; i < len(all); i++ {
		all[i].After = time.Duration(all[i].At-all[i-1].At) * time.Millisecond
	}
	return all
}

// Took is the time from the message's first step to the last part that was delivered, 0 if none was.
func Took(p *Path, steps []Step) time.Duration {
	delivered := lastDelivered(p)
	first := slices.IndexFunc(steps, func(s Step) bool { return !s.Earlier })
	if delivered == 0 || first < 0 {
		return 0
	}
	return time.Duration(delivered-steps[first].At) * time.Millisecond
}

func rowSteps(m *msg.Message, origin *Origin) []Step {
	stored := fmt.Sprintf("message %d stored", m.ID)
	var all []Step
	if m.DerivedFrom != 0 {
		all = append(all, Step{At: m.DecidedAt, Owner: gated, Row: m.ID,
			Text: fmt.Sprintf("%s, derived from message %d: %s", stored, m.DerivedFrom, excerpt(m.Content))})
	} else {
		if stored += by(m.Source); origin != nil {
			stored += ", from " + origin.Text
		}
		all = append(all, Step{At: m.ReceivedAt, Text: stored, Owner: storedBy(m), Row: m.ID, From: origin, Main: true})
	}
	if m.Disposition == "" {
		return all
	}
	text, words := fmt.Sprintf("message %d decided: %s, %s", m.ID, m.Disposition, explained(m.Reason)), m.Outcome()
	if m.RoutedTo != "" {
		text += ", folder " + m.RoutedTo
	}
	if m.Error != "" {
		problem, _, _ := strings.Cut(m.Error, "\n") // the lines after it are a stack
		if m.Reason == msg.ReasonBadRow {
			problem = "error: " + problem
		}
		text, words = text+", "+problem, words+": "+problem
	}
	owner := gated
	if m.Reason == msg.ReasonQuoted { // decided as it was stored
		owner = storedBy(m)
	}
	return append(all, Step{At: m.DecidedAt, Text: text, Words: words, Reason: m.Reason,
		Meaning: m.Reason.Meaning(), Owner: owner, Row: m.ID, Turn: m.TurnID, Main: true})
}

// storedBy is the daemon that stored an inbound row: gated, unless an adapter did.
func storedBy(m *msg.Message) string {
	switch m.Source {
	case msg.SourceTool, msg.SourceDelegate, msg.SourcePrefix, msg.SourceCommand, msg.SourceReplay, msg.SourceReminder,
		msg.SourceBroadcast:
		return gated
	}
	return cmp.Or(m.Source, msg.DaemonOf(m.ChatJID))
}

func by(source string) string {
	if source == "" {
		return ""
	}
	return " by " + source
}

// explained is a reason code with its meaning.
func explained(code msg.Reason) string {
	if text := code.Meaning(); text != "" {
		return fmt.Sprintf("%s (%s)", code, text)
	}
	return string(code)
}

func turnSteps(t *Turn) []Step {
	at := []string{"folder " + t.Folder, "topic " + orNone(t.Topic)}
	if t.Place != t.Topic {
		at = append(at, "place "+orNone(t.Place))
	}
	if t.ThreadID != "" {
		at = append(at, "thread "+t.ThreadID)
	}
	all := []Step{{At: t.CreatedAt, Text: fmt.Sprintf("turn %d stored: %s, %s", t.ID, strings.Join(at, ", "),
		rows(idsOf(t.Batch))), Owner: gated, Turn: t.ID}}
	started := fmt.Sprintf("turn %d started", t.ID)
	if t.RunID != 0 {
		started += fmt.Sprintf(" in run %d", t.RunID)
	}
	all = append(all, Step{At: t.StartedAt, Text: started, Owner: gated, Turn: t.ID, Run: t.RunID})
	for _, r := range t.Runs {
		all = append(all, runSteps(t, r)...)
	}
	all = append(all, callSteps(t)...)
	for _, r := range t.Sent {
		all = append(all, Step{At: r.At, Text: fmt.Sprintf("request %d: %s", r.ID, r), Owner: gated, Turn: t.ID,
			Run: r.RunID})
	}
	for _, a := range t.Asks {
		all = append(all, askSteps(a)...)
	}
	for _, r := range t.Replies {
		all = append(all, replySteps(r)...)
	}
	if t.EndedAt != 0 {
		text := ""
		if t.AnsweredWith != 0 {
			text += fmt.Sprintf(", answered with turn %d", t.AnsweredWith)
		}
		if t.Attempts > 0 {
			text += fmt.Sprintf(", failed attempts: %d", t.Attempts)
		}
		if used := Used(t.Usage); used != "" {
			text += ", used: " + used
		}
		text += problem(t)
		all = append(all, Step{At: t.EndedAt, Reason: t.Reason, Meaning: t.Reason.Meaning(), Owner: gated, Turn: t.ID,
			Main: true, Words: fmt.Sprintf("turn %d %s%s", t.ID, t.Reason.Words(), text),
			Text: fmt.Sprintf("turn %d ended: %s, %s%s", t.ID, t.State, explained(t.Reason), text)})
	}
	for _, u := range t.Undos {
		all = append(all, Step{At: u.EndedAt, Text: fmt.Sprintf("turn %d %s", t.ID, Undone(u)), Owner: gated,
			Turn: t.ID, Main: true})
	}
	return all
}

func idsOf(messages []*msg.Message) (ids []int64) {
	for _, m := range messages {
		ids = append(ids, m.ID)
	}
	return ids
}

func rows(ids []int64) string {
	const shown = 10
	var all []string
	for _, id := range ids[:min(len(ids), shown)] {
		all = append(all, fmt.Sprint(id))
	}
	if more := len(ids) - shown; more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	if len(ids) == 1 {
		return "message " + all[0]
	}
	return "messages " + strings.Join(all, " ")
}

func orNone(text string) string { return cmp.Or(text, "(none)") }

func runSteps(t *Turn, r *factrows.RunResult) []Step {
	started := fmt.Sprintf("run %d started: runtime %s", r.ID, r.Runtime)
	if r.PID != 0 {
		started += fmt.Sprintf(", pid %d", r.PID)
	}
	if r.Label != "" {
		started += ", label " + r.Label
	}
	earlier := r.StartedAt < t.CreatedAt
	if earlier {
		started += ", before this turn"
	}
	ended := fmt.Sprintf("run %d ended: %s", r.ID, cmp.Or(r.Result, "ok"))
	if r.Error != "" {
		ended += ": " + r.Error
	}
	return []Step{
		{At: r.StartedAt, Text: started, Earlier: earlier, Owner: gated, Turn: t.ID, Run: r.ID},
		{At: r.EndedAt, Text: ended, Owner: gated, Turn: t.ID, Run: r.ID},
	}
}

func replySteps(r *Reply) []Step {
	text := fmt.Sprintf("message %d stored by %s for %s", r.ID, orNone(r.Source), r.ChatJID)
	if r.Content != "" {
		text += ": " + excerpt(r.Content)
	}
	all := []Step{{At: r.ReceivedAt, Text: text, Owner: gated, Row: r.ID, Turn: r.TurnID}}
	for _, p := range r.Parts {
		all = append(all, Step{At: p.UpdatedAt, Text: partText(r.ID, p), Owner: msg.DaemonOf(r.ChatJID), Row: r.ID,
			Turn: r.TurnID, Main: true})
	}
	return all
}

func partText(row int64, p store.Delivery) string {
	text := fmt.Sprintf("message %d part %d: %s", row, p.Part, p.State)
	if p.PlatformID != "" {
		text += ", platform id " + p.PlatformID
	}
	if p.Attempts > 0 {
		text += fmt.Sprintf(", attempts %d", p.Attempts)
	}
	if p.ErrorClass != "" {
		text += fmt.Sprintf(", %s error", p.ErrorClass)
	}
	if p.Error != "" {
		text += ": " + p.Error
	}
	return text
}

// lastDelivered returns when the last part of an answer was delivered, 0 if
// none was.
func lastDelivered(p *Path) (at int64) {
	replies := p.Replies
	for _, t := range p.Turns {
		replies = slices.Concat(replies, t.Replies)
	}
	for _, r := range replies {
		for _, part := range r.Parts {
			if part.State == msg.OutSent {
				at = max(at, part.UpdatedAt)
			}
		}
	}
	return at
}

// Used is the usage of a turn in words, "" if its agent did not say.
func Used(u agentproto.Usage) string {
	var all []string
	if u.Input > 0 || u.Output > 0 {
		all = append(all, fmt.Sprintf("tokens read: %d, written: %d", u.Input, u.Output))
	}
	if u.CostUSD > 0 {
		all = append(all, fmt.Sprintf("US dollars: %.4f", u.CostUSD))
	}
	if u.ContextUsed > 0 && u.ContextSize > 0 {
		all = append(all, fmt.Sprintf("conversation: %d %% of its room", u.ContextUsed*100/u.ContextSize))
	}
	return strings.Join(all, "; ")
}
