package contextobjects

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	prunePage   = 500             // rows a commit
	maxAddress  = 16              // moves of one chat that are followed, as in the store
	followDelay = 2 * time.Second // how late a move is noticed at most
	maxIDLength = 200             // bytes
)

// ErrInactive means that an object is not active any more, or never was.
var ErrInactive = errors.New("the object is not active")

// Open makes an index with what the journal has of it.
func Open(ctx context.Context, set Settings, st *store.Store, now int64) (*Index, error) {
	x := New(set)
	var objects []Object
	flush := func() {
		if len(objects) > 0 {
			x.chats[objects[0].ChatJID] = newChat(objects, &x.set)
		}
		objects = nil
	}
	err := rows.EachContextObject(ctx, st.Reader, now, func(o Object) {
		if len(objects) > 0 && objects[0].ChatJID != o.ChatJID {
			flush()
		}
		objects = append(objects, set.limited(o))
	})
	if err != nil {
		return nil, fmt.Errorf("read active context objects: %w", err)
	}
	flush()
	return x, nil
}

// limited is a stored object, which ends no later than the TTLs allow, that may be shorter now.
func (s *Settings) limited(o Object) Object {
	o.ActiveUntil = min(o.ActiveUntil, s.TTLs.until(&o))
	return o
}

// Activate makes an object active, or touches one that is, in the transaction of what it is about.
// The index has it once that is committed. The caller fills in ChatJID, Topic, Kind and
// SourceMessageID, ID unless it is the kind's of that message, and what it knows of Label, URL,
// CreatedBy, CreatedByBot, ClosedAt of a poll and DueAt of a reminder. now is unix ms.
//
// An object that is active keeps its CreatedAt, and what the caller leaves out. It goes to the
// event's topic, unless the event is the resolver's. A closed poll whose grace is over is not stored:
// then the ActiveUntil returned is not after now. ErrInactive is returned where the resolver touches
// an object that is not active and no message.
func (x *Index) Activate(tx *store.Tx, event Event, o Object, now int64) (Object, error) {
	if err := complete(&o); err != nil {
		return o, err
	}
	reason := event.Reason()
	if reason == 0 {
		return o, fmt.Errorf("unknown event %q", event)
	}
	if !event.Fits(o.Kind) {
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
	o.ActiveUntil = x.set.TTLs.until(&o)
	return o, x.store(tx, o, now)
}

// merge takes over from the stored object what an event does not change.
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
func (x *Index) ClosePoll(tx *store.Tx, chatJID string, pollID, closedAt, now int64) error {
	return x.update(tx, chatJID, msg.ContextObjectID(msg.ContextPoll, pollID), now, func(o *Object) {
		if o.ClosedAt == 0 {
			o.ClosedAt, o.LastTouchedAt = closedAt, now
		}
	})
}

// EndOf ends the objects that come from a message, which was deleted.
func (x *Index) EndOf(tx *store.Tx, chatJID string, messageID int64) error {
	jid, err := tx.Address(context.Background(), chatJID)
	if err != nil {
		return err
	}
	ended, err := rows.DeleteContextObjectsOf(tx, jid, messageID)
	for _, id := range ended {
		tx.AfterCommit(func() { x.remove(jid, id) })
	}
	return err
}

// SetReminderDue says when a reminder fires next, 0 if it does not any more. It does nothing if the
// reminder is not active. It does not count as a touch.
func (x *Index) SetReminderDue(tx *store.Tx, chatJID string, reminderID, dueAt, now int64) error {
	return x.update(tx, chatJID, msg.ContextObjectID(msg.ContextReminder, reminderID), now,
		func(o *Object) { o.DueAt = dueAt })
}

func (x *Index) update(tx *store.Tx, chatJID, id string, now int64, change func(*Object)) error {
	jid, err := tx.Address(context.Background(), chatJID)
	if err != nil {
		return err
	}
	o, err := rows.ContextObject(context.Background(), tx.Reader, jid, id)
	if err != nil || o == nil || o.ActiveUntil <= now {
		return err
	}
	change(o)
	o.ActiveUntil = x.set.TTLs.until(o)
	return x.store(tx, *o, now)
}

// store writes an object to the journal, and to memory after the commit.
func (x *Index) store(tx *store.Tx, o Object, now int64) error {
	if o.ActiveUntil <= now {
		if err := rows.DeleteContextObject(tx, o.ChatJID, o.ID); err != nil {
			return err
		}
		tx.AfterCommit(func() { x.remove(o.ChatJID, o.ID) })
		return nil
	}
	removed, err := rows.PutContextObject(tx, &o, maxPerChat, now)
	if err != nil {
		return err
	}
	tx.AfterCommit(func() { x.put(o, removed, now) })
	return nil
}

// complete checks an object, sets its id and cuts its texts.
func complete(o *Object) error {
	if _, err := ParseKind(string(o.Kind)); err != nil {
		return err
	}
	if o.ID == "" && o.SourceMessageID != 0 {
		o.ID = msg.ContextObjectID(o.Kind, o.SourceMessageID)
	}
	if o.ChatJID == "" || o.ID == "" || len(o.ID) > maxIDLength {
		return fmt.Errorf("context object %q of chat %q: it needs a chat, and a source message or an id of at most %d bytes", o.ID, o.ChatJID, maxIDLength)
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

// Follow returns the present address of a chat that may have been moved, under which the index has its
// objects. The journal's rows move with the chat. It reads the moves of chats if it did not lately, or knows
// no objects of the chat, and the chat's objects if others activate some, too: not in a write, which others wait for.
func (x *Index) Follow(ctx context.Context, r store.Reader, jid string, now int64) (string, error) {
	present, known := x.address(jid, now)
	if !known {
		if err := x.followAll(ctx, r, now); err != nil {
			return present, err
		}
		present, _ = x.address(jid, now)
	}
	if !x.set.Shared {
		return present, nil
	}
	return present, x.read(ctx, r, present, now)
}

// read reads the active objects of a chat again.
func (x *Index) read(ctx context.Context, r store.Reader, jid string, now int64) error {
	all, err := rows.ContextObjectsOf(ctx, r, jid, now)
	if err != nil {
		return fmt.Errorf("read active context objects: %w", err)
	}
	for i := range all {
		all[i] = x.set.limited(all[i])
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.replace(jid, all)
	return nil
}

// followAll gives the objects of all chats that were moved their present address.
func (x *Index) followAll(ctx context.Context, r store.Reader, now int64) error {
	moves, _, err := r.ChatMoves(ctx)
	if err == nil {
		x.follow(moves, now)
	}
	return err
}

// Run deletes what has ended, in memory and in the journal, until ctx ends.
func (x *Index) Run(ctx context.Context, st *store.Store, log *slog.Logger, now func() time.Time) error {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	outage := store.NewOutage(log, "context objects")
	for {
		at := now().UnixMilli()
		err := x.followAll(ctx, st.Reader, at)
		if err == nil {
			err = x.Prune(ctx, st, at)
		}
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

// Prune deletes what ended before now, page by page.
func (x *Index) Prune(ctx context.Context, st *store.Store, now int64) error {
	x.prune(now)
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
