// Package gateway is what happens to a message between its row and its agent.
// One goroutine takes every decision. It keeps nothing that it could not read
// again: a row without a disposition is undecided, everything else follows.
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
	// ingestRows is how many rows one look behind the cursor covers.
	ingestRows = 2000
	// passChats is how many chats one pass decides: enough to share a commit,
	// few enough that the first of them does not wait for the last.
	passChats = 256
	// passRows and passBytes end a pass sooner: its rows are in memory, and
	// its commit keeps other writers waiting.
	passRows  = 2000
	passBytes = 16 << 20
	// pageRows is how many rows of one chat a pass takes.
	pageRows = 500
	// clockStep is what tells a clock that was set from one that is corrected.
	clockStep = time.Second
	// trouble is how long the gateway waits when the database is in the way.
	dbRetryDelay = 200 * time.Millisecond
)

// Agents is what the gateway asks of those who run the agents.
type Agents interface {
	Offer(queue.Key) (runID int64)
	Withdraw(runID int64)
	Dispatch(t *msg.Turn, offered int64)
	Stop(folder string, topic *string, cancelled []*msg.Turn)
	Drain(runID int64)
}

// Config of the gateway.
type Config struct {
	Poll      time.Duration // how often to look without being poked
	MaxAge    time.Duration // rows older on arrival are not answered
	Impulse   msg.Impulse   // the instance's default
	Operators map[string]bool
	BotNames  []string          // ours, behind a command's @
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
	callsDone chan callDone // rows handed to another service that were decided
	callSlots chan struct{} // one token per question under way
	daemons   map[string]*httpx.Client

	cursor    int64
	lastClock time.Time        // when the clock was last looked at
	chats     map[string]*chat // those with undecided rows, and what is known of them
	dirty     []*chat          // to look at, in order
	version   int64            // of the routes, when rows without a home were last judged
}

// chat is what the gateway remembers between passes of a chat with undecided
// rows. All of it can be read again.
type chat struct {
	jid            string
	queued         bool           // in dirty
	gate           impulseGate    // rows held
	mustRelease    bool           // the gate was due: what is read again is released
	due            int64          // when to look again, unix ms; 0 for not by itself
	awaitsFiles    bool           // waits for a download
	awaitsRoutd    bool           // waits for routd
	unrouted       bool           // has rows that nobody wants yet
	scannedThrough int64          // rows up to this one wait, and only commands overtake them; 0 for none
	skipped        map[int64]bool // rows not in passes: another service decides them, or nobody can
	calls          []pendingCall  // questions to other services, one after another
	failures       int            // passes in a row that the database refused
}

// leaveOut keeps a row out of further passes.
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
		if poked && !busy { // not for a message, so perhaps for a route
			g.checkRoutes(ctx)
		}
		poked = g.listen(ctx, poll.C, busy || len(g.dirty) > 0)
	}
	return nil
}

// listen takes note of one thing that has happened, and waits for one unless
// there is work to do. It says whether that was a poke.
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

// catchUp finds what was left undecided. Rows that arrive from here on are
// found behind the cursor.
func (g *Gateway) catchUp(ctx context.Context) error {
	for {
		jids, err := g.readBacklog(ctx)
		if err == nil {
			for _, jid := range jids {
				g.enqueueChat(jid)
			}
			return nil
		}
		g.log.Error("read of backlog failed; retrying", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(dbRetryDelay):
		}
	}
}

// readBacklog sets the cursor where the last gated left it, or at the end of a
// shorter database, and finds the chats with undecided rows before it.
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

// runOnce reads what is new, makes one pass over the chats it concerns, and
// says whether there is more to do at once.
func (g *Gateway) runOnce(ctx context.Context) (more bool) {
	if ctx.Err() != nil {
		return false
	}
	jids, next, err := g.st.NewMessages(ctx, g.cursor, ingestRows)
	if err != nil {
		if ctx.Err() == nil {
			g.log.Error("read of new messages failed; retrying", "err", err)
		}
		return false // the poll or the next poke comes back to it
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

// look puts a chat on the list for the next pass.
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

// lookAgain judges the rows of some chats anew that could not be before.
func (g *Gateway) requeueChats(which func(*chat) bool) {
	for _, c := range g.chats {
		if which(c) {
			c.scannedThrough = 0
			g.enqueue(c)
		}
	}
}

// checkRoutes judges rows without a home anew once the routes have changed.
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

// noticeRoutes has rows without a home judged anew if the routes have changed.
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

// noticeClock reads everything that waits for its time again once the clock
// was set: when it is due was reckoned by the clock as it was.
func (g *Gateway) noticeClock() {
	now, last := g.cfg.Now(), g.lastClock
	g.lastClock = now
	set := now.Round(0).Sub(last.Round(0)) - now.Sub(last) // what the wall clock says against what went by
	if last.IsZero() || set.Abs() < clockStep {
		return
	}
	g.log.Warn("clock was set", "step", set)
	for _, c := range g.chats {
		if c.due != 0 {
			c.due, c.gate, c.scannedThrough = 0, impulseGate{}, 0
			g.enqueue(c)
		}
	}
}

// settled takes note that another service's answer was stored.
func (g *Gateway) finishCall(ctx context.Context, f callDone) {
	if c := g.chats[f.jid]; c != nil {
		delete(c.skipped, f.id)
		g.nextCall(ctx, c, f.id)
		g.enqueue(c)
	}
}

// untilDue is how long nothing will be due.
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
