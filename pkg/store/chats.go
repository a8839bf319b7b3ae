package store

import (
	"context"
	"strings"

	"arizuko/pkg/msg"
)

const (
	queryAnyAlias = `SELECT EXISTS (SELECT 1 FROM chat_aliases)`
)

// Chat returns a chat's row, nil if there is none yet.
func (r Reader) Chat(ctx context.Context, jid string) (*msg.Chat, error) {
	var c msg.Chat
	found, err := r.Get(ctx, []any{&c.JID, &c.Kind, &c.Title, &c.StickyTopic, &c.StickyGroup, &c.StickyAt}, `SELECT jid, kind, title, ifnull(sticky_topic,''), ifnull(sticky_group,''), ifnull(sticky_at,0)
		FROM chats WHERE jid = ?`,
		jid)
	if err != nil || !found {
		return nil, err
	}
	return &c, nil
}

// TopicOfThread is the named topic a platform thread is bound to, "" for none.
func (r Reader) TopicOfThread(ctx context.Context, chatJID, threadID string) (string, error) {
	return Value[string](ctx, r, `SELECT topic FROM topic_threads WHERE chat_jid = ? AND thread_id = ?`,
		chatJID, threadID)
}

// EnsureChat inserts a chat with the kind its address suggests, unless it has a
// row already.
func (tx *Tx) EnsureChat(jid string, now int64) error {
	jid, err := tx.Address(Uncancelled(), jid)
	if err != nil {
		return err
	}
	platform, _ := msg.SplitJID(jid)
	return tx.Exec(`INSERT INTO chats (jid, platform, kind, last_seen_at) VALUES (?,?,?,?) ON CONFLICT (jid) DO NOTHING`,
		jid, platform, msg.KindOfJID(jid), now)
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

// oldID is the prefix of platform ids that a chat's messages had at its former
// address: the new chat counts from 1 again.
const oldID = "old:"

// maxAliases bounds a chain of addresses: a chat that moved more often is
// handled where the chain is cut.
const maxAliases = 16

// alias is the next address of a chat that was moved, "" for one that was not.
// moving: some of its rows still have the old address.
func (r Reader) alias(ctx context.Context, jid string) (next string, moving bool, err error) {
	_, err = r.Get(ctx, []any{&next, &moving}, `SELECT new_jid, moving FROM chat_aliases WHERE old_jid = ?`, jid)
	return next, moving, err
}

// addresses are the addresses of a chat from a former one to the present one,
// jid alone if it was never moved. A loop, which only foreign writes can make,
// counts as no move.
func (r Reader) addresses(ctx context.Context, jid string) ([]string, error) {
	all := []string{jid}
	for len(all) <= maxAliases {
		next, _, err := r.alias(ctx, all[len(all)-1])
		if err != nil || next == "" {
			return all, err
		}
		for _, known := range all {
			if next == known {
				return all[:1], nil
			}
		}
		all = append(all, next)
	}
	return all, nil
}

// Address is the present address of a chat: jid, unless the chat was moved.
func (r Reader) Address(ctx context.Context, jid string) (string, error) {
	all, err := r.addresses(ctx, jid)
	return all[len(all)-1], err
}

// followAliases changes a message for a former address of a chat to one for its
// present address. If the message is among the rows that are still to be moved, it
// returns that row's id.
func (tx *Tx) followAliases(m *msg.Message) (stored int64, err error) {
	if exist, err := tx.aliasesExist(); err != nil || !exist {
		return 0, err
	}
	all, err := tx.addresses(Uncancelled(), m.ChatJID)
	for _, next := range all[1:] {
		if m.PlatformID != "" {
			found, err := tx.Find([]any{&stored}, queryMessageID, m.ChatJID, m.PlatformID)
			if err != nil || found {
				return stored, err
			}
		}
		m.ChatJID = next
		for _, id := range [...]*string{&m.PlatformID, &m.ReplyToID, &m.TargetID} {
			if *id != "" {
				*id = oldID + *id
			}
		}
	}
	return 0, err
}

// aliasesExist reports whether any chat was ever moved. It reads that once for all
// writes of a commit.
func (tx *Tx) aliasesExist() (exist bool, err error) {
	if tx.aliases == nil {
		if _, err := tx.Find([]any{&exist}, queryAnyAlias); err != nil {
			return false, err
		}
		tx.aliases = &exist
	}
	return *tx.aliases, nil
}

// movedMessage finds a row by its chat's address or platform id before a move, or
// after a move that has not reached the row yet; nil if there is none.
func (r Reader) movedMessage(ctx context.Context, chatJID, platformID string) (*msg.Message, error) {
	all, err := r.addresses(ctx, chatJID)
	if err != nil {
		return nil, err
	}
	for i, jid := range all[1:] {
		id := strings.Repeat(oldID, i+1) + platformID
		if m, err := First(r.Messages(ctx, queryByPlatformID, jid, id)); m != nil || err != nil {
			return m, err
		}
	}
	id, isOld := strings.CutPrefix(platformID, oldID)
	if !isOld {
		return nil, nil
	}
	former, err := All(ctx, r, One[string], `SELECT old_jid FROM chat_aliases INDEXED BY chat_aliases_moving WHERE moving = 1 AND new_jid = ?`,
		chatJID)
	if err != nil {
		return nil, err
	}
	for _, jid := range former {
		if m, err := First(r.Messages(ctx, queryByPlatformID, jid, id)); m != nil || err != nil {
			return m, err
		}
	}
	return nil, nil
}
