package rows

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
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
func SearchMessages(ctx context.Context, r store.Reader, s Search) ([]*msg.Message, error) {
	pattern := "%" + escapeLike(s.Text) + "%"
	found, err := searchPages(ctx, r, s.Limit, store.OrNewest(s.Before.ID), querySearchChatPage, s.ChatJID,
		func(from, before int64, limit int) ([]*msg.Message, error) {
			return asChanged(ctx, r, querySearchChat, s.ChatJID, store.AllChanges, from, before, pattern, limit)
		})
	if err != nil || s.Others != ScopeAll && s.Others != ScopeShared {
		return found, err
	}
	others, err := searchPages(ctx, r, s.Limit, store.OrNewest(s.Before.Decision), querySearchRoutedPage, s.Folder,
		func(from, before int64, limit int) ([]*msg.Message, error) {
			return asChanged(ctx, r, querySearchRouted, s.Folder, store.AllChanges, from, before, s.ChatJID, pattern,
				s.Others == ScopeShared, limit)
		})
	if err != nil {
		return nil, err
	}
	return merged(found, others, s.Limit), nil
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
func searchPages(ctx context.Context, r store.Reader, limit int, before int64, pages, key string,
	search func(from, before int64, limit int) ([]*msg.Message, error)) (found []*msg.Message, err error) {
	for rows, bytes := 0, int64(0); rows < maxSearchRows && bytes < maxSearchBytes && len(found) < limit; {
		from, n, size := before, 0, int64(0)
		err := r.Each(ctx, func(scan store.Scan) (bool, error) {
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

// maxFoundContent bounds an edited text, in bytes: as many as 8,192 characters can have.
const maxFoundContent = 32 << 10

// asChanged returns messages as their last edits left them.
func asChanged(ctx context.Context, r store.Reader, query string, args ...any) ([]*msg.Message, error) {
	rows, err := r.Messages(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	for _, m := range rows {
		change, err := r.LastChange(ctx, m.ID, store.AllChanges)
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
func Around(ctx context.Context, r store.Reader, m *msg.Message, limit int) ([]*msg.Message, error) {
	before, err := asChanged(ctx, r, queryBeforeMessage, m.ChatJID, store.AllChanges, m.ID, m.ThreadID, limit+1)
	if err != nil {
		return nil, err
	}
	slices.Reverse(before)
	after, err := asChanged(ctx, r, queryAfterMessage, m.ChatJID, store.AllChanges, m.ID, m.ThreadID, limit)
	return append(before, after...), err
}

// Ancestors returns the messages that a message answers by its chain of replies, the nearest
// first, at most limit. The chain ends before a message that is not stored, or that it has already.
func Ancestors(ctx context.Context, r store.Reader, m *msg.Message, limit int) (chain []*msg.Message, err error) {
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

// RecentRow is one of the recent rows of a chat: what a user or bot said, or a message of
// the bot itself, with edits applied.
type RecentRow struct {
	ID int64
	// the row that it replies to, or that its thread was opened from; 0 if that is none of the recent ones
	Parent      int64
	ThreadID    string
	Opens       bool // the thread that is read was opened from it
	TurnID      int64
	Timestamp   int64
	Own         bool // the bot's
	Quoted      bool // it is known only since a message that answers, quotes or forwards it brought it along
	Kind        msg.Kind
	Sender      string
	SenderName  string
	Content     string // its first 2048 characters; of a poll all
	Omitted     int    // bytes of the content that are left out
	Attachments []msg.Attachment

	platformID, replyTo string
}

// Scope is the part of a chat whose recent rows are read: one thread, else one topic
// of a web chat, else all of it.
type Scope struct {
	ChatJID  string
	ThreadID string
	WebTopic *string
}

// Recent returns the newest 100 rows that count in a chat, up to a row id, oldest
// first. Only the newest 1,000 messages of users and bots are considered, not votes,
// reactions, edits and joins. Before those of a thread comes the row that it was
// opened from.
func Recent(ctx context.Context, r store.Reader, s Scope, upto int64) ([]RecentRow, error) {
	query, args := queryRecent, []any{s.ChatJID, upto}
	switch {
	case s.ThreadID != "":
		query, args = queryRecentThread, append(args, s.ThreadID)
	case s.WebTopic != nil:
		query, args = queryRecentTopic, append(args, *s.WebTopic)
	}
	rows, err := store.All(ctx, r, scanRecent, query, args...)
	if err != nil {
		return nil, err
	}
	if s.ThreadID != "" {
		opening, err := recentOpening(ctx, r, s, upto)
		if err != nil {
			return nil, err
		}
		rows = append(rows, opening...)
	}
	slices.Reverse(rows)
	return rows, linkRecent(ctx, r, rows)
}

// recentOpening is the row that a thread was opened from, of which any part may be meant; none if the thread has it
// itself, as posts of forums do, or began without one.
func recentOpening(ctx context.Context, r store.Reader, s Scope, upto int64) ([]RecentRow, error) {
	m, err := r.MessageByPlatformID(ctx, s.ChatJID, s.ThreadID)
	if err != nil || m == nil {
		return nil, err
	}
	rows, err := store.All(ctx, r, scanRecent, queryRecentOpening, s.ChatJID, upto, m.ID, s.ThreadID)
	for i := range rows {
		rows[i].Opens, rows[i].platformID = true, s.ThreadID
	}
	return rows, err
}

func scanRecent(scan store.Scan) (m RecentRow, err error) {
	var size int
	var turn sql.NullInt64
	var attachments sql.NullString
	err = scan(&m.ID, &turn, &m.platformID, &m.replyTo, &m.ThreadID, &m.Timestamp, &m.Own, &m.Quoted, &m.Kind,
		&m.Sender, &m.SenderName, &m.Content, &size, &attachments)
	m.TurnID, m.Omitted = turn.Int64, max(0, size-len(m.Content))
	if attachments.Valid && json.Unmarshal([]byte(attachments.String), &m.Attachments) != nil {
		m.Attachments = nil // JSON of another shape, by a foreign adapter
	}
	return m, err
}

// linkRecent sets the parents of rows. A reply may name any part of a message of the
// bot, so the parts are read if a user's reply names none of the rows.
func linkRecent(ctx context.Context, r store.Reader, rows []RecentRow) error {
	known := make(map[string]int64, len(rows))
	var own []int64
	for i := range rows {
		if rows[i].platformID != "" {
			known[rows[i].platformID] = rows[i].ID
		}
		if rows[i].Own {
			own = append(own, rows[i].ID)
		}
	}
	parts := slices.ContainsFunc(rows, func(m RecentRow) bool {
		return m.replyTo != "" && known[m.replyTo] == 0 &&
			!m.Own
	})
	if parts && len(own) > 0 {
		if err := addParts(ctx, r, own, known); err != nil {
			return err
		}
	}
	for i := range rows {
		m := &rows[i]
		m.Parent = known[m.replyTo]
		if opening := known[m.ThreadID]; m.Parent == 0 && opening != m.ID {
			m.Parent = opening
		}
	}
	return nil
}

// addParts adds the platform ids of all parts of rows.
func addParts(ctx context.Context, r store.Reader, rows []int64, known map[string]int64) error {
	list, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return r.Each(ctx, func(scan store.Scan) (bool, error) {
		var platformID string
		var id int64
		err := scan(&platformID, &id)
		known[platformID] = id
		return true, err
	}, queryRecentParts, string(list))
}
