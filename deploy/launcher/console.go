package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

const (
	// self is the prefix of the launcher's own lines, and the longest prefix.
	self = "launcher"
	// maxLine is the length at which an unterminated line is broken, in bytes.
	maxLine = 1 << 20
	// maxLastLine is how much of a program's last line is quoted, in bytes.
	maxLastLine = 300
)

// console prints the lines of all programs, each with one write.
type console struct {
	mu sync.Mutex
	w  io.Writer
}

// printf prints a line of the launcher itself.
func (c *console) printf(format string, args ...any) {
	c.lines(self, fmt.Appendf(nil, format, args...))
}

// lines prefixes each line of text with its source. Write errors are ignored: the terminal may have
// been closed.
func (c *console) lines(source string, text []byte) {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		fmt.Fprintf(&out, "%-*s | %s\n", len(self), source, bytes.TrimSuffix(line, []byte("\n")))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.w.Write(out.Bytes())
}

// source is the output of one program. Its Write never fails, so that the program is never blocked.
// It is not safe for concurrent use.
type source struct {
	console  *console
	name     string
	open     []byte // the unterminated last line
	lastLine string // the last line that is not blank, cut
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

// flush prints the unterminated last line.
func (s *source) flush() { s.emit(len(s.open)) }

// emit prints the first n bytes of open.
func (s *source) emit(n int) {
	if n == 0 {
		return
	}
	s.console.lines(s.name, s.open[:n])
	if text := bytes.TrimSpace(s.open[:n]); len(text) > 0 {
		last := text[bytes.LastIndexByte(text, '\n')+1:]
		s.lastLine = string(last[:min(len(last), maxLastLine)])
	}
	s.open = append(s.open[:0], s.open[n:]...)
}
