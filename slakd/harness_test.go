package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/config"
	"arizuko/pkg/config/configtest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	fake "arizuko/pkg/testkit/fakes/slack"
)

// maxWait bounds the wait for an expected event.
const maxWait = 30 * time.Second

// TestMain runs more tests at once than there are processors: they mostly wait for paced sends.
func TestMain(m *testing.M) {
	configtest.Isolate(Config{})
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// harness runs slakd with a fake Slack and a database.
type harness struct {
	t *testing.T
	*fake.Server
	data  string
	base  string
	env   []string
	store *store.Store
	log   *log

	alice, bob fake.User
	team, dm   fake.Place
}

// log collects the log of slakd.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newHarness makes a Slack, and the folder of a slakd that is not started yet.
func newHarness(t *testing.T, o fake.Options, env ...string) *harness {
	t.Helper()
	data, err := os.MkdirTemp("", "slakd") // the paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(data) })
	if err := os.WriteFile(filepath.Join(data, "secret"), []byte("a-secret-of-the-suite\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(data, "arizuko.db")
	if err := storetest.Migrate(path); err != nil {
		t.Fatal(err)
	}
	if o.RetryDelays == nil { // Slack's last minutes
		o.RetryDelays = []time.Duration{0, 50 * time.Millisecond, 250 * time.Millisecond}
	}
	o.AckTimeout = cmp.Or(o.AckTimeout, maxWait)
	r := &harness{t: t, Server: fake.New(o), data: data, store: storetest.OpenAt(t, path, nil), log: &log{}}
	if r.base, err = r.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	r.env = append([]string{
		"ARIZUKO_DATA=" + data, "SLAKD_ADDR=" + freeAddr(t), "POLL_INTERVAL=20ms",
		"SLACK_BOT_TOKEN=" + r.BotToken(), "SLACK_APP_TOKEN=" + r.AppToken(), "SLACK_API_URL=" + r.base + "/api/",
	}, env...)
	r.alice, r.bob = r.User("Alice", "alice"), r.User("Bob", "bob")
	r.team, r.dm = r.Channel("team", r.alice, r.bob), r.DM(r.alice)
	return r
}

// newConnected is newReadUp for a slakd that runs until the test ends.
func newConnected(t *testing.T, o fake.Options, env ...string) *harness {
	t.Helper()
	r, _ := newReadUp(t, o, env...)
	return r
}

// newReadUp is newHarness with a slakd that has read the history for the first time.
func newReadUp(t *testing.T, o fake.Options, env ...string) (r *harness, stop func()) {
	t.Helper()
	r = newHarness(t, o, env...)
	return r, r.readUp(1)
}

// readUp runs slakd until stop is called, or the test ends, and waits until the history has been read for the nth time.
func (r *harness) readUp(times int) (stop func()) {
	r.t.Helper()
	stop = r.start()
	r.connected()
	r.read(times)
	return stop
}

// inBothWays runs a test with events that come by Socket Mode, and as posts.
func inBothWays(t *testing.T, test func(t *testing.T, r *harness)) {
	for way, make := range map[string]func(*testing.T) *harness{
		"socket": func(t *testing.T) *harness { return newHarness(t, fake.Options{}) }, "posted": posted,
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			test(t, make(t))
		})
	}
}

// freeAddr is an unused address that stays free when slakd restarts: the ports of 127.0.0.1 are given to every connection of
// the machine, those of the test's own loopback address to none.
func freeAddr(t *testing.T) string {
	t.Helper()
	sum := crc32.ChecksumIEEE(fmt.Appendf(nil, "%s %d", t.Name(), os.Getpid()))
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 128|sum>>16&63, sum>>8&255, 1+sum%254))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start runs slakd until stop is called, or the test ends.
func (r *harness) start() (stop func()) {
	r.t.Helper()
	cfg, err := config.Load[Config](r.env)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	daemon := program()
	daemon.Build = build(maxWait)
	if testing.Short() {
		daemon.Pace = adapter.Pace{} // most of the time of this package is the waits for Slack's limits
	}
	go func() { done <- daemon.Serve(ctx, cfg, r.log) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) { // stopped while it starts, which the program takes for an end like others
			r.t.Errorf("slakd ended with %v", err)
		}
	})
	r.t.Cleanup(stop)
	return stop
}

// connected waits until slakd is connected.
func (r *harness) connected() {
	r.t.Helper()
	r.connection("connected")
}

// connection waits for a state of the connection, and returns its detail.
func (r *harness) connection(state string) (detail string) {
	r.t.Helper()
	r.until("the connection is "+state, func() bool {
		all, err := r.store.Daemons(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		for _, d := range all {
			detail = d.Detail
			if d.Name == name && d.Connection == state {
				return true
			}
		}
		return false
	})
	return detail
}

// until waits for a condition.
func (r *harness) until(what string, happens func() bool) {
	r.t.Helper()
	tick, deadline := time.NewTicker(10*time.Millisecond), time.NewTimer(maxWait)
	defer tick.Stop()
	defer deadline.Stop()
	for !happens() {
		select {
		case <-tick.C:
		case <-deadline.C:
			r.t.Fatalf("still waiting until %s; the log:\n%s", what, r.log)
		}
	}
}

// confirmed waits until every event has been acknowledged.
func (r *harness) confirmed() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), maxWait)
	defer cancel()
	if err := r.WaitConfirmed(ctx); err != nil {
		r.t.Fatalf("%d events are not acknowledged; the log:\n%s", r.Pending(), r.log)
	}
}

// rows are what is stored of a chat, oldest first, as "verb sender: content".
func (r *harness) rows(p fake.Place) (all []string) {
	r.t.Helper()
	for _, m := range r.messages(p) {
		all = append(all, strings.TrimSpace(m.Verb+" "+m.SenderName+": "+m.Content))
	}
	return all
}

func (r *harness) messages(p fake.Place) []*msg.Message {
	r.t.Helper()
	all, err := r.store.Undecided(r.t.Context(), "slack:"+p.ChannelID, 0, 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// out queues a row for a place.
func (r *harness) out(p fake.Place, set func(*msg.Message)) int64 {
	r.t.Helper()
	now := time.Now().UnixMilli()
	m := &msg.Message{
		ChatJID: "slack:" + p.ChannelID, ThreadID: p.ThreadTS, Direction: msg.Out, OutState: msg.OutQueued,
		Source: msg.SourceAgent, Sender: "agent:main", Timestamp: now, ReceivedAt: now,
	}
	set(m)
	r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
	return m.ID
}

func (r *harness) say(p fake.Place, text string) int64 {
	r.t.Helper()
	return r.out(p, func(m *msg.Message) { m.Content = text })
}

func (r *harness) write(fn func(*store.Tx) error) {
	r.t.Helper()
	if err := r.store.Write(r.t.Context(), fn); err != nil {
		r.t.Fatal(err)
	}
}

// ends waits until a row is settled, and compares how.
func (r *harness) ends(id int64, want msg.OutState) *msg.Message {
	r.t.Helper()
	var m *msg.Message
	r.until("a row is settled", func() bool {
		var err error
		if m, err = r.store.Message(r.t.Context(), id); err != nil {
			r.t.Fatal(err)
		}
		return m.OutState != msg.OutQueued && m.OutState != msg.OutSending
	})
	if m.OutState != want {
		parts, _ := r.store.Deliveries(r.t.Context(), id)
		r.t.Errorf("the row is %s, want %s: %+v", m.OutState, want, parts)
	}
	return m
}
