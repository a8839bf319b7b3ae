package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/testkit/need"
)

// maxWait is how long a test waits for a bot. It says nothing about speed.
const maxWait = 30 * time.Second

// line is a line that a bot prints: "on" is its step or event.
type line map[string]any

// at is the value at a path of names, as text: "message.id"; "" if there is none.
func (l line) at(path string) string {
	var v any = map[string]any(l)
	for name := range strings.SplitSeq(path, ".") {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return fmt.Sprintf("%.0f", v)
	}
	text, _ := json.Marshal(v)
	return string(text)
}

// bot is a program of this folder.
type bot struct {
	t       *testing.T
	mu      sync.Mutex
	unread  []line
	printed chan struct{} // has a value when there may be new lines
	ended   chan struct{}
}

// startBot runs a program with the given environment until the end of the test.
func startBot(t *testing.T, program string, env ...string) *bot {
	t.Helper()
	need.Verify(t)
	need.Program(t, "node", "nodejs")
	if _, err := os.Stat("node_modules/.package-lock.json"); err != nil {
		t.Fatalf("%v: run `make setup`, or: npm ci --prefix deploy/e2e/clients", err)
	}
	b := &bot{t: t, printed: make(chan struct{}, 1), ended: make(chan struct{})}
	cmd := exec.Command("node", program)
	cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + t.TempDir(), "NO_COLOR=1"}, env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go b.read(stdout)
	t.Cleanup(func() {
		_ = stdin.Close() // it may have ended by itself
		killed := time.AfterFunc(maxWait, func() { _ = cmd.Process.Kill() })
		defer killed.Stop()
		<-b.ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", program, err)
		}
		if t.Failed() {
			t.Logf("%s printed on stderr:\n%s\nand lines that no test read: %v", program, stderr.String(), b.unread)
		}
	})
	return b
}

func (b *bot) read(stdout io.Reader) {
	defer close(b.ended)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			l = line{"on": "unreadable", "text": lines.Text()}
		}
		b.mu.Lock()
		b.unread = append(b.unread, l)
		b.mu.Unlock()
		select {
		case b.printed <- struct{}{}:
		default:
		}
	}
}

// wait returns the next line about a step or an event, and leaves earlier ones about others unread.
func (b *bot) wait(t *testing.T, on string) line {
	t.Helper()
	late := time.After(maxWait)
	for ended := false; ; {
		b.mu.Lock()
		i := slices.IndexFunc(b.unread, func(l line) bool { return l["on"] == on })
		if i >= 0 {
			found := b.unread[i]
			b.unread = slices.Delete(b.unread, i, i+1)
			b.mu.Unlock()
			return found
		}
		left := fmt.Sprint(b.unread)
		b.mu.Unlock()
		select {
		case <-b.printed:
		case <-b.ended:
			if !ended { // there may be a last line
				ended = true
				continue
			}
			t.Fatalf("the bot ended without a line about %q; others: %s", on, left)
		case <-late:
			t.Fatalf("no line about %q in %v; others: %s", on, maxWait, left)
		}
	}
}

// done is wait for a step that must succeed.
func (b *bot) done(t *testing.T, on string) line {
	t.Helper()
	l := b.wait(t, on)
	if l["error"] != nil {
		t.Fatalf("%s failed: %s", on, l.at("error"))
	}
	return l
}

// none fails the test if there is a line about a step or an event.
func (b *bot) none(t *testing.T, on string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.unread, func(l line) bool { return l["on"] == on }); i >= 0 {
		t.Errorf("%v", b.unread[i])
	}
}

// want fails the test unless the line has these values, given as path and value in turn.
func (l line) want(t *testing.T, pathsAndValues ...string) {
	t.Helper()
	for i := 0; i < len(pathsAndValues); i += 2 {
		if got := l.at(pathsAndValues[i]); got != pathsAndValues[i+1] {
			t.Errorf("%s is %q, want %q, in %v", pathsAndValues[i], got, pathsAndValues[i+1], l)
		}
	}
}

// behaviour is a part of a test of one bot.
type behaviour struct {
	name string
	run  func(*testing.T)
}

// until waits for a condition of a fake.
func until(t *testing.T, wait func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	if err := wait(ctx); err != nil {
		t.Fatal(err)
	}
}
