package decide

import (
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// maxParked is how many rows of a chat wait for its approval; further ones are dropped.
const maxParked = 50

// Request has the facts about the request to connect a chat that has no group.
type Request struct {
	Read      bool         // it was read before routd was asked
	State     RequestState // of the newest request
	Code      string       // of it
	Noted     bool         // an operator has approved a pending one
	DecidedAt int64        // unix ms, 0 for a pending one
	Call      Call
}

// RequestState is the state of a chat's newest request.
type RequestState string

// The states of a request, as they are stored; "" is none.
const (
	RequestPending  RequestState = "pending"
	RequestApproved RequestState = "approved"
	RequestRejected RequestState = "rejected"
	RequestExpired  RequestState = "expired"
)

// Call is the call that asks onbod for a request.
type Call struct {
	State CallState
	Error string // of CallRefused
}

// CallState is how far the call is.
type CallState uint8

// The states of a call to onbod.
const (
	CallNone     CallState = iota
	CallOut                // it has not ended yet
	CallRejected           // onbod opens none: an operator rejected one lately
	CallLimited            // onbod opens none: there were too many lately
	CallRefused            // onbod cannot open one for this chat
)

// unconnected reports whether a row would get an answer if its chat had a group: one
// that calls the bot, any in a direct chat that no route takes, or one whose route says so. Reactions, other bots,
// and users who leave or unblock the bot never do.
func (w *step) unconnected(r *Row) bool {
	a, dm := &r.Answer, w.f.Chat.Kind == msg.ChatDM
	if a.Home != "" && !dm || r.IsBot || msg.Wordless(r.verb(), w.f.Chat.Kind) || w.f.Default.Weight(r.verb()) == 0 {
		return false
	}
	if a.Action == routeapi.Daemon {
		return a.Target == routeapi.Onboarding
	}
	return a.Action == routeapi.None && a.Reason != msg.ReasonNoGroup &&
		(dm || r.Addressed || r.called())
}

// requestUnread ends the step if the chat's request was not read before routd was asked:
// an approval between the two would be missed, and a second request opened.
func (w *step) requestUnread() bool {
	if w.f.Request.Read {
		return false
	}
	w.readsRequest, w.ended = true, true
	return true
}

// request parks a row until its chat is approved. Without a request it waits until onbod
// has opened one.
func (w *step) request(r *Row) {
	if w.requestUnread() {
		return
	}
	q := &w.f.Request
	switch {
	// Until the call has ended, even if its request is in the table by now: the rows before wait for it as well.
	case q.Call.State == CallOut, w.asks:
		w.awaits |= AwaitsRoute
		w.wait(r, ForRequest)
	case q.State == RequestPending && w.f.Parked+w.parked >= maxParked:
		w.decide(r, msg.Dropped, msg.ReasonOnboardingFull, "")
	case q.State == RequestPending:
		w.parked++
		w.decide(r, msg.Onboarding, msg.ReasonAwaitingApproval, "")
	case q.Call.State == CallRejected:
		w.decide(r, msg.Dropped, msg.ReasonRejected, "")
	case q.Call.State == CallLimited:
		w.decide(r, msg.Dropped, msg.ReasonOnboardingLimit, "")
	case q.Call.State == CallRefused:
		w.drop(r, msg.ReasonBadRow, q.Call.Error)
	default:
		w.asks = true
		w.awaits |= AwaitsRoute
		w.add(OpenRequest{Row: r.ID})
	}
}

// decideParked acts on the chat's parked rows, of which Facts.Samples are examples, before
// any newer row is decided. Once the chat has a group for one of them, all are decided
// again, in their order. They are dropped if the request was not approved.
func (w *step) decideParked() (acted bool) {
	if w.f.Routd != RoutdAnswers || len(w.f.Samples) == 0 {
		return false
	}
	connected := false
	for i := range w.f.Samples {
		r := &w.f.Samples[i]
		if !r.Known { // newer rows wait
			w.blocked = ForRoutd
			w.awaits |= AwaitsRoutd
			w.due = w.f.Now + w.f.RetryMS
			return false
		}
		connected = connected || r.Answer.Error == "" && !w.unconnected(r)
	}
	switch state := w.f.Request.State; {
	case !connected && state == RequestPending:
		return false
	case !connected && state == RequestRejected:
		w.add(DropParked{Reason: msg.ReasonRejected})
	case !connected && state == RequestExpired:
		w.add(DropParked{Reason: msg.ReasonExpired})
	default: // connected, or its request or route is gone: they ask again
		w.add(TakeUpParked{})
	}
	return true
}
