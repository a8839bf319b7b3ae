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
		w.turns.add(&entry{
			row: r, reason: msg.ReasonAnswer, folder: from.Folder, topic: from.Topic, threadID: from.ThreadID,
			place: from.Place, surface: from.Surface, ceiling: from.Ceiling, kind: msg.Conversation,
			chatJID: from.ChatJID, replyTo: from.ReplyTo, depth: from.Depth, root: from.RootTurnID,
			called: from.Claims, claims: from.Claims,
		})
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
	from := r.ForwardedFrom
	e := &entry{
		row: r, reason: msg.ReasonDelegated, folder: msg.AddressedFolder(r.ChatJID), kind: msg.Delegated,
		topic: msg.DelegatedTopic(r.ID), chatJID: from.ChatJID, threadID: from.ThreadID, place: from.Place,
		replyTo: from.ReplyTo, surface: from.Surface, ceiling: from.Ceiling, called: from.Claims, claims: from.Claims,
		depth: from.Depth, root: from.RootTurnID,
	}
	if from.Kind == msg.Escalation {
		surface := msg.SurfaceOf(r.ChatJID, msg.ChatInternal, "")
		e.chatJID, e.threadID, e.place, e.replyTo, e.called, e.claims = r.ChatJID, "", "", "", false, false
		e.surface, e.ceiling = surface.Name, surface.Ceiling
	}
	return e
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
			if e.kind == msg.Delegated && e.root == root {
				n++
			}
		}
	}
	return n
}
