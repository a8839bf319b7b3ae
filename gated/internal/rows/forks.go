package rows

import (
	"context"
	"fmt"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// OpenForks are the topics of the open forks of a group in a chat, the oldest first, at most limit.
func OpenForks(ctx context.Context, r store.Reader, folder, chatJID string, limit int) ([]string, error) {
	const query = `SELECT topic FROM forks INDEXED BY forks_open WHERE chat_jid = ? AND folder = ? AND ended_at IS NULL ORDER BY created_at, topic LIMIT ?+0`
	return store.All(ctx, r, store.One[string], query, chatJID, folder, limit)
}

// ForkTaken reports whether a topic cannot become a fork of a group in a chat: there is or
// was such a fork in the chat, the group has an open one in another chat, whose session it
// would share, or users have begun the topic.
func ForkTaken(ctx context.Context, r store.Reader, folder, chatJID, topic string) (bool, error) {
	// A tab of a web chat stays one when its fork has ended. A topic with a session that never was a fork is one of
	// users.
	const query = `SELECT EXISTS (SELECT 1 FROM forks WHERE chat_jid = ?2 AND topic = ?3)
		OR EXISTS (SELECT 1 FROM forks WHERE folder = ?1 AND topic = ?3 AND (ended_at IS NULL OR chat_jid LIKE 'web:%'))
		OR EXISTS (SELECT 1 FROM topic_threads WHERE chat_jid = ?2 AND topic = ?3)
		OR EXISTS (SELECT 1 FROM sessions WHERE group_folder = ?1 AND topic = ?3 AND NOT EXISTS (SELECT 1 FROM forks WHERE folder = ?1 AND topic = ?3))`
	return store.Value[bool](ctx, r, query, folder, chatJID, topic)
}

// LastFork is the highest number that a correction has in a chat, 0 for none. first is the
// topic of number 1.
func LastFork(ctx context.Context, r store.Reader, chatJID, first string) (int, error) {
	// The first is <topic>#fix, the others end in a number.
	const query = `SELECT ifnull(max(CASE WHEN topic = ?2 THEN 1 ELSE CAST(substr(topic, length(?2) + 1) AS INTEGER) END), 0)
		FROM forks WHERE chat_jid = ?1 AND topic >= ?2 AND topic < ?2 || ':' AND NOT glob('*[^0-9]*', substr(topic, length(?2) + 1))`
	return store.Value[int](ctx, r, query, chatJID, first)
}

// PutFork stores an open fork. A topic that is or was a fork of the chat is an ErrRefused.
func PutFork(tx *store.Tx, f *msg.Fork) error {
	const query = `INSERT INTO forks (chat_jid, topic, folder, thread_id, own_thread, message_id, created_at) VALUES (?,?,?,?,?,?,?)`
	jid, err := tx.Address(store.Uncancelled(), f.ChatJID)
	if err != nil {
		return err
	}
	if err := tx.Exec(query, jid, f.Topic, f.Folder, f.ThreadID, f.OwnThread, f.MessageID,
		f.CreatedAt); err != nil {
		return fmt.Errorf("fork %s: %w", f.Topic, err)
	}
	return nil
}

// ForksOfRow are the forks that a message may run in, those of all groups, the first of a
// group being its own: forks of the message's place that it replies to, then the one whose
// own thread it is in, which may have ended. In a thread whose replies do not name
// a message, a message replies to every fork, the newest first.
func ForksOfRow(ctx context.Context, r store.Reader, m *msg.Message) ([]*msg.Fork, error) {
	forks, err := r.RepliedForks(ctx, m)
	if err != nil || m.ThreadID == "" {
		return forks, err
	}
	own, err := r.ForkOfThread(ctx, m.ChatJID, m.ThreadID)
	if err != nil || own == nil {
		return forks, err
	}
	return append(forks, own), nil
}

// LastAnswer is the newest message of a group's agent in a place of a chat, 0 for none.
func LastAnswer(ctx context.Context, r store.Reader, folder, chatJID, place string) (int64, error) {
	// Of the newest 1,000 spoken rows of the chat.
	const query = `SELECT id FROM (SELECT id, direction, source, topic, turn_id FROM messages INDEXED BY messages_chat
		WHERE ` + store.Spoken + ` AND chat_jid = ?1 ORDER BY id DESC LIMIT 1000) m
		WHERE m.direction = 'out' AND m.source IN ('agent', 'tool') AND m.topic = ?2
		AND (SELECT folder FROM turns t WHERE t.id = m.turn_id) = ?3 ORDER BY id DESC LIMIT 1`
	return store.Value[int64](ctx, r, query, chatJID, place, folder)
}
