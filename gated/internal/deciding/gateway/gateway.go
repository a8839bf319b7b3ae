// Package gateway takes inbound rows from the messages table to stored turns. It
// reads the facts that package decide needs, stores the effects that it returns, and
// acts on them. One goroutine does so; nothing slow runs in it. All state in memory
// can be read again: a row without a disposition is undecided.
package gateway

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

const (
	// ingestRows is how many new rows are read at once.
	ingestRows = 2000
	// passChats is how many chats one pass decides: enough to share a commit,
	// few enough that the first of them does not wait for the last.
	passChats = 256
	// passBytes ends a pass earlier: its rows are in memory, and its commit keeps
	// other writers waiting. The size of a lookup bounds the number of rows.
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
	Changed(turns ...*msg.Turn)
	Drain(runID int64)
	AskEnded()
	Revived()
}

// Config of the gateway.
type Config struct {
	Poll      time.Duration            // how often to look for rows without a poke
	MaxAge    time.Duration            // rows older on arrival are not answered
	MaxAgents int                      // how many agents may be busy at once
	Shards    int                      // into so many parts several gateways divide the chats; 0: this one decides all
	Impulse   msg.Impulse              // the instance's default
	Operators map[string]bool          // of OPERATORS
	Defaults  groupconfig.Config       // for settings that a group leaves out, and the agents it may name
	BotNames  []string                 // names of the bot after the @ of a command
	Daemons   map[string]*httpx.Client // by name, for routes to daemon:NAME
	Routd     *httpx.Client
	Onbod     *httpx.Client
	Dashd     *httpx.Client
	Now       func() time.Time

	CheckAgent func(ctx context.Context, name string) error // why an agent cannot be run; nil checks nothing

	Objects *contextobjects.Objects // which deletions and the ends of polls change; nil for none

	Report func(waits []string) // receives the daemons that messages wait for, in words, at each change; may be nil
}

// Gateway decides inbound rows. One goroutine, that of Run, owns it and all of its parts. Others use rates.stale and
// the channels of answers alone.
//
// A row that waits has one owner:
//
//   - waits, for a pass, the gate, routd or a route: with its chat
//   - routd, for the answer to the lookup that is out: with its chat, which stays in waits
//   - calls, for the service that decides it: alone, the chat's other rows go on
//   - requests, for the request that onbod opens: with its chat, which stays in waits
//   - outside, for an operator who approves its chat: it is parked in the table
//
// The other parts own no rows: reader, members and rates have facts.
type Gateway struct {
	cfg    Config
	st     *store.Store
	log    rowLog
	agents Agents
	meter  *meter
	wake   <-chan struct{}

	waits    *waits
	routd    *lookups
	calls    *calls
	requests *requests
	reader   *reader
	outside  *outside
	members  *members
	rates    *rates

	divided   chan division
	floor     *store.Floor
	look      bool      // rows may have come after the floor
	lastClock time.Time // the last reading of the clock
	sweeper   sweeper
	reported  []string // to Report, last
	reads     *store.Outage
	writes    *store.Outage
}

// New makes a gateway that is woken through wake.
func New(cfg Config, st *store.Store, agents Agents, wake <-chan struct{}, log *slog.Logger,
	reg prometheus.Registerer) *Gateway {
	g := &Gateway{
		cfg: cfg, st: st, log: rowLog{log}, agents: agents, wake: wake, meter: newMeter(reg, st, cfg.Now),
		routd: newLookups(resolver{cfg.Routd.Talk(routeapi.Path), resolveTimeout, log}),
		reads: store.NewOutage(log, "read"), writes: store.NewOutage(log, "write"),
	}
	g.look, g.floor, g.divided = true, &store.Floor{}, make(chan division)
	g.waits = newWaits(g.meter, nil)
	if cfg.Shards > 0 {
		g.waits.has = make([]bool, cfg.Shards)
	}
	g.calls, g.requests = newCalls(&g.cfg, st, g.log, g.waits), newRequests(&g.cfg, st, log, g.waits)
	g.members, g.rates = newMembers(st, log), newRates(st, cfg.Shards > 0)
	g.outside = &outside{st: st, reads: g.reads, waits: g.waits, parked: map[string]bool{}}
	g.reader = &reader{cfg: &g.cfg, st: st, members: g.members, rates: g.rates, outside: g.outside,
		requests: g.requests}
	return g
}

// division are the shards that a gateway has from now on. done is closed once it works on no other.
type division struct {
	has  []bool
	done chan struct{}
}

// Divide says which of Config.Shards this gateway decides from now on: a shard is a part of the chats. It returns once
// the gateway makes no more decisions about the others, or with the error of ctx. A service that is being asked about a
// row of theirs may be asked again by another gateway; only one answer is stored.
func (g *Gateway) Divide(ctx context.Context, has []bool) error {
	d := division{has, make(chan struct{})}
	select {
	case g.divided <- d:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// divide takes up the rows of shards that another gateway has left, and leaves those of others.
func (g *Gateway) divide(ctx context.Context, d division) {
	func() {
		defer close(d.done)
		g.waits.divide(d.has)
		g.calls.leave()
		clear(g.rates.notices)
	}()
	for g.look = true; ctx.Err() == nil; pause(ctx, dbRetryDelay) {
		if g.outside.look(ctx, true) == nil && g.enqueueUndecided(ctx) == nil {
			return
		}
	}
}

// Run decides rows until ctx ends.
func (g *Gateway) Run(ctx context.Context) error {
	if err := g.catchUp(ctx); err != nil {
		return err
	}
	poll, sweep := time.NewTicker(g.cfg.Poll), time.NewTicker(sweepEvery)
	defer poll.Stop()
	defer sweep.Stop()
	for ctx.Err() == nil {
		g.guard(ctx, func() {
			step := g.work
			if g.look {
				step = g.runOnce
			}
			g.listen(ctx, poll.C, sweep.C, step(ctx))
		})
	}
	return nil
}

// guard runs one turn of the loop. After a panic that was not caught where a row is
// to blame, all state is derived from the rows again.
func (g *Gateway) guard(ctx context.Context, turn func()) {
	defer func() {
		if cause := recover(); cause != nil {
			g.log.Error("panic while deciding messages; reading all undecided rows again", "panic", cause, "stack",
				string(debug.Stack()))
			pause(ctx, panicDelay)
			g.reset(ctx)
		}
	}()
	turn()
}

// reset forgets everything but which rows other services decide.
func (g *Gateway) reset(ctx context.Context) {
	g.routd.forget()
	g.waits.reset()
	clear(g.members.known)
	g.rates.reset()
	g.look = true
	_ = g.enqueueUndecided(ctx)
}

// listen waits for one event, unless there is work to do, and handles it.
func (g *Gateway) listen(ctx context.Context, poll, sweep <-chan time.Time, busy bool) {
	if !busy && g.sweeper.poked {
		g.afterPoke(ctx)
	}
	if !busy {
		g.outside.check(ctx)
		busy = g.hasWork()
	}
	g.routd.probe(ctx)
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
		g.look, g.sweeper.poked, g.sweeper.pokedAt = true, true, time.Now()
	case d := <-g.divided:
		g.divide(ctx, d)
	case <-poll:
		g.look = true
		g.checkRoutes(ctx)
	case <-sweep:
		g.sweep(ctx)
	case <-timer.C:
	case l := <-g.routd.answers:
		g.answered(ctx, l)
	case done := <-g.calls.done:
		g.calls.finish(ctx, done)
	case done := <-g.requests.done:
		g.requests.finish(done)
	}
}

// runOnce reads new rows, makes one pass over their chats, and reports whether
// there is more to do at once.
func (g *Gateway) runOnce(ctx context.Context) (more bool) {
	if ctx.Err() != nil || !g.ingest(ctx) {
		return false // the next poll or poke retries
	}
	return g.work(ctx)
}

// work is runOnce without new rows.
func (g *Gateway) work(ctx context.Context) (more bool) {
	g.noticeClock()
	g.waits.addDue(g.now())
	if g.hasWork() {
		g.pass(ctx)
	}
	g.requests.start(ctx)
	g.reportWaits()
	return g.look || g.hasWork()
}

// ingest reads the new rows, and puts their chats on the list. It reports false if it could not.
func (g *Gateway) ingest(ctx context.Context) bool {
	read, err := rows.NewMessages(ctx, g.st.Reader, g.floor, ingestRows)
	if g.reads.Note(ctx, err) != nil {
		return false
	}
	g.meter.woken(read.Arrived, g.cfg.Now())
	g.log.woken(read.Last, read.Chats...)
	for _, jid := range read.Chats {
		g.waits.add(g.waits.chat(jid))
	}
	g.look = read.More
	return true
}

// reportWaits reports the daemons that messages wait for, if they have changed.
func (g *Gateway) reportWaits() {
	var waits []string
	if g.routd.away() {
		waits = append(waits, "routd does not answer: messages wait for it")
	}
	if g.requests.waiting() {
		waits = append(waits, "onbod does not answer: messages of chats without a group wait for it")
	}
	if g.cfg.Report != nil && !slices.Equal(waits, g.reported) {
		g.reported = waits
		g.cfg.Report(waits)
	}
}

// hasWork reports whether a pass would do something now.
func (g *Gateway) hasWork() bool {
	if l := g.routd.out; l != nil {
		return l.slow() && (!l.searched || g.waits.listed())
	}
	return g.waits.listed()
}

// checkRoutes asks for the version of the routes if a row waits for a change of them.
func (g *Gateway) checkRoutes(ctx context.Context) {
	if len(g.waits.routes)+len(g.outside.parked) > 0 && !g.routd.busy() {
		g.routd.ask(ctx, &lookup{refresh: true})
	}
}

// noticeRoutes decides unrouted and parked rows again if routes or groups have changed.
func (g *Gateway) noticeRoutes(version int64) {
	if version == g.routd.version {
		return
	}
	g.routd.version = version
	clear(g.members.known)
	g.waits.endRoutes()
	g.outside.addParked()
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
	g.waits.endDue()
}

// untilDue returns the time until there is something to do without an event.
func (g *Gateway) untilDue() time.Duration {
	return min(g.waits.untilDue(g.now()), g.outside.until(), g.requests.untilRetry(g.cfg.Now()),
		g.routd.until())
}

func (g *Gateway) now() int64 { return g.cfg.Now().UnixMilli() }

const (
	// sweepEvery is how often open work is looked for among all rows, so that none
	// waits for a poke that never comes.
	sweepEvery = time.Minute
	// sweepsPerRestart is how many sweeps go by until the state of waiting chats
	// is derived again too: that asks routd about all their rows.
	sweepsPerRestart = 10
)

// sweeper is kept between looks at all rows.
type sweeper struct {
	poked   bool // a poke came that may have been for something else than a row
	pokedAt time.Time
	count   int
}

// catchUp finds the chats with undecided rows. Rows that arrive from now on are
// found after the floor.
func (g *Gateway) catchUp(ctx context.Context) error {
	for ctx.Err() == nil {
		if g.readBacklog(ctx) == nil {
			return nil
		}
		pause(ctx, dbRetryDelay)
	}
	return nil
}

// readBacklog sets the floor to the last row, and finds the chats with undecided rows. They are taken up after those
// with new rows.
func (g *Gateway) readBacklog(ctx context.Context) (err error) {
	if g.floor, err = g.st.FloorAt(ctx); err != nil {
		return g.reads.Note(ctx, err)
	}
	if err := g.outside.look(ctx, true); err != nil {
		return err
	}
	return g.enqueueUndecided(ctx)
}

// sweep finds chats with undecided rows that it does not know of, and from time to
// time derives the state of the others again.
func (g *Gateway) sweep(ctx context.Context) {
	g.sweeper.count++
	g.rates.prune(g.now())
	again := g.sweeper.count%sweepsPerRestart == 0
	if again {
		g.waits.restartSettled()
	}
	_ = g.outside.look(ctx, again)
	g.requests.prune(g.now())
	_ = g.enqueueUndecided(ctx)
}

func (g *Gateway) enqueueUndecided(ctx context.Context) error {
	jids, err := rows.UndecidedChats(ctx, g.st.Reader)
	if g.reads.Note(ctx, err) != nil {
		return err
	}
	for _, jid := range jids {
		if g.waits.chats[jid] == nil {
			g.log.woken(g.floor.At, jid)
			g.waits.addLater(g.waits.chat(jid))
		}
	}
	return nil
}

// afterPoke looks for other reasons of a poke than a new row: routes, a
// chat that was moved, or a request that was decided.
func (g *Gateway) afterPoke(ctx context.Context) {
	g.sweeper.poked, g.outside.poked = false, true
	if !g.routd.versionAt.After(g.sweeper.pokedAt) {
		g.checkRoutes(ctx)
	}
	g.outside.check(ctx)
}
