package store

import (
	"context"
	"strings"

	"arizuko/pkg/msg"
)

// oldID is the prefix of platform ids that a chat's messages had at its former
// address: the new chat counts from 1 again.
const oldID = "old:"

// maxAliases bounds a chain of addresses: a chat that moved more often is
// handled where the chain is cut.
const maxAliases = 16

// alias is the next address of a chat that was moved, "" for one that was not.
// moving: some of its rows still have the old address.
func (r Reader) alias(ctx context.Context, jid string) (next string, moving bool, err error) {
	_, err = r.Get(ctx, []any{&next, &moving}, queryAlias, jid)
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
	former, err := All(ctx, r, One[string], queryMovingTo, chatJID)
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
