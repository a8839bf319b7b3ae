package rows

import (
	"context"
	"fmt"
	"slices"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// otherGroups is the key of what a turn does for the group that asked for it.
const otherGroups = "groups"

// endRequest ends the request of another group with the turn that works on it, unless the turn goes on once an
// escalation of its own is answered. The session of the request ends. If nothing was said, the asker of an
// escalation gets that as its answer, and the group that has delegated reads of it in its next prompt; a failure has
// a notice of its own, and an operator who cancels the turn knows.
func endRequest(tx *store.Tx, t *msg.Turn, as msg.TurnState, now int64) error {
	// Whether a turn, or an earlier one of its topic, has said anything.
	const query = `SELECT EXISTS (SELECT 1 FROM turns INDEXED BY turns_session WHERE folder = ?1 AND topic = ?2 AND state = 'done' AND frames > 0)
		OR EXISTS (SELECT 1 FROM messages m INDEXED BY messages_turn WHERE m.turn_id = ?3 AND m.direction = 'out' AND m.source <> 'waiting')`
	if !t.WorksForGroup() {
		return nil
	}
	if err := tx.Within(otherGroups); err != nil {
		return err
	}
	calls, err := factrows.ToolCalls(store.Uncancelled(), tx.Reader, t.ID)
	if err != nil || slices.ContainsFunc(calls, func(c factrows.ToolCall) bool { return c.Tool == "escalate" }) {
		return err
	}
	if _, err = ResetSession(tx, t.Folder, t.Topic, now); err != nil || as == msg.TurnCancelled {
		return err
	}
	request, err := tx.Message(store.Uncancelled(), t.Request())
	if err != nil || request == nil || request.ForwardedFrom == nil {
		return err
	}
	from := request.ForwardedFrom
	var said bool
	if _, err = tx.Find([]any{&said}, query, t.Folder, t.Topic, t.ID); err != nil || said {
		return err
	}
	switch {
	case from.Kind == msg.Escalation && as == msg.TurnDone:
		return answerAsker(tx, t, from, fmt.Sprintf("(No answer: %s has read this and said nothing.)", t.Folder), now)
	case from.Kind == msg.Delegation:
		return tx.PutSystemMessage(from.Folder, "gated", "delegation_unanswered",
			fmt.Sprintf("%s has ended what you delegated to it (message %d) without an answer.", t.Folder,
				request.ID), now)
	}
	return nil
}

// EndOldRequests ends the sessions of requests between groups that are older than a time, in unix ms, and have no open
// turn: those whose answer never came.
func EndOldRequests(tx *store.Tx, before, now int64) error {
	// Sessions of requests between groups; ':' comes after the digits.
	const query = `SELECT s.group_folder, s.topic FROM sessions s WHERE s.topic >= '#d0' AND s.topic < '#d:' AND s.updated_at < ?1
		AND NOT EXISTS (SELECT 1 FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running') AND t.folder = s.group_folder AND t.topic = s.topic)`
	old, err := store.All(store.Uncancelled(), tx.Reader, func(scan store.Scan) (t msg.Turn, err error) {
		err = scan(&t.Folder, &t.Topic)
		return t, err
	}, query, before)
	for _, t := range old {
		if err == nil && t.WorksForGroup() {
			_, err = ResetSession(tx, t.Folder, t.Topic, now)
		}
	}
	return err
}

// Asker returns the return address of an escalation, whose asking group waits for the
// turn's answer; nil for any other turn.
func Asker(ctx context.Context, r store.Reader, t *msg.Turn) (*msg.ReturnAddress, error) {
	request := t.Request()
	if request == 0 {
		return nil, nil
	}
	row, err := r.Message(ctx, request)
	if err != nil || row == nil || row.ForwardedFrom == nil || row.ForwardedFrom.Kind != msg.Escalation {
		return nil, err
	}
	return row.ForwardedFrom, nil
}

// Escalated reports whether a group waits for the turn's answer, and not a chat.
func Escalated(ctx context.Context, r store.Reader, t *msg.Turn) (bool, error) {
	asker, err := Asker(ctx, r, t)
	return asker != nil, err
}

// answerAsker writes the answer to an escalation as an inbound row in the asking group's internal chat, since no user
// sees it. Its turn has the chat, topic and thread of the one that asked.
func answerAsker(tx *store.Tx, t *msg.Turn, from *msg.ReturnAddress, text string, now int64) error {
	back := *from
	back.Kind, back.TurnID = msg.Answer, t.ID
	payer, err := Payer(store.Uncancelled(), tx.Reader, t)
	if err != nil {
		return err
	}
	if back.ChatJID, err = tx.Address(store.Uncancelled(), from.ChatJID); err != nil {
		return err
	}
	_, _, err = tx.PutMessage(&msg.Message{
		ChatJID: msg.GroupJID(from.Folder), Direction: msg.In, Sender: msg.AgentSender(t.Folder), SenderName: t.Folder,
		IsBot: true, Content: text, Timestamp: now, ReceivedAt: now,
		Source: msg.SourceDelegate, ForwardedFrom: &back, OnBehalfOf: payer,
	})
	return err
}

// Payer is the sender who caused a turn, "" if its message is gone.
func Payer(ctx context.Context, r store.Reader, t *msg.Turn) (string, error) {
	trigger, err := r.Message(ctx, t.TriggerMessageID)
	if err != nil || trigger == nil {
		return "", err
	}
	return trigger.Payer(), nil
}
