// Package agents runs the agents: it gives each turn of the queue to a process,
// stores the answers, and decides about unanswered turns. One goroutine owns each
// run. Each step is stored in the runs and turns tables before it happens, so that a
// restart can go on from there.
package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/agentuser"
	"arizuko/gated/internal/running/groupdir"
	"arizuko/gated/internal/running/groupfiles"
	"arizuko/gated/internal/running/queue"
	"arizuko/gated/internal/running/runtime"
	"arizuko/gated/internal/running/snapshots"
	"arizuko/gated/internal/undo"
	factrows "arizuko/pkg/facts/rows"
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

// machineDelay is the wait after so many failures of the machine.
func machineDelay(failures int) time.Duration {
	if failures == 1 {
		return 5 * time.Second
	}
	return 30 * time.Second
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
	Defaults  groupconfig.Config // for settings that a group's own configuration leaves out
	Runtimes  map[groupconfig.Runtime]runtime.Runtime
	Names     []string         // further names of the assistant, besides its group's or the default one
	Environ   []string         // gated's environment; agents get the named variables of it
	Data      string           // the data folder
	Groups    string           // the folder of the groups' folders
	Logs      string           // the folder of run logs
	Users     *agentuser.Users // nil: a user for each group if gated is root
	MaxAgents int
	Attempts  int                       // per turn
	Backoff   func(n int) time.Duration // nil: 5 s, 30 s, 2 min
	Machine   func(n int) time.Duration // delay after the n-th failure of the machine; nil: 5 s, 30 s
	Report    func(problems []string)   // receives, at each change, the reasons why agents don't answer; nil for none
	Probe     time.Duration             // how often a failing group tries a turn; 0: a minute
	Graces    Graces                    // none: 3 s, 1 s, 2 s
	Location  *time.Location            // of times in prompts
	Redact    func(string) string       // hides secrets; nil hides none
	Growing   func(string) string       // Redact for a text whose end is still to come; nil: Redact
	// Tools gives a run its access to the tools; nil: none. redact hides the run's secrets in the tools' texts. The
	// manager closes the access with the run.
	Tools     func(run msg.Run, redact func(string) string) Access
	Egress    OpenEgress                       // nil: no run may have the network ask
	ToolsURL  func(groupconfig.Runtime) string // where a runtime's agents reach the tools, "" if they cannot
	Operators map[string]bool                  // of OPERATORS
	Now       func() time.Time

	Peers Peers

	AskTimeout time.Duration // how long a question of an agent is open; 0: 10 min

	WaitMark   time.Duration // how long a message may wait before it is marked; 0: none is
	MediaQuota int64         // of all files of messages, in bytes; 0: no limit
	MediaDaily int64         // of the files of a chat in a day, in bytes; 0: no limit
	UndoQuota  int64         // what is kept of each group's files for /undo, in bytes; 0: nothing

	EndWindow        func(ctx context.Context, e msg.Engagement) error // closes a window; nil: none is closed
	NextSlot         undo.NextSlot                                     // of reminders
	RemindersChanged func()                                            // is called when an undo may have changed them
}

// env is shared by all parts of the manager and its runs. It does not change.
type env struct {
	cfg Config
	st  *store.Store
	log *slog.Logger
	ctx context.Context //nolint:containedctx // of all work; ends when the manager has stopped
}

// Manager runs agents. Its methods may be called from any goroutine; the parts have the state, and say who may use it.
type Manager struct {
	env    *env
	cancel context.CancelFunc // of env.ctx
	loops  sync.WaitGroup

	live   *liveRuns
	sched  *scheduler
	fresh  *freshLanes
	stops  *stops
	undos  *undos
	former *former
	marks  *waitMarks
	poked  chan struct{} // files may have been downloaded
	// filesWait says that turns may wait for files.
	filesWait atomic.Bool
	peers     chan struct{}           // a peer has changed something
	states    map[int64]rows.RunState // of the runs when peers were looked at last

	groups   *groups
	files    *files
	asks     *Asks
	budgets  *budgets
	problems *problems
	meter    *meter

	configs int64 // the version of the groups' configurations that the runs know; only Run uses it
}

// New makes a manager. Nothing runs before Recover.
//
// metrics is where it registers its metrics; nil for nowhere.
func New(cfg Config, st *store.Store, log *slog.Logger, metrics prometheus.Registerer) *Manager {
	cfg.setDefaults(log)
	ctx, stop := context.WithCancel(context.Background())
	e := &env{cfg: cfg, st: st, log: log, ctx: ctx}
	live := &liveRuns{byID: map[int64]*run{}}
	groups := &groups{env: e, dirs: groupdir.New(cfg.Groups), users: cfg.Users}
	m := &Manager{
		env: e, cancel: stop, live: live, former: &former{e}, groups: groups, files: newFiles(e, groups),
		asks:  &Asks{env: e, groups: groups, live: live, started: e.now(), changed: make(chan struct{})},
		fresh: &freshLanes{ready: make(chan struct{}, 1), lanes: map[string]bool{}},
		marks: &waitMarks{env: e, groups: groups}, budgets: &budgets{e, groups}, problems: newProblems(cfg.Report),
		poked: make(chan struct{}, 1), peers: make(chan struct{}, 1),
	}
	m.filesWait.Store(true)
	m.sched = &scheduler{queue: queue.New(cfg.MaxAgents, cfg.Now, turnRows{e}), live: live, start: m.start, st: st}
	m.stops = &stops{env: e, live: live, sched: m.sched, found: make(chan struct{}, 1)}
	m.undos = &undos{env: e, cancel: m.Cancel, found: make(chan struct{}, 1), files: &snapshots.Store{
		Root: filepath.Join(cfg.Data, "undo"), Quota: cfg.UndoQuota, Log: log, Now: cfg.Now,
		Dir: func(folder string) (string, error) {
			dir, _, err := groups.dir(folder)
			return dir, err
		},
	}}
	m.meter = newMeter(metrics, m.sched.queue, st, &cfg)
	return m
}

func (c *Config) setDefaults(log *slog.Logger) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Redact == nil {
		c.Redact = func(s string) string { return s }
	}
	if c.Growing == nil {
		c.Growing = c.Redact
	}
	if c.Graces == (Graces{}) {
		c.Graces = defaultGraces()
	}
	if c.Backoff == nil {
		c.Backoff = backoff
	}
	c.Probe = cmp.Or(c.Probe, time.Minute)
	c.AskTimeout = cmp.Or(c.AskTimeout, 10*time.Minute)
	if c.Machine == nil {
		c.Machine = machineDelay
	}
	if c.Users == nil {
		c.Users = agentuser.New(c.Data, runtime.User{}, log)
	}
}

// Recover kills the agents of the previous gated, queues their turns again, and starts queued turns.
func (m *Manager) Recover(ctx context.Context) error {
	left, err := m.former.runs(ctx)
	if err != nil {
		return fmt.Errorf("find runs of the previous gated: %w", err)
	}
	m.former.killReachable(left)
	m.former.endUnrecorded()
	if err := m.former.requeue(ctx, left); err != nil {
		return err
	}
	if len(left) > 0 {
		m.env.log.Info("recovered runs of the previous gated", "count", len(left))
	}
	folders, err := rows.FoldersEver(ctx, m.env.st.Reader)
	if err != nil {
		return fmt.Errorf("list groups: %w", err)
	}
	if err := m.groups.dirs.CheckFlat(folders); err != nil {
		return err
	}
	if err := m.undos.endFormer(ctx, folders); err != nil {
		return err
	}
	failing, err := factrows.FailingGroups(ctx, m.env.st.Reader)
	if err != nil {
		return fmt.Errorf("find failing groups: %w", err)
	}
	for _, f := range failing {
		m.problems.groupFails(f.Folder, f.Problem)
	}
	lanes, err := rows.QueuedLanes(ctx, m.env.st.Reader)
	if err != nil {
		return fmt.Errorf("find queued turns: %w", err)
	}
	if len(lanes) > 0 {
		m.env.log.Info("found lanes with queued turns", "count", len(lanes))
	}
	queued, err := m.env.st.Turns(ctx, store.TurnList{State: msg.TurnQueued, Limit: maxWaiting})
	if err != nil {
		return fmt.Errorf("find turns that wait: %w", err)
	}
	m.marks.watch(queued...)
	m.stored(lanes)
	return nil
}

// endUnrecorded ends the leftovers of runs and checks that are not recorded.
func (f *former) endUnrecorded() {
	for kind, rt := range f.env.cfg.Runtimes {
		ender, ok := rt.(interface{ EndFormer() (bool, error) })
		if !ok {
			continue
		}
		ended, err := ender.EndFormer()
		if err != nil {
			f.env.log.Error("something of the previous gated is left: end it by hand", "runtime", kind, "err", err)
		} else if ended {
			f.env.log.Info("ended processes, control groups or temporary folders of the previous gated", "runtime",
				kind)
		}
	}
}

// endRun ends a run in the rows, and queues its turns again. A turn with a part of an answer counts as done.
func (e *env) endRun(tx *store.Tx, run int64, problem string) error {
	turns, err := rows.RunTurns(e.ctx, tx.Reader, run)
	if err != nil {
		return err
	}
	now := e.now()
	for _, t := range turns {
		if t.Frames > 0 {
			err = rows.FinishTurn(tx, t, msg.TurnDone, msg.ReasonInterrupted, "", now)
		} else {
			err = rows.RequeueTurn(tx, t.ID, rows.Requeue{})
		}
		if err != nil {
			return err
		}
	}
	return rows.EndRun(tx, run, problem, now)
}

// Dispatch gives stored turns to the runs they were stored for, and starts queued
// ones.
func (m *Manager) Dispatch(turns ...*msg.Turn) {
	m.marks.watch(turns...)
	for _, t := range turns {
		if t.WaitsFor == msg.WaitsFiles {
			m.filesWait.Store(true)
		}
		if t.RunID == 0 {
			m.env.log.Debug("turn queued", "turn", t.ID, "folder", t.Folder, "chat", t.ChatJID, "wait", m.env.waitOf(t))
			m.fresh.add(t.Lane())
		} else if r := m.live.get(t.RunID); r != nil { // one that is not there yet, or any more, reads its rows
			stored := *t
			r.inbox.give(&stored)
		}
	}
}

// Poked looks for turns whose files have been downloaded.
func (m *Manager) Poked() { notify(m.poked) }

// Stop interrupts the runs that work on turns which a /stop has cancelled, given as they were before. Runs of the same
// group that work for other conversations go on. It also makes the rest of the /stop be carried out.
func (m *Manager) Stop(cancelled []*msg.Turn) {
	m.Cancel(cancelled...)
	notify(m.stops.found)
}

// Cancel interrupts the runs that work on cancelled turns, given as they were before.
func (m *Manager) Cancel(turns ...*msg.Turn) {
	lanes := map[string]bool{}
	m.live.reread(turns, lanes)
	m.sched.changed(lanes)
}

// Changed makes the queue and the runs look at turns whose messages were edited or deleted. The turns are given as they
// were before.
func (m *Manager) Changed(turns ...*msg.Turn) {
	m.Cancel(turns...)
	m.Poked() // a turn may have waited for the files of a deleted message
}

// Drain lets a run whose session was reset, or whose turn is taken back, finish without further turns. 0 stands for a
// topic without a run.
func (m *Manager) Drain(runID int64) {
	notify(m.undos.found)
	m.sched.queue.Drain(runID)
	if r := m.live.get(runID); r != nil {
		r.inbox.control(ctlDrain)
	}
}

// Retry starts a turn that was revived.
func (m *Manager) Retry(t *msg.Turn) { m.sched.changed(map[string]bool{t.Lane(): true}) }

// Revived starts turns that were revived, whichever they are.
func (m *Manager) Revived() {
	lanes, err := rows.QueuedLanes(m.env.ctx, m.env.st.Reader)
	if err != nil {
		return // the next sweep looks again
	}
	m.sched.do(func(q *queue.GroupQueue) queue.Actions { return q.Changed(lanes...) })
}

// Asks are the questions of agents.
func (m *Manager) Asks() *Asks { return m.asks }

// AskEnded makes runs look at their questions: one has ended, or was asked.
func (m *Manager) AskEnded() { m.asks.notifyRuns() }

// Files copies files between the groups' folders and the media folder.
func (m *Manager) Files() *groupfiles.Files { return m.files.groups }

// idle returns how long a run is kept warm.
func (m *Manager) idle(runID int64) time.Duration {
	if r := m.live.get(runID); r != nil && r.setup.Timeouts.Idle != nil {
		return time.Duration(*r.setup.Timeouts.Idle)
	}
	return 0
}

// persist writes until it succeeds: an agent's answer must not be lost to a busy
// or full database. It returns errors that no retry fixes, ErrStale, ErrPanic and ErrFenced,
// and the error of an ended ctx.
func (e *env) persist(ctx context.Context, fn func(*store.Tx) error) error {
	return e.persistIn(ctx, nil, fn)
}

// persistIn is persist for a write that touches only what belongs to a scope.
func (e *env) persistIn(ctx context.Context, scope store.Scope, fn func(*store.Tx) error) error {
	return e.retryDB(ctx, "write", func() error { return e.st.WriteIn(ctx, scope, fn) })
}

// slots is the key of this process's slots for a turn that goes to a run which is there.
func (m *Manager) slots() string {
	if m.live.count() <= m.env.cfg.MaxAgents {
		return store.Shared(rows.SlotsOf(m.env.cfg.Peers.Self))
	}
	return m.env.slots()
}

// slots is the key of this process's slots for agents.
func (e *env) slots() string { return store.Late(rows.SlotsOf(e.cfg.Peers.Self)) }

func (e *env) retryDB(ctx context.Context, doing string, try func() error) error {
	for wait := minRetryDelay; ; wait = min(2*wait, maxRetryDelay) {
		err := try()
		if err == nil || errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrPanic) ||
			errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrFenced) || ctx.Err() != nil {
			return err
		}
		e.log.Error("database access failed; retrying", "step", doing, "wait", wait, "err", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (e *env) now() int64 { return e.cfg.Now().UnixMilli() }

// waitOf is how long a queued turn waits at least.
func (e *env) waitOf(t *msg.Turn) time.Duration {
	return time.Duration(max(t.NotBefore-e.now(), 0)) * time.Millisecond
}
