package rows

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// StateWaiting in a MessageFilter leaves the messages that are queued or being sent, Undecided those without a
// disposition.
const (
	StateWaiting msg.OutState    = "waiting"
	Undecided    msg.Disposition = "undecided"
)

// MessageFilter is which messages a list has. Empty fields exclude nothing.
type MessageFilter struct {
	Match        string // an expression of SearchQuery
	Chat         string
	Folder       string // that the row was routed to
	Sender       string
	Direction    msg.Direction
	Disposition  msg.Disposition
	Reason       msg.Reason
	State        msg.OutState
	Class        msg.ErrorClass // of a failed part
	Uncopied     bool           // only messages that were not replayed
	Signs        bool           // also the reactions that show how it goes on, which lists of a state have as well
	Since, Until int64          // when it was stored, in unix ms: from Since to before Until
	Before       int64          // MessagePage.Next of the page before
	Limit        int
}

// MessagePage is a part of a list, the newest message first; of a group's, in the order of decisions.
type MessagePage struct {
	Rows []*msg.Message // of a search as their last edits left them. Contents are cut after 8,192 characters
	Next int64          // where the next page begins, 0 at the end
	// Through is the last row that was looked at, if the page ends because as many were looked at as one page may, else
	// 0.
	Through int64
}

const (
	// maxLooked is how many rows a page of a list looks at: a page takes milliseconds whatever the filters are.
	maxLooked = 2000
	// listChunk is how many it looks at first. That mostly suffices; the others follow at once, since each search for a
	// frequent word begins by reading where it is.
	listChunk = 200
	// maxMatchTime ends a search for words that are too frequent.
	maxMatchTime = time.Second
)

// ErrTooBroad means that a search took too long: its words are too frequent.
var ErrTooBroad = errors.New("the search takes too long: its words are in too many messages")

// ListMessages returns a page of the messages that a filter leaves. One filter is looked up in its index, the others
// are checked row by row.
func ListMessages(ctx context.Context, r store.Reader, f MessageFilter) (page MessagePage, err error) {
	from, until, err := idsBetween(ctx, r, f.Since, f.Until)
	if err != nil {
		return page, err
	}
	s := f.source()
	position := cmp.Or(f.Before, math.MaxInt64)
	if s.query != queryListFolder {
		position = min(position, until)
	}
	var positions []int64 // of page.Rows
	for looked, size := 0, listChunk; ; size = maxLooked - looked {
		chunk, err := candidates(ctx, r, s, position, from, size)
		if err != nil {
			return page, err
		}
		err = listed(ctx, r, &f, chunk, f.Limit+1-len(page.Rows), func(m *msg.Message, position int64) {
			page.Rows, positions = append(page.Rows, m), append(positions, position)
		})
		if err != nil {
			return page, err
		}
		if len(page.Rows) > f.Limit {
			page.Rows, page.Next = page.Rows[:f.Limit], positions[f.Limit-1]
			return page, nil
		}
		if len(chunk) < size {
			return page, nil
		}
		last := chunk[len(chunk)-1]
		position, looked = last.position, looked+len(chunk)
		if looked >= maxLooked {
			page.Next, page.Through = last.position, last.id
			return page, nil
		}
	}
}

// source is where a list looks for rows.
type source struct{ query, key string }

// source chooses the index that leaves the fewest rows, as far as that is known.
func (f *MessageFilter) source() source {
	switch {
	case f.Match != "":
		return source{store.QuerySearchHits, f.Match}
	case f.Class != "":
		return source{queryListFailed, string(f.Class)}
	case f.State == msg.OutFailed || f.State == msg.OutAmbiguous || f.State == msg.OutCancelled:
		return source{queryListUndelivered, string(f.State)}
	case f.State != "" && f.State != msg.OutSent: // queued, sending or both
		return source{queryListUnsent, ""}
	case f.Disposition == Undecided:
		return source{queryListUndecided, ""}
	case f.Disposition == msg.Onboarding:
		return source{queryListParked, ""}
	case f.Disposition == msg.Dropped && f.Reason != "":
		return source{queryListDropped, string(f.Reason)}
	case f.Sender != "" && f.Direction != msg.Out:
		return source{queryListSender, f.Sender}
	case f.Chat != "":
		return source{queryListChat, f.Chat}
	case f.Folder != "":
		return source{queryListFolder, f.Folder}
	}
	return source{queryListAll, ""}
}

// candidate is a row that a list looks at, and its position in the list.
type candidate struct{ id, position int64 }

// candidates reads the next rows of a source, at most limit.
func candidates(ctx context.Context, r store.Reader, s source, before, from int64, limit int) (all []candidate,
	err error) {
	search := s.query == store.QuerySearchHits
	if search {
		s.key = r.Matching(s.key)
	}
	timed, cancel := context.WithTimeout(ctx, maxMatchTime)
	defer cancel()
	err = r.Scan(timed, search, func(scan store.Scan) (bool, error) {
		var c candidate
		err := scan(&c.id, &c.position)
		all = append(all, c)
		return true, err
	}, s.query, s.key, before, from, limit)
	if err != nil && search && timed.Err() != nil && ctx.Err() == nil {
		err = ErrTooBroad
	}
	return all, err
}

// listed calls add for those candidates that the filter leaves, at most limit, with their positions in the list.
func listed(ctx context.Context, r store.Reader, f *MessageFilter, chunk []candidate, limit int,
	add func(m *msg.Message, position int64)) error {
	ids, positions := make([]int64, len(chunk)), map[int64]int64{}
	for i, c := range chunk {
		ids[i], positions[c.id] = c.id, c.position
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	query := store.QueryListed
	if f.Match != "" {
		query = store.QueryListedFound
	}
	return r.Each(ctx, func(scan store.Scan) (bool, error) {
		var id int64
		m, err := store.ScanMessage(func(dest ...any) error { return scan(append([]any{&id}, dest...)...) })
		if err == nil {
			add(m, positions[id])
		}
		return true, err
	}, query, string(list), int64(store.AllChanges), f.Chat, f.Folder, f.Sender, f.Direction, f.Disposition, f.Reason,
		f.State, f.Since, cmp.Or(f.Until, math.MaxInt64), limit, f.Class, f.Uncopied, f.Signs || f.State != "" || f.Class != "")
}

// idsBetween are the ids of the messages that were stored from since to before until, in unix ms, 0 for any time: the
// first of them, and the first after them. Rows are numbered in the order in which they are stored.
func idsBetween(ctx context.Context, r store.Reader, since, until int64) (from, to int64, err error) {
	last, err := r.LastMessageID(ctx)
	if err != nil {
		return 0, 0, err
	}
	return search(ctx, r, queryIDAfter, last, since, until)
}

// TurnsBetween is idsBetween for turns, by when they were made.
func TurnsBetween(ctx context.Context, r store.Reader, since, until int64) (from, to int64, err error) {
	last, err := store.Value[int64](ctx, r, queryLastTurn)
	if err != nil {
		return 0, 0, err
	}
	return search(ctx, r, queryTurnAfter, last, since, until)
}

// search finds the first row at or after each of two times by halves. last is the last row; query reads the id and the
// time of the first row from an id on.
func search(ctx context.Context, r store.Reader, query string, last int64, since, until int64) (int64, int64, error) {
	found := [2]int64{1, last + 1}
	for i, at := range []int64{since, until} {
		if at <= 0 {
			continue
		}
		low, high := int64(1), last+1 // the answer is between them
		for low < high {
			middle := low + (high-low)/2
			id, stored := high, int64(math.MaxInt64) // if there is no row
			if _, err := r.Get(ctx, []any{&id, &stored}, query, middle); err != nil {
				return 0, 0, err
			}
			if stored < at {
				low = id + 1
			} else {
				high = middle
			}
		}
		found[i] = low
	}
	return found[0], found[1], nil
}

// Count counts the messages in the source of a filter, at most limit. It ignores the filter's other fields.
func Count(ctx context.Context, r store.Reader, f MessageFilter, limit int) (int, error) {
	s := f.source()
	return store.Value[int](ctx, r, countOf(s.query), s.key, int64(math.MaxInt64), 0, limit)
}

func countOf(query string) string { return `SELECT count(*) FROM (` + query + `) n` }

// DroppedReasons returns the reasons for which rows were dropped, sorted.
func DroppedReasons(ctx context.Context, r store.Reader) ([]msg.Reason, error) {
	return store.All(ctx, r, store.One[msg.Reason], queryDroppedReasons)
}

// SearchLag is how far the full-text index is behind.
type SearchLag struct {
	Rows  int   // that are not in it; beyond the limit about as many, since ids of deleted rows count too
	Since int64 // when the oldest of them was stored, in unix ms, 0 for none
	// Deleted is how many deleted rows are still in it, at most the limit. They are not found.
	Deleted int
}

// CountSearchLag counts the rows that are not in the full-text index yet, exactly up to a limit.
func CountSearchLag(ctx context.Context, r store.Reader, limit int) (lag SearchLag, err error) {
	var indexed int64
	if _, err := r.Get(ctx, []any{&indexed}, store.QuerySearchState); err != nil {
		return lag, err
	}
	if _, err := r.Get(ctx, []any{&lag.Rows, &lag.Since}, querySearchWaiting, indexed, limit); err != nil {
		return lag, err
	}
	if lag.Rows == limit {
		last, err := r.LastMessageID(ctx)
		if err != nil {
			return lag, err
		}
		lag.Rows = max(limit, int(last-indexed))
	}
	var last int64
	_, err = r.Get(ctx, []any{&last, &lag.Deleted}, store.QuerySearchDeleted, limit)
	return lag, err
}
