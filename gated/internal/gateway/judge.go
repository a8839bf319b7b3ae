package gateway

import (
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// filesMost is how long a row waits for its attachments, in ms.
const filesMost = 60_000

// judgement is one chat's part of a pass: the undecided rows behind the gate,
// taken one by one through the layers.
type judgement struct {
	*plan
	g     *Gateway
	batch *batch
	now   int64
	gate  impulseGate

	held    []*row // folded into the gate in this pass
	turns   turnBatches
	blocked bool              // rows from here on wait; commands and edits do not
	barrier bool              // what was decided changes how the next rows are judged
	stale   bool              // the chat has been told that we were offline
	bound   map[string]string // thread → the named topic that this pass binds it to
}

// check notes an error that keeps the chat's plan from being carried out, so
// that the pass over it is repeated.
func (j *judgement) check(err error) {
	if err != nil && j.err == nil {
		j.err = err
	}
}

// run judges the rows. Where rows that earlier passes hold are to be released,
// it asks for another pass over all of them, which releases what it reads.
func (j *judgement) run() {
	c := j.batch.chat
	if len(j.batch.rows) > 0 {
		j.first = j.batch.rows[0]
	}
	whole := j.gate.count == 0
	if !whole && j.releases() {
		j.force, j.again = true, true
		return
	}
	for _, r := range j.batch.rows {
		if j.barrier {
			break
		}
		j.judgeRow(r)
	}
	if !j.blocked {
		j.gate.upto = max(j.gate.upto, j.batch.last)
	}
	more := j.batch.more && !j.blocked
	switch {
	case j.barrier:
		j.again = true
	case !whole && j.gate.due(j.now):
		j.force, j.again = true, true
	case c.force || j.gate.due(j.now):
		j.release()
		j.plan.gate, j.force, j.again = j.gate, more, more
		j.lookBehind()
	default:
		j.plan.gate, j.again = j.gate, more
		j.wakeAt(j.gate.dueAt())
		j.lookBehind()
	}
	j.storeTurns()
	j.known()
}

// lookBehind has the next pass look for commands behind a page of blocked rows.
func (j *judgement) lookBehind() {
	if !j.blocked {
		return
	}
	j.passed, j.again = max(j.batch.chat.passed, j.batch.last), j.again || j.batch.more
}

// releases says whether a row in hand has the gate release what it holds.
func (j *judgement) releases() bool {
	for _, r := range j.batch.rows {
		if r.command != nil && r.command.Name == msg.CommandNew {
			return true
		}
		if _, ok := j.pinOf(r); ok {
			return true
		}
	}
	return false
}

// judgeRow recognises what waits for nothing, and folds the rest into the gate.
func (j *judgement) judgeRow(r *row) {
	switch {
	case r.change != nil && !r.change.fires:
		j.applyChange(r)
	case r.command != nil:
		j.runCommand(r)
	case j.blocked:
	case j.waitsForFiles(r):
		j.blocked, j.files = true, true
		j.wakeAt(r.ReceivedAt + filesMost)
	case !r.known:
		j.blocked, j.routing = true, true
		if !j.g.resolver.down.Load() { // routd left the row out of its answer
			j.wakeAt(j.now + j.g.cfg.Poll.Milliseconds())
		}
	case r.answer.Error != "":
		j.g.log.Error("row dropped: routd cannot judge it", "row", r.ID, "chat", r.ChatJID, "err", r.answer.Error)
		j.decide(r, msg.Dropped, msg.ReasonBadRow, "", j.now)
	case j.pin(r):
	default:
		j.hold(r)
	}
}

// waitsForFiles says whether a row's attachments are still being downloaded. A
// row that claims to be from the future does not wait for it.
func (j *judgement) waitsForFiles(r *row) bool {
	age := j.now - r.ReceivedAt
	return r.PendingFiles > 0 && age < filesMost && age > -filesMost
}

func (j *judgement) wakeAt(at int64) {
	if at != 0 && (j.due == 0 || at < j.due) {
		j.due = at
	}
}

// hold folds a row into the gate.
func (j *judgement) hold(r *row) {
	weight := r.answer.Impulse.Weight(r.verb())
	if (r.answer.Engaged || r.prefix != nil || r.answer.Reason == msg.ReasonToSticky) && j.g.cfg.Impulse.Weight(r.verb()) > 0 {
		weight = msg.FullWeight // it is certain to want an answer
	}
	// A clock that is ahead of ours must not hold the row until ours is there too.
	j.gate.add(r.ID, min(r.ReceivedAt, j.now), weight, r.answer.Impulse)
	j.held = append(j.held, r)
}

// release routes every row held.
func (j *judgement) release() {
	rows := j.held
	j.held = nil
	if j.gate.weight == 0 && len(rows) > 0 {
		j.releaseLight(rows)
	} else {
		for _, r := range rows {
			j.route(r)
		}
	}
	j.gate = empty(j.gate.upto)
}

// releaseLight routes rows that weigh nothing, such as reactions: together
// they fire one turn at most, and only where a route says so.
func (j *judgement) releaseLight(rows []*row) {
	fires := func(r *row) bool {
		return r.answer.Action == routeapi.Trigger && (r.answer.Reason == msg.ReasonRoute || r.answer.Engaged)
	}
	var newest *row
	if !j.batch.more {
		for _, r := range rows {
			if fires(r) {
				newest = r
			}
		}
	}
	for i, r := range rows {
		switch {
		case r.answer.Action != routeapi.Trigger:
			j.route(r)
		case !fires(r):
			j.decide(r, msg.Observed, msg.ReasonReactionOnly, r.answer.Folder, j.now)
		case newest != nil && r.ThreadID == newest.ThreadID && r.answer.Folder == newest.answer.Folder && len(rows)-i <= turnRows:
			j.route(r)
		default:
			j.decide(r, msg.Observed, msg.ReasonReactionOverflow, r.answer.Folder, j.now)
		}
	}
	j.turns.claimNothing()
}

// route gives a released row its disposition.
func (j *judgement) route(r *row) {
	a := &r.answer
	if r.ForwardedFrom != nil {
		j.forwarded(r)
		return
	}
	if r.old && (a.Action == routeapi.Trigger || a.Action == routeapi.None && j.wantsHome(r)) {
		j.tooOld(r)
		return
	}
	if a.Action == routeapi.Trigger && r.IsBot && j.botLoop(r) {
		j.decide(r, msg.Observed, msg.ReasonBotLoop, a.Folder, j.now)
		return
	}
	switch {
	case r.prefix != nil && a.Action == routeapi.Trigger:
		j.derive(r)
	case a.Action == routeapi.Trigger:
		j.turns.add(j.entry(r, a.Reason))
	case a.Action == routeapi.Observe:
		j.decide(r, msg.Observed, msg.ReasonRouteObserve, a.Folder, j.now)
	case a.Target == "builtin:ping":
		j.decide(r, msg.Command, msg.ReasonBuiltinPing, "", j.now)
		j.say(r, msg.SourceCommand, "pong", j.now)
	case a.Action == routeapi.Builtin:
		j.decide(r, msg.Dropped, msg.ReasonBuiltinDrop, "", j.now)
	case a.Action == routeapi.Daemon:
		j.handToDaemon(r)
	case a.Reason == msg.ReasonNoGroup:
		j.decide(r, msg.Dropped, msg.ReasonNoGroup, "", j.now)
	case j.wantsHome(r):
		j.homeless = true
	default:
		j.decide(r, msg.Dropped, msg.ReasonNoRoute, "", j.now)
	}
}

const (
	// botTurns is how often another bot is answered in a chat within botTime, in ms; then it
	// is only heard, since two bots may go on for ever.
	botTurns = 10
	botTime  = 10 * 60_000
)

func (j *judgement) botLoop(r *row) bool {
	turns, err := j.g.st.BotTurns(r.ChatJID, r.Sender, r.ReceivedAt-botTime)
	j.check(err)
	return turns >= botTurns
}

// wantsHome says whether a row that nobody takes is meant for the bot, so that
// it waits until its chat is connected to a group.
func (j *judgement) wantsHome(r *row) bool {
	if r.answer.Home != "" || r.verb() == msg.VerbLeave || j.g.cfg.Impulse.Weight(r.verb()) == 0 {
		return false
	}
	return j.batch.info.Kind == msg.ChatDM || r.Addressed || r.verb() == msg.VerbMention || r.verb() == msg.VerbReply
}

// tooOld observes a row that was old when it came, and tells the chat once in
// MAX_AGE.
func (j *judgement) tooOld(r *row) {
	if !j.stale {
		told, err := j.g.st.LastStale(r.ChatJID)
		j.check(err)
		if j.now-told > j.g.cfg.MaxAge.Milliseconds() {
			j.say(r, msg.SourceNotice, offlineNotice, j.now)
		}
		j.stale = true
	}
	j.decide(r, msg.Observed, msg.ReasonStale, r.answer.Folder, j.now)
}

const offlineNotice = "I was offline. What was written here in the meantime I have read but not answered; " +
	"write again if it still matters."

// known makes sure that a chat with decided rows has its own row.
func (j *judgement) known() {
	if len(j.steps) > 0 && !j.batch.row {
		jid, now := j.batch.chat.jid, j.now
		j.steps = append([]func(*store.Tx) error{func(tx *store.Tx) error { return tx.EnsureChat(jid, now) }}, j.steps...)
	}
}

func place(m *msg.Message) string { return msg.Place(m.ThreadID, m.Topic) }
