// Package gateway takes inbound rows from the messages table to stored turns. It
// reads what package decide needs to know about them, stores what that decides, and
// acts on it. One goroutine does so; nothing slow runs in it. All state in memory
// can be read again: a row without a disposition is undecided.
package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// ingestRows is how many rows are read after the cursor at once.
	ingestRows = 2000
	// passChats is how many chats one pass decides: enough to share a commit,
	// few enough that the first of them does not wait for the last.
	passChats = 256
	// passBytes ends a pass earlier: its rows are in memory, and its commit keeps
	// other writers waiting. The number of rows is bounded by what routd is asked at once.
	passBytes = 16 << 20
	// pageRows is how many rows of one chat a pass takes.
	pageRows = 500
	// clockStep is the least jump of the wall clock that counts as set by hand.
	clockStep = time.Second
	// dbRetryDelay is the wait after a failed read or write.
	dbRetryDelay = 200 * time.Millisecond
	// panicDelay is the wait after a panic for which no row is to blame: it may come again.
	panicDelay = time.Second
	// commandWait is how long commands wait for an answer of routd, which says whether
	// their sender is ignored and which group they are for.
	commandWait = 50 * time.Millisecond
)

// Agents runs the turns that the gateway stores.
type Agents interface {
	Dispatch(turns ...*msg.Turn)
	Poked()
	Stop(cancelled []*msg.Turn)
	Drain(runID int64)
	AskEnded()
	Revived()
}

// Config of the gateway.
type Config struct {
	Poll      time.Duration // how often to look for rows without a poke
	Sweep     time.Duration // how often to look for open work among all rows; 0: once a minute
	MaxAge    time.Duration // rows older on arrival are not answered
	MaxAgents int           // how many agents may be busy at once
	Impulse   msg.Impulse   // the instance's default
	Operators map[string]bool
	Defaults  groupconfig.Config       // for what a group's own configuration does not set, and the agents it may name
	BotNames  []string                 // names of the bot after the @ of a command
	Daemons   map[string]*httpx.Client // by name, for routes to daemon:NAME
	Routd     *httpx.Client
	Onbod     *httpx.Client
	Dashd     *httpx.Client
	Now       func() time.Time

	ResolveTimeout time.Duration // of one question to routd; 0: 2 s
	CommandWait    time.Duration // how long commands wait for routd's answer; 0: 50 ms

	Objects *contextobjects.Index // which deletions and the ends of polls change; nil for none

	Report func(waits []string) // receives the daemons that messages wait for, in words, at each change; may be nil
}

// Gateway decides inbound rows.
type Gateway struct {
	cfg    Config
	st     *store.Store
	log    *slog.Logger
	agents Agents
	routd  *resolver
	meter  *meter
	calls  *calls

	requests *requests

	wake    <-chan struct{}
	answers chan *question // of routd; at most one is asked

	asking    *question // the question that is out, nil for none
	cursor    int64
	lastClock time.Time                       // the last reading of the clock
	chats     map[string]*chat                // those with undecided rows
	dirty     []*chat                         // those to load, in order
	backlog   []*chat                         // those to load when no other is
	waiting   map[*chat]bool                  // for routd, or for the end of the question that is out
	unrouted  map[*chat]bool                  // for a change of the routes
	parked    map[string]bool                 // chats with parked rows; some may have none any more
	due       dueHeap                         // by the time at which to load them
	version   int64                           // of the routes, when unrouted rows were last decided
	versionAt time.Time                       // when routd was asked for it last
	stops     []store.Stop                    // under way, when the pass began
	members   map[string]*groupconfig.Members // by folder, as of version
	invalid   map[string]string               // by folder, the configuration that was last logged as invalid
	rates     *rates
	sweeper   sweeper
	reported  []string // what Report received last
	reads     *store.Outage
	writes    *store.Outage
}

// chat is what the gateway keeps between passes about a chat with undecided rows.
// All of it can be read again.
type chat struct {
	jid      string
	state    decide.State
	queued   bool           // in dirty or backlog
	asked    *batch         // its rows are part of the question that is out
	limited  bool           // a row waits for routd: only commands after it are decided
	scanned  int64          // while limited: rows up to this one were searched for commands
	alone    bool           // routd timed out on its first row alone
	timeouts int            // how often in a row that happened
	skipped  map[int64]bool // rows left out: a service decides them, or they cannot be stored
	failed   int64          // the row whose decision could not be stored last
	failures int            // how often in a row
	index    int            // in the heap of due chats, -1 for none
}

// skip leaves a row out of further passes.
func (c *chat) skip(id int64) {
	if c.skipped == nil {
		c.skipped = map[int64]bool{}
	}
	c.skipped[id] = true
}

// unlimit ends the time in which only commands of the chat are decided.
func (c *chat) unlimit() { c.limited, c.scanned = false, 0 }

// New makes a gateway that is woken through wake.
func New(cfg Config, st *store.Store, agents Agents, wake <-chan struct{}, log *slog.Logger, reg prometheus.Registerer) *Gateway {
	cfg.Sweep, cfg.ResolveTimeout = cmp.Or(cfg.Sweep, sweepEvery), cmp.Or(cfg.ResolveTimeout, resolveTimeout)
	cfg.CommandWait = cmp.Or(cfg.CommandWait, commandWait)
	g := &Gateway{
		cfg: cfg, st: st, log: log, agents: agents, wake: wake, routd: newResolver(cfg.Routd, cfg.ResolveTimeout, log),
		answers: make(chan *question, 1), chats: map[string]*chat{}, waiting: map[*chat]bool{}, unrouted: map[*chat]bool{},
		reads: store.NewOutage(log, "read"), writes: store.NewOutage(log, "write"), meter: newMeter(reg, st, cfg.Now),
	}
	g.calls, g.rates = newCalls(g), newRates(st)
	g.requests, g.parked = newRequests(), map[string]bool{}
	g.members, g.invalid = map[string]*groupconfig.Members{}, map[string]string{}
	return g
}

// Run decides rows until ctx ends.
func (g *Gateway) Run(ctx context.Context) error {
	if err := g.catchUp(ctx); err != nil {
		return err
	}
	poll, sweep := time.NewTicker(g.cfg.Poll), time.NewTicker(g.cfg.Sweep)
	defer poll.Stop()
	defer sweep.Stop()
	for ctx.Err() == nil {
		g.guard(ctx, func() {
			busy := g.runOnce(ctx)
			g.listen(ctx, poll.C, sweep.C, busy)
		})
	}
	return nil
}

// guard runs one turn of the loop. After a panic that was not caught where a row is
// to blame, all state is derived from the rows again.
func (g *Gateway) guard(ctx context.Context, turn func()) {
	defer func() {
		if cause := recover(); cause != nil {
			g.log.Error("panic while deciding messages; reading all undecided rows again", "panic", cause, "stack", string(debug.Stack()))
			pause(ctx, panicDelay)
			g.reset(ctx)
		}
	}()
	turn()
}

// reset forgets everything but which rows other services decide.
func (g *Gateway) reset(ctx context.Context) {
	if g.asking != nil { // its answer will come, for no chat
		g.asking.batches = nil
	}
	g.dirty, g.backlog, g.due = nil, nil, dueHeap{}
	clear(g.waiting)
	clear(g.unrouted)
	clear(g.members)
	g.rates = newRates(g.st)
	g.meter.held.Set(0)
	left := g.chats
	g.chats = map[string]*chat{}
	for jid, c := range left {
		if len(c.skipped) > 0 {
			g.chats[jid] = &chat{jid: jid, skipped: c.skipped, index: -1}
			g.enqueueLater(g.chats[jid])
		}
	}
	_ = g.enqueueUndecided(ctx)
}

// listen waits for one event, unless there is work to do, and handles it.
func (g *Gateway) listen(ctx context.Context, poll, sweep <-chan time.Time, busy bool) {
	if !busy && g.sweeper.poked {
		g.afterPoke(ctx)
	}
	if !busy {
		g.checkMoves(ctx)
		g.checkParked(ctx)
		busy = g.hasWork()
	}
	var now chan struct{}
	timer := time.NewTimer(g.untilDue())
	defer timer.Stop()
	if busy {
		now = make(chan struct{})
		close(now)
	}
	select {
	case <-now:
	case <-ctx.Done():
	case <-g.wake:
		g.agents.Poked()
		g.sweeper.poked, g.sweeper.pokedAt = true, time.Now()
	case <-poll:
		g.checkRoutes(ctx)
	case <-sweep:
		g.sweep(ctx)
	case <-timer.C:
	case <-g.routd.back:
		g.endWaiting()
	case q := <-g.answers:
		g.answered(ctx, q)
	case done := <-g.calls.done:
		g.finishCall(ctx, done)
	case done := <-g.requests.done:
		g.finishRequest(done)
	}
}

// runOnce reads new rows, makes one pass over their chats, and reports whether
// there is more to do at once.
func (g *Gateway) runOnce(ctx context.Context) (more bool) {
	if ctx.Err() != nil {
		return false
	}
	jids, arrived, next, err := g.st.NewMessages(ctx, g.cursor, ingestRows)
	if g.reads.Note(ctx, err) != nil {
		return false // the next poll or poke retries
	}
	g.meter.woken(arrived, g.cfg.Now())
	g.logWoken(jids, next)
	for _, jid := range jids {
		g.enqueue(g.chat(jid))
	}
	g.noticeClock()
	more = next != g.cursor
	g.cursor = next
	for c := g.due.takeDue(g.now()); c != nil; c = g.due.takeDue(g.now()) {
		c.unlimit()
		g.enqueue(c)
	}
	if g.hasWork() {
		g.pass(ctx)
	}
	g.startRequests(ctx)
	g.reportWaits()
	return more || g.hasWork()
}

// reportWaits reports what messages wait for, if that has changed.
func (g *Gateway) reportWaits() {
	var waits []string
	if g.routd.away() {
		waits = append(waits, "routd does not answer: messages wait for it")
	}
	if g.requests.failures > 0 && len(g.requests.chats) > 0 {
		waits = append(waits, "onbod does not answer: messages of chats without a group wait for it")
	}
	if g.cfg.Report != nil && !slices.Equal(waits, g.reported) {
		g.reported = waits
		g.cfg.Report(waits)
	}
}

// hasWork reports whether a pass would do something now.
func (g *Gateway) hasWork() bool {
	if g.asking != nil && (!g.asking.slow() || g.asking.searched && len(g.dirty)+len(g.backlog) == 0) {
		return false
	}
	return g.asking != nil || len(g.dirty)+len(g.backlog) > 0
}

// chat returns what is kept about a chat.
func (g *Gateway) chat(jid string) *chat {
	c := g.chats[jid]
	if c == nil {
		c = &chat{jid: jid, index: -1}
		g.chats[jid] = c
	}
	return c
}

// enqueue puts a chat on the list for the next pass.
func (g *Gateway) enqueue(c *chat) {
	if !c.queued {
		c.queued = true
		g.dirty = append(g.dirty, c)
	}
}

// enqueueLater puts a chat on the list for when no other has rows to decide.
func (g *Gateway) enqueueLater(c *chat) {
	if !c.queued {
		c.queued = true
		g.backlog = append(g.backlog, c)
	}
}

// restart forgets what is known about a chat's rows, so that all are read again.
func (g *Gateway) restart(c *chat) {
	if c.asked != nil {
		c.asked.stale = true
		c.asked = nil
	}
	g.meter.forgotten(&c.state)
	c.state = decide.State{}
	c.unlimit()
	g.due.remove(c)
}

// endWaiting takes up the chats that waited for routd, or for the end of a question.
func (g *Gateway) endWaiting() {
	for c := range g.waiting {
		c.unlimit()
		g.enqueue(c)
	}
	clear(g.waiting)
}

// checkRoutes asks for the version of the routes if a row waits for a change of them.
func (g *Gateway) checkRoutes(ctx context.Context) {
	if len(g.unrouted)+len(g.parked) > 0 && g.asking == nil && !g.routd.away() {
		g.ask(ctx, &question{refresh: true})
	}
}

// noticeRoutes decides unrouted and parked rows again if routes or groups have changed.
func (g *Gateway) noticeRoutes(version int64) {
	if version == g.version {
		return
	}
	g.version = version
	clear(g.members)
	for c := range g.unrouted {
		g.restart(c)
		g.enqueueLater(c)
	}
	clear(g.unrouted)
	for jid := range g.parked {
		g.enqueueLater(g.chat(jid))
	}
}

// noticeClock loads all chats that wait for a time again if the clock was set:
// their due times are by the old clock.
func (g *Gateway) noticeClock() {
	now, last := g.cfg.Now(), g.lastClock
	g.lastClock = now
	set := now.Round(0).Sub(last.Round(0)) - now.Sub(last) // wall clock minus monotonic clock
	if last.IsZero() || set.Abs() < clockStep {
		return
	}
	g.meter.clockSets.Inc()
	g.log.Warn("clock was set", "offset", set)
	for _, c := range g.due.takeAll() {
		g.restart(c)
		g.enqueue(c)
	}
}

// untilDue returns the time until the next chat is due, or until commands no longer
// wait for the question that is out.
func (g *Gateway) untilDue() time.Duration {
	wait := time.Hour
	if at := g.due.earliest(); at != 0 {
		wait = max(time.Duration(at-g.now())*time.Millisecond, time.Millisecond)
	}
	wait = min(wait, g.untilMoves(), g.untilParked(), g.requests.untilRetry(g.cfg.Now()))
	if g.asking != nil && !g.asking.slow() {
		wait = min(wait, max(g.asking.patience-time.Since(g.asking.asked), 0))
	}
	return wait
}

func (g *Gateway) now() int64 { return g.cfg.Now().UnixMilli() }
