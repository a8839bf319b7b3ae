package gateway

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// maxFileWait is how long a row waits for its attachments, in ms.
const maxFileWait = 60_000

// decider decides one chat's rows in a pass: it takes the undecided rows after
// the gate one by one through the layers.
type decider struct {
	*plan
	g     *Gateway
	batch *batch
	now   int64
	gate  impulseGate

	held           []*row // folded into the gate in this pass
	turns          turnBatches
	blocked        bool              // all further rows wait, but for commands and edits
	reload         bool              // a decision changes how the next rows are decided: load them again
	offlineNoticed bool              // this pass has handled the notice that the bot was offline
	bound          map[string]string // thread → the named topic that this pass binds it to
}

// check keeps the first error of a read. A plan with an error is not stored and
// the chat's pass is repeated.
func (d *decider) check(err error) {
	if err != nil && d.err == nil {
		d.err = err
	}
}

// run decides the rows. If the rows held by earlier passes are to be released, it
// requests another pass, which reads all of them again and releases them.
func (d *decider) run(ctx context.Context) {
	c := d.batch.chat
	if len(d.batch.rows) > 0 {
		d.first = d.batch.rows[0]
	}
	nothingHeld := d.gate.count == 0
	if !nothingHeld && d.releases(ctx) {
		d.mustRelease, d.requeue = true, true
		return
	}
	for _, r := range d.batch.rows {
		if d.reload {
			break
		}
		d.decideRow(ctx, r)
	}
	if !d.blocked {
		d.gate.throughID = max(d.gate.throughID, d.batch.last)
	}
	more := d.batch.more && !d.blocked
	switch {
	case d.reload:
		d.requeue = true
	case !nothingHeld && d.gate.due(d.now):
		d.mustRelease, d.requeue = true, true
	case c.mustRelease || d.gate.due(d.now):
		d.release(ctx)
		d.plan.gate, d.mustRelease, d.requeue = d.gate, more, more
		d.scanAhead()
	default:
		d.plan.gate, d.requeue = d.gate, more
		d.wakeAt(d.gate.dueAt())
		d.scanAhead()
	}
	d.storeTurns()
	d.ensureChatRow()
}

// scanAhead makes the next pass look for commands after a page of blocked rows.
func (d *decider) scanAhead() {
	if !d.blocked {
		return
	}
	d.scannedThrough, d.requeue = max(d.batch.chat.scannedThrough, d.batch.last), d.requeue || d.batch.more
}

// releases reports whether a row makes the gate release the rows it holds.
func (d *decider) releases(ctx context.Context) bool {
	for _, r := range d.batch.rows {
		if r.command != nil && r.command.Name == msg.CommandNew {
			return true
		}
		if _, ok := d.pinOf(ctx, r); ok {
			return true
		}
	}
	return false
}

// decideRow decides rows that need not wait, and holds the others in the gate.
func (d *decider) decideRow(ctx context.Context, r *row) {
	switch {
	case r.change != nil && !r.change.fires:
		d.applyChange(r)
	case r.command != nil:
		d.runCommand(ctx, r)
	case d.blocked:
	case d.waitsForFiles(r):
		d.blocked, d.awaitsFiles = true, true
		d.g.logWaits(r, waitsFiles)
		d.wakeAt(r.ReceivedAt + maxFileWait)
	case !r.known:
		d.blocked, d.awaitsRoutd = true, true
		d.g.logWaits(r, waitsRoutd)
		if !d.g.resolver.down.Load() { // routd's answer does not have the row
			d.wakeAt(d.now + d.g.cfg.Poll.Milliseconds())
		}
	case r.answer.Error != "":
		d.g.log.Error("row dropped: routd refused it", "row", r.ID, "chat", r.ChatJID, "err", r.answer.Error)
		d.decide(r, msg.Dropped, msg.ReasonBadRow, "", d.now)
	case d.pin(ctx, r):
	default:
		d.hold(r)
	}
}

// waitsForFiles reports whether a row's attachments are still being downloaded.
// A row with a time in the future does not wait until then.
func (d *decider) waitsForFiles(r *row) bool {
	age := d.now - r.ReceivedAt
	return r.PendingFiles > 0 && age < maxFileWait && age > -maxFileWait
}

func (d *decider) wakeAt(at int64) {
	if at != 0 && (d.due == 0 || at < d.due) {
		d.due = at
	}
}

// hold adds a row to the gate.
func (d *decider) hold(r *row) {
	weight := r.answer.Impulse.Weight(r.verb())
	if (r.answer.Engaged || r.prefix != nil || r.answer.Reason == msg.ReasonToSticky) && d.g.cfg.Impulse.Weight(r.verb()) > 0 {
		weight = msg.FullWeight // such a row always wants an answer
	}
	// An adapter's clock that is ahead of ours must not hold the row for longer.
	d.gate.add(r.ID, min(r.ReceivedAt, d.now), weight, r.answer.Impulse)
	d.held = append(d.held, r)
}

// release routes every held row.
func (d *decider) release(ctx context.Context) {
	rows := d.held
	d.held = nil
	if d.gate.weight == 0 && len(rows) > 0 {
		d.releaseWeightless(ctx, rows)
	} else {
		for _, r := range rows {
			d.route(ctx, r)
		}
	}
	d.gate = empty(d.gate.throughID)
}

// releaseWeightless routes rows of weight 0, such as reactions: together they
// fire one turn at most, and only where a route or an engaged group triggers.
func (d *decider) releaseWeightless(ctx context.Context, rows []*row) {
	fires := func(r *row) bool {
		return r.answer.Action == routeapi.Trigger && (r.answer.Reason == msg.ReasonRoute || r.answer.Engaged)
	}
	var newest *row
	if !d.batch.more {
		for _, r := range rows {
			if fires(r) {
				newest = r
			}
		}
	}
	for i, r := range rows {
		switch {
		case r.answer.Action != routeapi.Trigger:
			d.route(ctx, r)
		case !fires(r):
			d.decide(r, msg.Observed, msg.ReasonReactionOnly, r.answer.Folder, d.now)
		case newest != nil && r.ThreadID == newest.ThreadID && r.answer.Folder == newest.answer.Folder && len(rows)-i <= turnRows:
			d.route(ctx, r)
		default:
			d.decide(r, msg.Observed, msg.ReasonReactionOverflow, r.answer.Folder, d.now)
		}
	}
	d.turns.claimNothing()
}

// route decides a released row.
func (d *decider) route(ctx context.Context, r *row) {
	a := &r.answer
	if r.ForwardedFrom != nil {
		d.forwarded(ctx, r)
		return
	}
	if r.old && (a.Action == routeapi.Trigger || a.Action == routeapi.None && d.waitsForRoute(r)) {
		d.observeStale(ctx, r)
		return
	}
	if a.Action == routeapi.Trigger && r.IsBot && d.botLoop(ctx, r) {
		d.decide(r, msg.Observed, msg.ReasonBotLoop, a.Folder, d.now)
		return
	}
	switch {
	case r.prefix != nil && a.Action == routeapi.Trigger:
		d.derive(ctx, r)
	case a.Action == routeapi.Trigger:
		d.turns.add(d.entry(ctx, r, a.Reason))
	case a.Action == routeapi.Observe:
		d.decide(r, msg.Observed, msg.ReasonRouteObserve, a.Folder, d.now)
	case a.Target == "builtin:ping":
		d.decide(r, msg.Command, msg.ReasonBuiltinPing, "", d.now)
		d.replyTo(r, msg.SourceCommand, "pong", d.now)
	case a.Action == routeapi.Builtin:
		d.decide(r, msg.Dropped, msg.ReasonBuiltinDrop, "", d.now)
	case a.Action == routeapi.Daemon:
		d.deferToDaemon(ctx, r)
	case a.Reason == msg.ReasonNoGroup:
		d.decide(r, msg.Dropped, msg.ReasonNoGroup, "", d.now)
	case d.waitsForRoute(r):
		d.unrouted = true
		d.g.logWaits(r, waitsRoute)
	default:
		d.decide(r, msg.Dropped, msg.ReasonNoRoute, "", d.now)
	}
}

const (
	// botTurns is how many turns of another bot are answered in a chat within botTime, in ms;
	// further rows are observed, since two bots could go on for ever.
	botTurns = 10
	botTime  = 10 * 60_000
)

func (d *decider) botLoop(ctx context.Context, r *row) bool {
	turns, err := d.g.st.BotTurns(ctx, r.ChatJID, r.Sender, r.ReceivedAt-botTime)
	d.check(err)
	return turns >= botTurns
}

// waitsForRoute reports whether a row without a route addresses the bot, so that
// it stays undecided until its chat is connected to a group.
func (d *decider) waitsForRoute(r *row) bool {
	if r.answer.Home != "" || r.verb() == msg.VerbLeave || d.g.cfg.Impulse.Weight(r.verb()) == 0 {
		return false
	}
	return d.batch.info.Kind == msg.ChatDM || r.Addressed || r.verb() == msg.VerbMention || r.verb() == msg.VerbReply
}

// observeStale observes a row that was too old on arrival, and notifies the chat
// once per MAX_AGE.
func (d *decider) observeStale(ctx context.Context, r *row) {
	if !d.offlineNoticed {
		last, err := d.g.st.LastStaleAt(ctx, r.ChatJID)
		d.check(err)
		if d.now-last > d.g.cfg.MaxAge.Milliseconds() {
			d.replyTo(r, msg.SourceNotice, offlineNotice, d.now)
		}
		d.offlineNoticed = true
	}
	d.decide(r, msg.Observed, msg.ReasonStale, r.answer.Folder, d.now)
}

const offlineNotice = "I was offline. I have read what was written here in the meantime, but not answered it; " +
	"write again if it still matters."

// ensureChatRow inserts the chats row of a chat with decided rows.
func (d *decider) ensureChatRow() {
	if len(d.steps) > 0 && !d.batch.row {
		jid, now := d.batch.chat.jid, d.now
		d.steps = append([]func(*store.Tx) error{func(tx *store.Tx) error { return tx.EnsureChat(jid, now) }}, d.steps...)
	}
}

func place(m *msg.Message) string { return msg.Place(m.ThreadID, m.Topic) }
