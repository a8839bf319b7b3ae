package contextobjects

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Sizes and times.
const (
	MaxURL      = 2048 // characters
	maxLabel    = 200  // characters
	pruneEvery  = time.Minute
	prunePage   = 500 // rows a commit
	maxIDLength = 200 // bytes
	// maxPerChat bounds the objects of a chat, and so the time of a lookup. Beyond it the objects that were touched
	// longest ago end, open polls last.
	maxPerChat = 100
)

// ErrInactive means that an object is not active any more, or never was.
var ErrInactive = errors.New("the object is not active")

// Objects reads, ranks and stores active context objects.
type Objects struct {
	TTLs    TTLs
	Weights Weights
}

// active reads the objects of the query's chat. None outlives the TTLs, which may be shorter than when it was stored.
func (x *Objects) active(ctx context.Context, r store.Reader, q *Query) ([]Object, error) {
	jid, err := r.Address(ctx, q.ChatJID)
	if err != nil {
		return nil, err
	}
	all, err := rows.ContextObjectsOf(ctx, r, jid, q.Now)
	if err != nil {
		return nil, fmt.Errorf("read active context objects: %w", err)
	}
	for i := range all {
		all[i].ActiveUntil = min(all[i].ActiveUntil, x.TTLs.until(&all[i]))
	}
	return all, nil
}

// Activate makes an object active, or touches one that is. The caller fills in ChatJID, Topic, Kind and
// SourceMessageID, ID unless it is the kind's of that message, and if known Label, URL,
// CreatedBy, CreatedByBot, ClosedAt of a poll and DueAt of a reminder. now is unix ms.
//
// An object that is active keeps its CreatedAt, and all that the caller leaves out. It goes to the
// event's topic, unless the event is the resolver's. A closed poll whose grace is over is not stored:
// then the ActiveUntil returned is not after now. ErrInactive is returned where the resolver touches
// an object that is not active and no message.
func (x *Objects) Activate(tx *store.Tx, event Event, o Object, now int64) (Object, error) {
	if err := complete(&o); err != nil {
		return o, err
	}
	reason, kinds := event.Rule()
	if reason == 0 {
		return o, fmt.Errorf("unknown event %q", event)
	}
	if !slices.Contains(kinds, o.Kind) {
		return o, fmt.Errorf("%s is about none of kind %s", event, o.Kind)
	}
	jid, err := tx.Address(context.Background(), o.ChatJID)
	if err != nil {
		return o, err
	}
	o.ChatJID = jid
	old, err := rows.ContextObject(context.Background(), tx.Reader, jid, o.ID)
	if err != nil {
		return o, err
	}
	live := old != nil && old.ActiveUntil > now
	if event == ResolvedByResolver && !live && o.Kind != msg.ContextMessage && o.Kind != msg.ContextBotMessage {
		return o, fmt.Errorf("%s: %w", o.ID, ErrInactive)
	}
	o.CreatedAt, o.Reasons = now, reason
	if live {
		merge(&o, old, event)
	}
	o.LastTouchedAt = now
	o.ActiveUntil = x.TTLs.until(&o)
	return o, x.store(tx, o, now)
}

// merge takes over the parts of the stored object that an event does not change.
func merge(o, old *Object, event Event) {
	o.CreatedAt, o.Reasons = old.CreatedAt, o.Reasons|old.Reasons
	if event == ResolvedByResolver {
		o.Topic = old.Topic
	}
	if old.CreatedBy != "" || old.CreatedByBot {
		o.CreatedBy, o.CreatedByBot = old.CreatedBy, old.CreatedByBot
	}
	if o.SourceMessageID == 0 {
		o.SourceMessageID = old.SourceMessageID
	}
	if o.Label == "" {
		o.Label = old.Label
	}
	if o.URL == "" {
		o.URL = old.URL
	}
	if o.ClosedAt == 0 {
		o.ClosedAt = old.ClosedAt // a closed poll is never opened again
	}
	if o.DueAt == 0 && (event == ResolvedByResolver || event == FollowupAttached) {
		o.DueAt = old.DueAt
	}
}

// ClosePoll ends a poll that was closed at a time: that touches it, and it stays active for
// CONTEXT_POLL_GRACE. It does nothing if the poll is not active, or was closed before.
func (x *Objects) ClosePoll(tx *store.Tx, chatJID string, pollID, closedAt, now int64) error {
	return x.update(tx, chatJID, msg.ContextObjectID(msg.ContextPoll, pollID), now, func(o *Object) {
		if o.ClosedAt == 0 {
			o.ClosedAt, o.LastTouchedAt = closedAt, now
		}
	})
}

// EndOf ends the objects that come from a message, which was deleted.
func (x *Objects) EndOf(tx *store.Tx, chatJID string, messageID int64) error {
	jid, err := tx.Address(context.Background(), chatJID)
	if err != nil {
		return err
	}
	return rows.DeleteContextObjectsOf(tx, jid, messageID)
}

// SetReminderDue says when a reminder fires next, 0 if it does not any more. It does nothing if the
// reminder is not active. It does not count as a touch.
func (x *Objects) SetReminderDue(tx *store.Tx, chatJID string, reminderID, dueAt, now int64) error {
	return x.update(tx, chatJID, msg.ContextObjectID(msg.ContextReminder, reminderID), now,
		func(o *Object) { o.DueAt = dueAt })
}

func (x *Objects) update(tx *store.Tx, chatJID, id string, now int64, change func(*Object)) error {
	jid, err := tx.Address(context.Background(), chatJID)
	if err != nil {
		return err
	}
	o, err := rows.ContextObject(context.Background(), tx.Reader, jid, id)
	if err != nil || o == nil || o.ActiveUntil <= now {
		return err
	}
	change(o)
	o.ActiveUntil = x.TTLs.until(o)
	return x.store(tx, *o, now)
}

func (x *Objects) store(tx *store.Tx, o Object, now int64) error {
	if o.ActiveUntil <= now {
		return rows.DeleteContextObject(tx, o.ChatJID, o.ID)
	}
	return rows.PutContextObject(tx, &o, maxPerChat, now)
}

// complete checks an object, sets its id and cuts its texts.
func complete(o *Object) error {
	if !slices.Contains(msg.ContextKinds(), o.Kind) {
		return fmt.Errorf("unknown kind %q", o.Kind)
	}
	if o.ID == "" && o.SourceMessageID != 0 {
		o.ID = msg.ContextObjectID(o.Kind, o.SourceMessageID)
	}
	if o.ChatJID == "" || o.ID == "" || len(o.ID) > maxIDLength {
		return fmt.Errorf("context object %q of chat %q: it needs a chat, and a source message or an id of at "+
			"most %d bytes", o.ID, o.ChatJID, maxIDLength)
	}
	if n := utf8.RuneCountInString(o.URL); n > MaxURL {
		return fmt.Errorf("context object %s: its URL has %d characters, the limit is %d", o.ID, n, MaxURL)
	}
	o.Label = cleanLabel(o.Label)
	return nil
}

// cleanLabel is one line of at most maxLabel characters.
func cleanLabel(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "�"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if utf8.RuneCountInString(text) > maxLabel {
		text = string([]rune(text)[:maxLabel-1]) + "…"
	}
	return text
}

// Run deletes the objects that have ended until ctx ends.
func Run(ctx context.Context, st *store.Store, log *slog.Logger, now func() time.Time) error {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	outage := store.NewOutage(log, "context objects")
	for {
		err := Prune(ctx, st, now().UnixMilli())
		if ctx.Err() == nil {
			_ = outage.Note(ctx, err) // the next pass repeats it
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Prune deletes the objects that ended before now, page by page.
func Prune(ctx context.Context, st *store.Store, now int64) error {
	for deleted := int64(prunePage); deleted == prunePage; {
		err := st.Write(ctx, func(tx *store.Tx) (err error) {
			deleted, err = rows.DeleteEndedContextObjects(tx, now, prunePage)
			return err
		})
		if err != nil {
			return fmt.Errorf("delete ended context objects: %w", err)
		}
	}
	return nil
}
