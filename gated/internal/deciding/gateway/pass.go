package gateway

import (
	"context"
	"slices"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// pass and finish take the undecided rows of some chats through steps 3 to 7 of
// "The walk of one message" in docs/architecture.md. A test keeps names and numbers
// the same. Between them routd answers, without the loop waiting for it.
func (g *Gateway) pass(ctx context.Context) {
	if g.routd.busy() {
		g.passCommands(ctx)
		return
	}
	batches := g.load(ctx)  // 3. read the undecided rows
	g.resolve(ctx, batches) // 4. ask routd where they go
}

// finish takes the last steps once routd has answered.
func (g *Gateway) finish(ctx context.Context, batches []*batch) {
	plans := g.decide(ctx, batches) // 5. decide each row
	g.commit(ctx, plans)            // 6. store every decision
	g.dispatch(ctx, plans)          // 7. hand turns to agents
}

// passCommands decides rows that need no answer of routd: commands, edits and rows
// between groups. All other rows wait, with their chats.
func (g *Gateway) passCommands(ctx context.Context) {
	if l := g.routd.out; l != nil && !l.searched {
		g.searchAsked(ctx, l)
		return
	}
	state := decide.RoutdSlow
	if g.routd.away() {
		state = decide.RoutdAway
	}
	batches := g.load(ctx)
	for _, b := range batches {
		switch c := b.chat; {
		case c.limited: // it waits already, or until it is due
			b.Routd = state
		case c.asked != nil || b.needsRoutd():
			b.Routd, c.limited = state, true
			g.waits.routd[c] = true
		default:
			delete(g.waits.routd, c)
		}
	}
	g.finish(ctx, batches)
}

// searchAsked decides the commands among the rows that routd is asked about.
func (g *Gateway) searchAsked(ctx context.Context, l *lookup) {
	l.searched = true
	batches := slices.DeleteFunc(slices.Clone(l.batches), func(b *batch) bool { return b.stale || !b.acts() })
	for _, b := range batches {
		b.Routd = decide.RoutdSlow
	}
	g.finish(ctx, batches)
}

// resolve asks routd about all rows at once. Chats without a row to ask
// about are decided at once.
func (g *Gateway) resolve(ctx context.Context, batches []*batch) {
	l := &lookup{}
	var ready []*batch
	for _, b := range batches {
		switch {
		case b.chat.limited: // an earlier row waits for routd
			b.Routd = decide.RoutdSlow
			ready = append(ready, b)
		case b.needsRoutd():
			l.add(b)
		default:
			ready = append(ready, b)
		}
	}
	g.routd.ask(ctx, l)
	g.finish(ctx, ready)
}

// answered takes routd's answer to the lookup that is out.
func (g *Gateway) answered(ctx context.Context, l *lookup) {
	wasAway := g.routd.away()
	g.routd.end(ctx, l)
	failpoint.At(failpoint.Resolved)
	g.log.resolved(l)
	g.meter.asked(l)
	if l.outcome == askedDone {
		g.routd.versionAt = l.asked
		g.noticeRoutes(l.version)
	}
	l.release()
	switch l.outcome {
	case askedDone:
		g.takeAnswers(ctx, l)
	case askedTooMuch:
		g.askAgain(l)
	case askedAway:
		for _, b := range l.batches {
			b.chat.unlimit()
			g.waits.add(b.chat)
		}
	}
	if probed := wasAway && g.routd.away(); g.routd.out == nil && !probed {
		g.waits.endRoutd() // without routd too: commands that waited for a slow one are answered now
	}
}

// takeAnswers decides the chats of a lookup. A chat with rows that name their group
// or topic is asked about a second time, with these names: the claim of a row counts
// for the rows after it.
func (g *Gateway) takeAnswers(ctx context.Context, l *lookup) {
	again := &lookup{second: true}
	var ready []*batch
	for _, b := range l.batches {
		b.chat.timeouts = 0
		switch {
		case b.stale: // its rows have changed since
			g.waits.add(b.chat)
		case !l.second && g.reader.findPrefixes(ctx, b):
			again.add(b)
		default:
			ready = append(ready, b)
		}
	}
	g.routd.ask(ctx, again)
	g.finish(ctx, ready)
}

// askAgain puts the chats of a lookup that timed out back on the list. The next
// lookup is smaller; a row that was asked about alone waits longer each time.
func (g *Gateway) askAgain(l *lookup) {
	for _, b := range l.batches {
		c := b.chat
		if len(l.batches) > 1 || len(b.Rows) > 1 {
			g.waits.add(c)
			continue
		}
		c.limited = true
		c.timeouts++
		g.waits.addAt(c, g.now()+min(g.cfg.Poll<<min(c.timeouts, 10), maxAskDelay).Milliseconds())
		g.log.Error("routd does not answer about a row in time; it waits, with the rows after it in its chat",
			"row", l.items[0].ID, "chat", c.jid, "count", c.timeouts)
	}
}

func (g *Gateway) decide(ctx context.Context, batches []*batch) []*plan {
	g.rates.refresh(ctx, batches, g.now())
	plans := make([]*plan, 0, len(batches))
	for _, b := range batches {
		p := &plan{cfg: &g.cfg, batch: b}
		if p.err = b.err; p.err == nil {
			p.err = g.reader.complete(ctx, b)
		}
		if p.err == nil {
			p.next, p.effects = decide.Step(b.state, &b.Facts)
			g.rates.expect(p)
			g.outside.note(b.Chat.JID, p.effects)
		}
		plans = append(plans, p)
	}
	return plans
}

// commit stores every plan as a write of its own, all in one commit of a file.
func (g *Gateway) commit(ctx context.Context, plans []*plan) {
	var writing []*plan
	for _, p := range plans {
		if p.err == nil && p.stores() {
			writing = append(writing, p)
		}
	}
	if len(writing) == 0 {
		return
	}
	changes := make([]store.Change, len(writing))
	g.st.AllAtOnce(len(writing), func(i int) {
		changes[i] = store.Change{Scope: g.scope(ctx, writing[i]), Write: writing[i].write}
	})
	errs := g.st.WriteEach(ctx, changes...)
	for i, p := range writing {
		p.err = errs[i]
	}
}

// dispatch acts on stored effects and keeps each chat's state.
func (g *Gateway) dispatch(ctx context.Context, plans []*plan) {
	g.rates.settle(plans)
	for _, p := range plans {
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
			g.waits.keep(p.batch, p.next, g.cfg.Now())
		} else {
			g.waits.keepLimited(p.batch, p.next, p.effects)
		}
	}
}

// load reads the next chats of the list, as many as make a pass: as many rows as
// routd can be asked about at once.
func (g *Gateway) load(ctx context.Context) []*batch {
	var batches []*batch
	limit := ingestRows
	if !g.routd.busy() {
		limit = g.routd.limit
	}
	list, bytes := 0, 0
	if g.reads.Note(ctx, g.outside.follow(ctx)) != nil {
		pause(ctx, dbRetryDelay)
		return nil
	}
	for len(batches) < passChats && list < limit && bytes < passBytes {
		some := g.readSome(ctx, len(batches) > 0, min(pageRows, limit))
		for i, r := range some {
			if err := g.reads.Note(ctx, r.err); err != nil {
				g.waits.addAt(r.chat, g.now()+dbRetryDelay.Milliseconds())
				continue
			}
			size := len(r.Rows) + len(r.Samples)
			if len(batches) > 0 && list+size > limit {
				for _, left := range slices.Backward(some[i:]) {
					g.waits.putBack(left.chat)
				}
				return batches
			}
			batches = append(batches, r.batch)
			g.log.loaded(r.batch)
			failpoint.At(failpoint.Read)
			list, bytes = list+size, bytes+r.bytes
		}
		if len(some) == 0 {
			break
		}
	}
	return batches
}

// loaded is a batch that was read, or could not be.
type loaded struct {
	*batch
	chat *chat
	err  error
}

// readSome reads the next chats of the list, as many as the database answers at once. others says whether the pass has
// some already.
func (g *Gateway) readSome(ctx context.Context, others bool, page int) (some []loaded) {
	for len(some) < g.st.AtOnce() {
		c := g.waits.pop(others || len(some) > 0)
		if c == nil {
			break
		}
		some = append(some, loaded{chat: c})
	}
	g.st.AllAtOnce(len(some), func(i int) { some[i].batch, some[i].err = g.reader.chat(ctx, some[i].chat, page) })
	for i := range some {
		if some[i].err == nil {
			some[i].err = g.reader.loadRequest(ctx, some[i].batch)
		}
	}
	return some
}

// scope is what a plan touches, nil if that is not known before.
func (g *Gateway) scope(ctx context.Context, p *plan) store.Scope {
	scope := store.Scope{p.batch.Chat.JID}
	for _, e := range p.effects {
		switch e := e.(type) {
		case decide.Hold, decide.Wait, decide.AskService, decide.OpenRequest, decide.Reply:
		case decide.EnsureChat:
			scope = append(scope, e.Chat)
		case decide.BindThread:
			scope = append(scope, e.Chat)
		case decide.Decide:
			if e.RoutedTo != "" {
				scope = append(scope, e.RoutedTo)
			}
		case decide.StoreTurn:
			if e.Turn.Kind != msg.Conversation {
				return nil
			}
			owner := int64(0)
			if g.st.AtOnce() > 1 { // on a file there is one process
				owner, _ = rows.IdleOwner(ctx, g.st.Reader, &e.Turn) // without it, the turn waits for its run's process
			}
			scope = append(scope, e.Turn.ChatJID, e.Turn.Folder, store.Shared(rows.SlotsOf(owner)))
		default:
			return nil
		}
	}
	return scope
}
