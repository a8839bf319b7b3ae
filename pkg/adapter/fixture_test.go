package adapter

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a platform that cuts at "|" and sends as its scripts say.
type fake struct {
	cut     func(*msg.Message) ([]Part, error) // in place of its own, if not nil
	repeats bool                               // its parts are Repeatable

	mu      sync.Mutex
	scripts map[string][]outcome // what becomes of a part at each try; nothing left: it is sent
	calls   []call
}

// outcome is one try to send.
type outcome func(context.Context) error

// call is a Send that began.
type call struct {
	Row  int64
	Text string
	At   time.Time
}

func (f *fake) Cut(m *msg.Message) (parts []Part, err error) {
	if f.cut != nil {
		parts, err = f.cut(m)
	} else {
		parts = pieces(m.Content)
	}
	for i := range parts {
		if f.repeats {
			parts[i] = edit(parts[i].(string))
		}
	}
	return parts, err
}

// edit is a part that may be sent twice.
type edit string

func (edit) Repeatable() bool { return true }

func textOf(part Part) string {
	if e, ok := part.(edit); ok {
		return string(e)
	}
	return part.(string)
}

func pieces(content string) (parts []Part) {
	for text := range strings.SplitSeq(content, "|") {
		parts = append(parts, text)
	}
	return parts
}

func (f *fake) Send(ctx context.Context, m *msg.Message, part Part) (string, error) {
	text := textOf(part)
	f.mu.Lock()
	f.calls = append(f.calls, call{m.ID, text, time.Now()})
	try := outcome(func(context.Context) error { return nil })
	if script := f.scripts[text]; len(script) > 0 {
		try, f.scripts[text] = script[0], script[1:]
	}
	f.mu.Unlock()
	if err := try(ctx); err != nil {
		return "", err
	}
	return idOf(text), nil
}

func idOf(text string) string { return "id of " + text }

// script says how the next tries to send a part end.
func (f *fake) script(text string, tries ...outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scripts[text] = append(f.scripts[text], tries...)
}

// fails is a try that ends with err.
func fails(err error) outcome { return func(context.Context) error { return err } }

// takes is a try that succeeds after a while, if it is left the time.
func takes(d time.Duration) outcome {
	return func(ctx context.Context) error {
		Pause(ctx, d)
		return ctx.Err()
	}
}

// sent lists the texts whose sending began, in order.
func (f *fake) sent() (texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		texts = append(texts, c.Text)
	}
	return texts
}

const (
	platform = "irc"
	room     = platform + ":room"
)

// fixture is a shell on a database of its own. What is written to it is delivered in the time of
// the bubble it is made in.
type fixture struct {
	t         testing.TB
	path      string
	store     *store.Store
	platform  *fake
	as        Platform             // the platform with powers of its own, if not nil
	heartbeat *daemon.Heartbeat    // replaces one that writes nothing, if not nil
	running   *Shell               // the shell that was started last
	metrics   *prometheus.Registry // of the same
	wake      chan struct{}
	runs      int // of agents, so far

	mu      sync.Mutex
	settled []msg.Message
	beat    rows.Daemon // what the heartbeat wrote last
}

// inBubble runs a test with a fixture in a bubble, in parallel to other tests.
func inBubble(t *testing.T, test func(*testing.T, *fixture)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, newFixture(t)) })
}

// runInBubble is inBubble for a subtest.
func runInBubble(t *testing.T, name string, test func(*testing.T, *fixture)) {
	t.Run(name, func(t *testing.T) { inBubble(t, test) })
}

func newFixture(t testing.TB) *fixture {
	path := storetest.Path(t)
	return &fixture{
		t: t, path: path, store: storetest.OpenAt(t, path, nil), platform: &fake{scripts: map[string][]outcome{}},
		wake: make(chan struct{}, 1),
	}
}

func (r *fixture) shell(set ...func(*Options)) *Shell {
	r.metrics = prometheus.NewRegistry()
	o := Options{
		Platform: platform, Daemon: "ircd", Store: r.store, Wake: r.wake, Settings: Settings{PollInterval: time.Minute},
		Settled: func(m *msg.Message) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.settled = append(r.settled, *m)
		},
		Heartbeat: daemon.NewHeartbeat("ircd", "v1", discard, func(context.Context, rows.Daemon) error { return nil }),
		Log:       discard, Metrics: r.metrics, Now: time.Now,
	}
	for _, f := range set {
		f(&o)
	}
	if r.heartbeat != nil {
		o.Heartbeat = r.heartbeat
	}
	if r.as != nil {
		o.Listener, _ = r.as.(Listener)
		return New(r.as, o)
	}
	return New(r.platform, o)
}

// logged makes a shell log to a text.
func logged(text *strings.Builder) func(*Options) {
	return func(o *Options) { o.Log = slog.New(slog.NewTextHandler(text, nil)) }
}

// secret is what no text may show.
const secret = "hunter2hunter2"

func redacting(o *Options) {
	o.Redact = func(text string) string { return strings.ReplaceAll(text, secret, "[redacted]") }
}

var discard = slog.New(slog.DiscardHandler)

// start runs a shell until stop is called, or the test ends. stop returns when the shell has ended.
func (r *fixture) start(set ...func(*Options)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	shell := r.shell(set...)
	r.running = shell
	go func() { done <- shell.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("Run: %v", err)
		}
	})
	r.t.Cleanup(stop)
	return stop
}

// out queues a row in a thread of the room.
func (r *fixture) out(thread, content string) int64 { return r.outIn(room, thread, content) }

func (r *fixture) outIn(chat, thread, content string) int64 {
	r.t.Helper()
	m := &msg.Message{
		ChatJID: chat, ThreadID: thread, Direction: msg.Out, OutState: msg.OutQueued, Content: content, Source: msg.SourceAgent,
		ReceivedAt: time.Now().UnixMilli(),
	}
	r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
	return m.ID
}

// begun queues a row and leaves its parts as a shell that ended would, in these states.
func (r *fixture) begun(content string, states ...msg.OutState) int64 {
	r.t.Helper()
	id := r.out("", content)
	r.write(func(tx *store.Tx) error {
		if err := tx.ClaimOutbound(id, len(states), 1); err != nil {
			return err
		}
		for part, state := range states {
			if err := tx.PutDelivery(store.Delivery{MessageID: id, Part: part, State: state}, 1); err != nil {
				return err
			}
		}
		return nil
	})
	return id
}

// works makes an agent work for a thread of a chat until end is called. end writes an answer, unless
// that is empty.
func (r *fixture) works(chat, thread string) (end func(says string)) {
	r.t.Helper()
	a := r.agent(chat, thread, groupconfig.ProgressOff)
	return func(says string) {
		r.t.Helper()
		r.write(func(tx *store.Tx) error {
			return gatedtest.AnswerTurn(tx, gatedtest.Reply{RunID: a.run.ID, TurnID: a.turn.ID, Text: says, Final: true}, 2)
		})
	}
}

// look pokes the shell.
func (r *fixture) look() {
	r.wake <- struct{}{}
	synctest.Wait()
}

func (r *fixture) write(fn func(*store.Tx) error) {
	r.t.Helper()
	if err := r.store.Write(context.Background(), fn); err != nil {
		r.t.Fatal(err)
	}
}

func (r *fixture) row(id int64) *msg.Message {
	r.t.Helper()
	m, err := r.store.Message(r.t.Context(), id)
	if err != nil || m == nil {
		r.t.Fatalf("row %d: %+v, %v", id, m, err)
	}
	return m
}

// deliveries are a row's parts, without their times.
func (r *fixture) deliveries(id int64) []store.Delivery {
	r.t.Helper()
	all, err := r.store.Deliveries(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range all {
		all[i].UpdatedAt = 0
	}
	return all
}

// states of a row and its parts, as in "failed: sent failed cancelled".
func (r *fixture) states(id int64) string {
	r.t.Helper()
	all := []string{string(r.row(id).OutState) + ":"}
	for _, d := range r.deliveries(id) {
		all = append(all, string(d.State))
	}
	return strings.Join(all, " ")
}

// expect compares the states of a row with those wanted.
func (r *fixture) expect(id int64, want string) {
	r.t.Helper()
	if got := r.states(id); got != want {
		r.t.Errorf("row %d: %q, want %q", id, got, want)
	}
}

// expectSent compares the parts whose sending began with those wanted.
func (r *fixture) expectSent(want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.platform.sent()); diff != "" {
		r.t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// pass lets time pass, and waits for its effects.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// crash ends a shell as a kill does, by taking its database away, and opens the database for the
// next one.
func (r *fixture) crash(stop func()) {
	r.t.Helper()
	if err := r.store.Close(); err != nil {
		r.t.Error(err)
	}
	stop()
	r.store = storetest.OpenAt(r.t, r.path, nil)
}
