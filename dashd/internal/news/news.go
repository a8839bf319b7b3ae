// Package news serves the event stream that a browser opens once for all its pages. It names the chats that have
// changed and carries no texts: a page fetches by a short request what it shows.
package news

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"arizuko/dashd/internal/live"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// minGap is the least time between two looks at the database for one stream: a page fetches at most as often.
	minGap = 200 * time.Millisecond
	// rowsAtOnce bounds the rows that are read, and so the chats in one event.
	rowsAtOnce = 1000
)

// News serves the stream.
type News struct {
	Store store.Reader
	Hub   *live.Hub
	// Worker is the address of the script that shares the stream among the pages of a browser. Pages of another version
	// go over to it.
	Worker string
	// Login returns the login of a request; a page of another login stops.
	Login func(*http.Request) string
	// Runs reports whether gated runs.
	Runs func(context.Context) (bool, error)
}

// hello is the first event of a stream. A page fetches all that it shows then.
type hello struct {
	Worker string `json:"worker"`
	Login  string `json:"login"`
}

// typing is all topics in which agents work or wait for another attempt, and whether none can, as gated does not run.
type typing struct {
	Chats   map[string][]string                `json:"chats"`           // by folder
	Waits   map[string]map[string]rows.WebWait `json:"waits,omitempty"` // by folder and topic
	Stopped bool                               `json:"stopped,omitempty"`
}

// Events streams changes: hello, changed, typing, progress, ping, and stopping when dashd stops.
func (n *News) Events(w http.ResponseWriter, r *http.Request) {
	f := &feed{news: n, hello: hello{Worker: n.Worker, Login: n.Login(r)}}
	n.Hub.Serve(w, r, minGap, func(s *live.Stream) error { return f.update(r.Context(), s) })
}

// feed is the state of one stream.
type feed struct {
	news    *News
	hello   hello
	greeted bool
	floor   *store.Floor       // the rows that were looked at
	last    int64              // the floor before the last look
	pending map[string]pending // chats with rows up to last that were not announced: they are being delivered
	working map[string][]string
	waits   map[string]map[string]rows.WebWait
	stopped bool // gated does not run
	work    map[string]map[int64]int64
}

// pending is a chat with a row that is being delivered. Rows after that one can't be read before it is.
type pending struct{ newest, announced int64 }

func (f *feed) update(ctx context.Context, s *live.Stream) error {
	// Read before the rows, so that the answer of a turn that has ended by now is among them.
	work, err := rows.WebWork(ctx, f.news.Store)
	if err != nil {
		return err
	}
	if !f.greeted {
		if err := f.greet(ctx, s); err != nil {
			return err
		}
	} else if err := f.announce(ctx, s); err != nil {
		return err
	}
	if err := f.updateTyping(ctx, s); err != nil {
		return err
	}
	return f.updateWork(s, work)
}

// updateWork sends all turns whose agents have reported progress, each with the time of the last report in unix ms, by
// folder and turn, if that has changed. While a row of a chat is being delivered, none of its turns ends, so that a
// page always shows either the work or the answer.
func (f *feed) updateWork(s *live.Stream, work map[string]map[int64]int64) error {
	for jid, before := range f.work {
		if _, waits := f.pending[jid]; waits {
			merged := maps.Clone(before)
			maps.Copy(merged, work[jid])
			work[jid] = merged
		}
	}
	if f.work != nil && maps.EqualFunc(work, f.work, maps.Equal) {
		return nil
	}
	f.work = work
	return s.Event("progress", 0, map[string]any{"chats": byFolder(work)})
}

// greet begins a stream. Pages fetch older messages by themselves.
func (f *feed) greet(ctx context.Context, s *live.Stream) (err error) {
	if f.floor, err = f.news.Store.FloorAt(ctx); err != nil {
		return err
	}
	f.last = f.floor.At
	undelivered, err := rows.WebUndelivered(ctx, f.news.Store)
	if err != nil {
		return err
	}
	f.pending = map[string]pending{}
	for jid, oldest := range undelivered {
		f.pending[jid] = pending{newest: max(f.last, oldest), announced: oldest - 1}
	}
	f.greeted = true
	return s.Event("hello", 0, f.hello)
}

// announce sends that rows may have changed, and which web chats have something new: by folder, each with the id up to
// which it can be read.
func (f *feed) announce(ctx context.Context, s *live.Stream) error {
	for {
		f.last = f.floor.At
		newest, more, err := rows.WebNews(ctx, f.news.Store, f.floor, rowsAtOnce)
		if err != nil {
			return err
		}
		// Read after the rows: one that was undelivered when it was read is either among these, or was delivered since.
		undelivered, err := rows.WebUndelivered(ctx, f.news.Store)
		if err != nil {
			return err
		}
		ready := f.ready(newest, undelivered)
		if err := s.Event("changed", 0, map[string]any{"chats": ready}); err != nil || !more {
			return err
		}
	}
}

// ready returns the chats with news, by folder, and the id up to which each can be read.
func (f *feed) ready(newest, undelivered map[string]int64) map[string]int64 {
	for jid, id := range newest {
		p, known := f.pending[jid]
		if !known {
			p.announced = f.last
		}
		p.newest = max(id, p.newest)
		f.pending[jid] = p
	}
	chats := map[string]int64{}
	for jid, p := range f.pending {
		end := p.newest
		if oldest, waits := undelivered[jid]; waits {
			end = min(end, oldest-1)
		}
		if end > p.announced {
			chats[folder(jid)], p.announced = end, end
		}
		if end == p.newest {
			delete(f.pending, jid)
		} else {
			f.pending[jid] = p
		}
	}
	return chats
}

// updateTyping sends where agents work or wait, and whether gated runs, if that has changed.
func (f *feed) updateTyping(ctx context.Context, s *live.Stream) error {
	working, err := rows.WebWorking(ctx, f.news.Store)
	if err != nil {
		return err
	}
	waits, err := rows.WebWaits(ctx, f.news.Store)
	if err != nil {
		return err
	}
	runs, err := f.news.Runs(ctx)
	if err != nil {
		return err
	}
	if f.working != nil && f.stopped == !runs && maps.EqualFunc(working, f.working, slices.Equal) &&
		maps.EqualFunc(waits, f.waits, maps.Equal) {
		return nil
	}
	f.working, f.waits, f.stopped = working, waits, !runs
	return s.Event("typing", 0, typing{byFolder(working), byFolder(waits), f.stopped})
}

func byFolder[V any](byJID map[string]V) map[string]V {
	folders := make(map[string]V, len(byJID))
	for jid, v := range byJID {
		folders[folder(jid)] = v
	}
	return folders
}

func folder(jid string) string { return strings.TrimPrefix(jid, msg.PlatformWeb+":") }
