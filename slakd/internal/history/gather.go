package history

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/slakd/internal/slackapi"
)

// message is a message of the history.
type message struct {
	head
	raw json.RawMessage
	at  int64 // unix microseconds
}

// head has the fields of a message that say where it belongs.
type head struct {
	TS          string `json:"ts"`
	ThreadTS    string `json:"thread_ts"`
	Subtype     string `json:"subtype"`
	User        string `json:"user"`
	ReplyCount  int    `json:"reply_count"`
	LatestReply string `json:"latest_reply"`

	Edited      json.RawMessage `json:"edited"`
	Reactions   json.RawMessage `json:"reactions"`
	Attachments json.RawMessage `json:"attachments"`
}

// gathering collects the missed messages of one conversation.
type gathering struct {
	channel      string
	since, floor int64
	bookmark     int64 // 0 if it has none: the bot may have joined since
	found        []message
	bytes        int             // that found takes
	moves        []message       // the bot's own joins and leaves in all pages read
	roots        map[string]bool // the threads that begin in the pages read, and whether they have new replies
	through      int64           // the last post read
	limit        int64           // nothing later is held; 0 is no limit

	changes []change
	seen    map[int64]bool // times of the messages that are shown
	partial bool           // what is shown has messages without times: they may be what is not found
	upTo    int64          // a message that is older and not shown was deleted; 0 if Slack's time is not known
}

// gather returns the posts and replies after g.since, oldest first. If g.limit is set then, they end there, and
// the next call returns those that follow.
func (r *Reader) gather(ctx context.Context, s *adapter.Shell, g *gathering) (found []message, err error) {
	g.since, g.limit = max(g.since, g.limit), 0
	g.found, g.bytes, g.roots = nil, 0, map[string]bool{}
	g.changes, g.seen, g.partial = nil, map[int64]bool{}, false
	if err := r.gatherPosts(ctx, s, g); err != nil {
		return nil, err
	}
	threads, err := r.threads(ctx, s, g)
	if err != nil {
		return nil, err
	}
	for _, thread := range threads {
		err := r.gatherReplies(ctx, s, g, thread)
		if err != nil && (slackapi.Failure(err).Class != msg.Permanent || isGone(err)) {
			return nil, err
		}
	}
	if err := r.gatherVotes(ctx, s, g); err != nil {
		return nil, err
	}
	g.sort()
	g.found = slices.CompactFunc(g.found, func(one, other message) bool { return one.TS == other.TS })
	return g.asMember(), nil
}

// gatherPosts reads the posts after g.since, and of some pages before them which threads they begin. A server that
// sends the oldest page first is read to the end.
func (r *Reader) gatherPosts(ctx context.Context, s *adapter.Shell, g *gathering) error {
	older := 0 // pages before g.since
	ascending, before, oldest := false, int64(0), int64(0)
	for cursor := ""; ; {
		var page slackapi.Page
		err := r.API.Patiently(ctx, func() (err error) {
			page, err = r.API.History(ctx, g.channel, slackapi.Window{Oldest: timestamp(g.floor)}, cursor)
			return err
		})
		if err != nil {
			return err
		}
		older++
		posts := g.decode(s, page.Messages)
		if len(posts) > 0 {
			newest := slices.MaxFunc(posts, byTime).at
			ascending = ascending || before != 0 && newest > before
			before = newest
			g.through = max(g.through, newest)
			if first := slices.MinFunc(posts, byTime).at; oldest == 0 || first < oldest {
				oldest = first
			}
		}
		if err := r.compare(ctx, s, g, posts); err != nil {
			return err
		}
		for _, m := range posts {
			if m.User != "" && m.User == r.Self().User && (m.joins() || m.leaves()) {
				g.moves = append(g.moves, m)
			}
			if m.ReplyCount > 0 {
				latest := micros(m.LatestReply)
				g.roots[m.TS] = latest == 0 || latest > g.since
			}
			if m.at > g.since {
				older = 0
				g.add(m)
			}
		}
		if cursor = page.Next; cursor == "" || older >= maxRootPages && !ascending || len(page.Messages) == 0 {
			break
		}
	}
	if oldest == 0 { // nothing is shown: a server that has no history shows nothing either
		return nil
	}
	return r.findDeleted(ctx, g, "", oldest)
}

// threads are the threads that may have new replies: those that begin in the pages read, and the older ones
// that have rows.
func (r *Reader) threads(ctx context.Context, s *adapter.Shell, g *gathering) (all []string, err error) {
	for thread, fresh := range g.roots {
		if fresh {
			all = append(all, thread)
		}
	}
	slices.Sort(all)
	jid := r.Platform + ":" + g.channel
	recent, err := rows.RecentThreads(ctx, r.Store.Reader, jid, r.now().Add(-s.MaxAge).UnixMilli())
	if err != nil {
		return nil, err
	}
	engaged, err := factrows.Engagements(ctx, r.Store.Reader, jid)
	for _, e := range engaged {
		recent = append(recent, e.Place)
	}
	for _, thread := range recent {
		if _, seen := g.roots[thread]; !seen && micros(thread) > 0 && !slices.Contains(all, thread) {
			all = append(all, thread)
		}
	}
	return all, err
}

// gatherReplies reads the replies of a thread after g.since, and some before them again.
func (r *Reader) gatherReplies(ctx context.Context, s *adapter.Shell, g *gathering, thread string) error {
	from, err := r.rereadFrom(ctx, g, thread)
	if err != nil {
		return err
	}
	for cursor := ""; ; {
		var page slackapi.Page
		err := r.API.Patiently(ctx, func() (err error) {
			page, err = r.API.Replies(ctx, g.channel, thread, slackapi.Window{Oldest: timestamp(from)}, cursor)
			return err
		})
		if err != nil {
			return err
		}
		replies := g.decode(s, page.Messages)
		root := slices.IndexFunc(replies, func(m message) bool { return m.TS == thread })
		if root >= 0 { // it is far from the others
			if err := r.compare(ctx, s, g, replies[root:root+1]); err != nil {
				return err
			}
			replies = slices.Delete(replies, root, root+1)
		}
		if err := r.compare(ctx, s, g, replies); err != nil {
			return err
		}
		for _, m := range replies {
			if m.at > g.since {
				g.add(m)
			}
		}
		if len(page.Messages) == 0 {
			return nil
		}
		if cursor = page.Next; cursor == "" {
			return r.findDeleted(ctx, g, thread, from+1)
		}
	}
}

// rereadFrom is the time after which the replies of a thread are read.
func (r *Reader) rereadFrom(ctx context.Context, g *gathering, thread string) (from int64, err error) {
	known, err := rows.ThreadPosts(ctx, r.Store.Reader, r.Platform+":"+g.channel, thread, maxReread)
	from = g.since
	for _, ts := range known {
		if at := micros(ts); at > 0 {
			from = min(from, at-1)
		}
	}
	return max(from, g.floor), err
}

// decode decodes the messages of a page one by one: an odd one hides no other.
func (g *gathering) decode(s *adapter.Shell, page []json.RawMessage) (all []message) {
	for _, raw := range page {
		m := message{raw: raw}
		if err := json.Unmarshal(raw, &m.head); err != nil {
			s.SkipUndecoded("message in the history of "+g.channel, err)
			g.partial = true
			continue
		}
		if m.at = micros(m.TS); m.at > 0 {
			all = append(all, m)
		} else {
			g.partial = true
		}
	}
	return all
}

// add keeps a message, and of too many the oldest.
func (g *gathering) add(m message) {
	if g.limit != 0 && m.at > g.limit {
		return
	}
	g.found = append(g.found, m)
	if g.bytes += len(m.raw); len(g.found) < 2*maxHeld && g.bytes < 2*maxHeldBytes {
		return
	}
	g.sort()
	kept, bytes := 0, 0
	for kept < min(maxHeld, len(g.found)) && (kept == 0 || bytes+len(g.found[kept].raw) <= maxHeldBytes) {
		bytes += len(g.found[kept].raw)
		kept++
	}
	g.found, g.bytes = slices.Clone(g.found[:kept]), bytes
	g.limit = g.found[kept-1].at
}

func (g *gathering) sort() {
	slices.SortStableFunc(g.found, byTime)
}

// asMember leaves out the messages of the time when the bot was not in the conversation. It was in it before its first
// join if it has read messages there that are older than that join.
func (g *gathering) asMember() (all []message) {
	slices.SortStableFunc(g.moves, byTime)
	left := g.moves
	in := len(left) == 0 || !left[0].joins() || 0 < g.bookmark && g.bookmark < left[0].at
	for _, m := range g.found {
		for len(left) > 0 && left[0].at <= m.at {
			in, left = left[0].joins(), left[1:]
		}
		if in {
			all = append(all, m)
		}
	}
	return all
}

func (m *message) joins() bool { return m.Subtype == "channel_join" || m.Subtype == "group_join" }

func (m *message) leaves() bool { return m.Subtype == "channel_leave" || m.Subtype == "group_leave" }

func byTime(one, other message) int { return cmp.Compare(one.at, other.at) }
