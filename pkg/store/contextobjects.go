package store

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/msg"
)

func scanContextObject(scan scanner) (*msg.ContextObject, error) {
	var o msg.ContextObject
	var reasons string
	err := scan(&o.ChatJID, &o.ID, &o.Kind, &o.Topic, &o.SourceMessageID, &o.Label, &o.URL, &o.CreatedAt,
		&o.LastTouchedAt,
		&reasons, &o.CreatedBy, &o.CreatedByBot, &o.ClosedAt, &o.DueAt, &o.ActiveUntil)
	if err == nil {
		err = json.Unmarshal([]byte(reasons), &o.Reasons)
	}
	if err != nil {
		return nil, fmt.Errorf("scan context object: %w", err)
	}
	return &o, nil
}

// EachContextObject calls fn for each object that is active at now, in unix ms, those of a chat one
// after another.
func (r Reader) EachContextObject(ctx context.Context, now int64, fn func(msg.ContextObject)) error {
	return r.each(ctx, func(scan scanner) (bool, error) {
		o, err := scanContextObject(scan)
		if err != nil {
			return false, err
		}
		fn(*o)
		return true, nil
	}, queryContextObjects, now)
}

// ContextObjectsOf returns the objects of a chat that are active at now, in unix ms.
func (r Reader) ContextObjectsOf(ctx context.Context, chatJID string, now int64) ([]msg.ContextObject, error) {
	return collect(ctx, r, func(scan scanner) (msg.ContextObject, error) {
		o, err := scanContextObject(scan)
		if err != nil {
			return msg.ContextObject{}, err
		}
		return *o, nil
	}, queryContextOfChat, chatJID, now)
}

// ContextObject returns an object by its id, also one that has ended; nil if it is not stored.
func (r Reader) ContextObject(ctx context.Context, chatJID, id string) (*msg.ContextObject, error) {
	return first(collect(ctx, r, scanContextObject, queryContextObject, chatJID, id))
}

// ContextObjectOf returns the object of a kind that is active at now and comes from a message; nil
// if there is none.
func (r Reader) ContextObjectOf(ctx context.Context, chatJID string, kind msg.ContextKind, messageID,
	now int64) (*msg.ContextObject, error) {
	return first(collect(ctx, r, scanContextObject, queryContextOfSource, chatJID, kind, messageID, now))
}

// ChatHasTopics reports whether a chat has topics beside the default one: threads, or a named topic
// in one of its last 100 turns.
func (r Reader) ChatHasTopics(ctx context.Context, chatJID string) (bool, error) {
	return value[bool](ctx, r, queryChatHasTopics, chatJID)
}

// PutContextObject stores an object, and deletes those of its chat beyond the limit, whose ids it
// returns: of those active at now the ones touched longest ago, open polls last.
func (tx *Tx) PutContextObject(o *msg.ContextObject, limit int, now int64) (removed []string, err error) {
	reasons, err := o.Reasons.MarshalJSON()
	if err != nil {
		return nil, err
	}
	err = tx.exec(putContextObject, o.ChatJID, o.ID, o.Kind, o.Topic, null(o.SourceMessageID), o.Label, o.URL,
		o.CreatedAt,
		o.LastTouchedAt, string(reasons), null(o.CreatedBy), o.CreatedByBot, null(o.ClosedAt), null(o.DueAt),
		o.ActiveUntil, o.Kind.TTL())
	if err != nil {
		return nil, fmt.Errorf("put context object %s: %w", o.ID, err)
	}
	removed, err = collect(uncancelled(), tx.Reader, one[string], queryContextExcess, o.ChatJID, o.ID, now, limit-1)
	if err != nil {
		return nil, err
	}
	for _, id := range removed {
		if err := tx.DeleteContextObject(o.ChatJID, id); err != nil {
			return nil, err
		}
	}
	return removed, nil
}

// DeleteContextObject deletes an object, if it is stored.
func (tx *Tx) DeleteContextObject(chatJID, id string) error {
	return tx.exec(deleteContextObject, chatJID, id)
}

// DeleteContextObjectsOf deletes the objects of a chat that come from a message and returns their ids.
func (tx *Tx) DeleteContextObjectsOf(chatJID string, messageID int64) (ids []string, err error) {
	ids, err = collect(uncancelled(), tx.Reader, one[string], queryContextIDsOf, chatJID, messageID)
	for _, id := range ids {
		if err == nil {
			err = tx.DeleteContextObject(chatJID, id)
		}
	}
	return ids, err
}

// DeleteEndedContextObjects deletes at most limit objects that ended before now and returns how many.
func (tx *Tx) DeleteEndedContextObjects(now int64, limit int) (deleted int64, err error) {
	return tx.change(deleteEndedContext, now, limit)
}
