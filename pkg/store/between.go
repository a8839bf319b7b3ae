package store

import (
	"fmt"
	"slices"

	"arizuko/pkg/msg"
)

// endRequest does what follows from the end of a turn that works on what another group has asked for, unless it goes on
// once an escalation of its own is answered. The session of the request ends. If nothing was said, the asker of an
// escalation gets that as its answer, and the group that has delegated reads of it in its next prompt; a failure has
// a notice of its own, and an operator who cancels the turn knows.
func (tx *Tx) endRequest(t *msg.Turn, as msg.TurnState, now int64) error {
	if !t.WorksForGroup() {
		return nil
	}
	calls, err := tx.ToolCalls(uncancelled(), t.ID)
	if err != nil || slices.ContainsFunc(calls, func(c ToolCall) bool { return c.Tool == "escalate" }) {
		return err
	}
	if _, err = tx.ResetSession(t.Folder, t.Topic, now); err != nil || as == msg.TurnCancelled {
		return err
	}
	request, err := tx.Message(uncancelled(), t.Request())
	if err != nil || request == nil || request.ForwardedFrom == nil {
		return err
	}
	from := request.ForwardedFrom
	var said bool
	if _, err = tx.find([]any{&said}, querySaid, t.Folder, t.Topic, t.ID); err != nil || said {
		return err
	}
	switch {
	case from.Kind == msg.Escalation && as == msg.TurnDone:
		return tx.answerAsker(t, from, fmt.Sprintf("(No answer: %s has read this and said nothing.)", t.Folder), now)
	case from.Kind == msg.Delegation:
		return tx.PutSystemMessage(from.Folder, "gated", "delegation_unanswered",
			fmt.Sprintf("%s has ended what you delegated to it (message %d) without an answer.", t.Folder, request.ID), now)
	}
	return nil
}

// EndOldRequests ends the sessions of requests between groups that are older than a time, in unix ms, and have no open
// turn: those whose answer never came.
func (tx *Tx) EndOldRequests(before, now int64) error {
	old, err := collect(uncancelled(), tx.Reader, func(scan scanner) (t msg.Turn, err error) {
		err = scan(&t.Folder, &t.Topic)
		return t, err
	}, queryOldRequests, before)
	for _, t := range old {
		if err == nil && t.WorksForGroup() {
			_, err = tx.ResetSession(t.Folder, t.Topic, now)
		}
	}
	return err
}
