package gateway

import (
	"context"
	"slices"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/store"
)

// pass and finish take the undecided rows of some chats through steps 3 to 7 of
// "What happens to a message" in gated's README. A test keeps names and numbers the
// same. Between them routd answers, without the loop waiting for it.
func (g *Gateway) pass(ctx context.Context) {
	if g.limited() {
		g.passCommands(ctx)
		return
	}
	batches := g.load(ctx)  // 3. read the undecided rows
	g.resolve(ctx, batches) // 4. ask routd where they go
}

// finish does what is left once routd has answered.
func (g *Gateway) finish(ctx context.Context, batches []*batch) {
	plans := g.decide(ctx, batches) // 5. what becomes of each row
	g.commit(ctx, plans)            // 6. store every decision
	g.dispatch(ctx, plans)          // 7. hand turns to agents
}

// limited reports whether rows that need an answer of routd have to wait.
func (g *Gateway) limited() bool { return g.asking != nil || g.routd.away() }

// passCommands decides what needs no answer of routd: commands, edits and rows
// between groups. All other rows wait, with their chats.
func (g *Gateway) passCommands(ctx context.Context) {
	if q := g.asking; q != nil && !q.searched {
		g.searchAsked(ctx, q)
		return
	}
	state := decide.RoutdAway
	if g.asking != nil {
		state = decide.RoutdSlow
	}
	batches := g.load(ctx)
	for _, b := range batches {
		switch c := b.chat; {
		case c.limited: // it waits already, or until it is due
			b.Routd = state
		case c.asked != nil || b.needsRoutd():
			b.Routd, c.limited = state, true
			g.waiting[c] = true
		default:
			delete(g.waiting, c)
		}
	}
	g.finish(ctx, batches)
}

// searchAsked decides the commands among the rows that routd is asked about.
func (g *Gateway) searchAsked(ctx context.Context, q *question) {
	q.searched = true
	batches := slices.DeleteFunc(slices.Clone(q.batches), func(b *batch) bool { return b.stale || !b.acts() })
	for _, b := range batches {
		b.Routd = decide.RoutdSlow
	}
	g.finish(ctx, batches)
}

// resolve asks routd about all rows in one question. Chats without a row to ask
// about are decided at once.
func (g *Gateway) resolve(ctx context.Context, batches []*batch) {
	q := &question{}
	var ready []*batch
	for _, b := range batches {
		switch {
		case b.chat.limited: // an earlier row waits for routd
			b.Routd = decide.RoutdSlow
			ready = append(ready, b)
		case b.needsRoutd():
			q.add(b)
		default:
			ready = append(ready, b)
		}
	}
	g.ask(ctx, q)
	g.finish(ctx, ready)
}

// answered takes routd's answer to the question that is out.
func (g *Gateway) answered(ctx context.Context, q *question) {
	g.asking = nil
	failpoint.At(failpoint.Resolved)
	g.logResolved(q)
	g.meter.answered(q)
	if q.outcome == askedDone {
		g.versionAt = q.asked
		g.noticeRoutes(q.version)
	}
	q.release()
	switch q.outcome {
	case askedDone:
		g.takeAnswers(ctx, q)
	case askedTooMuch:
		g.askAgain(q)
	case askedAway:
		for _, b := range q.batches {
			b.chat.unlimit()
			g.enqueue(b.chat)
		}
	}
	if g.asking == nil { // without routd too: commands that waited for a slow one are answered now
		g.endWaiting()
	}
}

// takeAnswers decides the chats of a question. A chat with rows that name their group
// or topic is asked about a second time, with these names: what a row claims counts
// for the rows after it.
func (g *Gateway) takeAnswers(ctx context.Context, q *question) {
	again := &question{second: true}
	var ready []*batch
	for _, b := range q.batches {
		b.chat.alone, b.chat.timeouts = false, 0
		switch {
		case b.stale: // its rows have changed since
			g.enqueue(b.chat)
		case !q.second && g.findPrefixes(ctx, b):
			again.add(b)
		default:
			ready = append(ready, b)
		}
	}
	g.ask(ctx, again)
	g.finish(ctx, ready)
}

// askAgain puts the chats of a question that timed out back on the list. The next
// question is smaller; a row that was asked about alone waits longer each time.
func (g *Gateway) askAgain(q *question) {
	for _, b := range q.batches {
		c := b.chat
		if len(q.batches) > 1 || len(b.Rows) > 1 {
			g.enqueue(c)
			continue
		}
		c.alone, c.limited = true, true
		c.timeouts++
		c.state.Due = g.now() + min(g.cfg.Poll<<min(c.timeouts, 10), maxAskDelay).Milliseconds()
		g.due.put(c)
		g.log.Error("routd does not answer about a row in time; it waits, with the rows after it in its chat",
			"row", q.items[0].ID, "chat", c.jid, "count", c.timeouts)
	}
}

func (g *Gateway) decide(ctx context.Context, batches []*batch) []*plan {
	plans := make([]*plan, 0, len(batches))
	for _, b := range batches {
		p := &plan{g: g, batch: b}
		if p.err = b.err; p.err == nil {
			p.err = g.complete(ctx, b)
		}
		if p.err == nil {
			p.next, p.effects = decide.Step(b.state, &b.Facts)
			g.reserve(p)
			g.noteParked(p)
		}
		plans = append(plans, p)
	}
	return plans
}

// commit stores every plan as a write of its own, all in one commit.
func (g *Gateway) commit(ctx context.Context, plans []*plan) {
	writes := make([]func(*store.Tx) error, 0, len(plans))
	var writing []*plan
	for _, p := range plans {
		if p.err == nil && p.stores() {
			writing = append(writing, p)
			writes = append(writes, p.write)
		}
	}
	if len(writing) == 0 {
		return
	}
	errs := g.st.WriteAll(ctx, writes...)
	for i, p := range writing {
		p.err = errs[i]
	}
}

// dispatch acts on what was stored and keeps each chat's state.
func (g *Gateway) dispatch(ctx context.Context, plans []*plan) {
	for _, p := range plans {
		g.settleCharges(p)
		if p.err != nil {
			g.retry(ctx, p)
			continue
		}
		if p.stores() {
			_ = g.writes.Note(ctx, nil)
		}
		if c := p.batch.chat; p.decides(c.failed) {
			c.failed, c.failures = 0, 0
		}
		g.afterCommit(ctx, p)
		if p.batch.Routd == decide.RoutdAnswers {
			g.keep(p)
		} else {
			g.keepWaiting(p)
		}
	}
}

// keep stores the chat's state for its next pass, or forgets a chat that waits for nothing.
func (g *Gateway) keep(p *plan) {
	c := p.batch.chat
	g.meter.changed(&c.state, &p.next, g.cfg.Now())
	c.state = p.next
	c.state.Again = false
	g.due.put(c)
	if c.state.Awaits&decide.AwaitsRoute != 0 {
		g.unrouted[c] = true
	} else {
		delete(g.unrouted, c)
	}
	if p.next.Again {
		g.enqueue(c)
	}
	if c.state.Awaits&decide.AwaitsRoutd != 0 && !p.next.Again { // until it is due, only commands are looked for
		c.limited, c.scanned = true, p.batch.Last
		if p.batch.More {
			g.enqueue(c)
		}
	}
	if !c.queued && c.state.Idle() && len(c.skipped) == 0 && c.asked == nil && !g.waiting[c] && !g.unrouted[c] {
		delete(g.chats, c.jid)
	}
}

// keepWaiting keeps the state of a chat of which only commands were decided.
func (g *Gateway) keepWaiting(p *plan) {
	b := p.batch
	c := b.chat
	switch {
	case p.next.Again: // its rows are not what they were: what is on the way about them counts no more
		g.restart(c)
		g.waiting[c] = true
		g.enqueue(c)
	case c.asked == b:
		b.forget(p.effects)
	default:
		c.scanned = max(c.scanned, b.Last)
		if b.More {
			g.enqueue(c)
		}
	}
}
