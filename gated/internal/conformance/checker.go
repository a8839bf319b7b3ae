package conformance

import (
	"fmt"
	"slices"
	"strings"

	"arizuko/gated/internal/runtime"
	"arizuko/pkg/agentproto"
)

// breach is something that an agent does against the protocol.
type breach struct {
	what string
	do   string // to mend it
}

// ledger is what a run was given and has answered.
type protocolChecker struct {
	open      []string // unanswered turns, oldest first
	given     []string // all turns
	cancelled bool     // it was interrupted, or given up
	closed    bool     // its input has ended
	frames    int
}

// gave enters a turn.
func (l *protocolChecker) asked(turn string) {
	l.open = append(l.open, turn)
	l.given = append(l.given, turn)
}

// drop enters that nobody waits for what is open any more.
func (l *protocolChecker) cancel() { l.open, l.cancelled = nil, true }

// answered reports whether a turn is no longer open.
func (l *protocolChecker) answered(turn string) bool { return !slices.Contains(l.open, turn) }

// frame enters a frame and returns the turn that gated would take it for, "" for none.
func (l *protocolChecker) frame(f agentproto.Frame) (turn string, wrong []breach) {
	l.frames++
	add := func(do, format string, args ...any) {
		wrong = append(wrong, breach{fmt.Sprintf(format, args...), do})
	}
	turn = l.addressee(f.TurnID)
	if turn == "" {
		add("send back the turnId of the line that asked, as it was, or leave it out",
			"a frame names turn %q, which this run was not given; gated ignores it", f.TurnID)
		return "", wrong
	}
	if l.closed && len(l.open) == 0 && !l.cancelled {
		add("exit after the last answer", "a frame after the end of input, with nothing left to answer: gated may be gone by then")
	}
	if f.More() && f.TurnID == "" {
		add("name the turn in every frame that has more behind it", "a frame says final:false, but not of which turn")
	}
	if f.Status == agentproto.StatusError && strings.TrimSpace(f.Error) == "" {
		add("say in error what went wrong, in words for who runs arizuko", "an error frame without a word about the error")
	}
	if !f.More() {
		l.open = slices.DeleteFunc(l.open, func(t string) bool { return t == turn })
	}
	return turn, wrong
}

// addressee is the turn that a frame answers: the one it names, else the oldest that is open, else
// the last one.
func (l *protocolChecker) addressee(named string) string {
	switch {
	case named != "" && slices.Contains(l.given, named):
		return named
	case named != "" || len(l.given) == 0:
		return ""
	case len(l.open) > 0:
		return l.open[0]
	}
	return l.given[len(l.given)-1]
}

// malformed explains a frame that cannot be read.
func malformed(m *agentproto.Malformed) breach {
	do := "make the whole object with a JSON library: a line end inside a text is written \\n"
	switch {
	case strings.Contains(m.Reason, "larger than"):
		do = "keep a frame under 1 MiB; more goes into several frames with final:false, or into a file"
	case strings.Contains(m.Reason, "ended inside"):
		do = "write " + agentproto.FrameEnd + " on a line of its own, and flush, before the program ends"
	case strings.Contains(m.Reason, "second frame"):
		do = "write each frame in one piece; threads need a lock around it"
	case strings.Contains(m.Reason, "status is"):
		do = `status is "ok" or "error"`
	case strings.Contains(m.Reason, "cannot unmarshal"):
		do = "all fields are strings, turnId too; only final is true or false"
	}
	return breach{fmt.Sprintf("a frame that cannot be read: %s: %q", m.Reason, m.Excerpt), do}
}

// printed looks at a line of the run's log, "out: …" or "err: …", for a frame that was meant and
// is none.
func printed(line string) []breach {
	source, text, _ := strings.Cut(line, ": ")
	delimiter := strings.Contains(strings.ToUpper(text), "ARIZUKO_OUTPUT")
	switch {
	case source == "err" && delimiter:
		return []breach{{"a delimiter on stderr", "frames are written to stdout"}}
	case source == "out" && delimiter:
		return []breach{{
			fmt.Sprintf("a delimiter that is none: %.80q", text),
			fmt.Sprintf("it stands alone on its line, without spaces: %s, then %s", agentproto.FrameStart, agentproto.FrameEnd),
		}}
	case source == "out" && strings.HasPrefix(strings.TrimSpace(text), "{") && strings.Contains(text, `"status"`):
		return []breach{{
			fmt.Sprintf("a frame without delimiters: %.80q", text),
			fmt.Sprintf("put %s on a line before it and %s on one behind it", agentproto.FrameStart, agentproto.FrameEnd),
		}}
	}
	return nil
}

// exit is the end of the run; late says that it had to be made to end.
func (l *protocolChecker) exit(exit runtime.Exit, late bool) (wrong []breach) {
	how := exit.Reason()
	if last := lastLine(exit.StderrTail); last != "" {
		how += ": " + last
	}
	add := func(do, format string, args ...any) {
		wrong = append(wrong, breach{fmt.Sprintf(format, args...), do})
	}
	switch {
	case late:
		add("exit at the end of stdin, and leave nothing running", "it stayed when its input had ended, and was made to go (%s)", how)
	case len(l.open) == 0:
		if exit.Code != 0 && !l.cancelled {
			add("exit with 0 after the last answer", "it ended with an error after all was answered: %s", how)
		}
	case l.frames == 0:
		add("answer each turn with a frame, if only an error frame, before the program ends", "it ended without a frame: %s", how)
	case exit.Code != 0 || l.closed:
		add("end stdin's loop when all is answered, and each turn with a frame that does not say final:false",
			"it ended with turn %s unanswered: %s", strings.Join(l.open, ", "), how)
	}
	return wrong
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
