package store

import (
	"context"
	"math"
	"slices"
	"strings"

	"arizuko/pkg/msg"
)

// Search is what SearchMessages looks for.
type Search struct {
	Folder  string // the group whose rows are searched
	ChatJID string // the chat all of whose rows are searched
	// that a message has as its last edit left it, in any case for ASCII letters; its wildcards stand for themselves
	Text   string
	Before SearchPosition // only rows after it; the zero position is before the newest row
	Limit  int
	// Others are the other chats whose rows are searched.
	Others ObserveScope
}

// SearchPosition is how far a search has gone: newest first, in the order of ids in the chat, and in that of decisions
// in the other chats, where a row can be decided long after it was stored. 0 is the beginning of either.
type SearchPosition struct{ ID, Decision int64 }

// After returns the position after the first rows of a result.
func (s *Search) After(found []*msg.Message) SearchPosition {
	after := s.Before
	for _, m := range found {
		if m.ChatJID == s.ChatJID {
			after.ID = m.ID
		} else {
			after.Decision = m.DecisionSeq
		}
	}
	return after
}

// ObserveScope is how much of a group's other chats an agent may read.
type ObserveScope string

// The scopes.
const (
	ScopeAll    ObserveScope = "all"
	ScopeShared ObserveScope = "shared" // all but DMs
	ScopeNone   ObserveScope = "none"
)

// Bounds of a search in a chat, and of one in the other chats of a group. Each page is a statement of its own:
// between them other readers of the process get a connection.
const (
	maxSearchRows  = 10_000
	maxSearchBytes = 32 << 20
	searchPageRows = 500
	searchPageSize = 4 << 20 // bytes; a page has one row at least
)

// SearchMessages returns messages of a chat, and rows that were routed to a group in
// other chats, as their last edits left them. Those of the chat come newest first, and so do the others, by their
// decision; of two rows next to each other the newer one comes first. It considers the last 10,000 rows of each, or
// their last 32 MiB. Contents are cut after 8,192 characters.
func (r Reader) SearchMessages(ctx context.Context, s Search) ([]*msg.Message, error) {
	pattern := "%" + escapeLike(s.Text) + "%"
	found, err := r.searchPages(ctx, s.Limit, orNewest(s.Before.ID), querySearchChatPage, s.ChatJID,
		func(from, before int64, limit int) ([]*msg.Message, error) {
			return r.asChanged(ctx, querySearchChat, s.ChatJID, allChanges, from, before, pattern, limit)
		})
	if err != nil || s.Others != ScopeAll && s.Others != ScopeShared {
		return found, err
	}
	others, err := r.searchPages(ctx, s.Limit, orNewest(s.Before.Decision), querySearchRoutedPage, s.Folder,
		func(from, before int64, limit int) ([]*msg.Message, error) {
			return r.asChanged(ctx, querySearchRouted, s.Folder, allChanges, from, before, s.ChatJID, pattern,
				s.Others == ScopeShared, limit)
		})
	if err != nil {
		return nil, err
	}
	return merged(found, others, s.Limit), nil
}

func orNewest(position int64) int64 {
	if position == 0 {
		return math.MaxInt64
	}
	return position
}

// merged takes the row with the higher id of the first ones of two lists, again and again.
func merged(a, b []*msg.Message, limit int) (all []*msg.Message) {
	for len(all) < limit && len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].ID > b[0].ID {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return all
}

// searchPages searches rows below a position, the highest first, until limit are found. pages lists their
// positions and sizes for a key, and search looks in those from a position to below another one.
func (r Reader) searchPages(ctx context.Context, limit int, before int64, pages, key string,
	search func(from, before int64, limit int) ([]*msg.Message, error)) (found []*msg.Message, err error) {
	for rows, bytes := 0, int64(0); rows < maxSearchRows && bytes < maxSearchBytes && len(found) < limit; {
		from, n, size := before, 0, int64(0)
		err := r.each(ctx, func(scan scanner) (bool, error) {
			var position, length int64
			if err := scan(&position, &length); err != nil {
				return false, err
			}
			if n > 0 && size+length > searchPageSize {
				return false, nil
			}
			from, n, size = position, n+1, size+length
			return true, nil
		}, pages, key, before, searchPageRows)
		if err != nil || n == 0 {
			return found, err
		}
		page, err := search(from, before, limit-len(found))
		if err != nil {
			return nil, err
		}
		found = append(found, page...)
		before, rows, bytes = from, rows+n, bytes+size
	}
	return found, nil
}

// allChanges is a row id after all edits and deletions.
const allChanges = math.MaxInt64

// maxFoundContent bounds an edited text, in bytes: as many as 8,192 characters can have.
const maxFoundContent = 32 << 10

// asChanged returns messages as their last edits left them.
func (r Reader) asChanged(ctx context.Context, query string, args ...any) ([]*msg.Message, error) {
	rows, err := r.messages(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	for _, m := range rows {
		change, err := r.LastChange(ctx, m.ID, allChanges)
		if err != nil {
			return nil, err
		}
		if change != nil && !change.Deleted {
			m.Content = strings.ToValidUTF8(change.Content[:min(len(change.Content), maxFoundContent)], "")
		}
	}
	return rows, nil
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

// Around returns messages of a chat and thread around one of them, as their last edits left
// them: at most limit before it and limit after it, with it, oldest first. Contents are cut after 8,192 characters.
func (r Reader) Around(ctx context.Context, m *msg.Message, limit int) ([]*msg.Message, error) {
	before, err := r.asChanged(ctx, queryBeforeMessage, m.ChatJID, allChanges, m.ID, m.ThreadID, limit+1)
	if err != nil {
		return nil, err
	}
	slices.Reverse(before)
	after, err := r.asChanged(ctx, queryAfterMessage, m.ChatJID, allChanges, m.ID, m.ThreadID, limit)
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
