package gateway

import (
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// Bounds of what one turn may set in motion among the groups.
const (
	delegationDepth = 8
	delegationFan   = 16
)

// forwarded handles a row that one group sends to another. It has its address
// with it, so none of the layers for people's text apply.
func (j *judgement) forwarded(r *row) {
	from := r.ForwardedFrom
	if !j.leadsBack(from) {
		j.g.log.Error("row dropped: its return address leads nowhere", "row", r.ID, "chat", r.ChatJID, "address", from.JSON())
		j.decide(r, msg.Dropped, msg.ReasonBadRow, "", j.now)
		return
	}
	if from.Kind == msg.Answer {
		j.turns.add(&entry{
			row: r, reason: msg.ReasonAnswer, folder: from.Folder, topic: from.Topic, threadID: from.ThreadID,
			place: from.Place, surface: from.Surface, ceiling: from.Ceiling, kind: msg.Conversation,
			chatJID: r.ChatJID, replyTo: from.ReplyTo, depth: from.Depth, root: from.RootTurnID, claims: from.Claims,
		})
		return
	}
	if r.answer.Reason == msg.ReasonNoGroup {
		j.decide(r, msg.Dropped, msg.ReasonNoGroup, "", j.now)
		return
	}
	fan, err := j.g.st.CountDelegations(from.RootTurnID)
	j.check(err)
	if from.Depth > delegationDepth || fan+j.delegated(from.RootTurnID) >= delegationFan {
		j.decide(r, msg.Dropped, msg.ReasonFanOut, "", j.now)
		return
	}
	e := &entry{
		row: r, reason: msg.ReasonDelegated, folder: msg.AddressedFolder(r.ChatJID), kind: msg.Delegated,
		topic: msg.DelegatedTopic(r.ID), chatJID: from.ChatJID, threadID: from.ThreadID, place: from.Place,
		replyTo: from.ReplyTo, surface: from.Surface, ceiling: from.Ceiling, claims: from.Claims,
		depth: from.Depth, root: from.RootTurnID,
	}
	if from.Kind == msg.Escalation {
		surface := msg.SurfaceOf(r.ChatJID, msg.ChatInternal, "")
		e.chatJID, e.threadID, e.place, e.replyTo, e.claims = r.ChatJID, "", "", "", false
		e.surface, e.ceiling = surface.Name, surface.Ceiling
	}
	j.turns.add(e)
}

// leadsBack says whether a return address can be answered and belongs to a
// turn: whatever else is in it would only fail when the answer is there.
func (j *judgement) leadsBack(from *msg.ReturnAddress) bool {
	switch from.Kind {
	case msg.Delegation, msg.Escalation:
	case msg.Answer:
		if !j.g.registered(from.Folder) {
			return false
		}
	default:
		return false
	}
	root, err := j.g.st.Turn(from.RootTurnID)
	j.check(err)
	platform, room := msg.SplitJID(from.ChatJID)
	return root != nil && platform != "" && room != "" && from.Depth >= 0
}

// delegated counts the delegations of a root turn that this pass adds.
func (j *judgement) delegated(root int64) (n int) {
	for _, b := range j.turns.all {
		for _, e := range b.entries {
			if e.kind == msg.Delegated && e.root == root {
				n++
			}
		}
	}
	return n
}

// forwardedAnswer is what routd would say of a row between groups. Nobody has
// to be asked: it carries its address.
func (g *Gateway) forwardedAnswer(r *row) routeapi.Answer {
	if from := r.ForwardedFrom; from.Kind == msg.Answer {
		return routeapi.Answer{ID: r.ID, Action: routeapi.Trigger, Folder: from.Folder, Reason: msg.ReasonAnswer, Impulse: g.cfg.Impulse}
	}
	answer, ok := local(routeapi.Item{ID: r.ID, ChatJID: r.ChatJID, Kind: msg.ChatInternal}, g.registered, g.cfg.Impulse)
	if !ok {
		return routeapi.Answer{ID: r.ID, Action: routeapi.None, Reason: msg.ReasonNoGroup, Impulse: g.cfg.Impulse}
	}
	return answer
}
