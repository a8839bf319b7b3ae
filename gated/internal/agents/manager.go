// Package agents runs the agents: it gives each turn of the queue to a process,
// stores the answers, and decides what becomes of unanswered turns. One goroutine
// owns each run. What a restart needs is stored in the runs and turns tables
// before it happens.
package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"arizuko/gated/internal/queue"
	"arizuko/gated/internal/runtime"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// tick is how often backoffs and idle agents are checked.
	tick = 250 * time.Millisecond
	// maxShutdown bounds a shutdown while the database cannot be written; the next
	// start finalizes the rest.
	maxShutdown = 8 * time.Second
	// minRetryDelay and maxRetryDelay bound the waits between retries of a database access.
	minRetryDelay = 50 * time.Millisecond
	maxRetryDelay = 5 * time.Second
)

// backoff is the wait after so many attempts of a turn; the last step repeats.
func backoff(attempts int) time.Duration {
	steps := [...]time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}
	return steps[min(max(attempts, 1), len(steps))-1]
}

// Graces are how long an agent may take to exit. Then it gets SIGTERM, and after the
// same time SIGKILL.
type Graces struct {
	EOF    time.Duration // after the end of its input
	Fail   time.Duration // after it has failed
	Orphan time.Duration // of the previous gated
}

// defaultGraces leave an agent time to save its work, and end every agent within maxShutdown.
func defaultGraces() Graces {
	return Graces{EOF: 3 * time.Second, Fail: time.Second, Orphan: 2 * time.Second}
}

// Config of the manager.
type Config struct {
	Defaults  groupconfig.Config // for what a group's own configuration does not set
	Runtimes  map[groupconfig.Runtime]runtime.Runtime
	Environ   []string // gated's environment, of which agents get the named variables
	Data      string   // the data folder
	Groups    string   // the folder of the groups' folders
	Logs      string   // the folder of run logs
	MaxAgents int
	Attempts  int                       // per turn
	Backoff   func(n int) time.Duration // nil: 5 s, 30 s, 2 min
	Graces    Graces                    // none: 3 s, 1 s, 2 s
	Location  *time.Location            // of times in prompts
	Redact    func(string) string       // hides secrets; nil hides none
	Now       func() time.Time
}

// Manager runs agents. Its methods may be called from any goroutine.
type Manager struct {
	cfg   Config
	st    *store.Store
	log   *slog.Logger
	queue *queue.GroupQueue
	meter *meter

	ctx    context.Context //nolint:containedctx // of all work; ends when the manager has stopped
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	runs    map[int64]*run
	closing bool
}

// New makes a manager. Nothing runs before Recover.
func New(cfg Config, st *store.Store, log *slog.Logger, metrics Metrics) *Manager {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Redact == nil {
		cfg.Redact = func(s string) string { return s }
	}
	if cfg.Graces == (Graces{}) {
		cfg.Graces = defaultGraces()
	}
	if cfg.Backoff == nil {
		cfg.Backoff = backoff
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &Manager{cfg: cfg, st: st, log: log, ctx: ctx, cancel: stop, runs: map[int64]*run{}}
	m.queue = queue.New(cfg.MaxAgents, cfg.Now)
	m.meter = newMeter(metrics, m.queue)
	return m
}

// Recover kills the agents of the previous gated and queues every open turn again.
// A turn with part of an answer counts as done.
func (m *Manager) Recover(ctx context.Context) error {
	left, err := m.st.UnendedRuns(ctx)
	if err != nil {
		return fmt.Errorf("find runs of the previous gated: %w", err)
	}
	m.killOrphans(left)
	for _, r := range left {
		failpoint.At(failpoint.Recovering)
		if err := m.persist(ctx, func(tx *store.Tx) error { return m.recoverRun(tx, r) }); err != nil {
			return fmt.Errorf("recover run %d: %w", r.ID, err)
		}
	}
	open, err := m.st.OpenTurns(ctx)
	if err != nil {
		return fmt.Errorf("find open turns: %w", err)
	}
	for _, t := range open {
		requeued := queue.TurnOf(t)
		if t.Attempts > 0 { // no longer than the backoff was, even if the clock was set back meanwhile
			requeued.Backoff = min(time.Duration(t.NotBefore-m.now())*time.Millisecond, m.cfg.Backoff(t.Attempts))
		}
		m.push(requeued)
	}
	if len(left) > 0 {
		m.log.Info("recovered runs of the previous gated", "count", len(left))
	}
	if len(open) > 0 {
		m.log.Info("queued open turns again", "count", len(open))
	}
	return nil
}

// killOrphans kills the agents of former runs concurrently: each may take its
// grace.
func (m *Manager) killOrphans(left []*msg.Run) {
	var all sync.WaitGroup
	for _, r := range left {
		all.Go(func() {
			found, err := m.endOrphan(r)
			if err != nil {
				m.log.Error("agent of the previous gated may still be running: kill it by hand", "run", r.ID, "runtime", r.Runtime,
					"pid", r.PID, "label", r.Label, "err", err)
			}
			m.log.Info("ended run of the previous gated", "run", r.ID, "folder", r.Folder, "killed", found)
		})
	}
	all.Wait()
}

func (m *Manager) endOrphan(r *msg.Run) (found bool, err error) {
	rt := m.cfg.Runtimes[groupconfig.Runtime(r.Runtime)]
	if rt == nil {
		return false, fmt.Errorf("unknown runtime %q", r.Runtime)
	}
	return rt.End(m.ctx, runtime.Orphan{RunID: r.ID, PID: r.PID, PIDStart: r.PIDStart, Label: r.Label, Grace: m.cfg.Graces.Orphan})
}

func (m *Manager) recoverRun(tx *store.Tx, r *msg.Run) error {
	turns, err := tx.RunTurns(m.ctx, r.ID)
	if err != nil {
		return err
	}
	now := m.now()
	for _, t := range turns {
		if t.Frames > 0 {
			err = tx.FinishTurn(t, msg.TurnDone, msg.ReasonInterrupted, "", now)
		} else {
			err = tx.RequeueTurn(t.ID, false, "", 0)
		}
		if err != nil {
			return err
		}
	}
	return tx.EndRun(r.ID, "gated stopped", now)
}

// Run handles backoffs and idle agents until ctx ends, then lets every agent finish
// its frame and stops it. The next gated queues the unanswered turns again.
func (m *Manager) Run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Tick(m.idle) })
		case <-ctx.Done():
			m.shutdown()
			return nil
		}
	}
}

func (m *Manager) shutdown() {
	m.mu.Lock()
	m.closing = true
	for _, r := range m.runs {
		r.control(ctlShutdown)
	}
	m.mu.Unlock()
	hurry := time.AfterFunc(maxShutdown, m.cancel)
	defer hurry.Stop()
	m.wg.Wait()
	m.cancel()
}

// Offer returns the live run that the next turn of a key may be stored for; see
// queue.GroupQueue.Offer. It must be followed by Dispatch or Withdraw.
func (m *Manager) Offer(k queue.Key) (runID int64) { return m.queue.Offer(k) }

// Withdraw takes back an Offer of a turn that was not stored.
func (m *Manager) Withdraw(runID int64) {
	m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Answered(runID, 1) })
}

// Dispatch gives a stored turn to the run it was stored for, or queues it.
// offered is the result of Offer for it.
func (m *Manager) Dispatch(t *msg.Turn, offered int64) {
	if t.RunID == 0 {
		if offered != 0 {
			m.Withdraw(offered)
		}
		m.push(queue.TurnOf(t))
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[t.RunID]; r != nil { // a run that has ended since has queued the turn itself
		r.turns <- handover{turn: t}
	}
}

// Stop interrupts the live runs of a folder, of one topic if that is not nil, and
// every run that works on a cancelled turn, and removes the cancelled turns, given
// as they were before, from the queue. Turns of those runs for other chats are
// queued again.
func (m *Manager) Stop(folder string, topic *string, cancelled []*msg.Turn) {
	m.mu.Lock()
	for _, r := range m.runs {
		if r.row.Folder == folder && (topic == nil || r.row.Topic == *topic) {
			m.interrupt(r)
		}
	}
	m.mu.Unlock()
	for _, t := range cancelled {
		m.Cancel(t)
	}
}

// Cancel removes a cancelled turn, given as it was before, from the queue, and
// interrupts the run that worked on it.
func (m *Manager) Cancel(t *msg.Turn) {
	m.forget(t)
	if r := m.runByID(t.RunID); r != nil && t.State == msg.TurnRunning {
		m.interrupt(r)
	}
}

// interrupt makes a run abort; further turns go to another run.
func (m *Manager) interrupt(r *run) {
	m.queue.Drain(r.row.ID)
	r.control(ctlInterrupt)
}

func (m *Manager) forget(t *msg.Turn) {
	m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Remove(t.ID) })
}

// Drain lets a run whose session was reset finish, without further turns.
func (m *Manager) Drain(runID int64) {
	m.queue.Drain(runID)
	if r := m.runByID(runID); r != nil {
		r.control(ctlClose)
	}
}

// Retry queues a turn that was revived.
func (m *Manager) Retry(t *msg.Turn) {
	m.forget(t)
	m.push(queue.TurnOf(t))
}

func (m *Manager) runByID(id int64) *run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs[id]
}

// idle returns how long a run is kept warm; the caller holds the lock.
func (m *Manager) idle(runID int64) time.Duration {
	if r := m.runs[runID]; r != nil && r.setup.Timeouts.Idle != nil {
		return time.Duration(*r.setup.Timeouts.Idle)
	}
	return 0
}

func (m *Manager) push(t queue.Turn) {
	m.logQueued(t)
	m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Push(t) })
}

// schedule makes a decision of the queue and carries it out in one step: the
// decisions of two goroutines must reach a run in their order.
func (m *Manager) schedule(decide func(*queue.GroupQueue) queue.Actions) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.act(decide(m.queue))
}

// act carries out a decision of the queue; the caller holds the lock. It never
// blocks: the queue bounds a run's turns to less than its channel holds.
func (m *Manager) act(a queue.Actions) {
	for _, t := range a.Start {
		if !m.closing {
			m.wg.Add(1)
			go m.start(t)
		}
	}
	for _, p := range a.Pipe {
		if r := m.runs[p.RunID]; r != nil {
			r.turns <- handover{queued: &p.Turn}
		}
	}
	for _, id := range a.Close {
		if r := m.runs[id]; r != nil {
			r.control(ctlClose)
		}
	}
}

// start opens a run for a queued turn and serves it until its end.
func (m *Manager) start(t queue.Turn) {
	defer m.wg.Done()
	r, turn, err := m.open(t)
	if err != nil {
		if !errors.Is(err, store.ErrStale) {
			m.log.Warn("run not started; its turn waits for the next start of gated", "turn", t.ID, "folder", t.Folder, "chat", t.ChatJID, "err", err)
		}
		m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.StartFailed(t) })
		return
	}
	m.register(r, t)
	m.applyMissedSignals(r, turn)
	m.unregister(r, r.serve(turn))
}

// register makes a stored run known to the queue and to Stop, Cancel and Drain.
func (m *Manager) register(r *run, t queue.Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs[r.row.ID] = r
	if m.closing {
		r.control(ctlShutdown)
	}
	m.act(m.queue.Started(t, r.row.ID))
}

// applyMissedSignals applies what was stored about a run before it was
// registered: that its turn was cancelled, or its session reset.
func (m *Manager) applyMissedSignals(r *run, t *msg.Turn) {
	if now, err := m.st.Turn(m.ctx, t.ID); err == nil && now != nil && now.State == msg.TurnCancelled {
		m.interrupt(r)
	}
	if live, err := m.st.RunIsLive(m.ctx, r.row.ID); err == nil && !live {
		m.Drain(r.row.ID)
	}
}

// unregister removes a run that has ended. left are the turns it queues again;
// turns still on their way to it are queued again too.
func (m *Manager) unregister(r *run, left []queue.Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.runs, r.row.ID)
	for _, h := range r.pending() {
		if h.queued != nil {
			left = append(left, *h.queued)
		}
	}
	m.act(m.queue.Exited(r.row.ID, left...))
}

// open stores a new run for a turn.
func (m *Manager) open(t queue.Turn) (*run, *msg.Turn, error) {
	setup, err := m.setup(t.Folder)
	if err != nil {
		return nil, nil, err
	}
	row := msg.Run{Folder: t.Folder, Topic: t.Topic, ChatJID: t.ChatJID, ThreadID: t.ThreadID, Runtime: string(setup.Agent.Runtime)}
	var r *run
	var turn *msg.Turn
	err = m.persist(m.ctx, func(tx *store.Tx) (err error) {
		row.StartedAt = m.now()
		if err = tx.StartRun(&row, t.ID); err != nil {
			return err
		}
		if turn, err = tx.Turn(m.ctx, t.ID); err != nil {
			return err
		}
		r = newRun(m, row, setup)
		return r.announceFirst(tx, turn)
	})
	return r, turn, err
}

// persist writes until it succeeds: an agent's answer must not be lost to a busy
// or full database. It returns ErrStale, which no retry fixes, and the error of an
// ended ctx.
func (m *Manager) persist(ctx context.Context, fn func(*store.Tx) error) error {
	return m.retryDB(ctx, "write", func() error { return m.st.Write(ctx, fn) })
}

func (m *Manager) retryDB(ctx context.Context, doing string, try func() error) error {
	for wait := minRetryDelay; ; wait = min(2*wait, maxRetryDelay) {
		err := try()
		if err == nil || errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrClosed) || ctx.Err() != nil {
			return err
		}
		m.log.Error("database access failed; retrying", "step", doing, "wait", wait, "err", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (m *Manager) now() int64 { return m.cfg.Now().UnixMilli() }
