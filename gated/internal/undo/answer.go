package undo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// tally is lines of an answer, in their order. Of equal ones the first is written.
type tally []string

func (t *tally) add(line string) { *t = append(*t, line) }

// write writes a list of the lines. One that ends with a colon has how often it was added behind it.
func (t tally) write(b *strings.Builder) {
	times := map[string]int{}
	for _, line := range t {
		times[line]++
	}
	for _, line := range t {
		switch n := times[line]; {
		case n > 0 && strings.HasSuffix(line, ":"):
			fmt.Fprintf(b, "\n- %s %d", line, n)
		case n > 0:
			b.WriteString("\n- " + line)
		}
		delete(times, line)
	}
}

// Lines of an answer that stand for messages of the turn.
const (
	lineDeleted = "messages being deleted:"
	lineEdited  = "messages being edited:"
)

const (
	// maxNamed is how many files or requests an answer names.
	maxNamed = 10
	// maxName is how much of the name of a file an answer has, in characters.
	maxName = 100
	// maxQuoted is how much of the request an answer repeats, in characters.
	maxQuoted = 60
)

// answer says what was done, and what could not be.
func (f *finishing) answer(out Outside) (string, error) {
	if f.turn == nil {
		return "", nil
	}
	undo, redo := msg.CommandIn(f.turn.ChatJID, msg.CommandUndo), msg.CommandIn(f.turn.ChatJID, msg.CommandRedo)
	command, other, done := undo, redo, "Taken back"
	if f.u.Redo {
		command, other, done = redo, undo, "Done again"
	}
	switch {
	case out.Failed:
		return "This has failed, and the log of gated says why. The turn still counts, but look at its files.", nil
	case f.turn.State.IsOpen():
		return "Nothing is changed: the turn is run again.", nil
	case out.Problem != "":
		return "Nothing is changed: " + msg.EscapeLine(out.Problem) + ".", nil
	case out.Files.Refused:
		return fmt.Sprintf("%s%s.\n%s rest leaves them as they are, and does everything else.",
			factrows.UndoneFilesChanged, names(out.Files.Changed, len(out.Files.Changed)), command), nil
	}
	asked, err := f.quote()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: turn %d%s.", done, f.turn.ID, asked)
	f.did.write(&b)
	if len(f.stays) > 0 {
		b.WriteString("\n\nNot " + strings.ToLower(done[:1]) + done[1:] + ":")
		f.stays.write(&b)
	}
	fmt.Fprintf(&b, "\n\n%s reverses this.", other) // an empty line ends a list
	return b.String(), nil
}

// quote is the beginning of what the turn was asked, with a space before it; "" for no text.
func (f *finishing) quote() (string, error) {
	asked, err := rows.TurnQuestions(context.Background(), f.tx.Reader, f.turn.ID)
	if err != nil || len(asked) == 0 {
		return "", err
	}
	text := []rune(strings.Join(strings.Fields(asked[len(asked)-1].Content), " "))
	if len(text) == 0 {
		return "", nil
	}
	if len(text) > maxQuoted {
		text = append(text[:maxQuoted-1], '…')
	}
	return " (“" + msg.EscapeLine(string(text)) + "”)", nil
}

// outside adds what was done, and not, before the rows are changed.
func (f *finishing) outside(out *Outside) {
	if n := out.Files.Restored; n > 0 {
		f.did.add(fmt.Sprintf("files restored: %d (%s)", n, names(out.Files.Paths, n)))
	}
	for range out.Closed {
		f.did.add("places where it listens only to mentions again:")
	}
	for range out.Open {
		f.stays.add("places where it still listens, since routd does not answer:")
	}
	if len(out.Files.Changed) > 0 {
		f.stays.add("files that have changed since: " + names(out.Files.Changed, len(out.Files.Changed)))
	}
	if len(out.Files.NotCovered) > 0 {
		f.stays.add("files that are not covered: " + names(out.Files.NotCovered, len(out.Files.NotCovered)))
	}
	if out.Files.Unknown {
		f.stays.add("changes of files: none of this turn's are known")
	}
}

// maxReceipts is how many requests of a turn are looked at.
const maxReceipts = 1000

// seen adds what was seen outside: messages, and requests, of which all that may have changed something are named.
func (f *finishing) seen(zone *time.Location) error {
	changed := slices.Contains(f.did, lineDeleted) || slices.Contains(f.did, lineEdited)
	if changed && msg.KindOfJID(f.turn.ChatJID) != msg.ChatDM {
		f.stays.add("what readers have seen already")
	}
	all, err := egressrows.ReceiptsOfTurn(context.Background(), f.tx.Reader, f.turn.ID, maxReceipts)
	named := 0
	for _, r := range all {
		switch {
		case r.State != egress.Sent && r.State != egress.Sending:
		case r.Method == "GET" || r.Method == "HEAD" || r.Method == "OPTIONS":
			f.stays.add("requests that read something:")
		case named == maxNamed:
			f.stays.add("more such requests:")
		default:
			named++
			f.stays.add(fmt.Sprintf("the request %s, at %s", msg.EscapeLine(r.Request()),
				time.UnixMilli(r.At).In(zone).Format("15:04:05")))
		}
	}
	return err
}

// names joins the first names of a list, of which there are so many in all. Of long ones it has the end.
func names(first []string, all int) string {
	var named []string
	for _, name := range first[:min(len(first), maxNamed)] {
		if text := []rune(name); len(text) > maxName {
			name = "…" + string(text[len(text)-maxName+1:])
		}
		named = append(named, msg.EscapeLine(name))
	}
	text := strings.Join(named, ", ")
	if more := all - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
