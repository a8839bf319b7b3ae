package store

import (
	"context"
	"encoding/json"
	"strings"

	"arizuko/pkg/msg"
)

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

// ListChats returns the chats after a position, Before, of which a zero JID is the beginning.
func (r Reader) ListChats(ctx context.Context, f ChatFilter) (page ChatPage, err error) {
	if f.Before.JID == "" {
		f.Before.SeenAt = maxTime
	}
	text, looked := strings.ToLower(f.Text), 0
	var last ChatPosition
	err = r.each(ctx, func(scan scanner) (more bool, err error) {
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

// maxTime is after any time that is stored, in unix ms.
const maxTime = int64(1) << 62

// ChatTitles returns the titles of those of the chats that have one, by address.
func (r Reader) ChatTitles(ctx context.Context, jids []string) (map[string]string, error) {
	titles := map[string]string{}
	list, err := json.Marshal(jids)
	if err != nil || len(jids) == 0 {
		return titles, err
	}
	err = r.each(ctx, func(scan scanner) (bool, error) {
		var jid, title string
		err := scan(&jid, &title)
		titles[jid] = title
		return true, err
	}, queryChatTitles, string(list))
	return titles, err
}

// Platforms returns the platforms that chats are on, with their accounts, sorted.
func (r Reader) Platforms(ctx context.Context) ([]string, error) {
	return collect(ctx, r, one[string], queryPlatforms)
}

// Answered reports whether an agent's answer has ever arrived in a chat of one of the platforms, of whichever account.
func (r Reader) Answered(ctx context.Context, platforms []string) (answered bool, err error) {
	list, err := json.Marshal(platforms)
	if err != nil {
		return false, err
	}
	_, err = r.get(ctx, []any{&answered}, queryAnswered, string(list))
	return answered, err
}

// OpenTurnCount is how many turns of a chat are queued or running, at most limit.
func (r Reader) OpenTurnCount(ctx context.Context, chatJID string, limit int) (int, error) {
	return value[int](ctx, r, queryOpenTurnCount, chatJID, limit)
}

// OpenWindow is an engagement window that is open, and its chat's title.
type OpenWindow struct {
	msg.Engagement
	Title string
}

// OpenWindows returns the windows that are open after a time, in unix ms, those that end first first. With a chat and a
// place, those after the window there that ends at that time.
func (r Reader) OpenWindows(ctx context.Context, after int64, chatJID, place string, limit int) ([]OpenWindow, error) {
	if chatJID == "" {
		after++ // a window that ends at a moment is not open then
	}
	return collect(ctx, r, func(scan scanner) (w OpenWindow, err error) {
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
func (r Reader) FolderSessions(ctx context.Context, folder, from string, limit int) ([]TopicSession, error) {
	return collect(ctx, r, func(scan scanner) (s TopicSession, err error) {
		err = scan(&s.Topic, &s.ID, &s.UpdatedAt)
		return s, err
	}, queryFolderSessions, folder, from, limit)
}

// FolderRuns returns the newest runs of a group, the newest first, at most limit.
func (r Reader) FolderRuns(ctx context.Context, folder string, limit int) ([]*RunResult, error) {
	return collect(ctx, r, func(scan scanner) (*RunResult, error) {
		var result, problem string
		run, err := scanRun(func(dest ...any) error { return scan(append(dest, &result, &problem)...) })
		return &RunResult{*run, result, problem}, err
	}, queryFolderRuns, folder, limit)
}

// LastFolderTurn is the newest turn of a group that began, and when, in unix ms; zeros for none.
func (r Reader) LastFolderTurn(ctx context.Context, folder string) (id, at int64, err error) {
	_, err = r.get(ctx, []any{&id, &at}, queryLastFolderTurn, folder)
	return id, at, err
}
