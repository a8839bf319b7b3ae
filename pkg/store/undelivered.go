package store

import (
	"context"
	"fmt"
	"slices"

	"arizuko/pkg/msg"
)

const (
	// eventUndelivered is the event of the lines about rows that failed.
	eventUndelivered = "undelivered"
	// maxUndelivered is how many of these lines wait for a group's next prompt: an outage may cost a thousand rows.
	maxUndelivered = 10
	// maxProblem bounds what a line says of the reason, in bytes.
	maxProblem = 300
)

// ReportUndelivered tells the agent whose row failed for good, in the next prompt of its group. A fork whose own thread
// the row was to open is over.
func (tx *Tx) ReportUndelivered(row *msg.Message, problem string, now int64) error {
	fork, err := tx.unopenedFork(row)
	if err != nil {
		return err
	}
	if fork != nil {
		return tx.AbandonFork(fork, "Users have not read what you wrote there.", now)
	}
	folder := msg.AgentOf(row.Sender)
	if folder == "" || !slices.Contains([]string{msg.SourceAgent, msg.SourceTool, msg.SourceReminder,
		msg.SourceBroadcast}, row.Source) {
		return nil
	}
	var waiting int
	if _, err := tx.find([]any{&waiting}, queryUnreadSystem, folder, eventUndelivered, maxUndelivered); err != nil ||
		waiting >= maxUndelivered {
		return err
	}
	what, where := "Message", ""
	if row.Kind.Changes() {
		what = "The " + string(row.Kind) + " with id"
	}
	if row.ThreadID != "" {
		where = " in thread " + row.ThreadID
	}
	body := fmt.Sprintf("%s %d to chat %s%s was not delivered: %s.", what, row.ID, row.ChatJID, where,
		truncate(cleanText(problem), maxProblem))
	if reminder, _, err := tx.ReminderOf(uncancelled(), row.ID); err != nil {
		return err
	} else if reminder != nil {
		body += fmt.Sprintf(" It is of reminder %d.", reminder.ID)
	}
	return tx.PutSystemMessage(folder, "gated", eventUndelivered, body, now)
}

// unopenedFork is the open fork whose own thread a failed row was for, if no message is in that thread: it could not be
// opened, for example. It is nil for any other row.
func (tx *Tx) unopenedFork(row *msg.Message) (*msg.Fork, error) {
	if row.ThreadID == "" {
		return nil, nil
	}
	fork, err := tx.ForkOfThread(uncancelled(), row.ChatJID, row.ThreadID)
	if err != nil || fork == nil || fork.EndedAt != 0 {
		return nil, err
	}
	var used bool
	if _, err := tx.find([]any{&used}, queryThreadUsed, row.ChatJID, row.ThreadID); err != nil || used {
		return nil, err
	}
	return fork, nil
}

// RefusedSlots returns why the messages of the last slots of a reminder were refused, the newest first: "" for a slot
// whose messages were not, or were sent in part.
func (r Reader) RefusedSlots(ctx context.Context, reminder int64, slots int) ([]string, error) {
	return collect(ctx, r, one[string], queryRefusedSlots, reminder, slots)
}
