package gateway

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// Limits of the delegations of one root turn.
const (
	delegationDepth = 8
	delegationFan   = 16
)

// forwarded decides a row that one group sends to another. The row has its own
// address, so the layers do not apply.
func (d *decider) forwarded(ctx context.Context, r *row) {
	from := r.ForwardedFrom
	if !d.validReturnAddress(ctx, from) {
		d.g.log.Error("row dropped: invalid return address", "row", r.ID, "chat", r.ChatJID, "return_to", from.JSON())
		d.decide(r, msg.Dropped, msg.ReasonBadRow, "", d.now)
		return
	}
	if from.Kind == msg.Answer {
		d.turns.add(&entry{
			row: r, reason: msg.ReasonAnswer, folder: from.Folder, topic: from.Topic, threadID: from.ThreadID,
			place: from.Place, surface: from.Surface, ceiling: from.Ceiling, kind: msg.Conversation,
			chatJID: r.ChatJID, replyTo: from.ReplyTo, depth: from.Depth, root: from.RootTurnID, claims: from.Claims,
		})
		return
	}
	if r.answer.Reason == msg.ReasonNoGroup {
		d.decide(r, msg.Dropped, msg.ReasonNoGroup, "", d.now)
		return
	}
	fan, err := d.g.st.CountDelegations(ctx, from.RootTurnID)
	d.check(err)
	if from.Depth > delegationDepth || fan+d.delegated(from.RootTurnID) >= delegationFan {
		d.decide(r, msg.Dropped, msg.ReasonFanOut, "", d.now)
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
	d.turns.add(e)
}

// validReturnAddress reports whether a return address can be answered and belongs
// to a turn. Else the error would appear only when the answer is stored.
func (d *decider) validReturnAddress(ctx context.Context, from *msg.ReturnAddress) bool {
	switch from.Kind {
	case msg.Delegation, msg.Escalation:
	case msg.Answer:
		if !d.g.registered(ctx)(from.Folder) {
			return false
		}
	default:
		return false
	}
	root, err := d.g.st.Turn(ctx, from.RootTurnID)
	d.check(err)
	platform, room := msg.SplitJID(from.ChatJID)
	return root != nil && platform != "" && room != "" && from.Depth >= 0
}

// delegated counts the delegations of a root turn that this pass adds.
func (d *decider) delegated(root int64) (n int) {
	for _, b := range d.turns.all {
		for _, e := range b.entries {
			if e.kind == msg.Delegated && e.root == root {
				n++
			}
		}
	}
	return n
}

// forwardedAnswer is what routd would answer for a row between groups. The row
// has its address, so routd is not asked.
func (g *Gateway) forwardedAnswer(ctx context.Context, r *row) routeapi.Answer {
	if from := r.ForwardedFrom; from.Kind == msg.Answer {
		return routeapi.Answer{ID: r.ID, Action: routeapi.Trigger, Folder: from.Folder, Reason: msg.ReasonAnswer, Impulse: g.cfg.Impulse}
	}
	answer, ok := local(routeapi.Item{ID: r.ID, ChatJID: r.ChatJID, Kind: msg.ChatInternal}, g.registered(ctx), g.cfg.Impulse)
	if !ok {
		return routeapi.Answer{ID: r.ID, Action: routeapi.None, Reason: msg.ReasonNoGroup, Impulse: g.cfg.Impulse}
	}
	return answer
}
