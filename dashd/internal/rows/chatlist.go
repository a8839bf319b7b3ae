package rows

import (
	"context"
	"slices"
	"strings"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// AuditWhats returns the kinds of changes that were made, sorted, at most the limit.
func AuditWhats(ctx context.Context, r store.Reader, limit int) ([]string, error) {
	return store.All(ctx, r, store.One[string], queryAuditWhats, limit)
}

// Inbound is a stored message as routes see it: an edited table is compared by these.
type Inbound struct {
	ID         int64
	ChatJID    string
	Kind       string // of the chat, "" if it is not known
	Title      string // of the chat
	Pinned     string // the group that the chat is pinned to now, "" for none
	Topic      string
	ThreadID   string
	Sender     string
	SenderName string
	Verb       string
	PlatformID string
	ReceivedAt int64  // unix ms
	Change     bool   // an edit or a deletion
	Own        bool   // between groups, or made here
	Reason     string // why it was decided as it was, "" if it was not yet
	Folder     string // the group that got it, "" for none
	Content    string // its first 300 characters
}

// NewestInbound returns the newest inbound messages, the newest first.
func NewestInbound(ctx context.Context, r store.Reader, limit int) ([]Inbound, error) {
	return store.All(ctx, r, func(scan store.Scan) (m Inbound, err error) {
		err = scan(&m.ID, &m.ChatJID, &m.Kind, &m.Title, &m.Pinned, &m.Topic, &m.ThreadID, &m.Sender, &m.SenderName,
			&m.Verb, &m.PlatformID, &m.ReceivedAt, &m.Change, &m.Own, &m.Reason, &m.Folder, &m.Content)
		return m, err
	}, queryNewestInbound, limit, int64(limit)*store.MaxInboundScan)
}

// SeenChat is a chat, and when its adapter last described it.
type SeenChat struct {
	msg.Chat
	Platform string
	SeenAt   int64 // unix ms
}

// ChatPosition is a place in a list of chats.
type ChatPosition struct {
	SeenAt int64
	JID    string
}

// ChatFilter is which chats a list has. Empty fields exclude nothing.
type ChatFilter struct {
	Platform string
	Text     string // in the title or the address, whatever its case
	Before   ChatPosition
	Limit    int
}

// ChatPage is a part of a list of chats, the one seen last first.
type ChatPage struct {
	Rows []SeenChat
	Next *ChatPosition // where the next page begins, nil at the end
	// Bounded reports that the page ends because as many chats were looked at as one page may.
	Bounded bool
}

// maxChatsLooked is how many chats a page looks at: it takes milliseconds whatever the filter is.
const maxChatsLooked = 3000

// ListChats returns the chats after the position f.Before, or from the beginning if its JID is empty.
func ListChats(ctx context.Context, r store.Reader, f ChatFilter) (page ChatPage, err error) {
	if f.Before.JID == "" {
		f.Before.SeenAt = maxTime
	}
	text, looked := strings.ToLower(f.Text), 0
	var last ChatPosition
	err = r.Each(ctx, func(scan store.Scan) (more bool, err error) {
		var c SeenChat
		if err := scan(&c.JID, &c.Kind, &c.Title, &c.StickyTopic, &c.StickyGroup, &c.StickyAt, &c.Platform,
			&c.SeenAt); err != nil {
			return false, err
		}
		if len(page.Rows) == f.Limit || looked == maxChatsLooked {
			page.Next, page.Bounded = &last, len(page.Rows) < f.Limit
			return false, nil
		}
		last = ChatPosition{c.SeenAt, c.JID}
		looked++
		if (f.Platform == "" || c.Platform == f.Platform) &&
			(strings.Contains(strings.ToLower(c.Title), text) || strings.Contains(strings.ToLower(c.JID), text)) {
			page.Rows = append(page.Rows, c)
		}
		return true, nil
	}, queryChats, f.Before.SeenAt, f.Before.JID, maxChatsLooked+1)
	return page, err
}

// titleBatch is how many titles queryTitles reads.
const titleBatch = 20

// Titles calls add for the title of each of the chats that has a row. The addresses are parameters, since JSON would make
// others of those that are no valid text.
func Titles(ctx context.Context, r store.Reader, jids []string, add func(jid, title string)) error {
	for batch := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(jids))), titleBatch) {
		args := make([]any, titleBatch) // NULL is no address
		for i, jid := range batch {
			args[i] = jid
		}
		err := r.Each(ctx, func(scan store.Scan) (bool, error) {
			var jid, title string
			err := scan(&jid, &title)
			add(jid, title)
			return true, err
		}, queryTitles, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// Sender is a sender of messages, with the name in the newest one.
type Sender struct{ ID, Name string }

// maxSendersLooked is how many senders a search looks at.
const maxSendersLooked = 2000

// FindSenders returns senders with a text in their id or name, whatever its case, by id. It looks at the first ones.
func FindSenders(ctx context.Context, r store.Reader, text string, limit int) (found []Sender, err error) {
	text = strings.ToLower(text)
	err = r.Each(ctx, func(scan store.Scan) (more bool, err error) {
		var p Sender
		if err := scan(&p.ID, &p.Name); err != nil {
			return false, err
		}
		if strings.Contains(strings.ToLower(p.ID+"\n"+p.Name), text) {
			found = append(found, p)
		}
		return len(found) < limit, nil
	}, querySenders, maxSendersLooked)
	return found, err
}

// maxTime is after any time that is stored, in unix ms.
const maxTime = int64(1) << 62

// Platforms returns the platforms that chats are on, with their accounts, sorted.
func Platforms(ctx context.Context, r store.Reader) ([]string, error) {
	return store.All(ctx, r, store.One[string], queryPlatforms)
}

// Answered reports whether an agent's answer has ever arrived in a chat of one of the platforms, through any account.
func Answered(ctx context.Context, r store.Reader, platforms []string) (answered bool, err error) {
	for _, platform := range platforms {
		if answered, err = store.Value[bool](ctx, r, queryAnswered, platform); answered || err != nil {
			break
		}
	}
	return answered, err
}

// OpenWindow is an engagement window that is open, and its chat's title.
type OpenWindow struct {
	msg.Engagement
	Title string
}

// OpenWindows returns the windows that are open after a time, in unix ms, those that end first first. With a chat and a
// place, those after the window there that ends at that time.
func OpenWindows(ctx context.Context, r store.Reader, after int64, chatJID, place string, limit int) ([]OpenWindow,
	error) {
	if chatJID == "" {
		after++ // a window that ends at a moment is not open then
	}
	return store.All(ctx, r, func(scan store.Scan) (w OpenWindow, err error) {
		err = scan(&w.ChatJID, &w.Place, &w.Folder, &w.Until, &w.At, &w.LastReply, &w.EndedAt, &w.Title)
		return w, err
	}, queryOpenWindows, after, chatJID, place, limit)
}

// TopicSession is the session of a topic of a group.
type TopicSession struct {
	Topic, ID string
	UpdatedAt int64 // unix ms
}

// FolderSessions returns a group's sessions by topic, those from a topic on, at most limit.
func FolderSessions(ctx context.Context, r store.Reader, folder, from string, limit int) ([]TopicSession, error) {
	return store.All(ctx, r, func(scan store.Scan) (s TopicSession, err error) {
		err = scan(&s.Topic, &s.ID, &s.UpdatedAt)
		return s, err
	}, queryFolderSessions, folder, from, limit)
}

// FolderRuns returns the newest runs of a group, the newest first, at most limit.
func FolderRuns(ctx context.Context, r store.Reader, folder string, limit int) ([]*factrows.RunResult, error) {
	return store.All(ctx, r, func(scan store.Scan) (*factrows.RunResult, error) {
		var result, problem string
		run, err := factrows.ScanRun(func(dest ...any) error { return scan(append(dest, &result, &problem)...) })
		return &factrows.RunResult{Run: *run, Result: result, Error: problem}, err
	}, queryFolderRuns, folder, limit)
}

// LastFolderTurn is the newest turn of a group that began, and when, in unix ms; zeros for none.
func LastFolderTurn(ctx context.Context, r store.Reader, folder string) (id, at int64, err error) {
	_, err = r.Get(ctx, []any{&id, &at}, queryLastFolderTurn, folder)
	return id, at, err
}

// Polls returns the polls of all chats with an id below before, 0 for all, the newest first; only open ones if open.
func Polls(ctx context.Context, r store.Reader, open bool, before int64, limit int) ([]*msg.StoredPoll, error) {
	query := queryPolls
	if open {
		query = queryAllOpen
	}
	return factrows.ReadPolls(ctx, r, query, store.OrNewest(before), limit)
}

// Work is a running turn whose agent has said something of its work.
type Work struct {
	TurnID    int64
	Place     string
	StartedAt int64 // unix ms
	UpdatedAt int64 // of its progress, unix ms
}

// ChatWork returns the work of agents on the turns of a chat, in the order of the turns.
func ChatWork(ctx context.Context, r store.Reader, chatJID string) ([]Work, error) {
	return store.All(ctx, r, func(scan store.Scan) (w Work, err error) {
		err = scan(&w.TurnID, &w.Place, &w.StartedAt, &w.UpdatedAt)
		return w, err
	}, queryChatWork, chatJID)
}

// WebWork returns when the progress of each running turn was stored, in unix ms, by web chat and turn. Turns whose
// agents have said nothing of their work have none.
func WebWork(ctx context.Context, r store.Reader) (updated map[string]map[int64]int64, err error) {
	updated = map[string]map[int64]int64{}
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		var turn, at int64
		var jid string
		err := scan(&turn, &jid, &at)
		if updated[jid] == nil {
			updated[jid] = map[int64]int64{}
		}
		updated[jid][turn] = at
		return true, err
	}, queryWebWork)
	return updated, err
}

// ChatSpend returns the spend in a chat in a span of days, both included.
func ChatSpend(ctx context.Context, r store.Reader, chatJID, from, to string) (s factrows.Spend, err error) {
	_, err = r.Get(ctx, []any{&s.Turns, &s.Input, &s.Output, &s.CostUSD}, queryChatSpend, chatJID, from, to)
	return s, err
}

const (
	// A chat, one of its threads unless that is '', one place unless that is ''.
	atPlace     = `t.chat_jid = ?1 AND (?2 = '' OR t.thread_id = ?2) AND (?3 = '' OR t.place = ?3)`
	openAtPlace = `t.state IN ('queued', 'running') AND ` + atPlace
)

// OpenTurns counts the turns that have not ended, without reading
// them: a chat may have a hundred thousand.
type OpenTurns struct {
	Open    int // at most the limit of the question
	Running int
	Begun   int64 // when the first running one began, unix ms; 0 for none
	Oldest  int64 // id of the oldest, 0 for none
}

// CountOpenTurns counts the open turns of a chat, up to limit: those of one of its
// threads unless threadID is "", and of one place unless place is "".
func CountOpenTurns(ctx context.Context, r store.Reader, chatJID, threadID, place string, limit int) (n OpenTurns,
	err error) {
	_, err = r.Get(ctx, []any{&n.Open, &n.Running, &n.Begun, &n.Oldest}, queryCountOpen, chatJID, threadID, place,
		limit)
	return n, err
}

// QueuedBefore counts the queued turns that are older than a turn and not in
// backoff at the time now.
func QueuedBefore(ctx context.Context, r store.Reader, turnID, now int64) (int, error) {
	return store.Value[int](ctx, r, queryQueuedBefore, turnID, now)
}
