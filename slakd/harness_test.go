package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/config/configtest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/slack"
)

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
	*adaptertest.Daemon[Config]
	*fake.Server

	alice, bob fake.User
	team, dm   fake.Place
}

// newHarness makes a Slack, and the folder of a slakd that is not started yet.
func newHarness(t *testing.T, o fake.Options, env ...string) *harness {
	t.Helper()
	if o.RetryDelays == nil { // Slack's last minutes
		o.RetryDelays = []time.Duration{0, 50 * time.Millisecond, 250 * time.Millisecond}
	}
	o.AckTimeout = cmp.Or(o.AckTimeout, adaptertest.MaxWait)
	r := &harness{Server: fake.New(o)}
	base, err := r.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	daemon := program()
	daemon.Build = build(adaptertest.MaxWait)
	if testing.Short() {
		daemon.Pace = adapter.Pace{} // most of the time of this package is the waits for Slack's limits
	}
	r.Daemon = adaptertest.NewDaemon(t, daemon, append([]string{
		"SLAKD_ADDR=" + freeAddr(t),
		"SLACK_BOT_TOKEN=" + r.BotToken(), "SLACK_APP_TOKEN=" + r.AppToken(), "SLACK_API_URL=" + base + "/api/",
	}, env...)...)
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
	r.Helper()
	stop = r.Serve()
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

// connected waits until slakd is connected.
func (r *harness) connected() {
	r.Helper()
	r.connection("connected")
}

// connection waits for a state of the connection, and returns its detail.
func (r *harness) connection(wanted string) (detail string) {
	r.Helper()
	r.Until("the connection "+wanted, func() (is bool) {
		var state string
		state, detail = r.Connection()
		return state == wanted
	})
	return detail
}

// confirmed waits until every event has been acknowledged.
func (r *harness) confirmed() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), adaptertest.MaxWait)
	defer cancel()
	if err := r.WaitConfirmed(ctx); err != nil {
		r.Fatalf("%d events are not acknowledged; the log:\n%s", r.Pending(), r.Log)
	}
}

// rows are what is stored of a chat, oldest first, as "verb sender: content".
func (r *harness) rows(p fake.Place) (all []string) {
	r.Helper()
	for _, m := range r.messages(p) {
		all = append(all, strings.TrimSpace(m.Verb+" "+m.SenderName+": "+m.Content))
	}
	return all
}

func (r *harness) messages(p fake.Place) []*msg.Message {
	r.Helper()
	all, err := gatedtest.Undecided(r.Context(), r.Store.Reader, "slack:"+p.ChannelID, 0, 1000)
	if err != nil {
		r.Fatal(err)
	}
	return all
}

// out queues a row for a place.
func (r *harness) out(p fake.Place, set func(*msg.Message)) int64 {
	r.Helper()
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
	r.Helper()
	return r.out(p, func(m *msg.Message) { m.Content = text })
}

func (r *harness) write(fn func(*store.Tx) error) {
	r.Helper()
	if err := r.Store.Write(r.Context(), fn); err != nil {
		r.Fatal(err)
	}
}

// ends waits until a row is settled, and compares how.
func (r *harness) ends(id int64, want msg.OutState) *msg.Message {
	r.Helper()
	var m *msg.Message
	r.Until("a row is settled", func() bool {
		var err error
		if m, err = r.Store.Message(r.Context(), id); err != nil {
			r.Fatal(err)
		}
		return m.OutState != msg.OutQueued && m.OutState != msg.OutSending
	})
	if m.OutState != want {
		parts, _ := r.Store.Deliveries(r.Context(), id)
		r.Errorf("the row is %s, want %s: %+v", m.OutState, want, parts)
	}
	return m
}
