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
	// pageRows is how many rows of one chat a pass takes.
	pageRows = 500
	// trouble is how long the gateway waits when the database is in the way.
	trouble = 200 * time.Millisecond
)

// Agents is what the gateway asks of those who run the agents.
type Agents interface {
	Offer(queue.Key) (runID int64)
	Withdraw(runID int64)
	Dispatch(t *msg.Turn, offered int64)
	Stop(folder string, topic *string, cancelled []*msg.Turn)
	Retire(runID int64)
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

	ctx      context.Context // of Run
	wake     <-chan struct{}
	finished chan finished // rows handed to another service that were decided

	cursor  int64
	chats   map[string]*chat // those with undecided rows, and what is known of them
	dirty   []*chat          // to look at, in order
	version int64            // of the routes, when rows without a home were last judged
}

// chat is what the gateway remembers between passes of a chat with undecided
// rows. All of it can be read again.
type chat struct {
	jid      string
	queued   bool           // in dirty
	gate     impulseGate    // rows held
	force    bool           // the gate was due: what is read again is released
	due      int64          // when to look again, unix ms; 0 for not by itself
	files    bool           // waits for a download
	routing  bool           // waits for routd
	homeless bool           // has rows that nobody wants yet
	inflight map[int64]bool // rows that another service is deciding
	failures int            // passes in a row that the database refused
}

type finished struct {
	jid string
	id  int64
}

// New makes a gateway that is woken through wake.
func New(cfg Config, st *store.Store, agents Agents, wake <-chan struct{}, log *slog.Logger, reg prometheus.Registerer) *Gateway {
	g := &Gateway{
		cfg: cfg, st: st, log: log, agents: agents, wake: wake, resolver: newResolver(cfg.Routd, log),
		finished: make(chan finished), chats: map[string]*chat{},
		decided: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "arizuko_decisions_total", Help: "Inbound rows by what became of them."}, []string{"disposition", "reason"}),
	}
	if reg != nil {
		reg.MustRegister(g.decided)
	}
	return g
}

// Run decides rows until ctx ends.
func (g *Gateway) Run(ctx context.Context) error {
	g.ctx = ctx
	if err := g.catchUp(ctx); err != nil {
		return err
	}
	poll := time.NewTicker(g.cfg.Poll)
	defer poll.Stop()
	poked := false
	for {
		idle := true
		for g.runOnce(ctx) {
			idle = false
		}
		if poked && idle { // not for a message, so perhaps for a route
			g.checkRoutes(ctx)
		}
		poked = false
		if len(g.dirty) > 0 {
			continue
		}
		timer := time.NewTimer(g.untilDue())
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-g.wake:
			poked = true
			g.lookAgain(func(c *chat) bool { return c.files })
		case <-poll.C:
			g.lookAgain(func(c *chat) bool { return c.files })
			g.checkRoutes(ctx)
		case <-timer.C:
		case <-g.resolver.back:
			g.lookAgain(func(c *chat) bool { return c.routing })
		case f := <-g.finished:
			g.settled(f)
		}
		timer.Stop()
	}
}

// catchUp finds what was left undecided. Rows that arrive from here on are
// found behind the cursor.
func (g *Gateway) catchUp(ctx context.Context) error {
	for {
		last, err := g.st.LastMessageID()
		if err == nil {
			var jids []string
			if jids, err = g.st.UndecidedChats(); err == nil {
				g.cursor = last
				for _, jid := range jids {
					g.look(jid)
				}
				return nil
			}
		}
		g.log.Error("cannot read the database; trying again", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(trouble):
		}
	}
}

// runOnce reads what is new, makes one pass over the chats it concerns, and
// says whether there is more to do at once.
func (g *Gateway) runOnce(ctx context.Context) (more bool) {
	if ctx.Err() != nil {
		return false
	}
	jids, next, err := g.st.NewMessages(g.cursor, ingestRows)
	if err != nil {
		g.log.Error("cannot read new messages; trying again", "err", err)
		return false // the poll or the next poke comes back to it
	}
	for _, jid := range jids {
		g.look(jid)
	}
	more = next != g.cursor
	g.cursor = next
	g.lookAgain(func(c *chat) bool { return c.due != 0 && c.due <= g.now() })
	if len(g.dirty) == 0 {
		return more
	}
	n := min(len(g.dirty), passChats)
	chats := g.dirty[:n]
	g.dirty = g.dirty[n:]
	for _, c := range chats {
		c.queued = false
	}
	g.pass(ctx, chats)
	return true
}

// look puts a chat on the list for the next pass.
func (g *Gateway) look(jid string) {
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

func (g *Gateway) lookAgain(which func(*chat) bool) {
	for _, c := range g.chats {
		if which(c) {
			g.enqueue(c)
		}
	}
}

// checkRoutes judges rows without a home anew once the routes have changed.
func (g *Gateway) checkRoutes(ctx context.Context) {
	waiting := false
	for _, c := range g.chats {
		waiting = waiting || c.homeless
	}
	if !waiting {
		return
	}
	g.resolver.refresh(ctx)
	if version := g.resolver.version.Load(); version != g.version {
		g.version = version
		for _, c := range g.chats {
			if c.homeless {
				c.homeless, c.gate = false, impulseGate{}
				g.enqueue(c)
			}
		}
	}
}

// settled takes note that another service's answer was stored.
func (g *Gateway) settled(f finished) {
	if c := g.chats[f.jid]; c != nil {
		delete(c.inflight, f.id)
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
