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
	"maps"
	"slices"
	"sync"
	"time"

	"arizuko/gated/internal/running/agentuser"
	"arizuko/gated/internal/running/groupdir"
	"arizuko/gated/internal/running/groupfiles"
	"arizuko/gated/internal/running/queue"
	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/disk"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// tick is how often waits of turns and idle agents are checked.
	tick = 250 * time.Millisecond
	// sweepInterval is how often open work is looked for in the rows.
	sweepInterval = time.Minute
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
	Names     []string         // further names of the assistant, besides its group's or the default one
	Environ   []string         // gated's environment, of which agents get the named variables
	Data      string           // the data folder
	Groups    string           // the folder of the groups' folders
	Logs      string           // the folder of run logs
	Users     *agentuser.Users // nil: a user for each group if gated is root
	MaxAgents int
	Attempts  int                       // per turn
	Backoff   func(n int) time.Duration // nil: 5 s, 30 s, 2 min
	Machine   func(n int) time.Duration // delay after the n-th failure of the machine; nil: 5 s, 30 s
	Report    func(problems []string)   // receives, at each change, what keeps agents from answering; nil for none
	Probe     time.Duration             // how often a failing group tries a turn; 0: a minute
	Graces    Graces                    // none: 3 s, 1 s, 2 s
	Location  *time.Location            // of times in prompts
	Redact    func(string) string       // hides secrets; nil hides none
	Growing   func(string) string       // Redact for a text whose end is still to come; nil: Redact
	// Tools gives a run its access to the tools; nil: none. redact hides the run's secrets in what tools write. The
	// manager closes the access with the run.
	Tools     func(run msg.Run, redact func(string) string) Access
	ToolsURL  func(groupconfig.Runtime) string // where a runtime's agents reach the tools, "" if they cannot
	Operators map[string]bool                  // of OPERATORS
	Now       func() time.Time

	Peers Peers

	AskTimeout time.Duration // how long a question of an agent is open; 0: 10 min

	WaitMark   time.Duration // how long a message may wait before it is marked; 0: none is
	MediaQuota int64         // of all files of messages, in bytes; 0: no limit
	MediaDaily int64         // of the files of a chat in a day, in bytes; 0: no limit
}

// Manager runs agents. Its methods may be called from any goroutine.
type Manager struct {
	cfg      Config
	st       *store.Store
	log      *slog.Logger
	groups   *groupdir.Dirs
	files    *groupfiles.Files
	users    *agentuser.Users
	queue    *queue.GroupQueue
	meter    *meter
	problems *problems

	ctx    context.Context //nolint:containedctx // of all work; ends when the manager has stopped
	cancel context.CancelFunc
	wg     sync.WaitGroup

	peers chan struct{} // a peer has changed something
	wake  chan struct{} // lanes were added to stored
	poked chan struct{} // files may have been downloaded
	stops chan struct{} // a /stop may be left to carry out

	started  int64 // unix ms
	configs  int64 // the version of the groups' configurations that the runs know; only Run uses it
	markedAt int64 // when messages that wait were marked last, unix ms; only Run uses it

	sched sync.Mutex // held from a decision of the queue until it is carried out

	mu      sync.Mutex // held for moments only; never while sched or the queue is acquired
	runs    map[int64]*run
	stored  map[string]bool // lanes with new turns
	watched []waiting       // new turns that may wait, oldest first

	asksChanged chan struct{} // closed when a question has ended, or one was asked
	closing     bool
}

// New makes a manager. Nothing runs before Recover.
func New(cfg Config, st *store.Store, log *slog.Logger, metrics Metrics) *Manager {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Redact == nil {
		cfg.Redact = func(s string) string { return s }
	}
	if cfg.Growing == nil {
		cfg.Growing = cfg.Redact
	}
	if cfg.Graces == (Graces{}) {
		cfg.Graces = defaultGraces()
	}
	if cfg.Backoff == nil {
		cfg.Backoff = backoff
	}
	if cfg.Users == nil {
		cfg.Users = agentuser.New(cfg.Data, runtime.User{}, log)
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &Manager{
		cfg: cfg, st: st, log: log, groups: groupdir.New(cfg.Groups), users: cfg.Users, ctx: ctx, cancel: stop, problems: newProblems(cfg.Report), runs: map[int64]*run{}, stored: map[string]bool{},
		peers: make(chan struct{}, 1), wake: make(chan struct{}, 1), poked: make(chan struct{}, 1), stops: make(chan struct{}, 1), asksChanged: make(chan struct{}),
		started: cfg.Now().UnixMilli(),
	}
	m.files = &groupfiles.Files{Data: cfg.Data, Dir: m.groupDir, Log: log}
	if cfg.MediaQuota > 0 {
		m.files.Usage = &disk.Usage{Folder: m.files.MediaFolder(), Quota: cfg.MediaQuota, Now: cfg.Now}
	}
	m.queue = queue.New(cfg.MaxAgents, cfg.Now, rows{m})
	m.meter = newMeter(metrics, m.queue, st, cfg.Now, runtimeNames(cfg.Runtimes))
	return m
}

// runtimeNames are the labels of metrics.
func runtimeNames[R any](runtimes map[groupconfig.Runtime]R) (names []string) {
	for name := range runtimes {
		names = append(names, string(name))
	}
	return names
}

// Recover kills the agents of the previous gated, queues their turns again, moves
// groups' folders that an earlier version left nested, and starts what is queued. A turn with part of an answer counts as done.
func (m *Manager) Recover(ctx context.Context) error {
	left, err := m.left(ctx)
	if err != nil {
		return fmt.Errorf("find runs of the previous gated: %w", err)
	}
	m.killReachable(left)
	m.endFormer()
	if err := m.requeueRuns(ctx, left); err != nil {
		return err
	}
	if len(left) > 0 {
		m.log.Info("recovered runs of the previous gated", "count", len(left))
	}
	if err := m.groups.Flatten(func() ([]string, error) { return m.st.FoldersEver(ctx) }, m.log); err != nil {
		return fmt.Errorf("move nested folders of groups: %w", err)
	}
	failing, err := m.st.FailingGroups(ctx)
	if err != nil {
		return fmt.Errorf("find failing groups: %w", err)
	}
	for _, f := range failing {
		m.problems.groupFails(f.Folder, f.Problem)
	}
	lanes, err := m.st.QueuedLanes(ctx)
	if err != nil {
		return fmt.Errorf("find queued turns: %w", err)
	}
	if len(lanes) > 0 {
		m.log.Info("found lanes with queued turns", "count", len(lanes))
	}
	queued, err := m.st.Turns(ctx, store.TurnList{State: msg.TurnQueued, Limit: maxWaiting})
	if err != nil {
		return fmt.Errorf("find turns that wait: %w", err)
	}
	m.mu.Lock()
	for _, t := range queued {
		m.watch(t)
	}
	m.mu.Unlock()
	m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Stored(lanes...) })
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
				return
			}
			m.log.Info("ended run of the previous gated", "run", r.ID, "folder", r.Folder, "killed", found)
		})
	}
	all.Wait()
}

// endFormer ends what is left of runs and checks that are not recorded.
func (m *Manager) endFormer() {
	for kind, rt := range m.cfg.Runtimes {
		former, ok := rt.(interface{ EndFormer() (bool, error) })
		if !ok {
			continue
		}
		ended, err := former.EndFormer()
		if err != nil {
			m.log.Error("something of the previous gated is left: end it by hand", "runtime", kind, "err", err)
		} else if ended {
			m.log.Info("ended processes, control groups or temporary folders of the previous gated", "runtime", kind)
		}
	}
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
			err = tx.RequeueTurn(t.ID, store.Requeue{})
		}
		if err != nil {
			return err
		}
	}
	return tx.EndRun(r.ID, "gated stopped", now)
}

// Dispatch gives stored turns to the runs they were stored for, and starts queued
// ones.
func (m *Manager) Dispatch(turns ...*msg.Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range turns {
		m.watch(t)
		if t.RunID == 0 {
			m.logQueued(t)
			m.stored[t.Lane()] = true
			notify(m.wake)
		} else if r := m.runs[t.RunID]; r != nil { // one that is not there yet, or any more, reads its rows
			r.inbox.put(t)
		}
	}
}

// Poked looks for turns whose files have been downloaded.
func (m *Manager) Poked() { notify(m.poked) }

// Stop interrupts the runs that work on turns which a /stop has cancelled, given as they were before. Runs of the same
// group that work for other conversations go on. It also makes the rest of the /stop be carried out.
func (m *Manager) Stop(cancelled []*msg.Turn) {
	m.Cancel(cancelled...)
	notify(m.stops)
}

// Cancel interrupts the runs that work on cancelled turns, given as they were before.
func (m *Manager) Cancel(turns ...*msg.Turn) {
	lanes := map[string]bool{}
	m.interruptRuns(turns, lanes)
	m.changed(lanes)
}

// interruptRuns interrupts the runs that work on cancelled turns, and adds the lanes of
// those that were queued to lanes.
func (m *Manager) interruptRuns(turns []*msg.Turn, lanes map[string]bool) {
	for _, t := range turns {
		if t.State == msg.TurnRunning {
			if r := m.runByID(t.RunID); r != nil {
				r.inbox.cancel(t.ID)
			}
		} else {
			lanes[t.Lane()] = true
		}
	}
}

func (m *Manager) changed(lanes map[string]bool) {
	if len(lanes) > 0 {
		m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Changed(slices.Collect(maps.Keys(lanes))...) })
	}
}

// Drain lets a run whose session was reset finish, without further turns.
func (m *Manager) Drain(runID int64) {
	m.queue.Drain(runID)
	if r := m.runByID(runID); r != nil {
		r.control(ctlDrain)
	}
}

// Retry starts a turn that was revived.
func (m *Manager) Retry(t *msg.Turn) { m.changed(map[string]bool{t.Lane(): true}) }

// Revived starts turns that were revived, whichever they are.
func (m *Manager) Revived() {
	lanes, err := m.st.QueuedLanes(m.ctx)
	if err != nil {
		return // the next sweep looks again
	}
	m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Changed(lanes...) })
}

func (m *Manager) runByID(id int64) *run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs[id]
}

func (m *Manager) liveRuns(which func(*run) bool) (all []*run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.runs {
		if which(r) {
			all = append(all, r)
		}
	}
	return all
}

// idle returns how long a run is kept warm.
func (m *Manager) idle(runID int64) time.Duration {
	if r := m.runByID(runID); r != nil && r.setup.Timeouts.Idle != nil {
		return time.Duration(*r.setup.Timeouts.Idle)
	}
	return 0
}

// persist writes until it succeeds: an agent's answer must not be lost to a busy
// or full database. It returns what no retry fixes, ErrStale, ErrPanic and ErrFenced, and
// the error of an ended ctx.
func (m *Manager) persist(ctx context.Context, fn func(*store.Tx) error) error {
	return m.retryDB(ctx, "write", func() error { return m.st.Write(ctx, fn) })
}

func (m *Manager) retryDB(ctx context.Context, doing string, try func() error) error {
	for wait := minRetryDelay; ; wait = min(2*wait, maxRetryDelay) {
		err := try()
		if err == nil || errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrPanic) || errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrFenced) || ctx.Err() != nil {
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
