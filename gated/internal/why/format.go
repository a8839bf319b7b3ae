package why

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"arizuko/pkg/cli"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxText is how many characters of a message are shown.
const maxText = 100

// timeLayout shows milliseconds, the precision of stored times.
const timeLayout = "2006-01-02 15:04:05.000"

// event is one stored time and what happened then.
type event struct {
	at      int64 // unix ms
	text    string
	earlier bool // than the message: the start of an agent that was running already
}

// Write prints a path: the row asked about, all that happened in the order of
// its times with the time between one step and the next, and what is still to
// come. Text of users and agents cannot steer a terminal.
func Write(w io.Writer, p *Path, now time.Time, loc *time.Location) error {
	var b strings.Builder
	writeHead(&b, p, loc)
	all := events(p)
	writeEvents(&b, all, loc)
	if delivered := lastDelivered(p); delivered != 0 {
		first := all[slices.IndexFunc(all, func(e event) bool { return !e.earlier })]
		fmt.Fprintf(&b, "\nfrom the message's first step to the last part delivered: %s\n", time.Duration(delivered-first.at)*time.Millisecond)
	}
	writeOpen(&b, open(p, now))
	_, err := io.WriteString(w, b.String())
	return err
}

func writeHead(b *strings.Builder, p *Path, loc *time.Location) {
	m := p.Asked
	direction := "inbound"
	if m.Direction == msg.Out {
		direction = "outbound"
	}
	fmt.Fprintf(b, "message %d, %s\n", m.ID, direction)
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, "  %-12s %s\n", name, line(value))
		}
	}
	from := m.Sender
	if m.SenderName != "" {
		from = fmt.Sprintf("%s (%s)", m.SenderName, m.Sender)
	}
	if m.IsBot && m.Direction == msg.In {
		from += ", a bot"
	}
	field("chat", m.ChatJID)
	if len(p.Rows) > 0 && p.Rows[0].Timestamp != 0 { // the platform's clock is not ours: no step
		field("sent", time.UnixMilli(p.Rows[0].Timestamp).In(loc).Format(timeLayout)+" by the platform's clock")
	}
	if m.Direction == msg.In {
		field("verb", cmp.Or(m.Verb, msg.VerbMessage))
	} else {
		field("kind", string(cmp.Or(m.Kind, msg.KindMessage)))
	}
	field("from", from)
	field("source", m.Source)
	field("comes from", p.Origins[m.ID])
	field("platform id", m.PlatformID)
	field("reply to", m.ReplyToID)
	field("target", m.TargetID)
	field("topic", m.Topic)
	field("thread", m.ThreadID)
	field("text", excerpt(m.Content))
	if n := len(m.Attachments); n > 0 {
		field("attachments", fmt.Sprint(n))
	}
}

func excerpt(text string) string {
	runes := []rune(text)
	if len(runes) <= maxText {
		return text
	}
	return fmt.Sprintf("%s… (%d more characters)", string(runes[:maxText]), len(runes)-maxText)
}

// line keeps a value on its line and from steering the terminal.
func line(text string) string { return cli.PrintableLine(lineEnds.Replace(text)) }

// lineEnds shows the lines of a text as one.
var lineEnds = strings.NewReplacer("\r\n", " ", "\n", " ")

func events(p *Path) []event {
	var all []event
	for _, m := range p.Rows {
		all = append(all, rowEvents(m, p.Origins[m.ID])...)
	}
	for _, t := range p.Turns {
		all = append(all, turnEvents(t)...)
	}
	for _, r := range p.Replies {
		all = append(all, replyEvents(r)...)
	}
	all = slices.DeleteFunc(all, func(e event) bool { return e.at == 0 })
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return all
}

func rowEvents(m *msg.Message, origin string) []event {
	stored := fmt.Sprintf("row %d stored", m.ID)
	var all []event
	if m.DerivedFrom != 0 {
		all = append(all, event{at: m.DecidedAt, text: fmt.Sprintf("%s, derived from row %d: %s", stored, m.DerivedFrom, excerpt(m.Content))})
	} else {
		if stored += by(m.Source); origin != "" {
			stored += ", from " + origin
		}
		all = append(all, event{at: m.ReceivedAt, text: stored})
	}
	if m.Disposition == "" {
		return all
	}
	text := fmt.Sprintf("row %d decided: %s, %s", m.ID, m.Disposition, explained(m.Reason))
	if m.RoutedTo != "" {
		text += ", folder " + m.RoutedTo
	}
	if m.Error != "" {
		problem, _, _ := strings.Cut(m.Error, "\n") // the lines after it are a stack
		text += ", error: " + problem
	}
	return append(all, event{at: m.DecidedAt, text: text})
}

func by(source string) string {
	if source == "" {
		return ""
	}
	return " by " + source
}

// explained is a reason code with its meaning.
func explained(code msg.Reason) string {
	for _, r := range msg.Reasons {
		if r.Code == code {
			return fmt.Sprintf("%s (%s)", code, r.Meaning)
		}
	}
	return string(code)
}

func turnEvents(t *Turn) []event {
	at := []string{"folder " + t.Folder, "topic " + orNone(t.Topic)}
	if t.Place != t.Topic {
		at = append(at, "place "+orNone(t.Place))
	}
	if t.ThreadID != "" {
		at = append(at, "thread "+t.ThreadID)
	}
	all := []event{{at: t.CreatedAt, text: fmt.Sprintf("turn %d stored: %s, %s", t.ID, strings.Join(at, ", "), rows(t.Batch))}}
	started := fmt.Sprintf("turn %d started", t.ID)
	if t.RunID != 0 {
		started += fmt.Sprintf(" in run %d", t.RunID)
	}
	all = append(all, event{at: t.StartedAt, text: started})
	for _, r := range t.Runs {
		all = append(all, runEvents(t, r)...)
	}
	all = append(all, callEvents(t)...)
	for _, r := range t.Replies {
		all = append(all, replyEvents(r)...)
	}
	if t.EndedAt != 0 {
		text := fmt.Sprintf("turn %d ended: %s, %s", t.ID, t.State, explained(t.Reason))
		if t.Attempts > 0 {
			text += fmt.Sprintf(", failed attempts: %d", t.Attempts)
		}
		all = append(all, event{at: t.EndedAt, text: text + problem(t)})
	}
	return all
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
		return "row " + all[0]
	}
	return "rows " + strings.Join(all, " ")
}

func orNone(text string) string { return cmp.Or(text, "(none)") }

func runEvents(t *Turn, r *store.RunResult) []event {
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
	return []event{{at: r.StartedAt, text: started, earlier: earlier}, {at: r.EndedAt, text: ended}}
}

func replyEvents(r *Reply) []event {
	text := fmt.Sprintf("row %d stored by %s for %s", r.ID, orNone(r.Source), r.ChatJID)
	if r.Content != "" {
		text += ": " + excerpt(r.Content)
	}
	all := []event{{at: r.ReceivedAt, text: text}}
	for _, p := range r.Parts {
		all = append(all, event{at: p.UpdatedAt, text: partText(r.ID, p)})
	}
	return all
}

func partText(row int64, p store.PartState) string {
	text := fmt.Sprintf("row %d part %d: %s", row, p.Part, p.State)
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

func writeEvents(b *strings.Builder, all []event, loc *time.Location) {
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tAFTER\tSTEP")
	for i, e := range all {
		after := ""
		if i > 0 {
			after = (time.Duration(e.at-all[i-1].at) * time.Millisecond).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", time.UnixMilli(e.at).In(loc).Format(timeLayout), after, line(e.text))
	}
	_ = w.Flush() // into memory
}

// open lists what has not ended yet, and since when or until when it waits.
func open(p *Path, now time.Time) (all []string) {
	age := func(since int64) time.Duration { return now.Sub(time.UnixMilli(since)).Round(time.Millisecond) }
	for _, m := range p.Rows {
		switch m.Disposition {
		case "":
			all = append(all, fmt.Sprintf("row %d is undecided for %s: held by the gate, or waiting for routd, for onbod "+
				"or another service, or for gated to run", m.ID, age(m.ReceivedAt)))
		case msg.Onboarding:
			all = append(all, fmt.Sprintf("row %d is parked: %s", m.ID, parked(p.Request)))
		}
	}
	for _, t := range p.Turns {
		if t.EndedAt == 0 {
			all = append(all, openTurn(t, now))
		}
		for _, r := range t.Replies {
			all = append(all, openReply(r, now)...)
		}
	}
	for _, r := range p.Replies {
		all = append(all, openReply(r, now)...)
	}
	return all
}

// parked is what a parked row waits for, in words.
func parked(r *store.Request) string {
	switch {
	case r == nil:
		return "its chat had no group; the request is decided by now, or a route was added, and gated decides the row at once"
	case r.Noted():
		return fmt.Sprintf("its chat has no group yet; onbod carries out that %s approved request %s into %s", r.DecidedBy, r.Code, r.Folder)
	}
	return fmt.Sprintf("its chat has no group yet; it waits until an operator decides request %s "+
		"(/approve %s or /reject %s in any chat, or the dashboard), or a route is added for the chat", r.Code, r.Code, r.Code)
}

func openTurn(t *Turn, now time.Time) string {
	text := fmt.Sprintf("turn %d is %s for %s", t.ID, t.State, now.Sub(time.UnixMilli(cmp.Or(t.StartedAt, t.CreatedAt))).Round(time.Millisecond))
	if t.Attempts > 0 {
		text += fmt.Sprintf(", failed attempts: %d", t.Attempts)
	}
	if wait := time.UnixMilli(t.NotBefore).Sub(now); t.State == msg.TurnQueued && wait > 0 {
		text += fmt.Sprintf(", next in %s", wait.Round(time.Millisecond))
		if t.WaitsFor != "" {
			text += ": " + waitsFor(t.WaitsFor)
		}
	}
	return text + problem(t)
}

// waitsFor is what a queued turn waits for, in words.
func waitsFor(w msg.WaitsFor) string {
	switch w {
	case msg.WaitsFiles:
		return "its attachments are being downloaded"
	case msg.WaitsRetry:
		return "it is retried"
	case msg.WaitsMachine:
		return "this machine could not start an agent"
	case msg.WaitsProbe:
		return "the group's turns fail alike, one a minute is tried"
	}
	return string(w)
}

// problem is a turn's last failure.
func problem(t *Turn) string {
	if t.Error == "" {
		return ""
	}
	text, _, _ := strings.Cut(t.Error, "\n") // the lines after it are a stack
	if t.ErrorKind != "" {
		return fmt.Sprintf(", %s error: %s", t.ErrorKind, text)
	}
	return ", error: " + text
}

func openReply(r *Reply, now time.Time) (all []string) {
	switch r.OutState {
	case msg.OutQueued:
		all = append(all, fmt.Sprintf("row %d waits for the adapter of its platform", r.ID))
	case msg.OutSending:
		all = append(all, fmt.Sprintf("row %d is being delivered", r.ID))
	case msg.OutAmbiguous:
		all = append(all, fmt.Sprintf("row %d: the platform did not say whether it arrived", r.ID))
	case msg.OutFailed:
		all = append(all, fmt.Sprintf("row %d was not delivered and is not tried again", r.ID))
	case msg.OutCancelled:
		all = append(all, fmt.Sprintf("row %d was cancelled before it was delivered", r.ID))
	}
	for _, p := range r.Parts {
		if wait := time.UnixMilli(p.NotBefore).Sub(now); wait > 0 && (p.State == msg.OutQueued || p.State == msg.OutSending) {
			all = append(all, fmt.Sprintf("row %d part %d: next attempt in %s", r.ID, p.Part, wait.Round(time.Millisecond)))
		}
	}
	return all
}

func writeOpen(b *strings.Builder, all []string) {
	if len(all) == 0 {
		return
	}
	b.WriteString("\nnow:\n")
	for _, text := range all {
		b.WriteString("  " + line(text) + "\n")
	}
}
