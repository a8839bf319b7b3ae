package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"arizuko/gated/internal/layers"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// pass takes the undecided rows of some chats through steps 3 to 7 of "What
// happens to a message" in gated's README. A test keeps names and numbers the
// same.
func (g *Gateway) pass(ctx context.Context) {
	batches := g.load(ctx)          // 3. read the undecided rows
	g.resolve(ctx, batches)         // 4. ask routd where they go
	plans := g.decide(ctx, batches) // 5. gate and layers, row by row
	g.commit(ctx, plans)            // 6. store every decision
	g.dispatch(ctx, plans)          // 7. hand turns to agents
}

// batch is what a pass has read of one chat.
type batch struct {
	chat *chat
	info *msg.Chat
	row  bool // info is the stored row, not a default
	rows []*row
	last int64 // the last row read, 0 for none
	more bool  // further rows follow
}

// row is an undecided row with what the pass knows about it.
type row struct {
	*msg.Message
	command *layers.Command
	change  *change       // of an edit or delete
	prefix  *prefixTarget // of a row that names its group or topic
	post    string        // platform id of the post it is about, "" if there is none
	old     bool          // it was older than MAX_AGE on arrival
	answer  routeapi.Answer
	known   bool // answer is set
}

// verb is what routes match: an edit that addresses the bot where the original
// did not counts as a mention.
func (r *row) verb() string {
	if r.change != nil && r.change.fires {
		return msg.VerbMention
	}
	return r.Verb
}

// isText reports whether a user or bot wrote the row as a message to the chat.
func (r *row) isText() bool {
	return (r.Verb == msg.VerbMessage || r.Verb == msg.VerbMention || r.Verb == msg.VerbReply) && r.ForwardedFrom == nil
}

// load reads the next chats of the list, as many as make a pass.
func (g *Gateway) load(ctx context.Context) []*batch {
	var batches []*batch
	rows, bytes := 0, 0
	for len(g.dirty) > 0 && len(batches) < passChats && rows < passRows && bytes < passBytes {
		c := g.dirty[0]
		g.dirty = g.dirty[1:]
		c.queued = false
		b, err := g.loadChat(ctx, c)
		if err != nil {
			if ctx.Err() == nil {
				g.log.Error("reading chat failed; retrying", "chat", c.jid, "err", err)
			}
			c.due = g.now() + dbRetryDelay.Milliseconds()
			continue
		}
		batches = append(batches, b)
		g.logLoaded(b)
		failpoint.At(failpoint.Read)
		rows += len(b.rows)
		for _, r := range b.rows {
			bytes += len(r.Content)
		}
	}
	return batches
}

func (g *Gateway) loadChat(ctx context.Context, c *chat) (*batch, error) {
	info, err := g.st.Chat(ctx, c.jid)
	if err != nil {
		return nil, err
	}
	b := &batch{chat: c, info: info, row: info != nil}
	if info == nil {
		b.info = &msg.Chat{JID: c.jid, Kind: msg.KindOfJID(c.jid)}
	}
	rows, err := g.st.Undecided(ctx, c.jid, max(c.gate.throughID, c.scannedThrough), pageRows+1)
	if err != nil {
		return nil, err
	}
	b.more = len(rows) > pageRows || cut(rows)
	for _, m := range rows[:min(len(rows), pageRows)] {
		if c.failures > 0 && len(b.rows) == 1 { // one at a time finds the row that cannot be stored
			b.more = true
			break
		}
		if b.last = m.ID; c.skipped[m.ID] {
			continue
		}
		r := &row{Message: m, old: m.ReceivedAt-m.Timestamp > g.cfg.MaxAge.Milliseconds()}
		if r.isText() && !r.IsBot {
			platform, _ := msg.SplitJID(m.ChatJID)
			if cmd, ok := layers.ParseCommand(m.Content, platform, func(name string) bool { return g.isOwnName(r, name) }); ok {
				r.command = &cmd
			}
		}
		if r.Verb == msg.VerbEdit || r.Verb == msg.VerbDelete {
			if r.change, err = g.findChange(ctx, r); err != nil {
				return nil, err
			}
		}
		if r.post, err = g.post(ctx, r); err != nil {
			return nil, err
		}
		b.rows = append(b.rows, r)
	}
	return b, nil
}

// post returns the platform id of the post that a row is, acts on, or was derived from.
func (g *Gateway) post(ctx context.Context, r *row) (id string, err error) {
	switch {
	case r.Verb == msg.VerbReaction, r.change != nil:
		return r.TargetID, nil
	case r.PlatformID == "" && r.DerivedFrom != 0:
		original, err := g.st.Message(ctx, r.DerivedFrom)
		if original == nil {
			return "", err
		}
		return original.PlatformID, err
	}
	return r.PlatformID, nil
}

// cut reports whether the store ended a page for its size.
func cut(rows []*msg.Message) bool {
	size := 0
	for _, m := range rows {
		size += len(m.Content)
	}
	return size >= store.PageBytes
}

// isOwnName reports whether a command's @name is our bot. A row by which the
// adapter found the bot mentioned always is.
func (g *Gateway) isOwnName(r *row, name string) bool {
	return r.Verb == msg.VerbMention ||
		slices.ContainsFunc(g.cfg.BotNames, func(our string) bool { return strings.EqualFold(our, name) })
}

// resolve asks routd about all rows in one call. A chat with rows that name their
// group or topic is asked about a second time, with these names: what a row claims
// counts for the rows after it.
func (g *Gateway) resolve(ctx context.Context, batches []*batch) {
	g.ask(ctx, batches, func(b *batch, r *row) *routeapi.Item {
		if r.ForwardedFrom != nil { // it carries its address
			r.answer, r.known = g.forwardedAnswer(ctx, r), true
		}
		return question(b, r)
	})
	named := slices.DeleteFunc(slices.Clone(batches), func(b *batch) bool { return !g.findPrefixes(ctx, b) })
	g.ask(ctx, named, question)
}

// findPrefixes notes which rows name their group or topic, and reports whether any does.
func (g *Gateway) findPrefixes(ctx context.Context, b *batch) (found bool) {
	for _, r := range b.rows {
		if r.known && r.answer.Error == "" && r.answer.Reason != msg.ReasonBuiltinDrop {
			r.prefix = g.findPrefix(ctx, r)
			found = found || r.prefix != nil
		}
	}
	return found
}

// question is the question to routd about a row, nil for none.
func question(b *batch, r *row) *routeapi.Item {
	if r.ForwardedFrom != nil || r.change != nil && !r.change.fires {
		return nil
	}
	it := item(r, b.info)
	if r.prefix != nil {
		it.Folder, it.Topic = r.prefix.folder, cmp.Or(r.prefix.topic, it.Topic)
	}
	return &it
}

func (g *Gateway) ask(ctx context.Context, batches []*batch, about func(*batch, *row) *routeapi.Item) {
	var items []routeapi.Item
	var rows []*row
	for _, b := range batches {
		for _, r := range b.rows {
			if it := about(b, r); it != nil {
				items, rows = append(items, *it), append(rows, r)
			}
		}
	}
	if len(items) == 0 {
		return
	}
	resolved := g.logResolved(len(items))
	answers, up := g.resolver.resolve(ctx, items)
	resolved(up)
	failpoint.At(failpoint.Resolved)
	for i, r := range rows {
		r.answer, r.known = answers[r.ID]
		if !r.known && !up {
			r.answer, r.known = local(items[i], g.registered(ctx), g.cfg.Impulse)
		}
	}
}

// registered returns a function that reports whether a folder is a group's. A
// database error counts as yes: what follows fails too, and is retried.
func (g *Gateway) registered(ctx context.Context) func(folder string) bool {
	return func(folder string) bool {
		if msg.ValidFolder(folder) != nil {
			return false // whatever a table says, it is not the name of a folder
		}
		group, err := g.st.Group(ctx, folder)
		return err != nil || group != nil
	}
}

func (g *Gateway) decide(ctx context.Context, batches []*batch) []*plan {
	plans := make([]*plan, 0, len(batches))
	g.noticeRoutes()
	for _, b := range batches {
		if !b.chat.queued { // else older rows of the chat come first
			plans = append(plans, g.decideChat(ctx, b))
		}
	}
	return plans
}

// decideChat decides one chat's rows. A panic fails the pass of this chat and, if
// repeated, drops the row; the daemon keeps running.
func (g *Gateway) decideChat(ctx context.Context, b *batch) (p *plan) {
	d := &decider{g: g, batch: b, now: g.now(), gate: b.chat.gate, plan: &plan{chat: b.chat}}
	if b.chat.scannedThrough != 0 {
		d.blocked, d.awaitsFiles, d.awaitsRoutd, d.due = true, b.chat.awaitsFiles, b.chat.awaitsRoutd, b.chat.due
	}
	defer func() {
		if cause := recover(); cause != nil {
			g.log.Error("panic while deciding message", "chat", b.chat.jid, "panic", cause, "stack", string(debug.Stack()))
			p = d.plan
			p.err = fmt.Errorf("%w: %v", errPanic, cause)
		}
	}()
	d.run(ctx)
	g.logHeld(d)
	return d.plan
}

// commit stores every plan as a write of its own, all in one commit, with the
// cursor.
func (g *Gateway) commit(ctx context.Context, plans []*plan) {
	writes := make([]func(*store.Tx) error, 0, len(plans)+1)
	var writing []*plan
	for _, p := range plans {
		if p.err != nil {
			p.undo()
		} else if len(p.steps) > 0 {
			writing = append(writing, p)
			writes = append(writes, p.write)
		}
	}
	if len(writing) == 0 {
		return
	}
	cursor := g.cursor
	writes = append(writes, func(tx *store.Tx) error { return tx.SetCursor(cursor) })
	errs := g.st.WriteAll(ctx, writes...)
	for i, p := range writing {
		if p.err = errs[i]; p.err != nil {
			p.undo()
		}
	}
}

// dispatch hands stored turns to the agents and keeps each chat's state.
func (g *Gateway) dispatch(ctx context.Context, plans []*plan) {
	for _, p := range plans {
		if p.err != nil {
			g.retry(ctx, p)
			continue
		}
		p.chat.failures = 0
		for _, after := range p.after {
			after()
		}
		for i := range p.counts {
			d := &p.counts[i]
			g.logDecided(p.chat.jid, d)
			g.decided.WithLabelValues(string(d.Disposition), string(d.Reason)).Inc()
		}
		g.keep(p)
	}
}

// keep stores the chat's state for its next pass, or forgets a chat that waits for nothing.
func (g *Gateway) keep(p *plan) {
	c := p.chat
	c.gate, c.due, c.awaitsFiles, c.awaitsRoutd, c.mustRelease, c.scannedThrough = p.gate, p.due, p.awaitsFiles, p.awaitsRoutd, p.mustRelease, p.scannedThrough
	c.unrouted = c.unrouted || p.unrouted
	if p.requeue {
		g.enqueue(c)
	}
	if !c.queued && c.due == 0 && c.gate.count == 0 && !c.awaitsFiles && !c.awaitsRoutd && !c.unrouted && len(c.skipped) == 0 {
		delete(g.chats, c.jid)
	}
}

// retry repeats the pass of a chat whose plan was not stored. A busy or full
// database is waited for. A row that cannot be stored for another reason is found
// by taking one row at a time, and dropped after maxRowFailures.
func (g *Gateway) retry(ctx context.Context, p *plan) {
	c := p.chat
	c.gate, c.mustRelease, c.scannedThrough = impulseGate{}, false, 0
	if errors.Is(p.err, store.ErrStale) && c.failures == 0 {
		c.failures++
		g.enqueue(c)
		return
	}
	c.due = g.now() + dbRetryDelay.Milliseconds()
	g.log.Error("storing decisions failed; retrying", "chat", c.jid, "err", p.err)
	if !permanent(p.err) {
		return
	}
	if c.failures++; c.failures <= maxRowFailures || p.first == nil {
		return
	}
	err := g.st.Write(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		return tx.Decide(p.first.ID, store.Decision{
			Disposition: msg.Dropped, Reason: msg.ReasonBadRow, Topic: p.first.Topic, ThreadID: p.first.ThreadID,
		}, g.now())
	})
	switch {
	case err == nil:
		g.log.Error("row dropped: its decision cannot be stored", "row", p.first.ID, "chat", c.jid, "err", p.err)
	case !permanent(err):
		return
	default:
		g.log.Error("row skipped until the next start: it can be neither decided nor dropped",
			"row", p.first.ID, "chat", c.jid, "err", errors.Join(p.err, err))
		c.skip(p.first.ID)
	}
	c.failures = 0
}

// permanent reports whether an error comes from the row itself, so that a retry
// cannot succeed.
func permanent(err error) bool {
	return errors.Is(err, errPanic) || errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrStale)
}

// errPanic is a panic while deciding.
var errPanic = errors.New("panic while deciding message")

// maxRowFailures is how often storing a chat's first row may fail, for another
// reason than a busy or full database, before it is dropped.
const maxRowFailures = 4
