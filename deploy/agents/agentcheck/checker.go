package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"arizuko/pkg/agentproto"
)

// breach is one violation of the protocol.
type breach struct {
	what string
	fix  string // how to fix it
}

// breaches are those of one step.
type breaches []breach

func (b *breaches) add(fix, format string, args ...any) {
	*b = append(*b, breach{fmt.Sprintf(format, args...), fix})
}

// protocolChecker tracks the turns and frames of one run.
type protocolChecker struct {
	open      []string           // unanswered turns, oldest first
	given     []string           // all turns
	folds     bool               // the agent has announced that it takes turns in
	models    *agentproto.Models // that the agent offers, nil for none
	offered   []string           // turns that it was allowed to take in
	cancelled bool               // the run was interrupted, or has failed
	closed    bool               // its input has ended
	frames    int
	written   map[string]*written // by turn
}

// written counts the frames of a run for one turn.
type written struct {
	frames, bytes               int
	tooManyFrames, tooManyBytes bool // were reported
}

// asked records a turn.
func (l *protocolChecker) asked(turn string) {
	l.open = append(l.open, turn)
	l.given = append(l.given, turn)
}

// cancel records that the open turns need no answer any more.
func (l *protocolChecker) cancel() { l.open, l.cancelled = nil, true }

// answered reports whether a turn is no longer open.
func (l *protocolChecker) answered(turn string) bool { return !slices.Contains(l.open, turn) }

// offer records that a turn's line allows the agent to take it in.
func (l *protocolChecker) offer(turn string) { l.offered = append(l.offered, turn) }

// mayFold reports whether the line of a further turn allows the agent to take it in, as gated decides it in one place
// of a chat.
func (l *protocolChecker) mayFold() bool { return l.folds && len(l.open) > 0 }

// frame records a frame and returns the turns that gated would take it for, the one that would have the answer first;
// none if there are none.
func (l *protocolChecker) frame(f agentproto.Frame) (turns []string, wrong breaches) {
	l.frames++
	turns, wrong = l.addressees(f)
	if len(turns) == 0 {
		return nil, wrong
	}
	if l.closed && len(l.open) == 0 && !l.cancelled {
		wrong.add("exit after the last answer",
			"a frame after the end of input, with nothing left to answer: gated may be gone by then")
	}
	if f.More() && len(f.Turns()) == 0 {
		wrong.add("set turnId in every frame with final:false", "a frame with final:false names no turn")
	}
	if f.Status == agentproto.StatusError && strings.TrimSpace(f.Error) == "" {
		wrong.add("say in error what went wrong, for the operator", "an error frame without an error text")
	}
	wrong = append(wrong, kindBreaches(f)...)
	wrong = append(wrong, l.sizeBreaches(turns[0], f)...)
	if !f.More() {
		l.open = slices.DeleteFunc(l.open, func(t string) bool { return slices.Contains(turns, t) })
	}
	return turns, wrong
}

// addressees returns the turns that a frame answers, and the breaches in the turns that it names.
func (l *protocolChecker) addressees(f agentproto.Frame) (turns []string, wrong breaches) {
	for _, named := range append([]string{f.TurnID}, f.TurnIDs...) {
		if named == "" && len(f.TurnIDs) > 0 {
			continue
		}
		turn := l.addressee(named)
		switch {
		case turn == "":
			wrong.add("send back the turnId of the line that asked, as it was, or leave it out",
				"a frame names turn %q, which this run was not given; gated ignores it", named)
		case len(f.TurnIDs) > 1 && l.answered(turn) && !l.cancelled:
			wrong.add("name each turn in one last frame",
				"a frame for several turns names turn %s, which is answered", turn)
		default:
			turns = append(turns, turn)
		}
	}
	slices.SortFunc(turns, func(a, b string) int { return slices.Index(l.given, a) - slices.Index(l.given, b) })
	for _, turn := range turns[min(1, len(turns)):] {
		if !slices.Contains(l.offered, turn) {
			wrong.add("take a turn in only if its line has fold, and answer others on their own",
				"a frame for several turns names turn %s, whose line has no fold: its answer may be for another place",
				turn)
		}
	}
	return turns, wrong
}

// event checks for which turn an event is.
func (l *protocolChecker) event(e *agentproto.Event) breaches {
	if e.Features != nil {
		l.folds = e.Features.Fold
		return nil
	}
	if e.Models != nil {
		l.models = e.Models
		return nil
	}
	if l.addressee(e.TurnID) == "" {
		return breaches{{fmt.Sprintf("an event names turn %q, which this run was not given; gated ignores it",
			e.TurnID),
			"send back the turnId of the line that asked, as it was, or leave it out"}}
	}
	return nil
}

// sizeBreaches checks the limits of a turn. Each is reported once. The last frame
// of a turn is always stored, and the ones before it have the limits without it.
func (l *protocolChecker) sizeBreaches(turn string, f agentproto.Frame) (wrong breaches) {
	if l.written == nil {
		l.written = map[string]*written{}
	}
	if l.written[turn] == nil {
		l.written[turn] = &written{}
	}
	w, size := l.written[turn], len(agentproto.Strip(f.Result))
	maxFrames, maxBytes, where := agentproto.MaxFrames, agentproto.MaxResults, ""
	last := !f.More() || f.Status == agentproto.StatusError
	open := slices.Contains(l.open, turn)
	if open && !last {
		maxFrames, maxBytes, where = agentproto.MaxFrames-1, agentproto.MaxParts, " before its last one"
	}
	always := open && last
	if w.frames++; w.frames > maxFrames && !always && !w.tooManyFrames {
		w.tooManyFrames = true
		wrong.add("put more into one frame", "turn %s has more than %d frames%s; gated discards the others", turn,
			maxFrames, where)
	}
	if size > agentproto.MaxResult {
		wrong.add("answer more briefly, or write a file and name it", "a result of %d bytes; gated cuts it at %d", size,
			agentproto.MaxResult)
	}
	stored := min(size, agentproto.MaxResult)
	if w.bytes+stored > maxBytes && !always && !w.tooManyBytes {
		w.tooManyBytes = true
		wrong.add("answer more briefly, or write a file and name it",
			"the frames of turn %s%s have more than %d bytes of results; gated discards the rest", turn, where,
			maxBytes)
	}
	w.bytes += stored
	if len(f.NewSessionID) > agentproto.MaxSessionID {
		wrong.add("store what continues the conversation in a file, and name that",
			"newSessionId has %d bytes; gated takes at most %d and keeps the session before",
			len(f.NewSessionID), agentproto.MaxSessionID)
	}
	return wrong
}

// kindBreaches checks the kind and the delay of a failure.
func kindBreaches(f agentproto.Frame) (wrong breaches) {
	switch {
	case f.Kind == "":
	case f.Status != agentproto.StatusError:
		wrong.add("leave kind out, or set status to error", "a frame with status ok has kind %q", f.Kind)
	case !f.Kind.Known():
		wrong.add("kind is session, transient or permanent; leave it out if none fits",
			"kind is %q; gated takes it as session", f.Kind)
	}
	switch limit := agentproto.MaxRetryAfter.Seconds(); {
	case f.RetryAfter == 0:
	case f.Kind != agentproto.KindTransient:
		wrong.add("set retry_after with kind transient only", "retry_after without kind transient; gated ignores it")
	case f.RetryAfter < 0 || f.RetryAfter > limit:
		wrong.add(fmt.Sprintf("retry_after is in seconds, from 0 to %.0f", limit),
			"retry_after is %v; gated takes the nearest value allowed", f.RetryAfter)
	}
	return wrong
}

// addressee returns the turn that a frame answers: the one it names, else the oldest open one, else
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

// aFrame is an example of a frame.
const aFrame = "a frame is three lines on stdout:\n" +
	agentproto.FrameStart + "\n" + `{"status":"ok","turnId":"1","result":"hello"}` + "\n" + agentproto.FrameEnd

// malformed explains a malformed frame.
func malformed(m *agentproto.Malformed) breach {
	fix := "make the whole object with a JSON library: a line end inside a text is written \\n"
	switch {
	case strings.Contains(m.Reason, "larger than"):
		fix = "keep a frame under 1 MiB; send more in several frames with final:false, or in a file"
	case strings.Contains(m.Reason, "ended inside"):
		fix = "write " + agentproto.FrameEnd + " on a line of its own, and flush, before the program ends"
	case strings.Contains(m.Reason, "second frame"):
		fix = "write each frame in one piece; threads need a lock around it"
	case strings.Contains(m.Reason, "status is"):
		fix = `status is "ok" or "error"`
	case strings.Contains(m.Reason, "turnIds") && !strings.Contains(m.Reason, "unmarshal"):
		fix = "turnIds, in place of turnId, is a list of the turnId of each line that the frame answers, each once"
	case strings.Contains(m.Reason, "cannot unmarshal"):
		fix = "all fields are strings, turnId too, but final, which is true or false, retry_after, " +
			"which is a number, and turnIds, which is a list of strings"
	}
	return breach{fmt.Sprintf("a malformed frame: %s: %q", m.Reason, m.Excerpt), fix}
}

// printed checks a line of the run's log, "out: …" or "err: …", for an attempt at a frame or an event that the
// scanner did not recognise.
func printed(line string) breaches {
	source, text, _ := strings.Cut(line, ": ")
	delimiter := strings.Contains(strings.ToUpper(text), "ARIZUKO_OUTPUT")
	switch {
	case strings.Contains(strings.ToUpper(text), "ARIZUKO_EVENT"):
		return printedEvent(source, text)
	case source == "err" && delimiter:
		return breaches{{"a delimiter on stderr", "frames are written to stdout"}}
	case source == "out" && delimiter:
		return breaches{{
			fmt.Sprintf("a malformed delimiter: %.80q", text),
			fmt.Sprintf("write it alone on its line, without spaces: %s, then %s", agentproto.FrameStart,
				agentproto.FrameEnd),
		}}
	case source == "out" && strings.HasPrefix(strings.TrimSpace(text), "{") && strings.Contains(text, `"status"`):
		return breaches{{
			fmt.Sprintf("a frame without delimiters: %.80q", text),
			fmt.Sprintf("put %s on a line before it and %s on a line after it", agentproto.FrameStart,
				agentproto.FrameEnd),
		}}
	}
	return nil
}

// printedEvent explains an event that is not recognised.
func printedEvent(source, text string) breaches {
	if source == "err" {
		return breaches{{"an event on stderr", "events are written to stdout"}}
	}
	_, err := agentproto.ReadEvent([]byte(text))
	if err == nil || errors.Is(err, agentproto.ErrUnknownEvent) {
		return nil
	}
	fix := "an event is one line, made with a JSON library: " + agentproto.EventMark +
		` {"turnId":"1","type":"status","status":"running"}`
	return breaches{{fmt.Sprintf("a malformed event: %s: %.80q", err, text), fix}}
}

// exit checks the end of the run; late means that the process had to be stopped.
func (l *protocolChecker) exit(e exit, late bool) (wrong breaches) {
	how := e.reason()
	if e.problem != "" && !e.missing {
		how += ": " + e.problem
	}
	switch {
	case late:
		wrong.add("exit at the end of stdin, and leave nothing running",
			"it did not exit at the end of its input and was killed (%s)", how)
	case len(l.open) == 0:
		if e.code != 0 && !l.cancelled {
			wrong.add("exit with 0 after the last answer", "it exited with an error after its last answer: %s", how)
		}
	case l.frames == 0:
		wrong.add("answer each turn with a frame before the program exits; an error frame will do; "+aFrame,
			"it exited without a frame: %s", how)
	case e.code != 0 || l.closed:
		wrong.add("leave the loop over stdin only when all turns are answered, each with a frame without final:false",
			"it exited with turn %s unanswered: %s", strings.Join(l.open, ", "), how)
	}
	return wrong
}
