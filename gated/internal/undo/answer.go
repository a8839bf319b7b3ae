package undo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// tally is what was done with the rows.
type tally struct {
	deleted, edited, sentAgain    int
	reminders, polls, forks, work int
	sent                          []string // names of files that were sent
	stays                         []string // what cannot be taken back, or done again
	forgets                       bool     // the agent begins a new session
}

const (
	// maxNamed is how many files or requests an answer names.
	maxNamed = 10
	// maxQuoted is how much of the request an answer repeats, in characters.
	maxQuoted = 60
)

// answer says what was done, and what could not be.
func (f *finishing) answer(out Outside, zone *time.Location) (string, error) {
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
			factrows.UndoneFilesChanged, names(out.Files.Changed), command), nil
	}
	asked, err := f.quote()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: turn %d%s.", done, f.turn.ID, asked)
	for _, line := range f.did(&out) {
		b.WriteString("\n- " + line)
	}
	stays, err := f.stays(&out, zone)
	if err != nil {
		return "", err
	}
	if len(stays) > 0 {
		b.WriteString("\nNot " + strings.ToLower(done[:1]) + done[1:] + ":")
		for _, line := range stays {
			b.WriteString("\n- " + line)
		}
	}
	fmt.Fprintf(&b, "\n%s reverses this.", other)
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

// did lists what was done.
func (f *finishing) did(out *Outside) (lines []string) {
	d := &f.done
	add := func(n int, one, many string) {
		if n == 1 {
			lines = append(lines, one)
		} else if n > 1 {
			lines = append(lines, fmt.Sprintf(many, n))
		}
	}
	add(d.deleted, "one message is deleted", "%d messages are deleted")
	add(d.edited, "one message is edited", "%d messages are edited")
	add(d.sentAgain, "one message is sent again", "%d messages are sent again")
	if n := out.Files.Restored; n > 0 {
		files := fmt.Sprintf("%d files are", n)
		if n == 1 {
			files = "one file is"
		}
		when := "before it"
		if f.u.Redo {
			when = "after it"
		}
		lines = append(lines, fmt.Sprintf("%s as %s: %s", files, when, names(out.Files.Paths)))
	}
	if f.u.Redo {
		add(d.reminders, "one reminder is as after it", "%d reminders are as after it")
		add(d.forks, "one fork is open again", "%d forks are open again")
	} else {
		add(d.reminders, "one reminder is as before it", "%d reminders are as before it")
		add(d.polls, "one poll is closed", "%d polls are closed")
		add(d.forks, "one fork is ended", "%d forks are ended")
		add(d.work, "work of another group is stopped", "work of %d groups is stopped")
	}
	if out.Window != "" {
		lines = append(lines, out.Window)
	}
	if d.forgets {
		lines = append(lines, "the agent cannot go back in its session: it begins a new one with the last messages")
	}
	return lines
}

// stays lists what could not be done.
func (f *finishing) stays(out *Outside, zone *time.Location) (lines []string, err error) {
	if len(out.Files.Changed) > 0 {
		lines = append(lines, "files that have changed since: "+names(out.Files.Changed))
	}
	if len(out.Files.NotCovered) > 0 {
		lines = append(lines, "files that are not covered: "+names(out.Files.NotCovered))
	}
	if out.Files.Unknown {
		lines = append(lines, "changes of files: none of this turn's are known")
	}
	lines = append(lines, f.done.stays...)
	if f.u.Redo {
		return lines, nil
	}
	if f.done.deleted+f.done.edited > 0 && msg.KindOfJID(f.turn.ChatJID) != msg.ChatDM {
		lines = append(lines, "what readers have seen already")
	}
	if len(f.done.sent) > 0 {
		lines = append(lines, "files that were sent, where they were saved: "+names(f.done.sent))
	}
	requests, err := f.requests(zone)
	return append(lines, requests...), err
}

// maxReceipts is how many requests of a turn are looked at.
const maxReceipts = 1000

// requests are those to the outside: all that may have changed something are named.
func (f *finishing) requests(zone *time.Location) (lines []string, err error) {
	all, err := egressrows.ReceiptsOfTurn(context.Background(), f.tx.Reader, f.turn.ID, maxReceipts)
	reads, more := 0, 0
	for _, r := range all {
		switch {
		case r.State != egress.Sent && r.State != egress.Sending:
		case r.Method == "GET" || r.Method == "HEAD" || r.Method == "OPTIONS":
			reads++
		case len(lines) == maxNamed:
			more++
		default:
			lines = append(lines, fmt.Sprintf("the request %s, at %s", msg.EscapeLine(r.Request()),
				time.UnixMilli(r.At).In(zone).Format("15:04:05")))
		}
	}
	switch {
	case more > 0:
		lines = append(lines, fmt.Sprintf("more such requests: %d", more))
	case reads == 1:
		lines = append(lines, "one request that read something")
	case reads > 1:
		lines = append(lines, fmt.Sprintf("%d requests that read something", reads))
	}
	return lines, err
}

// names joins the first names of a list.
func names(all []string) string {
	more := ""
	if len(all) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(all)-maxNamed)
		all = all[:maxNamed]
	}
	escaped := make([]string, len(all))
	for i, name := range all {
		escaped[i] = msg.EscapeLine(name)
	}
	return strings.Join(escaped, ", ") + more
}
