package store

import (
	"context"

	"arizuko/pkg/msg"
)

// Chat returns a chat's row, nil if there is none yet.
func (r Reader) Chat(ctx context.Context, jid string) (*msg.Chat, error) {
	var c msg.Chat
	found, err := r.Get(ctx, []any{&c.JID, &c.Kind, &c.Title, &c.StickyTopic, &c.StickyGroup, &c.StickyAt}, queryChat,
		jid)
	if err != nil || !found {
		return nil, err
	}
	return &c, nil
}

// TopicOfThread is the named topic a platform thread is bound to, "" for none.
func (r Reader) TopicOfThread(ctx context.Context, chatJID, threadID string) (string, error) {
	return Value[string](ctx, r, queryThreadTopic, chatJID, threadID)
}

// EnsureChat inserts a chat with the kind its address suggests, unless it has a
// row already.
func (tx *Tx) EnsureChat(jid string, now int64) error {
	jid, err := tx.Address(Uncancelled(), jid)
	if err != nil {
		return err
	}
	platform, _ := msg.SplitJID(jid)
	return tx.Exec(insertChat, jid, platform, msg.KindOfJID(jid), now)
}

// PutChat writes what an adapter knows about a chat; pins stay. What it knows about
// a former address does not replace what is stored about the present one.
func (tx *Tx) PutChat(jid string, kind msg.ChatKind, title string, now int64) error {
	present, err := tx.Address(Uncancelled(), jid)
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
	return tx.Exec(query, present, platform, kind, CleanName(title), now)
}

// PutThread writes what an adapter knows about a thread. Empty fields leave the
// stored ones unchanged.
func (tx *Tx) PutThread(t msg.Thread) error {
	jid, err := tx.Address(Uncancelled(), t.ChatJID)
	if err != nil {
		return err
	}
	return tx.Exec(`INSERT INTO platform_threads (chat_jid, thread_id, kind, title, parent_author) VALUES (?,?,?,?,?)
		ON CONFLICT (chat_jid, thread_id) DO UPDATE SET kind = ifnull(nullif(excluded.kind, ''), platform_threads.kind),
		title = ifnull(nullif(excluded.title, ''), platform_threads.title), parent_author = ifnull(nullif(excluded.parent_author, ''), platform_threads.parent_author)`,
		jid, t.ID, t.Kind, CleanName(t.Title), CleanName(t.Author))
}
