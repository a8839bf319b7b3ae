package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// Asked is a question of a turn.
type Asked struct {
	*msg.Ask
	Presses []*msg.Message // of its buttons, also those that did not count, oldest first
}

// Choice is the answer of an inbound row to a question, whether it counted or not.
type Choice struct {
	Row    int64
	Ask    *msg.Ask // nil if it is not known: there is none, or the row does not say which
	Option string   // in words, "" if the question has no such option
}

// answers reports whether a row was decided as an answer to a question, or is the press of a button.
func answers(m *msg.Message) bool {
	switch m.Reason {
	case msg.ReasonChosen, msg.ReasonChoiceDenied, msg.ReasonChoiceLate, msg.ReasonChoiceUnknown:
		return true
	}
	return m.Verb == msg.VerbAnswer
}

// choice reads the question that an inbound row answers.
func (l *loader) choice(ctx context.Context, m *msg.Message) {
	if l.err != nil || !answers(m) {
		return
	}
	c := &Choice{Row: m.ID}
	text := m.Content
	press, ok := msg.ParsePress(m.Content)
	if m.Verb == msg.VerbAnswer && press.Stop+press.Undo > 0 { // a command
		return
	}
	switch {
	case m.Verb == msg.VerbAnswer && ok:
		c.Ask, l.err = l.st.Ask(ctx, press.Ask)
		text = fmt.Sprint(press.Option)
	case cmp.Or(m.TargetID, m.ReplyToID) != "":
		c.Ask, l.err = factrows.AskOfTarget(ctx, l.st, m.ChatJID, cmp.Or(m.TargetID, m.ReplyToID))
	default:
		c.Ask = l.typed(ctx, m)
	}
	if c.Ask != nil {
		number := c.Ask.Typed
		if m.Verb == msg.VerbAnswer {
			number = c.Ask.Number
		}
		if n, ok := number(text); ok {
			c.Option = c.Ask.Options[n-1]
		}
	}
	l.path.Choice = c
}

// typed returns the question that a text answered which replies to none: the one that it closed, else the only one that
// was open.
func (l *loader) typed(ctx context.Context, m *msg.Message) *msg.Ask {
	open, err := factrows.AsksOpenAt(ctx, l.st, m.ChatJID, m.ThreadID, m.ID, cmp.Or(m.DecidedAt, m.ReceivedAt))
	l.err = err
	closed := func(a *msg.Ask) bool { return a.EndedAt == m.DecidedAt && a.AnsweredBy == m.Sender }
	if i := slices.IndexFunc(open, closed); i >= 0 {
		return open[i]
	}
	if len(open) == 1 {
		return open[0]
	}
	return nil
}

// asks reads the questions of a turn.
func (l *loader) asks(ctx context.Context, t *Turn) {
	if l.err != nil {
		return
	}
	all, err := l.st.TurnAsks(ctx, t.ID)
	l.err = err
	for _, a := range all {
		asked := &Asked{Ask: a}
		for _, id := range shownAs(t, a) {
			if l.err == nil {
				var presses []*msg.Message
				presses, l.err = factrows.Presses(ctx, l.st, t.ChatJID, id)
				asked.Presses = append(asked.Presses, presses...)
			}
		}
		t.Asks = append(t.Asks, asked)
	}
}

// shownAs are the platform's ids of the message that shows a question.
func shownAs(t *Turn, a *msg.Ask) (ids []string) {
	i := slices.IndexFunc(t.Replies, func(r *Reply) bool { return r.ID == a.MessageID })
	if i < 0 {
		return nil
	}
	ids = append(ids, t.Replies[i].PlatformID)
	for _, p := range t.Replies[i].Parts {
		ids = append(ids, p.PlatformID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" })
}

// askSteps are the question's begin and end, and the presses of its buttons.
func askSteps(a *Asked) []Step {
	if a.ByRule() {
		question, _, _ := strings.Cut(a.Question, "\n")
		return []Step{{At: a.EndedAt, Text: fmt.Sprintf("permission %d of turn %d %s: %s", a.ID, a.TurnID, ended(a.Ask),
			excerpt(question)), Owner: gated, Turn: a.TurnID, Main: true}}
	}
	all := []Step{{At: a.CreatedAt, Text: askText(a.Ask), Owner: gated, Row: a.MessageID, Turn: a.TurnID},
		endStep(a.Ask)}
	for _, m := range a.Presses {
		c := &Choice{Row: m.ID, Ask: a.Ask}
		if press, _ := msg.ParsePress(m.Content); press.Option > 0 && press.Option <= len(a.Options) {
			c.Option = a.Options[press.Option-1]
		}
		all = append(all, c.explain(m, rowSteps(m, nil))...)
	}
	return all
}

// explain adds the question to the step of a row's decision.
func (c *Choice) explain(m *msg.Message, steps []Step) []Step {
	for i := range steps {
		if c != nil && c.Row == m.ID && steps[i].Reason != "" {
			why := c.why(m)
			steps[i].Text, steps[i].Words = steps[i].Text+why, steps[i].Words+why
		}
	}
	return steps
}

// askText is a question in words: with its options, and who may answer.
func askText(a *msg.Ask) string {
	question, _, _ := strings.Cut(a.Question, "\n")
	text := fmt.Sprintf("question %d of turn %d asked", a.ID, a.TurnID)
	if a.MessageID != 0 { // which retention may have deleted
		text += fmt.Sprintf(" in message %d", a.MessageID)
	}
	text += ": " + excerpt(question)
	for i, option := range a.Options {
		text += fmt.Sprintf(" [%d %s]", i+1, option)
	}
	if a.IsPermission() {
		text += ", a permission for the hash " + ShortHash(a.PayloadHash)
	}
	return text + ", for " + For(a.Who)
}

// For says who may answer a question.
func For(w msg.Who) string {
	switch {
	case w.Everyone:
		return "each user of the chat"
	case len(w.Senders) == 1 && w.Label != w.Senders[0]:
		return fmt.Sprintf("%s (%s)", w.Label, w.Senders[0])
	}
	return cmp.Or(w.Label, strings.Join(w.Senders, ", "))
}

// ShortHash is the beginning of a hash.
func ShortHash(hash string) string {
	const shown = 12
	return shorten(hash, shown)
}

// endStep is a question's end. Its time is 0 while the question is open.
func endStep(a *msg.Ask) Step {
	return Step{At: a.EndedAt, Text: fmt.Sprintf("question %d %s", a.ID, ended(a)), Owner: gated, Row: a.MessageID,
		Turn: a.TurnID, Main: true}
}

// ended is how a question has ended, in words. It has no text of the agent.
func ended(a *msg.Ask) string {
	switch {
	case a.ByRule():
		return fmt.Sprintf("allowed by rule %d, made by %s on %s", a.RuleID, a.AnsweredBy,
			time.UnixMilli(a.RuleAt).Format(time.DateOnly))
	case a.State == msg.AskAnswered:
		text := fmt.Sprintf("answered with option %d by %s", slices.Index(a.Options, a.Chosen())+1, a.AnsweredBy)
		if a.MadeRule() {
			text += fmt.Sprintf(", which made rule %d", a.RuleID)
		}
		return text
	case a.EndedAt < a.ExpiresAt:
		return "ended without an answer, with its turn or since it was not delivered: that counts as no"
	}
	return "expired without an answer: that counts as no"
}

// Question returns the question that the message shows, nil if it shows none.
func (p *Path) Question() *msg.Ask {
	for _, t := range p.Turns {
		for _, a := range t.Asks {
			if a.MessageID == p.Asked.ID {
				return a.Ask
			}
		}
	}
	return nil
}

// AskState is a question's state in words.
func AskState(a *msg.Ask) string {
	if a.State == msg.AskOpen {
		return "open, for " + For(a.Who)
	}
	return ended(a)
}

// choiceSteps are the steps of the question that a row answers, which was asked before it.
func choiceSteps(c *Choice) []Step {
	if c == nil || c.Ask == nil {
		return nil
	}
	return []Step{{At: c.Ask.CreatedAt, Text: askText(c.Ask), Earlier: true, Owner: gated, Row: c.Ask.MessageID,
		Turn: c.Ask.TurnID}, endStep(c.Ask)}
}

// String is the choice in words, "" for none.
func (c *Choice) String() string {
	switch {
	case c == nil:
		return ""
	case c.Ask == nil:
		return "a question that is not known"
	case c.Option == "":
		return fmt.Sprintf("question %d of turn %d, with an option that it does not have", c.Ask.ID, c.Ask.TurnID)
	}
	return fmt.Sprintf("question %d of turn %d, with %q", c.Ask.ID, c.Ask.TurnID, c.Option)
}

// why completes the reason of a decision about this question.
func (c *Choice) why(m *msg.Message) string {
	switch {
	case c.Ask == nil:
		return ""
	case m.Reason == msg.ReasonChoiceDenied:
		if c.Ask.Who.May(m.Sender) { // a bot
			return ", bots may not answer"
		}
		return ": it is for " + For(c.Ask.Who)
	case m.Reason == msg.ReasonChoiceLate && c.Ask.EndedAt != 0:
		late := time.Duration(max(0, m.ReceivedAt-c.Ask.EndedAt)) * time.Millisecond
		return fmt.Sprintf(": question %d was %s %s before", c.Ask.ID, ended(c.Ask), late)
	}
	return fmt.Sprintf(", question %d", c.Ask.ID)
}

// openAsk is that a question waits.
func openAsk(a *msg.Ask, now time.Time) (Open, bool) {
	if a.State != msg.AskOpen || msg.IsRetry(a.AskID) {
		return Open{}, false
	}
	since := now.Sub(time.UnixMilli(a.CreatedAt)).Round(time.Millisecond)
	text := fmt.Sprintf("question %d waits for an answer for %s, from %s", a.ID, since, For(a.Who))
	if left := time.UnixMilli(a.ExpiresAt).Sub(now); left > 0 {
		text += fmt.Sprintf("; in %s it counts as no", left.Round(time.Millisecond))
	}
	return Open{Text: text, Owner: gated, Row: a.MessageID, Turn: a.TurnID}, true
}
