package decide

import (
	"fmt"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// stale observes a row that was too old on arrival, and notifies the chat once per MAX_AGE.
func (w *step) stale(r *Row) bool {
	a := &r.Answer
	if !r.Old || a.Action != routeapi.Trigger && !w.unconnected(r) {
		return false
	}
	if !w.notice && w.f.Now-w.f.LastStaleAt > w.f.MaxAge {
		w.reply(r, msg.SourceNotice, OfflineNotice)
	}
	w.notice = true
	w.decide(r, msg.Observed, msg.ReasonStale, a.Folder)
	return true
}

// OfflineNotice is the notice for a chat after an outage longer than MAX_AGE.
const OfflineNotice = "I was offline. I have read what was written here in the meantime, but not answered it; " +
	"write again if it still matters."

// botLoop observes the rows of another bot that writes too often.
func (w *step) botLoop(r *Row) bool {
	if r.Answer.Action != routeapi.Trigger || !r.IsBot || r.BotTurns < maxBotTurns {
		return false
	}
	w.decide(r, msg.Observed, msg.ReasonBotLoop, r.Answer.Folder)
	return true
}

// prefix puts a row derived from this one into a turn of the group or topic that it names.
func (w *step) prefix(r *Row) bool {
	p := r.Prefix
	if p == nil || r.Answer.Action != routeapi.Trigger {
		return false
	}
	e := w.entry(r, p.Reason)
	own := r.Topic
	if p.Topic != "" {
		own = p.Topic
		e.turn.Topic, e.turn.Place = w.topicOf(r, p.Folder, own), msg.Place(r.ThreadID, own)
		if r.Answer.OpensThread {
			w.openThread(e, r.Answer.ThreadID)
		}
	}
	e.turn.Folder = p.Folder
	if w.overRate(e) {
		return true
	}
	e.derive = Derive{Text: p.Rest, Topic: own, Source: msg.SourcePrefix}
	w.decide(r, msg.Prefix, p.Reason, p.Folder)
	w.turns.add(e)
	return true
}

// route acts on routd's answer.
func (w *step) route(r *Row) {
	a := &r.Answer
	switch {
	case a.Action == routeapi.Trigger:
		if e := w.entry(r, a.Reason); !w.overRate(e) {
			w.turns.add(e)
		}
	case a.Action == routeapi.Observe:
		w.decide(r, msg.Observed, msg.ReasonRouteObserve, a.Folder)
	case a.Target == "builtin:ping":
		w.decide(r, msg.Command, msg.ReasonBuiltinPing, "")
		w.reply(r, msg.SourceCommand, "pong")
	case a.Action == routeapi.Builtin:
		w.ignore(r)
	case w.unconnected(r):
		w.request(r)
	case a.Action == routeapi.Daemon && a.Target != routeapi.Onboarding:
		w.calls = append(w.calls, r.ID)
		w.add(AskService{Row: r.ID, Service: a.Target, RouteID: a.RouteID})
	case a.Reason == msg.ReasonNoGroup:
		w.decide(r, msg.Dropped, msg.ReasonNoGroup, "")
	default:
		w.decide(r, msg.Dropped, msg.ReasonNoRoute, "")
	}
}

// ignore drops a row as its route says.
func (w *step) ignore(r *Row) {
	w.drop(r, msg.ReasonBuiltinDrop, fmt.Sprintf("route %d leads to builtin:drop", r.Answer.RouteID))
}

// releaseWeightless routes rows of weight 0, such as reactions: together they
// fire one turn at most, and only where a route or an engaged group triggers.
func (w *step) releaseWeightless(rows []*Row) {
	fires := func(r *Row) bool {
		return r.Answer.Action == routeapi.Trigger && (r.Answer.Reason == msg.ReasonRoute || r.Answer.Engaged)
	}
	var newest *Row
	if !w.f.More {
		for _, r := range rows {
			if fires(r) {
				newest = r
			}
		}
	}
	for i, r := range rows {
		switch {
		case r.Answer.Action != routeapi.Trigger:
			w.leave(r)
		case !fires(r):
			w.decide(r, msg.Observed, msg.ReasonReactionOnly, r.Answer.Folder)
		case newest != nil && r.ThreadID == newest.ThreadID && r.Answer.Folder == newest.Answer.Folder &&
			len(rows)-i <= msg.MaxTurnRows:
			w.leave(r)
		default:
			w.decide(r, msg.Observed, msg.ReasonReactionOverflow, r.Answer.Folder)
		}
	}
	w.turns.claimNothing()
}
