package msg

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Ask is one row of asks: a question of an agent, or of gated, to users of a turn's chat. Times are unix ms.
type Ask struct {
	ID        int64
	TurnID    int64
	AskID     string // as its agent calls it, unique in the turn
	MessageID int64  // the outbound row that shows it
	// Question has the question in its first line. The other lines are shown below it, unchanged.
	Question    string
	Options     []string
	PayloadHash string // of a permission request: the hash of the action that it is about; "" for other questions
	Tool        string // likewise: the tool that it says, if there is an Allow
	Allow       string // the option that allows it, "" if it doesn't say
	Always      bool   // the last one of Options is gated's own, AlwaysAllow
	Who         Who
	State       AskState
	Option      string // the chosen one, once it is answered
	AnsweredBy  string // the sender who chose it
	CreatedAt   int64
	ExpiresAt   int64
	EndedAt     int64 // 0 while it is open
	RuleID      int64 // the rule that its answer made or, unless Always, that answered it; 0 for none
	RuleAt      int64 // when that was made
}

// AskState is the state of a question.
type AskState string

// States of a question. An expired one counts as answered with no.
const (
	AskOpen     AskState = "open"
	AskAnswered AskState = "answered"
	AskExpired  AskState = "expired"
)

// AskBudget is the id of gated's own question whether a turn may spend more. Unlike other questions it stays open when
// its turn ends, and no run waits for it.
const AskBudget = "budget"

// AskEgress begins the ids of gated's own questions whether a request of an agent may be sent.
const AskEgress = "egress:"

// AskRetry begins the ids of gated's own questions whether a failed turn is retried: the button under its notice. It
// stays open when its turn ends, too.
const AskRetry = "gated:retry"

// RetryLabel is the option of such a question.
const RetryLabel = "Try again"

// EgressAlways is the option of such a question that makes a rule.
const EgressAlways = "Always"

// IsBudget reports whether an id is AskBudget, or that of a further such question.
func IsBudget(askID string) bool { return strings.HasPrefix(askID, AskBudget) }

// IsRetry reports whether an id is that of a question about a failed turn.
func IsRetry(askID string) bool { return strings.HasPrefix(askID, AskRetry) }

// OutlivesTurn reports whether a question of an id stays open when its turn ends. Its answer may queue turns again.
func OutlivesTurn(askID string) bool { return IsBudget(askID) || IsRetry(askID) }

// IsOwn reports whether an id is that of a question of gated's own. No agent may use it.
func IsOwn(askID string) bool { return OutlivesTurn(askID) || strings.HasPrefix(askID, AskEgress) }

// Who may answer a question. It is resolved when the question is asked. The zero value is no one.
type Who struct {
	Everyone bool     `json:"everyone,omitempty"` // each user of the chat
	Senders  []string `json:"senders,omitempty"`
	Admins   bool     `json:"admins,omitempty"` // those who administer the chat when they answer; see facts/rows.AddAdmin
	Label    string   `json:"label,omitempty"`  // for users, as in "Only operators may answer this."
}

// Labels of those who are not one user. A question to operators takes answers of those who became one since.
const (
	WhoOperators = "operators"
	WhoApprovers = "the approvers of this group"      // behind operators, and with who they are
	WhoOperate   = "the users who operate this group" // likewise
	WhoReminds   = "the user whose reminder this is"
)

// May reports whether a sender may answer.
func (w Who) May(sender string) bool { return w.Everyone || slices.Contains(w.Senders, sender) }

// None reports whether no sender may answer.
func (w Who) None() bool { return !w.Everyone && !w.Admins && len(w.Senders) == 0 }

// JSON returns the value of the column.
func (w Who) JSON() string { return toJSON(w) }

// ParseWho reads what JSON writes. Anything else means no one.
func ParseWho(text string) (w Who) {
	if json.Unmarshal([]byte(text), &w) != nil {
		return Who{}
	}
	return w
}

// Only says who may answer, "" if each user may.
func (w Who) Only() string {
	if w.Everyone {
		return ""
	}
	return fmt.Sprintf("Only %s may answer this.", w.Label)
}

// IsPermission reports whether the question is whether something may run.
func (a *Ask) IsPermission() bool { return a.PayloadHash != "" }

// Takes reports whether an answer that came at a time, in unix ms, counts.
func (a *Ask) Takes(at int64) bool { return a.State == AskOpen && at < a.ExpiresAt }

// Judge decides whether an answer counts, given by a sender at a time, in unix ms. option counts from 1. A nil question
// is none that the sender can mean. The reason is ReasonChosen, or why the answer does not count.
func (a *Ask) Judge(sender string, isBot bool, option int, at int64) Reason {
	switch {
	case a == nil, option < 1, option > len(a.Options):
		return ReasonChoiceUnknown
	case !a.Who.May(sender), isBot:
		return ReasonChoiceDenied
	case !a.Takes(at):
		return ReasonChoiceLate
	}
	return ReasonChosen
}

// label is the mark before an option: its number, or a letter if an option is a number itself, which may be that of
// another one.
func (a *Ask) label(i int) (label, kind string) {
	isNumber := func(option string) bool { return numberOf(option) > 0 }
	if slices.ContainsFunc(a.Options, isNumber) {
		return string(rune('A' + i)), "letter"
	}
	return strconv.Itoa(i + 1), "number"
}

// numberOf reads a number from 1, with or without a point or bracket; 0 is none.
func numberOf(text string) int {
	n, _ := strconv.Atoi(withoutMark(asTyped(text)))
	return max(n, 0)
}

// withoutMark is a label without the point, bracket or both that may follow it.
func withoutMark(label string) string {
	return strings.TrimSuffix(strings.TrimSuffix(label, ")"), ".")
}

// Typed returns the number of an option that a user has typed: its text or its label. ok is
// false for anything else.
func (a *Ask) Typed(text string) (number int, ok bool) {
	if i := a.withText(text); i >= 0 {
		return i + 1, true
	}
	for i := range a.Options {
		if label, _ := a.label(i); strings.EqualFold(label, withoutMark(asTyped(text))) {
			return i + 1, true
		}
	}
	return 0, false
}

// HasOption reports whether a text is that of one option. A number may be about something else, the text hardly is.
func (a *Ask) HasOption(text string) bool { return a.withText(text) >= 0 }

// Number returns the number of an option that an adapter names by its number or its text. ok is false
// for anything else.
func (a *Ask) Number(text string) (number int, ok bool) {
	if n := numberOf(text); n >= 1 && n <= len(a.Options) {
		return n, true
	}
	i := a.withText(text)
	return i + 1, i >= 0
}

// withText is the option of a text, from 0, or -1: also if it is that of several, unless it is one of them letter by
// letter.
func (a *Ask) withText(text string) int {
	if i := slices.Index(a.Options, strings.TrimSpace(text)); i >= 0 {
		return i
	}
	found := -1
	for i, option := range a.Options {
		if !strings.EqualFold(asTyped(option), asTyped(text)) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// MaxAnswer is the size of the longest text that may be an answer, in bytes: an option has up to 60 characters.
const MaxAnswer = 300

// Text is the question in markdown, for platforms with and without buttons. name is who asks.
func (a *Ask) Text(name string) string {
	if IsRetry(a.AskID) {
		return fmt.Sprintf("%s\n\n_Press **%s**, or reply with these words, within %s._", EscapeLine(a.Question),
			RetryLabel, duration(a.ExpiresAt-a.CreatedAt))
	}
	var b strings.Builder
	b.WriteString(a.head(name))
	b.WriteByte('\n')
	var label, kind string
	for i, option := range a.Options {
		label, kind = a.label(i)
		fmt.Fprintf(&b, "\n%s. %s", label, EscapeLine(option))
	}
	rules := fmt.Sprintf("%s Choose one, or reply with its %s, within %s: no answer counts as no.",
		EscapeLine(a.Who.Only()), kind, duration(a.ExpiresAt-a.CreatedAt))
	fmt.Fprintf(&b, "\n\n_%s_", strings.TrimSpace(rules))
	return b.String()
}

// EndedText is the question in markdown once it is not open any more. by is the name of the user who has answered.
func (a *Ask) EndedText(name, by string) string {
	if IsRetry(a.AskID) {
		return a.endedRetry(by)
	}
	end := "No answer is needed any more."
	switch {
	case a.State == AskAnswered:
		end = fmt.Sprintf("**%s** — answered by %s", EscapeLine(a.Chosen()), EscapeLine(by))
		if a.MadeRule() {
			end += fmt.Sprintf(" (rule %d)", a.RuleID)
		}
	case a.EndedAt >= a.ExpiresAt:
		end = fmt.Sprintf("Expired: no answer within %s, which counts as no.", duration(a.ExpiresAt-a.CreatedAt))
	case strings.HasPrefix(a.AskID, AskEgress):
		end = "Not sent: the agent does not wait for it any more."
	}
	return a.head(name) + "\n\n" + end
}

// endedRetry is EndedText of a question whether a turn is retried.
func (a *Ask) endedRetry(by string) string {
	text := EscapeLine(a.Question)
	switch {
	case a.State == AskAnswered:
		return text + "\n\nRetried by " + EscapeLine(by) + "."
	case a.EndedAt < a.ExpiresAt:
		return text + "\n\nRetried."
	}
	return text
}

// head is the text above the options. All that an agent has written is escaped, or in a code block that it cannot
// end: it forges neither who asks nor an answer.
func (a *Ask) head(name string) string {
	asks := "asks"
	if a.IsPermission() {
		asks = "asks for permission"
	}
	question, detail, _ := strings.Cut(a.Question, "\n")
	text := fmt.Sprintf("**%s %s:** %s", EscapeLine(name), asks, EscapeLine(question))
	if detail == "" {
		return text
	}
	fence := "```"
	for strings.Contains(detail, fence) {
		fence += "`"
	}
	return text + "\n\n" + fence + "\n" + detail + "\n" + fence
}

// duration is a time in ms as users read it.
func duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	unit, name := time.Second, "second"
	switch {
	case d >= 2*time.Hour:
		unit, name = time.Hour, "hour"
	case d >= 2*time.Minute || d == time.Minute:
		unit, name = time.Minute, "minute"
	}
	n := max(int64(d/unit), 1)
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}

// Visible makes characters that are not seen, or that change the order of others, visible as escapes, so that a text
// reads as it is. Line breaks and tabs stay.
func Visible(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c == '\n' || c == '\t':
			b.WriteRune(c)
		case unicode.IsControl(c), unicode.Is(unicode.Cf, c), unicode.Is(unicode.Zl, c), unicode.Is(unicode.Zp, c):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// Press is the content of a row of VerbAnswer: Stop is set, or Undo, or Ask and Option are. A row whose content is none
// of it answers the question that its target shows, with the number or the text of an option.
type Press struct {
	Ask    int64  `json:"ask,omitempty"`    // the row of the question
	Option int    `json:"option,omitempty"` // from 1
	Stop   int64  `json:"stop,omitempty"`   // the turn that is to stop
	Undo   int64  `json:"undo,omitempty"`   // the turn that is to be taken back
	Text   string `json:"text,omitempty"`   // of the option or the button, for those who read the row
}

// JSON is the press as the content of a row.
func (p Press) JSON() string { return toJSON(p) }

// ParsePress reads the content of a row of VerbAnswer. ok is false if it names neither a question nor a turn.
func ParsePress(content string) (p Press, ok bool) {
	err := json.Unmarshal([]byte(content), &p)
	return p, err == nil && (p.Ask > 0 || p.Stop > 0 || p.Undo > 0)
}

// These begin the data of buttons: of questions, and of those that stop a turn or take it back.
const (
	pressPrefix = "ask:"
	stopPrefix  = "stop:"
	undoPrefix  = "undo:"
)

// Texts of the buttons that stop a turn, and that take it back.
const (
	StopLabel = "Stop"
	UndoLabel = "Undo"
)

// UndoTime is how long after the end of its turn an answer has the button that takes the turn back.
const UndoTime = 10 * time.Minute

// TakenBack takes the place of a message of a turn that is taken back where it cannot be deleted, in markdown.
const TakenBack = "*taken back*"

// ButtonData is the data of an option's button, at most 64 bytes. Users may forge it, so it is
// checked against the rows.
func ButtonData(ask int64, option int) string {
	return fmt.Sprintf("%s%d:%d", pressPrefix, ask, option)
}

// StopData is the data of the button that stops a turn, at most 64 bytes. Users may forge it, too.
func StopData(turn int64) string { return stopPrefix + strconv.FormatInt(turn, 10) }

// UndoData is the data of the button that takes a turn back, at most 64 bytes. Users may forge it, too.
func UndoData(turn int64) string { return undoPrefix + strconv.FormatInt(turn, 10) }

// ParseButtonData reads the output of ButtonData, StopData and UndoData. ok is false for other data.
func ParseButtonData(data string) (p Press, ok bool) {
	if turn, stops := strings.CutPrefix(data, stopPrefix); stops {
		p.Stop, _ = strconv.ParseInt(turn, 10, 64) // 0 if it is not a number
		p.Text = StopLabel
		return p, p.Stop > 0 && data == StopData(p.Stop)
	}
	if turn, undoes := strings.CutPrefix(data, undoPrefix); undoes {
		p.Undo, _ = strconv.ParseInt(turn, 10, 64)
		p.Text = UndoLabel
		return p, p.Undo > 0 && data == UndoData(p.Undo)
	}
	rest, ours := strings.CutPrefix(data, pressPrefix)
	ask, option, _ := strings.Cut(rest, ":")
	var err, bad error
	p.Ask, err = strconv.ParseInt(ask, 10, 64)
	p.Option, bad = strconv.Atoi(option)
	return p, ours && err == nil && bad == nil && p.Ask > 0 && p.Option > 0 && data == ButtonData(p.Ask, p.Option)
}
