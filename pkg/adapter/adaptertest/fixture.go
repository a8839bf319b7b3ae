package adaptertest

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// patience bounds the wait for an expected event.
const patience = 20 * time.Second

// outagePoll is how often rows are looked for without a poke in cases of hours: each look takes real time.
const outagePoll = 10 * time.Minute

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
	log      *logText

	runs      int  // that were begun
	listening bool // a shell that starts has the remote's listener, and polls seldom

	mu         sync.Mutex
	settled    map[int64]int // how often the shell reported the end of a row
	connection daemon.Connection
}

// logText is the log of adapters.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newFixture(t testing.TB, p Platform) *fixture {
	b := &fixture{TB: t, platform: p, path: storetest.Path(t), wake: make(chan struct{}, 1), settled: map[int64]int{},
		log: &logText{}}
	b.store = storetest.OpenAt(t, b.path, nil)
	b.remote = p.New(t, func() *store.Store { return b.store })
	return b
}

// start runs a shell until stop is called, or the case ends.
func (b *fixture) start() (stop func()) {
	log := slog.New(slog.NewTextHandler(b.log, nil))
	heartbeat := daemon.NewHeartbeat("testd", "", log, func(_ context.Context, d rows.Daemon) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.connection = daemon.Connection(d.Connection)
		return nil
	})
	o := adapter.Options{
		Platform: b.platform.Name, Daemon: "testd", Store: b.store, Wake: b.wake,
		Heartbeat: heartbeat,
		Settled: func(m *msg.Message) {
			b.countSettled(m.ID)
			if b.remote.Settled != nil {
				b.remote.Settled(m)
			}
		},
		Redact: func(text string) string { return strings.ReplaceAll(text, secret, "[redacted]") },
		Data:   cmp.Or(b.remote.Data, b.TempDir()),
		Settings: adapter.Settings{PollInterval: 20 * time.Millisecond, MediaMax: 1 << 20, MediaQuota: 1 << 30,
			MediaDaily: 1 << 30},
		Log: log, Metrics: prometheus.NewRegistry(), Now: time.Now,
	}
	if b.platform.Options != nil {
		b.platform.Options(&o)
	}
	if b.listening {
		o.PollInterval = outagePoll
		if b.remote.Listen != nil {
			o.Listener = b.remote.Listen()
		}
	}
	run := b.remote.Run
	if run == nil {
		shell := adapter.New(b.remote.Connect(), o)
		run = func(ctx context.Context, _ string, _ func(int64)) error { return shell.Run(ctx) }
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, b.path, b.countSettled) }()
	var beating sync.WaitGroup
	beating.Go(func() { _ = heartbeat.Run(ctx) }) // never fails
	stop = sync.OnceFunc(func() {
		cancel()
		beating.Wait()
		if err := <-done; err != nil {
			b.Errorf("the shell ended with %v", err)
		}
	})
	b.Cleanup(stop)
	return stop
}

func (b *fixture) countSettled(id int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settled[id]++
}

// say queues a row, changed by set, for the first chat.
func (b *fixture) say(text string, set ...func(*msg.Message)) int64 {
	b.Helper()
	m := b.outbound(text)
	for _, f := range set {
		f(m)
	}
	b.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
	return m.ID
}

// outbound is a row for the first chat.
func (b *fixture) outbound(text string) *msg.Message {
	return &msg.Message{
		ChatJID: b.platform.Chats[0], Direction: msg.Out, OutState: msg.OutQueued, Content: text,
		Source: msg.SourceAgent,
		Sender: "agent:acme", SenderName: "Ada", Timestamp: 1, ReceivedAt: time.Now().UnixMilli(),
	}
}

// elsewhere sends a row to the second chat.
func (b *fixture) elsewhere(m *msg.Message) { m.ChatJID = b.platform.Chats[1] }

// write changes rows, and pokes the shell.
func (b *fixture) write(fn func(*store.Tx) error) {
	b.Helper()
	if err := b.store.Write(context.Background(), fn); err != nil {
		b.Fatal(err)
	}
	select {
	case b.wake <- struct{}{}:
	default:
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
	b.within(patience, what, happens)
}

// pass lets time pass.
func (b *fixture) pass(d time.Duration) { <-time.After(d) }

// within waits for a condition, and fails the test if it is not met in time.
func (b *fixture) within(limit time.Duration, what string, happens func() bool) {
	b.Helper()
	tick := time.NewTicker(max(5*time.Millisecond, limit/2000))
	defer tick.Stop()
	deadline := time.After(limit)
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

// received lists the texts that arrived in a chat.
func (b *fixture) received(chatJID string) (texts []string) {
	for _, r := range b.remote.Received() {
		if r.ChatJID == chatJID {
			texts = append(texts, r.Text)
		}
	}
	return texts
}

// expect compares the texts that arrived in the first chat with those that should.
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

// policy is the adapter's way with a part that may have arrived.
type policy struct{ finds, marks, repeats bool }

func (b *fixture) policy() (p policy) {
	if b.platform.Foreign {
		return policy{finds: true}
	}
	var o adapter.Options
	if b.platform.Options != nil {
		b.platform.Options(&o)
	}
	platform := b.remote.Connect()
	_, p.finds = platform.(adapter.Finder)
	_, p.marks = platform.(adapter.Marker)
	p.marks = p.marks && o.Resend == adapter.ResendMarked
	p.repeats = b.platform.Repeats
	return p
}

// Send sends a part, and the other forms of it that the platform gives while it is refused, as the shell
// does: a part that is sent in another form than the row asks for has a *adapter.Remark.
func Send(ctx context.Context, p adapter.Platform, m *msg.Message, part adapter.Part) (platformID string, err error) {
	platformID, err = p.Send(ctx, m, part)
	var failure *adapter.Failure
	if !errors.As(err, &failure) || failure.Other == nil {
		return platformID, err
	}
	platformID, err = Send(ctx, p, m, failure.Other)
	if err == nil && failure.Remark != "" {
		err = &adapter.Remark{Text: failure.Remark}
	}
	return platformID, err
}
