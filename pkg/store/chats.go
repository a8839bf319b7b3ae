package store

import (
	"context"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// Chat returns a chat's row, nil if there is none yet.
func (r Reader) Chat(ctx context.Context, jid string) (*msg.Chat, error) {
	var c msg.Chat
	found, err := r.get(ctx, []any{&c.JID, &c.Kind, &c.Title, &c.StickyTopic, &c.StickyGroup, &c.StickyAt}, queryChat,
		jid)
	if err != nil || !found {
		return nil, err
	}
	return &c, nil
}

// ChatKind is the kind of a chat, guessed from its address if it is not stored.
func (r Reader) ChatKind(ctx context.Context, jid string) (msg.ChatKind, error) {
	chat, err := r.Chat(ctx, jid)
	if err != nil || chat == nil {
		return msg.KindOfJID(jid), err
	}
	return chat.Kind, nil
}

// HasTopLevel reports whether a chat takes messages outside of threads. The forums and media channels of Discord do
// not: every message there is in a post.
func (r Reader) HasTopLevel(ctx context.Context, jid string) (bool, error) {
	if msg.FamilyOf(jid) != "discord" {
		return true, nil
	}
	var forum bool
	_, err := r.get(ctx, []any{&forum}, queryIsForum, jid)
	return !forum, err
}

// TopicOfThread is the named topic a platform thread is bound to, "" for none.
func (r Reader) TopicOfThread(ctx context.Context, chatJID, threadID string) (string, error) {
	return value[string](ctx, r, queryThreadTopic, chatJID, threadID)
}

// BindThread binds a platform thread to a named topic.
func (tx *Tx) BindThread(chatJID, threadID, topic string) error {
	jid, err := tx.Address(uncancelled(), chatJID)
	if err != nil {
		return err
	}
	return tx.exec(`INSERT INTO topic_threads (chat_jid, thread_id, topic) VALUES (?,?,?)
		ON CONFLICT (chat_jid, thread_id) DO UPDATE SET topic = excluded.topic`, jid, threadID, topic)
}

// EnsureChat inserts a chat with the kind its address suggests, unless it has a
// row already.
func (tx *Tx) EnsureChat(jid string, now int64) error {
	jid, err := tx.Address(uncancelled(), jid)
	if err != nil {
		return err
	}
	platform, _ := msg.SplitJID(jid)
	return tx.exec(insertChat, jid, platform, msg.KindOfJID(jid), now)
}

// PutChat writes what an adapter knows about a chat; pins stay. What it knows about
// a former address does not replace what is stored about the present one.
func (tx *Tx) PutChat(jid string, kind msg.ChatKind, title string, now int64) error {
	present, err := tx.Address(uncancelled(), jid)
	if err != nil {
		return err
	}
	platform, _ := msg.SplitJID(present)
	query := `INSERT INTO chats (jid, platform, kind, title, last_seen_at) VALUES (?,?,?,?,?)
		ON CONFLICT (jid) DO UPDATE SET kind = excluded.kind, title = excluded.title, last_seen_at = excluded.last_seen_at`
	if present != jid {
		query = `INSERT INTO chats (jid, platform, kind, title, last_seen_at) VALUES (?,?,?,?,?)
			ON CONFLICT (jid) DO UPDATE SET title = excluded.title WHERE chats.title = ''`
	}
	return tx.exec(query, present, platform, kind, cleanName(title), now)
}

// PinGroup pins a chat to a group, or clears the pin with "". It ends the
// engagement windows older than at.
func (tx *Tx) PinGroup(jid, folder string, at int64) error {
	tx.note(failpoint.Pin)
	jid, err := tx.Address(uncancelled(), jid)
	if err != nil {
		return err
	}
	err = tx.exec(`UPDATE chats SET sticky_group = ?, sticky_at = ? WHERE jid = ?`, null(folder), at, jid)
	if err == nil {
		tx.Poke("routd")
	}
	return err
}

// PinTopic pins a chat to a topic, or clears the pin with "".
func (tx *Tx) PinTopic(jid, topic string) error {
	tx.note(failpoint.Pin)
	jid, err := tx.Address(uncancelled(), jid)
	if err != nil {
		return err
	}
	return tx.exec(`UPDATE chats SET sticky_topic = ? WHERE jid = ?`, null(topic), jid)
}

// PutThread writes what an adapter knows about a thread. Empty fields leave the
// stored ones unchanged.
func (tx *Tx) PutThread(t msg.Thread) error {
	jid, err := tx.Address(uncancelled(), t.ChatJID)
	if err != nil {
		return err
	}
	return tx.exec(`INSERT INTO platform_threads (chat_jid, thread_id, kind, title, parent_author) VALUES (?,?,?,?,?)
		ON CONFLICT (chat_jid, thread_id) DO UPDATE SET kind = ifnull(nullif(excluded.kind, ''), platform_threads.kind),
		title = ifnull(nullif(excluded.title, ''), platform_threads.title), parent_author = ifnull(nullif(excluded.parent_author, ''), platform_threads.parent_author)`,
		jid, t.ID, t.Kind, cleanName(t.Title), cleanName(t.Author))
}

// Thread returns a thread's row, nil if there is none.
func (r Reader) Thread(ctx context.Context, chatJID, id string) (*msg.Thread, error) {
	t := msg.Thread{ChatJID: chatJID, ID: id}
	found, err := r.get(ctx, []any{&t.Kind, &t.Title, &t.Author},
		`SELECT kind, title, parent_author FROM platform_threads WHERE chat_jid = ? AND thread_id = ?`, chatJID, id)
	if err != nil || !found {
		return nil, err
	}
	return &t, nil
}

// RecentThreads lists the threads of a chat whose newest message was stored since a time, in unix ms, the
// one with the oldest such message first.
func (r Reader) RecentThreads(ctx context.Context, chatJID string, since int64) ([]string, error) {
	return collect(ctx, r, func(scan scanner) (id string, err error) {
		err = scan(&id)
		return id, err
	}, queryRecentThreads, chatJID, since)
}
