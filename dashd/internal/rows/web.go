package rows

import (
	"context"
	"slices"
	"strings"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxWebBatch is about how much text WebHistory and WebAfter return at once, in bytes, so that a few large rows do not
// make their reader large: the last row goes beyond it.
const maxWebBatch = 512 << 10

// WebHistory returns the readable rows of a web chat before row id before, in
// one topic unless topic is nil, oldest first; at most limit, the newest, and fewer if they are
// large. more means that there may be older ones.
func WebHistory(ctx context.Context, r store.Reader, chatJID string, topic *string, before int64,
	limit int) (rows []*msg.Message, more bool, err error) {
	if topic == nil {
		rows, more, err = webBatch(ctx, r, limit, queryWebBefore, chatJID, before, limit)
	} else {
		rows, more, err = webBatch(ctx, r, limit, queryWebTopicBefore, chatJID, *topic, before, limit)
	}
	slices.Reverse(rows)
	return rows, more, err
}

// WebAfter returns the readable rows of a web chat after a row id, oldest first,
// at most limit, and fewer if they are large. It stops at the first row that is not delivered yet:
// that one will become readable, and must not follow one with a higher id. next is the id
// to continue after; more means that there may be more already.
func WebAfter(ctx context.Context, r store.Reader, chatJID string, after int64, limit int) (rows []*msg.Message,
	next int64, more bool, err error) {
	all, more, err := webBatch(ctx, r, limit, queryWebAfter, chatJID, after, limit)
	next = after
	for _, m := range all {
		if m.OutState == msg.OutQueued || m.OutState == msg.OutSending {
			return rows, next, false, err
		}
		next = m.ID
		rows = append(rows, m)
	}
	return rows, next, more, err
}

// webBatch returns the first rows of a query with a limit, and whether there may be more.
func webBatch(ctx context.Context, r store.Reader, limit int, query string, args ...any) (rows []*msg.Message,
	more bool, err error) {
	size := 0
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		m, err := store.ScanMessage(scan)
		if err != nil {
			return false, err
		}
		rows, size = append(rows, m), size+len(m.Content)
		return size < maxWebBatch, nil
	}, query, args...)
	if err != nil {
		return nil, false, err
	}
	return rows, len(rows) == limit || size >= maxWebBatch, nil
}

// Changes returns the delivered edits, reactions and deletions of a row by agents,
// oldest first.
func Changes(ctx context.Context, r store.Reader, m *msg.Message) ([]*msg.Message, error) {
	switch {
	case m.Direction == msg.Out:
		return r.Messages(ctx, queryChangesOfRow, m.ID)
	case m.PlatformID != "":
		return r.Messages(ctx, queryChangesOfPost, m.ChatJID, m.PlatformID)
	}
	return nil, nil
}

// Changed returns the row that an outbound edit, reaction or deletion changes, nil if
// it is gone.
func Changed(ctx context.Context, r store.Reader, change *msg.Message) (*msg.Message, error) {
	if change.DerivedFrom != 0 {
		return r.Message(ctx, change.DerivedFrom)
	}
	return r.MessageByPlatformID(ctx, change.ChatJID, change.TargetID)
}

// WebEnd is the row id from which a page that has read the history of a web chat
// continues with WebAfter: the highest of the chat with no undelivered row before it.
func WebEnd(ctx context.Context, r store.Reader, chatJID string) (int64, error) {
	return store.Value[int64](ctx, r, queryWebEnd, chatJID)
}

// WebNews returns the web chats that have new rows after the floor, which it raises, each with the id of its newest one.
// It reads at most limit new rows, of all platforms; more is whether it has read as many.
func WebNews(ctx context.Context, r store.Reader, floor *store.Floor, limit int) (newest map[string]int64, more bool,
	err error) {
	newest = map[string]int64{}
	if err := floor.Ask(ctx, r); err != nil {
		return nil, false, err
	}
	limit += floor.Seen()
	rows, err := store.All(ctx, r, scanNewRow, queryNewRows, floor.At, limit)
	if err != nil {
		return nil, false, err // none was seen
	}
	last := int64(0)
	for _, row := range rows {
		if last = row.id; floor.See(last) && strings.HasPrefix(row.jid, msg.PlatformWeb+":") {
			newest[row.jid] = last
		}
	}
	floor.Raise(r, last)
	return newest, len(rows) >= limit, nil
}

type newRow struct {
	id  int64
	jid string
}

func scanNewRow(scan store.Scan) (row newRow, err error) { return row, scan(&row.id, &row.jid) }

// WebUndelivered returns the oldest undelivered row of each web chat that has one.
func WebUndelivered(ctx context.Context, r store.Reader) (oldest map[string]int64, err error) {
	oldest = map[string]int64{}
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		var jid string
		var id int64
		err := scan(&jid, &id)
		oldest[jid] = id
		return true, err
	}, queryWebUndelivered)
	return oldest, err
}

// WebWorking returns the web chats where turns are running, each with their places, sorted.
func WebWorking(ctx context.Context, r store.Reader) (places map[string][]string, err error) {
	places = map[string][]string{}
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		var jid, place string
		err := scan(&jid, &place)
		places[jid] = append(places[jid], place)
		return true, err
	}, queryWebWorking)
	return places, err
}

// WebWait is why the oldest queued turn of a place waits for another attempt.
type WebWait struct {
	For   msg.WaitsFor `json:"for"`
	Until int64        `json:"until"` // when that attempt begins, unix ms
}

// WebWaits returns the web chats where turns wait for another attempt, each with its places.
func WebWaits(ctx context.Context, r store.Reader) (waits map[string]map[string]WebWait, err error) {
	waits = map[string]map[string]WebWait{}
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		var jid, place string
		var w WebWait
		if err := scan(&jid, &place, &w.For, &w.Until); err != nil {
			return false, err
		}
		if waits[jid] == nil {
			waits[jid] = map[string]WebWait{}
		}
		waits[jid][place] = w
		return true, nil
	}, queryWebWaits)
	return waits, err
}

// WebTopic is a tab of a web chat.
type WebTopic struct {
	Topic    string `json:"topic"`
	LastID   int64  `json:"last_id"`            // of its newest row
	LastAt   int64  `json:"last_at"`            // when that row arrived, unix ms
	Title    string `json:"title,omitempty"`    // that users have given it
	Archived bool   `json:"archived,omitempty"` // put away until its next row
}

// WebTopics lists the topics of a web chat that have rows, in no order.
func WebTopics(ctx context.Context, r store.Reader, chatJID string) ([]WebTopic, error) {
	return store.All(ctx, r, func(scan store.Scan) (t WebTopic, err error) {
		err = scan(&t.Topic, &t.LastID, &t.LastAt, &t.Title, &t.Archived)
		return t, err
	}, queryWebTopics, chatJID)
}

// PutWebTopic stores a topic's title, and up to which row it is archived, 0 for not.
func PutWebTopic(tx *store.Tx, chatJID, topic, title string, through int64) error {
	return tx.Exec(`INSERT INTO web_topics (chat_jid, topic, title, archived_through) VALUES (?,?,?,?)
		ON CONFLICT (chat_jid, topic) DO UPDATE SET title = excluded.title, archived_through = excluded.archived_through`,
		chatJID, topic, title, through)
}

// LastWebMessage is the newest readable row of a web chat, nil in an empty one.
func LastWebMessage(ctx context.Context, r store.Reader, chatJID string) (*msg.Message, error) {
	const end = 1<<63 - 1
	return store.First(r.Messages(ctx, queryWebBefore, chatJID, int64(end), 1))
}

// WebChat is the web chat with a group.
type WebChat struct {
	Folder, Name string
	LastID       int64 // of its newest row, 0 for none
}

// WebChats returns the chats of all groups, the one with the newest row first.
func WebChats(ctx context.Context, r store.Reader) ([]WebChat, error) {
	return store.All(ctx, r, func(scan store.Scan) (c WebChat, err error) {
		err = scan(&c.Folder, &c.Name, &c.LastID)
		return c, err
	}, queryWebChats)
}

// WebMoved returns the topic to which a user's message went, such as "#deploy ship it", "" if it stayed in its own.
func WebMoved(ctx context.Context, r store.Reader, m *msg.Message) (topic string, err error) {
	return store.Value[string](ctx, r, queryWebMoved, m.ID, m.ChatJID, m.Topic)
}
