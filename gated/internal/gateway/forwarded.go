package gateway

import (
	"strconv"

	"arizuko/pkg/msg"
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
		topic: "#d" + strconv.FormatInt(r.ID, 10), chatJID: from.ChatJID, threadID: from.ThreadID, place: from.Place,
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
