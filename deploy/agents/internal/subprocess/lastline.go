package subprocess

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
)

// LastLine is a writer for a program's stderr: it redacts and passes on each line, and keeps the last one.
type LastLine struct {
	Out    io.Writer
	Redact func(string) string

	mu   sync.Mutex
	rest []byte // the incomplete last line
	last string
}

// maxRest is the length at which an unterminated line is broken, in bytes.
const maxRest = 64 << 10

func (l *LastLine) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		text, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found && len(text) < maxRest {
			return len(b), nil
		}
		l.line(string(text))
		l.rest = rest
	}
}

func (l *LastLine) line(text string) {
	if text = strings.TrimSpace(l.Redact(text)); text != "" {
		l.last = text
		fmt.Fprintln(l.Out, text)
	}
}

// String is the last line that is not blank, even if it is incomplete.
func (l *LastLine) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line(string(l.rest))
	l.rest = nil
	return l.last
}

// Ending describes how a program has ended with err, with its last line on stderr.
func (l *LastLine) Ending(err error) string {
	how := "unexpected exit"
	if err != nil {
		how = err.Error()
	}
	if last := l.String(); last != "" {
		return how + ": " + last
	}
	return how
}
