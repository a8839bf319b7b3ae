package why

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// Origin is the origin of a row: a reminder, a broadcast, a poll that ended, or a tool call of a turn.
type Origin struct {
	Text                            string // in words
	Reminder, Broadcast, Poll, Turn int64  // the one that it was, 0 for none
}

// String is in words, "" for none.
func (o *Origin) String() string {
	if o == nil {
		return ""
	}
	return o.Text
}

// origins notes where the row asked about and the inbound rows come from.
func (l *loader) origins(ctx context.Context) {
	l.path.Origins = map[int64]*Origin{}
	for _, m := range append(slices.Clone(l.path.Rows), l.path.Asked) {
		if o := l.origin(ctx, m); o != nil {
			l.path.Origins[m.ID] = o
		}
	}
}

// origin returns the origin of a row, if that was a reminder, a broadcast, the end of a poll or a tool; nil for others.
func (l *loader) origin(ctx context.Context, m *msg.Message) *Origin {
	switch {
	case l.err != nil:
		return nil
	case m.Source == msg.SourceReminder:
		return l.reminder(ctx, m.ID)
	case m.Source == msg.SourceBroadcast:
		return l.broadcast(ctx, m.ID)
	case m.Direction == msg.Out && m.Kind == msg.KindPoll && m.TargetID != "":
		return l.pollEnd(ctx, m)
	case m.ForwardedFrom != nil && (m.Source == msg.SourceTool || m.Source == msg.SourceDelegate):
		return l.tool(ctx, m.ForwardedFrom.TurnID, m)
	case m.Source == msg.SourceTool && m.TurnID != 0:
		return l.tool(ctx, m.TurnID, m)
	}
	return nil
}

func (l *loader) reminder(ctx context.Context, row int64) *Origin {
	var r *msg.Reminder
	var slot int64
	if r, slot, l.err = factrows.ReminderOf(ctx, l.st, row); r == nil {
		return nil
	}
	zone, err := time.LoadLocation(r.TimeZone)
	if err != nil { // a row that was changed by SQL
		zone = time.UTC
	}
	at := func(ms int64) string { return time.UnixMilli(ms).In(zone).Format(time.RFC3339) }
	due := "due " + at(r.DueAt)
	if r.Cron != "" {
		due = fmt.Sprintf("due %s in %s", r.Cron, r.TimeZone)
	}
	return &Origin{Text: fmt.Sprintf("reminder %d of %s, %s, slot %s", r.ID, r.Folder, due, at(slot)), Reminder: r.ID}
}

func (l *loader) broadcast(ctx context.Context, row int64) *Origin {
	id, by, chats, err := factrows.BroadcastOf(ctx, l.st, row)
	switch l.err = err; {
	case err != nil:
		return nil
	case id == 0:
		return &Origin{Text: "the tool broadcast of an agent, or a broadcast that was deleted since"}
	}
	return &Origin{Text: fmt.Sprintf("broadcast %d by %s, to %d chats", id, by, chats), Broadcast: id}
}

func (l *loader) pollEnd(ctx context.Context, m *msg.Message) *Origin {
	var row *msg.Message
	if row, l.err = l.st.MessageByPlatformID(ctx, m.ChatJID, m.TargetID); row == nil {
		return nil
	}
	var poll *msg.StoredPoll
	if poll, l.err = factrows.PollOfMessage(ctx, l.st, row.ID); poll == nil {
		return nil
	}
	return &Origin{Text: fmt.Sprintf("the end of poll %d of %s, which is message %d", poll.ID, poll.Folder, row.ID),
		Poll: poll.ID}
}

// tool says which call of a turn made a row. Calls that change a message, as reactions do, store no row in their
// result.
func (l *loader) tool(ctx context.Context, turn int64, m *msg.Message) *Origin {
	var calls []factrows.ToolCall
	if calls, l.err = factrows.ToolCalls(ctx, l.st, turn); l.err != nil {
		return nil
	}
	for _, c := range calls {
		if slices.Contains(madeBy(c), m.ID) {
			return &Origin{Text: fmt.Sprintf("tool %s of turn %d", c.Tool, turn), Turn: turn}
		}
	}
	if m.Source == msg.SourceTool {
		return &Origin{Text: fmt.Sprintf("a tool of turn %d", turn), Turn: turn}
	}
	return nil
}

// madeBy are the rows that a call has made, by its result.
func madeBy(c factrows.ToolCall) []int64 {
	var result struct {
		MessageID  int64   `json:"message_id"`
		MessageIDs []int64 `json:"message_ids"`
	}
	if json.Unmarshal(c.Result, &result) != nil { // JSON of another shape counts as none
		return nil
	}
	if result.MessageID != 0 {
		return []int64{result.MessageID}
	}
	return result.MessageIDs
}

// callSteps are the calls of a turn that have acted.
func callSteps(t *Turn) (all []Step) {
	for _, c := range t.Calls {
		text := fmt.Sprintf("turn %d called tool %s", t.ID, c.Tool)
		if made := madeBy(c); len(made) > 0 {
			text += ": " + rows(made)
		}
		all = append(all, Step{At: c.CreatedAt, Text: text, Owner: gated, Turn: t.ID})
	}
	return all
}
