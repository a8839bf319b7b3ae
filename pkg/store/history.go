package store

import (
	"context"
	"slices"

	"arizuko/pkg/msg"
)

// Search is what SearchMessages looks for.
type Search struct {
	Folder  string // the group whose rows are searched
	ChatJID string // the chat all of whose rows are searched
	Text    string // that a row's content has, in any case for ASCII letters; its wildcards stand for themselves
	Before  int64  // only rows with a lower id
	Limit   int
	// Others are the other chats whose rows are searched.
	Others ObserveScope
}

// ObserveScope is how much of a group's other chats an agent may read.
type ObserveScope string

// The scopes.
const (
	ScopeAll    ObserveScope = "all"
	ScopeShared ObserveScope = "shared" // all but DMs
	ScopeNone   ObserveScope = "none"
)

// SearchMessages returns messages of a chat, and rows that were routed to a group in
// other chats, newest first. It considers the last 10,000 rows of each.
func (r Reader) SearchMessages(ctx context.Context, s Search) ([]*msg.Message, error) {
	pattern := "%" + escapeLike(s.Text) + "%"
	found, err := r.messages(ctx, querySearchChat, s.ChatJID, s.Before, pattern, s.Limit)
	if err != nil || s.Others == ScopeNone {
		return found, err
	}
	others, err := r.messages(ctx, querySearchRouted, s.Folder, s.Before, pattern, s.ChatJID, s.Others == ScopeShared, s.Limit)
	if err != nil {
		return nil, err
	}
	found = append(found, others...)
	slices.SortFunc(found, func(a, b *msg.Message) int { return int(min(max(b.ID-a.ID, -1), 1)) })
	return found[:min(len(found), s.Limit)], nil
}

// escapeLike makes LIKE's wildcards stand for themselves; the statement names the escape.
func escapeLike(text string) string {
	var b []byte
	for _, c := range []byte(text) {
		if c == '%' || c == '_' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return string(b)
}

// Around returns messages of a chat and thread around one of them: at most limit before
// it and limit after it, with it, oldest first.
func (r Reader) Around(ctx context.Context, m *msg.Message, limit int) ([]*msg.Message, error) {
	before, err := r.messages(ctx, queryBeforeMessage, m.ChatJID, m.ID, m.ThreadID, limit+1)
	if err != nil {
		return nil, err
	}
	slices.Reverse(before)
	after, err := r.messages(ctx, queryAfterMessage, m.ChatJID, m.ID, m.ThreadID, limit)
	return append(before, after...), err
}

// Ancestors returns the messages that a message answers by its chain of replies, the nearest
// first, at most limit. The chain ends before a message that is not stored, or that it has already.
func (r Reader) Ancestors(ctx context.Context, m *msg.Message, limit int) (chain []*msg.Message, err error) {
	seen := map[int64]bool{m.ID: true}
	for len(chain) < limit && m.ReplyToID != "" {
		m, err = r.MessageByPlatformID(ctx, m.ChatJID, m.ReplyToID)
		if err != nil || m == nil || seen[m.ID] {
			return chain, err
		}
		seen[m.ID] = true
		chain = append(chain, m)
	}
	return chain, nil
}
