// Package reminders fires reminders: it computes when they are due, makes their messages, each slot
// exactly once, and moves them on.
package reminders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"arizuko/gated/internal/redecided"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxLate is how late a slot fires as if it were in time, in ms. An older one was missed, and Missed
// decides whether it fires.
const maxLate = 5 * 60_000

// decision is the next step of a due reminder.
type decision struct {
	slot   int64 // that fires, unix ms, 0 for none
	next   int64 // the next one, 0 for none
	missed bool  // a slot was missed
}

// decide decides a reminder that is due. It is pure.
func decide(r *msg.Reminder, now int64) (decision, error) {
	d := decision{slot: r.NextSlot}
	if r.Cron != "" {
		s, err := scheduleOf(r)
		if err != nil {
			return d, err
		}
		if last := s.Last(time.UnixMilli(r.NextSlot), time.UnixMilli(now)); !last.IsZero() {
			d.missed = last.UnixMilli() != r.NextSlot
			d.slot = last.UnixMilli()
		}
		d.next = millis(s.Next(time.UnixMilli(now)))
	}
	if now-d.slot > maxLate {
		d.missed = true
		if r.Missed == msg.MissedSkip {
			d.slot = 0
		}
	}
	return d, nil
}

// Next is when an active reminder fires next if it fires for nothing that is past: its next slot after now. It is 0
// for one that does not fire any more.
func Next(r *msg.Reminder, now int64) (int64, error) {
	if r.Cron == "" {
		return r.DueAt, nil
	}
	s, err := scheduleOf(r)
	if err != nil {
		return 0, err
	}
	return millis(s.Next(time.UnixMilli(now))), nil
}

func scheduleOf(r *msg.Reminder) (*Schedule, error) {
	zone, err := ParseZone(r.TimeZone)
	if err != nil {
		return nil, err
	}
	return ParseSchedule(r.Cron, zone)
}

// ParseZone returns the time zone of an IANA name.
func ParseZone(name string) (*time.Location, error) {
	const maxName = 64
	if name == "" || len(name) > maxName {
		return nil, errZone
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("time_zone %.64q: %w", name, errZone)
	}
	return zone, nil
}

var errZone = errors.New("there is no such time zone: name one as in Europe/Berlin, America/New_York or UTC")

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// reminderSender is the beginning of the sender of a prompt.
const reminderSender = "reminder:"

// firingMessages are the rows of a slot that fires: the body, or the prompt that the turn answers. The prompt is a row
// of the group's own internal chat: no user wrote or sees it.
func firingMessages(r *msg.Reminder, kind msg.ChatKind, now int64) (*msg.Message, *msg.Turn) {
	if r.Kind == msg.ReminderText {
		return &msg.Message{
			ChatJID: r.ChatJID, Direction: msg.Out, IsBot: true, Sender: "agent:" + r.Folder, Content: r.Body,
			Source: msg.SourceReminder,
			Topic:  r.Place(), ThreadID: r.ThreadID, Timestamp: now, ReceivedAt: now, OnBehalfOf: r.Payer(),
		}, nil
	}
	prompt := &msg.Message{
		ChatJID: msg.PlatformGroup + ":" + r.Folder, Direction: msg.In, IsBot: true,
		Sender:     fmt.Sprint(reminderSender, r.ID),
		SenderName: "reminder", Content: r.Body, Source: msg.SourceReminder, Topic: r.Topic, Timestamp: now,
		ReceivedAt: now,
		OnBehalfOf: r.Payer(),
	}
	surface := msg.SurfaceOf(r.ChatJID, kind, r.ThreadID)
	turn := &msg.Turn{
		Kind: msg.Broadcast, Folder: r.Folder, ChatJID: r.ChatJID, Topic: r.Topic, ThreadID: r.ThreadID,
		Place:   r.Place(),
		Surface: surface.Name, Ceiling: surface.Ceiling, RowCount: 1, RowBytes: len(r.Body), CreatedAt: now,
		Depth: r.Depth + 1,
	}
	// one that repeats for months would use up the turns that one request may cause: each slot begins a chain
	if r.Cron == "" {
		turn.RootTurnID = r.RootTurnID
	}
	return prompt, turn
}

// Redecide computes the next times of active reminders again, at most limit, and compares them with those that are
// stored. It reads and changes nothing.
func Redecide(ctx context.Context, st store.Reader, now int64, limit int) (check redecided.Check, err error) {
	check.What = "next times of reminders"
	for after := int64(0); limit > 0; {
		all, err := factrows.Reminders(ctx, st, factrows.ReminderList{After: after, Limit: min(realignPage, limit)})
		if err != nil || len(all) == 0 {
			return check, err
		}
		for _, r := range all {
			after = r.ID
			limit--
			redecide(&check, r, now)
		}
	}
	return check, nil
}

// redecide compares one reminder. Its stored slot is the first after the last look at it, which is past: so it is the
// first after now too, or has come and waits.
func redecide(check *redecided.Check, r *msg.Reminder, now int64) {
	if r.NextSlot == 0 {
		check.Leave("made by SQL, and not scheduled yet")
		return
	}
	at, err := Next(r, min(now, r.NextSlot-1))
	shown := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
	switch {
	case err != nil:
		check.Differ(fmt.Sprintf("reminder %d of %s in %.80s: was next at %s, now it would end: %v", r.ID, r.Folder,
			r.ChatJID, shown(r.NextSlot), err))
	case at == 0:
		check.Differ(fmt.Sprintf("reminder %d of %s in %.80s: was next at %s, now never", r.ID, r.Folder, r.ChatJID,
			shown(r.NextSlot)))
	case at != r.NextSlot:
		check.Differ(fmt.Sprintf("reminder %d of %s in %.80s: was next at %s, now at %s", r.ID, r.Folder, r.ChatJID,
			shown(r.NextSlot), shown(at)))
	default:
		check.Same++
	}
}
