// Package gateway decides what happens to an inbound row: it takes each from the
// messages table to a stored turn. One goroutine makes every decision. All state
// in memory can be read again: a row without a disposition is undecided.
package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/queue"
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
	// passRows and passBytes end a pass earlier: its rows are in memory, and its
	// commit keeps other writers waiting.
	passRows  = 2000
	passBytes = 16 << 20
	// pageRows is how many rows of one chat a pass takes.
	pageRows = 500
	// clockStep is the least jump of the wall clock that counts as set by hand.
	clockStep = time.Second
	// dbRetryDelay is the wait after a failed read or write.
	dbRetryDelay = 200 * time.Millisecond
)

// Agents runs the turns that the gateway stores.
type Agents interface {
	Offer(queue.Key) (runID int64)
	Withdraw(runID int64)
	Dispatch(t *msg.Turn, offered int64)
	Stop(folder string, topic *string, cancelled []*msg.Turn)
	Drain(runID int64)
}

// Config of the gateway.
type Config struct {
	Poll      time.Duration // how often to look for rows without a poke
	MaxAge    time.Duration // rows older on arrival are not answered
	Impulse   msg.Impulse   // the instance's default
	Operators map[string]bool
	BotNames  []string          // names of the bot after the @ of a command
	Daemons   map[string]string // name → URL for routes to daemon:NAME
	Routd     *httpx.Client
	Onbod     *httpx.Client
	Dashd     *httpx.Client
	Now       func() time.Time
}

// Gateway decides inbound rows.
type Gateway struct {
	cfg      Config
	st       *store.Store
	log      *slog.Logger
	agents   Agents
	resolver *resolver
	decided  *prometheus.CounterVec

	wake      <-chan struct{}
	callsDone chan callDone // rows that another service has decided
	callSlots chan struct{} // one token per call to a service
	daemons   map[string]*httpx.Client

	cursor    int64
	lastClock time.Time        // the last reading of the clock
	chats     map[string]*chat // those with undecided rows
	dirty     []*chat          // those to load, in order
	version   int64            // of the routes, when unrouted rows were last decided
}

// chat is what the gateway keeps between passes about a chat with undecided rows.
// All of it can be read again.
type chat struct {
	jid            string
	queued         bool           // in dirty
	gate           impulseGate    // rows held
	mustRelease    bool           // the gate was due: release all rows that the next pass reads
	due            int64          // when to load the chat again, unix ms; 0 for never
	awaitsFiles    bool           // waits for a download
	awaitsRoutd    bool           // waits for routd
	unrouted       bool           // has rows without a route
	scannedThrough int64          // rows up to this one wait, and only commands after them are decided; 0 for none
	skipped        map[int64]bool // rows left out of passes: a service decides them, or they cannot be stored
	calls          []pendingCall  // calls to services that run one after another
	failures       int            // consecutive passes that could not be stored
}

// skip leaves a row out of further passes.
func (c *chat) skip(id int64) {
	if c.skipped == nil {
		c.skipped = map[int64]bool{}
	}
	c.skipped[id] = true
}

type callDone struct {
	jid string
	id  int64
}

// New makes a gateway that is woken through wake.
func New(cfg Config, st *store.Store, agents Agents, wake <-chan struct{}, log *slog.Logger, reg prometheus.Registerer) *Gateway {
	g := &Gateway{
		cfg: cfg, st: st, log: log, agents: agents, wake: wake, resolver: newResolver(cfg.Routd, log),
		callsDone: make(chan callDone), callSlots: make(chan struct{}, maxCalls),
		daemons: map[string]*httpx.Client{}, chats: map[string]*chat{},
		decided: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "arizuko_decisions_total", Help: "Inbound rows by what became of them."}, []string{"disposition", "reason"}),
	}
	for name, base := range cfg.Daemons {
		g.daemons[name] = httpx.NewClient(base, cfg.Routd.Secret)
	}
	if reg != nil {
		reg.MustRegister(g.decided)
	}
	return g
}

// Run decides rows until ctx ends.
func (g *Gateway) Run(ctx context.Context) error {
	if err := g.catchUp(ctx); err != nil {
		return err
	}
	poll := time.NewTicker(g.cfg.Poll)
	defer poll.Stop()
	poked := false
	for ctx.Err() == nil {
		busy := g.runOnce(ctx)
		if poked && !busy { // not for a row, so perhaps for a route
			g.checkRoutes(ctx)
		}
		poked = g.listen(ctx, poll.C, busy || len(g.dirty) > 0)
	}
	return nil
}

// listen waits for one event, unless there is work to do, and handles it. It
// reports whether that was a poke.
func (g *Gateway) listen(ctx context.Context, poll <-chan time.Time, busy bool) (poked bool) {
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
		g.requeueChats(func(c *chat) bool { return c.awaitsFiles })
		return true
	case <-poll:
		g.requeueChats(func(c *chat) bool { return c.awaitsFiles })
		g.checkRoutes(ctx)
	case <-timer.C:
	case <-g.resolver.back:
		g.requeueChats(func(c *chat) bool { return c.awaitsRoutd })
	case f := <-g.callsDone:
		g.finishCall(ctx, f)
	}
	return false
}

// catchUp finds the chats with undecided rows. Rows that arrive from now on are
// found after the cursor.
func (g *Gateway) catchUp(ctx context.Context) error {
	for {
		jids, err := g.readBacklog(ctx)
		if err == nil {
			for _, jid := range jids {
				g.enqueueChat(jid)
			}
			return nil
		}
		g.log.Error("reading backlog failed; retrying", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(dbRetryDelay):
		}
	}
}

// readBacklog sets the cursor to its stored value, or to the end of a shorter
// database, and finds the chats with undecided rows before it.
func (g *Gateway) readBacklog(ctx context.Context) ([]string, error) {
	cursor, err := g.st.Cursor(ctx)
	if err != nil {
		return nil, err
	}
	last, err := g.st.LastMessageID(ctx)
	if err != nil {
		return nil, err
	}
	g.cursor = min(cursor, last)
	return g.st.UndecidedChats(ctx)
}

// runOnce reads new rows, makes one pass over their chats, and reports whether
// there is more to do at once.
func (g *Gateway) runOnce(ctx context.Context) (more bool) {
	if ctx.Err() != nil {
		return false
	}
	jids, next, err := g.st.NewMessages(ctx, g.cursor, ingestRows)
	if err != nil {
		if ctx.Err() == nil {
			g.log.Error("reading new messages failed; retrying", "err", err)
		}
		return false // the next poll or poke retries
	}
	g.logWoken(jids, next)
	for _, jid := range jids {
		g.enqueueChat(jid)
	}
	g.noticeClock()
	more = next != g.cursor
	g.cursor = next
	g.requeueChats(func(c *chat) bool { return c.due != 0 && c.due <= g.now() })
	if len(g.dirty) == 0 {
		return more
	}
	g.pass(ctx)
	return true
}

// enqueueChat puts a chat on the list for the next pass.
func (g *Gateway) enqueueChat(jid string) {
	c := g.chats[jid]
	if c == nil {
		c = &chat{jid: jid}
		g.chats[jid] = c
	}
	g.enqueue(c)
}

func (g *Gateway) enqueue(c *chat) {
	if !c.queued {
		c.queued = true
		g.dirty = append(g.dirty, c)
	}
}

// requeueChats puts chats whose rows waited on the list for the next pass.
func (g *Gateway) requeueChats(which func(*chat) bool) {
	for _, c := range g.chats {
		if which(c) {
			c.scannedThrough = 0
			g.enqueue(c)
		}
	}
}

// checkRoutes decides unrouted rows again if the routes have changed.
func (g *Gateway) checkRoutes(ctx context.Context) {
	waiting := false
	for _, c := range g.chats {
		waiting = waiting || c.unrouted
	}
	if !waiting {
		return
	}
	g.resolver.refresh(ctx)
	g.noticeRoutes()
}

// noticeRoutes does so with the version of routd's last answer.
func (g *Gateway) noticeRoutes() {
	version := g.resolver.version.Load()
	if version == g.version {
		return
	}
	g.version = version
	for _, c := range g.chats {
		if c.unrouted {
			c.unrouted, c.gate, c.scannedThrough = false, impulseGate{}, 0
			g.enqueue(c)
		}
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
	g.log.Warn("clock was set", "offset", set)
	for _, c := range g.chats {
		if c.due != 0 {
			c.due, c.gate, c.scannedThrough = 0, impulseGate{}, 0
			g.enqueue(c)
		}
	}
}

// finishCall takes back a row that a service has decided.
func (g *Gateway) finishCall(ctx context.Context, f callDone) {
	if c := g.chats[f.jid]; c != nil {
		delete(c.skipped, f.id)
		g.nextCall(ctx, c, f.id)
		g.enqueue(c)
	}
}

// untilDue returns the time until the next chat is due.
func (g *Gateway) untilDue() time.Duration {
	next := int64(0)
	for _, c := range g.chats {
		if c.due != 0 && (next == 0 || c.due < next) {
			next = c.due
		}
	}
	if next == 0 {
		return time.Hour
	}
	return max(time.Duration(next-g.now())*time.Millisecond, time.Millisecond)
}

func (g *Gateway) now() int64 { return g.cfg.Now().UnixMilli() }
