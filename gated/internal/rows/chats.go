package rows

import (
	"context"
	"maps"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// ChatKind is the kind of a chat, guessed from its address if it is not stored.
func ChatKind(ctx context.Context, r store.Reader, jid string) (msg.ChatKind, error) {
	chat, err := r.Chat(ctx, jid)
	if err != nil || chat == nil {
		return msg.KindOfJID(jid), err
	}
	return chat.Kind, nil
}

// ChatFacts is what the gateway decides the rows of a chat by.
type ChatFacts struct {
	Chat      *msg.Chat       // nil for none yet
	Stops     []Stop          // that are not carried out yet
	Asks      bool            // it shows open questions
	Operators map[string]bool // with those who became ones by a code
	Code      *OperatorCode   // that is open, nil for none
}

// ReadChatFacts returns the facts about a chat. The operators named are ones without a code.
func ReadChatFacts(ctx context.Context, r store.Reader, jid string, named map[string]bool) (f ChatFacts, err error) {
	const query = `SELECT ifnull(c.jid,''), ifnull(c.kind,''), ifnull(c.title,''), ifnull(c.sticky_topic,''), ifnull(c.sticky_group,''),
		ifnull(c.sticky_at,0), EXISTS (SELECT 1 FROM stops WHERE chat_jid = ?1), EXISTS (SELECT 1 FROM asks a INDEXED BY asks_open
		CROSS JOIN messages m ON m.id = a.message_id WHERE a.state = 'open' AND m.chat_jid = ?1)` + operatorColumns + `
		FROM (SELECT 1) one LEFT JOIN chats c ON c.jid = ?1` + joinOperators
	var c msg.Chat
	var stopped bool
	f.Operators, f.Code, err = getWithOperators(ctx, r, []any{&c.JID, &c.Kind, &c.Title, &c.StickyTopic, &c.StickyGroup,
		&c.StickyAt, &stopped, &f.Asks}, query, jid)
	maps.Copy(f.Operators, named)
	if c.JID != "" {
		f.Chat = &c
	}
	if err == nil && stopped {
		f.Stops, err = Stops(ctx, r, jid)
	}
	return f, err
}

// HasTopLevel reports whether a chat takes messages outside of threads. The forums and media channels of Discord do
// not: every message there is in a post.
func HasTopLevel(ctx context.Context, r store.Reader, jid string) (bool, error) {
	// Threads of all other chats have other kinds.
	const query = `SELECT EXISTS (SELECT 1 FROM platform_threads WHERE chat_jid = ? AND kind = 'forum_post')`
	if msg.FamilyOf(jid) != "discord" {
		return true, nil
	}
	var forum bool
	_, err := r.Get(ctx, []any{&forum}, query, jid)
	return !forum, err
}

// BindThread binds a platform thread to a named topic.
func BindThread(tx *store.Tx, chatJID, threadID, topic string) error {
	jid, err := tx.Address(store.Uncancelled(), chatJID)
	if err != nil {
		return err
	}
	return tx.Exec(`INSERT INTO topic_threads (chat_jid, thread_id, topic) VALUES (?,?,?)
		ON CONFLICT (chat_jid, thread_id) DO UPDATE SET topic = excluded.topic`, jid, threadID, topic)
}

// PinGroup pins a chat to a group, or clears the pin with "". It ends the
// engagement windows older than at.
func PinGroup(tx *store.Tx, jid, folder string, at int64) error {
	tx.Note(failpoint.Pin)
	jid, err := tx.Address(store.Uncancelled(), jid)
	if err != nil {
		return err
	}
	err = tx.Exec(`UPDATE chats SET sticky_group = ?, sticky_at = ? WHERE jid = ?`, store.Null(folder), at, jid)
	if err == nil {
		tx.Poke("routd")
	}
	return err
}

// PinTopic pins a chat to a topic, or clears the pin with "".
func PinTopic(tx *store.Tx, jid, topic string) error {
	tx.Note(failpoint.Pin)
	jid, err := tx.Address(store.Uncancelled(), jid)
	if err != nil {
		return err
	}
	return tx.Exec(`UPDATE chats SET sticky_topic = ? WHERE jid = ?`, store.Null(topic), jid)
}

// TopLevels returns those of some chats that take messages outside of threads, and the others.
func TopLevels(ctx context.Context, r store.Reader, jids []string) (with, without []string, err error) {
	for _, jid := range jids {
		has, err := HasTopLevel(ctx, r, jid)
		switch {
		case err != nil:
			return nil, nil, err
		case has:
			with = append(with, jid)
		default:
			without = append(without, jid)
		}
	}
	return with, without, nil
}

// ChatsPage returns the chats whose addresses come after one, at most limit, by address.
func ChatsPage(ctx context.Context, r store.Reader, after string, limit int) ([]*msg.Chat, error) {
	const query = `SELECT jid, kind, title, ifnull(sticky_topic,''), ifnull(sticky_group,''), ifnull(sticky_at,0)
		FROM chats WHERE jid > ? ORDER BY jid LIMIT ?+0`
	return store.All(ctx, r, func(scan store.Scan) (*msg.Chat, error) {
		var c msg.Chat
		err := scan(&c.JID, &c.Kind, &c.Title, &c.StickyTopic, &c.StickyGroup, &c.StickyAt)
		return &c, err
	}, query, after, limit)
}

// ThreadOfTopic is a thread of a chat that is bound to a named topic, "" for none.
func ThreadOfTopic(ctx context.Context, r store.Reader, chatJID, topic string) (string, error) {
	const query = `SELECT thread_id FROM topic_threads WHERE chat_jid = ? AND topic = ? ORDER BY thread_id LIMIT 1`
	return store.Value[string](ctx, r, query, chatJID, topic)
}

// HasThread reports whether a chat is known to have a thread.
func HasThread(ctx context.Context, r store.Reader, chatJID, thread string) (bool, error) {
	// A thread that the platform has described, or in which a message was written.
	const query = `SELECT EXISTS (SELECT 1 FROM platform_threads WHERE chat_jid = ?1 AND thread_id = ?2)
		OR EXISTS (SELECT 1 FROM messages INDEXED BY messages_thread WHERE thread_id <> '' AND ` + store.Spoken + ` AND chat_jid = ?1 AND thread_id = ?2)`
	return store.Value[bool](ctx, r, query, chatJID, thread)
}
