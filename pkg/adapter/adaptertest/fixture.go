package adaptertest

import (
	"context"
	"database/sql"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// patience bounds the wait for an expected event.
const patience = 20 * time.Second

// secret is redacted by the shell.
const secret = "hunter2-hunter2"

// fixture is a platform in its shell, on a database of its own.
type fixture struct {
	testing.TB
	platform Platform
	remote   Remote
	path     string
	store    *store.Store
	wake     chan struct{}

	mu      sync.Mutex
	settled map[int64]int // how often the shell reported the end of a row
}

func newFixture(t testing.TB, p Platform) *fixture {
	b := &fixture{TB: t, platform: p, path: storetest.Path(t), wake: make(chan struct{}, 1), settled: map[int64]int{}}
	b.store = storetest.OpenAt(t, b.path, nil)
	b.remote = p.New(t, func() *store.Store { return b.store })
	return b
}

// start runs a shell until stop is called, or the case ends.
func (b *fixture) start() (stop func()) {
	log := slog.New(slog.DiscardHandler)
	o := adapter.Options{
		Platform: b.platform.Name, Daemon: "testd", Store: b.store, Wake: b.wake, Poll: 20 * time.Millisecond,
		Heartbeat: daemon.NewHeartbeat("testd", "", log, func(context.Context, store.Daemon) error { return nil }),
		Settled: func(m *msg.Message) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.settled[m.ID]++
		},
		Redact: func(text string) string { return strings.ReplaceAll(text, secret, "[redacted]") },
		Data:   b.TempDir(), MediaMax: 1 << 20, MediaQuota: 1 << 30, MediaDaily: 1 << 30, Log: log, Metrics: prometheus.NewRegistry(), Now: time.Now,
	}
	if b.platform.Options != nil {
		b.platform.Options(&o)
	}
	shell := adapter.New(b.remote.Connect(), o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- shell.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.Errorf("the shell ended with %v", err)
		}
	})
	b.Cleanup(stop)
	return stop
}

// say queues a row, changed by set, for the first chat.
func (b *fixture) say(text string, set ...func(*msg.Message)) int64 {
	b.Helper()
	m := &msg.Message{
		ChatJID: b.platform.Chats[0], Direction: msg.Out, OutState: msg.OutQueued, Content: text, Source: msg.SourceAgent,
		Sender: "agent:acme", SenderName: "Ada", Timestamp: 1, ReceivedAt: 1,
	}
	for _, f := range set {
		f(m)
	}
	b.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
	return m.ID
}

// elsewhere sends a row to the second chat.
func (b *fixture) elsewhere(m *msg.Message) { m.ChatJID = b.platform.Chats[1] }

func (b *fixture) write(fn func(*store.Tx) error) {
	b.Helper()
	if err := b.store.Write(context.Background(), fn); err != nil {
		b.Fatal(err)
	}
}

// exec runs a statement on a connection of its own.
func (b *fixture) exec(query string) {
	b.Helper()
	db, err := sql.Open("sqlite3", b.path+"?_busy_timeout=10000")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		b.Fatal(err)
	}
}

// fail injects a fault for the next part for the first chat. It returns false if nothing can fail.
func (b *fixture) fail(f Fault) bool {
	if b.remote.Fail == nil {
		return false
	}
	b.remote.Fail(b.platform.Chats[0], f)
	return true
}

func (b *fixture) row(id int64) *msg.Message {
	b.Helper()
	m, err := b.store.Message(b.Context(), id)
	if err != nil || m == nil {
		b.Fatalf("row %d: %v, %v", id, m, err)
	}
	return m
}

func (b *fixture) parts(id int64) []store.Delivery {
	b.Helper()
	parts, err := b.store.Deliveries(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return parts
}

// until waits for a condition.
func (b *fixture) until(what string, happens func() bool) {
	b.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !happens() {
		select {
		case <-tick.C:
		case <-deadline:
			b.Fatalf("still waiting for %s; received %.2000q", what, b.remote.Received())
		}
	}
}

// ends waits until rows are settled, and compares how.
func (b *fixture) ends(want msg.OutState, ids ...int64) {
	b.Helper()
	for _, id := range ids {
		b.until("the end of a row", func() bool { return isEnd(b.row(id).OutState) })
		if got := b.row(id).OutState; got != want {
			b.Errorf("row %d is %s, want %s: %+v", id, got, want, b.parts(id))
		}
	}
}

func isEnd(s msg.OutState) bool { return s != msg.OutQueued && s != msg.OutSending }

// received lists what arrived in a chat.
func (b *fixture) received(chatJID string) (texts []string) {
	for _, r := range b.remote.Received() {
		if r.ChatJID == chatJID {
			texts = append(texts, r.Text)
		}
	}
	return texts
}

// expect compares what arrived in the first chat with what should.
func (b *fixture) expect(want ...string) {
	b.Helper()
	if got := b.received(b.platform.Chats[0]); !slices.Equal(got, want) {
		b.Errorf("received %.2000q, want %.2000q", got, want)
	}
}

// copies counts the copies of a text that arrived in the first chat, bare and marked.
func (b *fixture) copies(text string) (bare, marked int) {
	for _, got := range b.received(b.platform.Chats[0]) {
		switch {
		case got == text:
			bare++
		case strings.Contains(got, text) && b.platform.Marked != nil && b.platform.Marked(got):
			marked++
		}
	}
	return bare, marked
}

// policy is what the adapter does with a part that may have arrived.
type policy struct{ finds, marks, repeats bool }

func (b *fixture) policy() (p policy) {
	var o adapter.Options
	if b.platform.Options != nil {
		b.platform.Options(&o)
	}
	platform := b.remote.Connect()
	_, p.finds = platform.(adapter.Finder)
	_, p.marks = platform.(adapter.Marker)
	p.marks = p.marks && o.Mark
	p.repeats = o.Repeatable
	return p
}
