package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

const (
	// self is the launcher's own name in front of lines, and the longest of all.
	self = "launcher"
	// maxLine is where a line that does not end is broken, in bytes.
	maxLine = 1 << 20
	// maxWords is how much of a program's last line is repeated, in bytes.
	maxWords = 300
)

// console is where the lines of all programs go, each written in one piece.
type console struct {
	mu sync.Mutex
	w  io.Writer
}

// say prints a line of the launcher's own.
func (c *console) say(format string, args ...any) { c.lines(self, fmt.Appendf(nil, format, args...)) }

// lines puts the source in front of each line of text. A console that is gone, as after the
// terminal was closed, is no reason to stop.
func (c *console) lines(source string, text []byte) {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		fmt.Fprintf(&out, "%-*s | %s\n", len(self), source, bytes.TrimSuffix(line, []byte("\n")))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.w.Write(out.Bytes())
}

// source is the output of one program. Its Write never fails, so that the program can always
// go on writing; Write and flush belong to one goroutine at a time.
type source struct {
	console *console
	name    string
	open    []byte // a line that has not ended yet
	words   string // the last line that was not blank, shortened
}

func (s *source) Write(p []byte) (int, error) {
	s.open = append(s.open, p...)
	end := bytes.LastIndexByte(s.open, '\n') + 1
	if end == 0 && len(s.open) >= maxLine {
		end = len(s.open)
	}
	s.emit(end)
	return len(p), nil
}

// flush prints what the program left without a line end.
func (s *source) flush() { s.emit(len(s.open)) }

// emit prints the first n bytes of what is open.
func (s *source) emit(n int) {
	if n == 0 {
		return
	}
	s.console.lines(s.name, s.open[:n])
	if text := bytes.TrimSpace(s.open[:n]); len(text) > 0 {
		last := text[bytes.LastIndexByte(text, '\n')+1:]
		s.words = string(last[:min(len(last), maxWords)])
	}
	s.open = append(s.open[:0], s.open[n:]...)
}
