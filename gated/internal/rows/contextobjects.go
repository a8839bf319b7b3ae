package rows

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func scanContextObject(scan store.Scan) (*msg.ContextObject, error) {
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

const contextColumns = `SELECT chat_id, object_id, kind, topic_id, ifnull(source_message_id, 0), label, url, created_at, last_touched_at,
		activation_reasons, ifnull(created_by_user_id, ''), created_by_bot, ifnull(closed_at, 0), ifnull(due_at, 0), active_until
		FROM context_objects`

// ContextObjectsOf returns the objects of a chat that are active at now, in unix ms.
func ContextObjectsOf(ctx context.Context, r store.Reader, chatJID string, now int64) ([]msg.ContextObject, error) {
	return store.All(ctx, r, func(scan store.Scan) (msg.ContextObject, error) {
		o, err := scanContextObject(scan)
		if err != nil {
			return msg.ContextObject{}, err
		}
		return *o, nil
	}, contextColumns+` WHERE chat_id = ? AND active_until+0 > ? ORDER BY object_id`, chatJID, now)
}

// ContextObject returns an object by its id, also one that has ended; nil if it is not stored.
func ContextObject(ctx context.Context, r store.Reader, chatJID, id string) (*msg.ContextObject, error) {
	const query = contextColumns + ` WHERE chat_id = ? AND object_id = ?`
	return store.First(store.All(ctx, r, scanContextObject, query, chatJID, id))
}

// ContextObjectOf returns the object of a kind that is active at now and comes from a message; nil
// if there is none.
func ContextObjectOf(ctx context.Context, r store.Reader, chatJID string, kind msg.ContextKind, messageID,
	now int64) (*msg.ContextObject, error) {
	const query = contextColumns +
		` WHERE chat_id = ?1 AND kind = ?2 AND source_message_id = ?3 AND active_until > ?4
		ORDER BY last_touched_at DESC LIMIT 1`
	return store.First(store.All(ctx, r, scanContextObject, query, chatJID, kind, messageID, now))
}

// ChatHasTopics reports whether a chat has topics beside the default one: threads, or a named topic
// in one of its last 100 turns.
func ChatHasTopics(ctx context.Context, r store.Reader, chatJID string) (bool, error) {
	// Threads of the platform or bound ones, else a topic of one of the last turns; the topic of a
	// delegated turn is none of the chat's.
	const query = `SELECT EXISTS (SELECT 1 FROM platform_threads WHERE chat_jid = ?1)
		OR EXISTS (SELECT 1 FROM topic_threads WHERE chat_jid = ?1)
		OR EXISTS (SELECT 1 FROM (SELECT topic, kind FROM turns INDEXED BY turns_chat WHERE chat_jid = ?1 ORDER BY id DESC LIMIT 100) t
			WHERE topic <> '' AND kind <> 'delegated' AND NOT (glob('#d[0-9]*', topic) AND NOT glob('#d*[^0-9]*', topic)))`
	return store.Value[bool](ctx, r, query, chatJID)
}

// PutContextObject stores an object, and deletes those of its chat beyond the limit: of those active at now
// the ones touched longest ago, open polls last.
func PutContextObject(tx *store.Tx, o *msg.ContextObject, limit int, now int64) error {
	// Those of a chat beyond a number, open polls last.
	const deleteContextExcess = `DELETE FROM context_objects WHERE chat_id = ?1 AND object_id IN
		(SELECT object_id FROM context_objects WHERE chat_id = ?1 AND object_id <> ?2 AND active_until > ?3
		ORDER BY active_until = 9223372036854775807 DESC, last_touched_at DESC, object_id LIMIT 9223372036854775807 OFFSET ?4+0)`
	const putContextObject = `INSERT INTO context_objects (chat_id, object_id, kind, topic_id, source_message_id, label, url, created_at,
		last_touched_at, activation_reasons, created_by_user_id, created_by_bot, closed_at, due_at, active_until, ttl_class)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT (chat_id, object_id) DO UPDATE SET kind = excluded.kind, topic_id = excluded.topic_id,
		source_message_id = excluded.source_message_id, label = excluded.label, url = excluded.url, created_at = excluded.created_at,
		last_touched_at = excluded.last_touched_at, activation_reasons = excluded.activation_reasons,
		created_by_user_id = excluded.created_by_user_id, created_by_bot = excluded.created_by_bot, closed_at = excluded.closed_at,
		due_at = excluded.due_at, active_until = excluded.active_until, ttl_class = excluded.ttl_class`
	reasons, err := o.Reasons.MarshalJSON()
	if err != nil {
		return err
	}
	err = tx.Exec(putContextObject, o.ChatJID, o.ID, o.Kind, o.Topic, store.Null(o.SourceMessageID), o.Label, o.URL,
		o.CreatedAt,
		o.LastTouchedAt, string(reasons), store.Null(o.CreatedBy), o.CreatedByBot, store.Null(o.ClosedAt),
		store.Null(o.DueAt),
		o.ActiveUntil, o.Kind.TTL())
	if err != nil {
		return fmt.Errorf("put context object %s: %w", o.ID, err)
	}
	return tx.Exec(deleteContextExcess, o.ChatJID, o.ID, now, limit-1)
}

// DeleteContextObject deletes an object, if it is stored.
func DeleteContextObject(tx *store.Tx, chatJID, id string) error {
	return tx.Exec(`DELETE FROM context_objects WHERE chat_id = ? AND object_id = ?`, chatJID, id)
}

// DeleteContextObjectsOf deletes the objects of a chat that come from a message.
func DeleteContextObjectsOf(tx *store.Tx, chatJID string, messageID int64) error {
	return tx.Exec(`DELETE FROM context_objects WHERE chat_id = ? AND source_message_id = ?`, chatJID, messageID)
}

// DeleteEndedContextObjects deletes at most limit objects that ended before now and returns how many.
func DeleteEndedContextObjects(tx *store.Tx, now int64, limit int) (deleted int64, err error) {
	const query = `DELETE FROM context_objects WHERE (chat_id, object_id) IN
		(SELECT chat_id, object_id FROM context_objects INDEXED BY context_objects_active WHERE active_until <= ? LIMIT ?+0)`
	return tx.Change(query, now, limit)
}
