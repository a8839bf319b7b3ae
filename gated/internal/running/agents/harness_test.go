package agents

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"arizuko/gated/internal/rows"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// patience bounds every wait, even on a busy machine.
const patience = 2 * time.Minute

// harness is a manager on a database of its own. The test does the gateway's part.
type harness struct {
	t     *testing.T
	cfg   Config
	db    string
	st    *store.Store
	m     *Manager
	log   *logBuffer
	ahead atomic.Int64 // how far its clock is ahead, in ms
	end   func()       // stops the manager and waits for it
	post  int          // platform ids given out
	side  *sql.DB      // the database beside the store, for reads without a verb; nil until it is used
}

// newHarness starts a manager with the scripted agent, long timeouts, two attempts
// and a backoff of 1 ms, changed by change.
func newHarness(t *testing.T, change ...func(*Config)) *harness {
	t.Helper()
	data := t.TempDir()
	r := &harness{t: t, db: storetest.Path(t), log: &logBuffer{}}
	r.st = storetest.OpenAt(t, r.db, nil)
	r.cfg = Config{
		Defaults: groupconfig.Config{
			AssistantName: "ari",
			Agent: groupconfig.Agent{
				Runtime: groupconfig.Process, Command: "exec '" + os.Args[0] + "'", Settings: asAgent(),
			},
		},
		Runtimes: map[groupconfig.Runtime]runtime.Runtime{
			groupconfig.Process: runtime.Process{Temp: filepath.Join(data, "run", "tmp"), Readable: []string{filepath.Dir(os.Args[0])}},
		},
		Environ: os.Environ(),
		Data:    data, Groups: filepath.Join(data, "groups"), Logs: filepath.Join(data, "logs"),
		MaxAgents: 5, Attempts: 2, Location: time.UTC,
		Backoff: func(int) time.Duration { return time.Millisecond },
		Redact:  strings.NewReplacer("hunter2", "***").Replace,
		Now:     func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load()) * time.Millisecond) },
	}
	timeout(time.Hour)(&r.cfg)
	idle(time.Hour)(&r.cfg)
	for _, f := range change {
		f(&r.cfg)
	}
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *harness) start() {
	r.t.Helper()
	r.m = New(r.cfg, r.st, slog.New(slog.NewTextHandler(r.log, nil)), nil)
	if err := r.m.Recover(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.m.Run(ctx)
	}()
	r.end = sync.OnceFunc(func() {
		cancel()
		<-done
	})
}

func (r *harness) stop() { r.end() }

func command(c string) func(*Config) { return func(cfg *Config) { cfg.Defaults.Agent.Command = c } }

func attempts(n int) func(*Config) { return func(cfg *Config) { cfg.Attempts = n } }

func timeout(d time.Duration) func(*Config) {
	return func(cfg *Config) { cfg.Defaults.Timeouts.Timeout = groupconfig.Duration(d) }
}

// impatient is for agents that do not exit by themselves.
func impatient(cfg *Config) {
	cfg.Graces = Graces{EOF: 100 * time.Millisecond, Fail: 100 * time.Millisecond, Orphan: 100 * time.Millisecond}
}

// patient is for agents that exit by themselves, on a busy machine late.
func patient(cfg *Config) { cfg.Graces = Graces{EOF: patience, Fail: patience, Orphan: patience} }

func idle(d time.Duration) func(*Config) {
	return func(cfg *Config) { cfg.Defaults.Timeouts.Idle = (*groupconfig.Duration)(&d) }
}

// Options of ask.

func group(folder string) func(*msg.Turn) { return func(t *msg.Turn) { t.Folder = folder } }

func chat(jid string) func(*msg.Turn) { return func(t *msg.Turn) { t.ChatJID = jid } }

func topic(name string) func(*msg.Turn) { return func(t *msg.Turn) { t.Topic = name } }

func place(name string) func(*msg.Turn) { return func(t *msg.Turn) { t.Place = name } }

// ask does what the gateway does with a row that fires a turn.
func (r *harness) ask(text string, opts ...func(*msg.Turn)) *msg.Turn {
	r.t.Helper()
	return r.askRows([]*msg.Message{{Content: text}}, opts...)
}

func (r *harness) askRows(rows []*msg.Message, opts ...func(*msg.Turn)) *msg.Turn {
	r.t.Helper()
	t := newTurn(opts...)
	r.store(t, rows...)
	r.m.Dispatch(t)
	return t
}

func newTurn(opts ...func(*msg.Turn)) *msg.Turn {
	t := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "telegram:1", Surface: "telegram-dm", Ceiling: 4000}
	for _, o := range opts {
		o(t)
	}
	return t
}

// store writes a turn and its rows.
func (r *harness) store(t *msg.Turn, list ...*msg.Message) {
	r.t.Helper()
	now := r.cfg.Now().UnixMilli()
	t.CreatedAt = now
	r.write(func(tx *store.Tx) error {
		for _, m := range list {
			r.fill(m, t, now)
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
			t.TriggerMessageID, t.ReplyTo = m.ID, m.PlatformID
		}
		if _, err := rows.PutTurn(tx, t, r.cfg.MaxAgents); err != nil {
			return err
		}
		for _, m := range list {
			d := store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: t.Folder, TurnID: t.ID, Topic: m.Topic, ThreadID: m.ThreadID}
			if err := tx.Decide(m.ID, d, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *harness) fill(m *msg.Message, t *msg.Turn, now int64) {
	r.post++
	m.ChatJID, m.Direction, m.Topic, m.ThreadID = t.ChatJID, msg.In, t.Topic, t.ThreadID
	if m.Sender == "" {
		m.Sender, m.SenderName = "telegram:77", "bob"
	}
	if m.Source == "" {
		m.Source = "teled"
	}
	m.Timestamp, m.ReceivedAt = now, now
	if m.PlatformID == "" {
		m.PlatformID = fmt.Sprintf("p%d", r.post)
	}
}

// observe stores a row of another chat that main only listens to.
func (r *harness) observe(jid, text string) {
	r.t.Helper()
	now := r.cfg.Now().UnixMilli()
	m := &msg.Message{Content: text}
	r.fill(m, newTurn(chat(jid)), now)
	r.write(func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		return tx.Decide(m.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve, RoutedTo: "main"}, now)
	})
}

func (r *harness) write(fn func(*store.Tx) error) {
	r.t.Helper()
	if err := r.st.Write(context.Background(), fn); err != nil {
		r.t.Fatal(err)
	}
}

// must returns the result of a read.
func must[T any](r *harness) func(T, error) T {
	return func(v T, err error) T {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
		return v
	}
}

// until waits for a condition.
func (r *harness) until(what string, met func() bool) {
	r.t.Helper()
	deadline := time.After(patience)
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for !met() {
		select {
		case <-look.C:
		case <-deadline:
			r.t.Fatalf("not within %s: %s\n%s", patience, what, r.log)
		}
	}
}

func (r *harness) turn(id int64) *msg.Turn {
	r.t.Helper()
	return must[*msg.Turn](r)(r.st.Turn(r.t.Context(), id))
}

// await waits until a turn is in a state.
func (r *harness) await(t *msg.Turn, state msg.TurnState) *msg.Turn {
	r.t.Helper()
	var now *msg.Turn
	r.until(fmt.Sprintf("turn %d is %s", t.ID, state), func() bool {
		now = r.turn(t.ID)
		return now.State == state
	})
	return now
}

// answered waits for the end of turns and returns the answers of each.
func (r *harness) answered(turns ...*msg.Turn) (answers []string) {
	r.t.Helper()
	for _, t := range turns {
		r.await(t, msg.TurnDone)
		answers = append(answers, strings.Join(r.replies(t), " / "))
	}
	return answers
}

// replies are the texts that a turn has sent, with notices.
func (r *harness) replies(t *msg.Turn) (answers []string) {
	r.t.Helper()
	for _, m := range must[[]*msg.Message](r)(factrows.TurnReplies(r.t.Context(), r.st.Reader, t.ID)) {
		answers = append(answers, m.Content)
	}
	return answers
}

// runs are the runs that have not ended.
func (r *harness) runs() []*msg.Run {
	r.t.Helper()
	return must[[]*msg.Run](r)(factrows.UnendedRuns(r.t.Context(), r.st.Reader))
}

// noRun waits until every run has ended.
func (r *harness) noRun() {
	r.t.Helper()
	r.until("every run has ended", func() bool { return len(r.runs()) == 0 })
}

func (r *harness) session(folder, topic string) string {
	r.t.Helper()
	return must[string](r)(factrows.Session(r.t.Context(), r.st.Reader, folder, topic))
}

// gate makes a named pipe that holds an agent of the group. The function returned
// waits until an agent has opened it and lets it go on.
func (r *harness) gate(folder, name string) (open func()) {
	r.t.Helper()
	dir := filepath.Join(r.cfg.Groups, msg.DirName(folder))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		r.t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil { // the agent may have another user
		r.t.Fatal(err)
	}
	return func() {
		r.t.Helper()
		r.until("an agent is at "+name, func() bool {
			// Without a reader the open fails instead of waiting.
			f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			return err == nil && f.Close() == nil
		})
	}
}

// given is one line that an agent received.
type given struct {
	pid    int
	input  agentproto.Input
	prompt promptXML
}

func (g given) start() agentproto.Start {
	s, _ := g.input.(agentproto.Start)
	return s
}

// processes are the ids of those that received the lines of inputs.
func (r *harness) processes(folder string) (pids []int) {
	r.t.Helper()
	for _, g := range r.inputs(folder) {
		pids = append(pids, g.pid)
	}
	return pids
}

// inputs are the lines that the agents of a group received, in order.
func (r *harness) inputs(folder string) (all []given) {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.cfg.Groups, msg.DirName(folder), inputsFile))
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var g given
		pid, rest, _ := strings.Cut(line, " ")
		_, _ = fmt.Sscan(pid, &g.pid)
		if g.input, err = agentproto.ReadInput([]byte(rest)); err != nil {
			r.t.Fatal(err)
		}
		switch in := g.input.(type) {
		case agentproto.Start:
			g.prompt = parsePrompt(in.Prompt)
		case agentproto.Message:
			g.prompt = parsePrompt(in.Prompt)
		}
		all = append(all, g)
	}
	return all
}

// cancelChat does what the gateway does at /stop.
func (r *harness) cancelChat(jid string) {
	r.t.Helper()
	cancelled, _ := r.stopRows(rows.Stop{ChatJID: jid})
	r.m.Stop(cancelled)
}

// stopRows commits a /stop that the manager does not know of. It returns the turns that it has cancelled, and whether
// it covers more.
func (r *harness) stopRows(stop rows.Stop) (cancelled []*msg.Turn, more bool) {
	r.t.Helper()
	r.write(func(tx *store.Tx) (err error) {
		cancelled, more, err = rows.StopChat(tx, stop, r.cfg.Now().UnixMilli())
		return err
	})
	return cancelled, more
}

// handled sends a run a signal and waits until it has handled it; it may have ended by that.
func (r *harness) handled(runID int64, c control) {
	r.t.Helper()
	run := r.m.live.get(runID)
	run.inbox.control(c)
	done := make(chan struct{})
	r.until("the signal is handled", func() bool {
		if len(run.inbox.signals[c]) > 0 {
			return false
		}
		select {
		case run.inbox.idle <- done:
			<-done
			return true
		default:
			return r.m.live.get(runID) == nil
		}
	})
}

// cancel does what an operator does to one turn.
func (r *harness) cancel(t *msg.Turn) {
	r.t.Helper()
	before := r.turn(t.ID)
	r.write(func(tx *store.Tx) error {
		return rows.CancelTurn(tx, t.ID, msg.ReasonCancelled, r.cfg.Now().UnixMilli())
	})
	r.m.Cancel(before)
}

// reset does what the gateway does at /new.
func (r *harness) reset(folder, topic string) {
	r.t.Helper()
	var run int64
	r.write(func(tx *store.Tx) (err error) {
		run, err = rows.ResetSession(tx, folder, topic, r.cfg.Now().UnixMilli())
		return err
	})
	if run != 0 {
		r.m.Drain(run)
	}
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
