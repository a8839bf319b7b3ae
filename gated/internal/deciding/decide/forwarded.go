package decide

import (
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// ReturnAnswer is the answer that routd would give for a row between groups. The row carries
// its address, so routd is not asked. registered says whether its group exists.
func ReturnAnswer(r *Row, registered bool, i msg.Impulse) routeapi.Answer {
	a := routeapi.Answer{ID: r.ID, Action: routeapi.None, Reason: msg.ReasonNoGroup, Impulse: i}
	if from := r.ForwardedFrom; from.Kind == msg.Answer {
		a.Action, a.Folder, a.Reason = routeapi.Trigger, from.Folder, msg.ReasonAnswer
	} else if registered {
		folder := msg.AddressedFolder(r.ChatJID)
		a.Action, a.Folder, a.Home, a.Reason = routeapi.Trigger, folder, folder, msg.ReasonAddress
	}
	return a
}

// forwarded decides a row that one group sends to another. The row has its own
// address, so the other layers do not apply.
func (w *step) forwarded(r *Row) {
	from := r.ForwardedFrom
	switch {
	case from.Kind == msg.Answer:
		e := returning(r, msg.ReasonAnswer)
		e.turn.Kind, e.turn.Folder, e.turn.Topic = msg.Conversation, from.Folder, from.Topic
		w.turns.add(e)
	case r.Answer.Reason == msg.ReasonNoGroup:
		w.decide(r, msg.Dropped, msg.ReasonNoGroup, "")
	case from.Depth > msg.MaxDelegationDepth || r.Return.Fan+w.delegated(from.RootTurnID) >= msg.MaxDelegations:
		w.decide(r, msg.Dropped, msg.ReasonFanOut, "")
	default:
		if e := delegation(r); !w.overRate(e) {
			w.turns.add(e)
		}
	}
}

// delegation is the entry of a delegated or escalated row.
func delegation(r *Row) *entry {
	e := returning(r, msg.ReasonDelegated)
	t := &e.turn
	t.Kind, t.Folder, t.Topic = msg.Delegated, msg.AddressedFolder(r.ChatJID), msg.DelegatedTopic(r.ID)
	if r.ForwardedFrom.Kind == msg.Escalation { // whose answer is for the group that asks
		surface := msg.SurfaceOf(r.ChatJID, msg.ChatInternal, "")
		t.ChatJID, t.ThreadID, t.Place, t.ReplyTo = r.ChatJID, "", "", ""
		e.called, t.ClaimsEngagement = false, false
		t.Surface, t.Ceiling = surface.Name, surface.Ceiling
	}
	return e
}

// returning is an entry whose answer goes to the return address of its row.
func returning(r *Row, reason msg.Reason) *entry {
	from := r.ForwardedFrom
	return &entry{row: r, reason: reason, called: from.Claims, turn: msg.Turn{
		ChatJID: from.ChatJID, ThreadID: from.ThreadID, Place: from.Place, ReplyTo: from.ReplyTo, Surface: from.Surface,
		Ceiling: from.Ceiling, Depth: from.Depth, RootTurnID: from.RootTurnID, ClaimsEngagement: from.Claims,
	}}
}

// SetReturn sets the facts about the return address of a row that an agent wrote. The row is broken if that cannot be
// answered or belongs to no turn: else the error would appear only when the answer is stored.
func (r *Row) SetReturn(read *Return) {
	r.Return = read
	switch {
	case !validReturn(r):
		r.Break("invalid return address: " + r.ForwardedFrom.JSON())
	case r.elsewhere():
		r.noCommand()
	}
}

func validReturn(r *Row) bool {
	from := r.ForwardedFrom
	switch from.Kind {
	case msg.Injection:
		return r.Return.RootExists && from.Depth >= 0 && from.Depth <= msg.MaxDelegationDepth
	case msg.Delegation, msg.Escalation:
	case msg.Answer:
		if !r.Return.Registered {
			return false
		}
	default:
		return false
	}
	platform, room := msg.SplitJID(from.ChatJID)
	return r.Return.RootExists && platform != "" && room != "" && from.Depth >= 0
}

// delegated counts the delegations of a root turn that this step adds.
func (w *step) delegated(root int64) (n int) {
	for _, b := range w.turns.all {
		for _, e := range b.entries {
			if e.turn.Kind == msg.Delegated && e.turn.RootTurnID == root {
				n++
			}
		}
	}
	return n
}
