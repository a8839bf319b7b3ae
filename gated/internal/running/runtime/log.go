package runtime

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"arizuko/pkg/dataowner"
)

const (
	maxLog        = 8 << 20 // of one run: an agent in a loop must not fill the disk
	maxStderrTail = 2 << 10 // enough for an error message or the end of a stack trace
)

// runLog is the file of an agent's output outside its frames. Writing to it
// never fails: once the file is full or cannot be written the rest is dropped.
type runLog struct {
	file   *os.File
	redact func(string) string

	mu   sync.Mutex
	left int // bytes; negative if the file takes no more
}

func openLog(spec Spec) (*runLog, error) {
	l := &runLog{redact: spec.Redact, left: maxLog}
	const flags = os.O_CREATE | os.O_APPEND | os.O_WRONLY
	if spec.Data == "" {
		var err error
		l.file, err = os.OpenFile(spec.LogPath, flags, 0o600)
		return l, err
	}
	in, err := filepath.Rel(spec.Data, filepath.Dir(spec.LogPath))
	if err != nil {
		return nil, err
	}
	folder, err := dataowner.Make(spec.Data, in)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	l.file, err = folder.OpenFile(filepath.Base(spec.LogPath), flags, 0o600)
	return l, err
}

func (l *runLog) Close() error { return l.file.Close() }

// line writes text after the name of its source. Blank lines are dropped.
func (l *runLog) line(source string, text []byte) {
	text = bytes.TrimRight(text, "\r\n")
	if len(text) == 0 {
		return
	}
	if l.redact != nil {
		text = []byte(l.redact(string(text)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left < 0 {
		return
	}
	l.left -= len(source) + len(": \n") + len(text)
	line := []byte("log truncated\n")
	if l.left >= 0 {
		line = fmt.Appendf(nil, "%s: %s\n", source, text)
	}
	if _, err := l.file.Write(line); err != nil {
		l.left = -1
	}
}

// stdoutLog writes each Write as a line of its own.
type stdoutLog struct{ *runLog }

func (l stdoutLog) Write(b []byte) (int, error) {
	l.line("out", b)
	return len(b), nil
}

// tail keeps the last maxStderrTail bytes.
type tail []byte

func (t *tail) Write(b []byte) (int, error) {
	*t = append(*t, b...)
	if over := len(*t) - maxStderrTail; over > 0 {
		*t = append((*t)[:0], (*t)[over:]...)
	}
	return len(b), nil
}

func (t tail) String() string { return strings.ToValidUTF8(string(t), "\ufffd") }
