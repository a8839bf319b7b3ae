package store

import (
	"context"
	"strings"

	"arizuko/pkg/msg"
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

// PutChat writes the kind and title that an adapter reads from the platform; pins stay. Those of a former address do
// not replace those of the present one.
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

// PutThread writes the data of a thread that an adapter has. Empty fields leave the
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

// MaxAliases bounds a chain of addresses: a chat that moved more often is
// handled where the chain is cut.
const MaxAliases = 16

// addresses are the addresses of a chat from a former one to the present one,
// jid alone if it was never moved. A loop, which only foreign writes can make,
// counts as no move.
func (r Reader) addresses(ctx context.Context, jid string) ([]string, error) {
	all := []string{jid}
	for len(all) <= MaxAliases {
		next, err := Value[string](ctx, r, `SELECT new_jid FROM chat_aliases WHERE old_jid = ?`, all[len(all)-1])
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
		if _, err := tx.Find([]any{&exist}, `SELECT EXISTS (SELECT 1 FROM chat_aliases)`); err != nil {
			return false, err
		}
		tx.aliases = &exist
	}
	return *tx.aliases, nil
}

// PutAdmin stores whether a sender administers a chat.
func (tx *Tx) PutAdmin(chatJID, sender string, is bool) error {
	present, err := tx.Address(Uncancelled(), chatJID)
	if err != nil {
		return err
	}
	query := `DELETE FROM chat_admins WHERE chat_jid = ? AND sender = ?`
	if is {
		query = `INSERT INTO chat_admins (chat_jid, sender) VALUES (?,?) ON CONFLICT DO NOTHING`
	}
	return tx.Exec(query, present, sender)
}

// IsAdmin reports whether a sender administers a chat, as far as its platform has said so.
func (r Reader) IsAdmin(ctx context.Context, chatJID, sender string) (bool, error) {
	return Value[bool](ctx, r, `SELECT EXISTS (SELECT 1 FROM chat_admins WHERE chat_jid = ? AND sender = ?)`, chatJID, sender)
}

// PutAlias stores that a chat has another address from now on. Its rows are still to be moved.
func (tx *Tx) PutAlias(from, to string) error {
	tx.aliases = nil
	return tx.Exec(`INSERT INTO chat_aliases (old_jid, new_jid, moving) VALUES (?,?,1)
		ON CONFLICT (old_jid) DO UPDATE SET new_jid = excluded.new_jid, moving = 1`,
		from, to)
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
