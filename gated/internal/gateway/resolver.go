package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

const (
	// resolveTimeout bounds one request to routd.
	resolveTimeout = 2 * time.Second
	// probeEvery is how often a routd that does not answer is probed.
	probeEvery = 250 * time.Millisecond
	// nameLimit bounds what a sender's name adds to a request, in bytes.
	nameLimit = 256
)

// resolver asks routd where rows go. While routd does not answer, the message
// path does not ask it: a probe in the background finds when it is back, so that
// only one pass waits for a timeout.
type resolver struct {
	client  *httpx.Client
	log     *slog.Logger
	back    chan struct{} // routd answers again
	down    atomic.Bool
	version atomic.Int64
}

func newResolver(client *httpx.Client, log *slog.Logger) *resolver {
	return &resolver{client: client, log: log, back: make(chan struct{}, 1)}
}

// resolve asks about items. ok is false while routd does not answer; items that
// routd refuses have an Error in their answer.
func (r *resolver) resolve(ctx context.Context, items []routeapi.Item) (answers map[int64]routeapi.Answer, ok bool) {
	answers = make(map[int64]routeapi.Answer, len(items))
	for len(items) > 0 {
		n := cutChats(items, routeapi.MaxItems)
		if !r.ask(ctx, items[:n], answers) {
			return answers, false
		}
		items = items[n:]
	}
	return answers, true
}

// cutChats returns how many items go into one request, at most limit: all items of
// a chat or none, if possible, since what one claims counts for the next.
func cutChats(items []routeapi.Item, limit int) int {
	if len(items) <= limit {
		return len(items)
	}
	for n := limit; n > 0; n-- {
		if items[n-1].ChatJID != items[n].ChatJID {
			return n
		}
	}
	return limit
}

func (r *resolver) ask(ctx context.Context, items []routeapi.Item, answers map[int64]routeapi.Answer) bool {
	if r.down.Load() {
		return false
	}
	res, err := r.post(ctx, items)
	if err == nil {
		for _, a := range res.Items {
			answers[a.ID] = a
		}
		return true
	}
	kind := apierr.KindOf(err)
	switch refused := kind == apierr.BadRequest || kind == apierr.Internal; {
	case refused && len(items) > 1: // one row must not fail the others
		half := cutChats(items, len(items)/2)
		return r.ask(ctx, items[:half], answers) && r.ask(ctx, items[half:], answers)
	case refused && len(items) == 1 && r.healthy(ctx):
		r.log.Error("routd refused row", "row", items[0].ID, "err", err)
		if kind == apierr.BadRequest { // else it may be a bug of routd that is fixed: the row waits
			answers[items[0].ID] = routeapi.Answer{ID: items[0].ID, Error: err.Error()}
		}
		return true
	}
	if ctx.Err() == nil && r.down.CompareAndSwap(false, true) {
		r.log.Error("routd is not answering; messages wait, commands still work", "url", r.client.Base, "err", err)
		go r.probe(ctx)
	}
	return false
}

// healthy reports whether routd answers an empty request: then it refused the
// row, and is not down.
func (r *resolver) healthy(ctx context.Context) bool {
	_, err := r.post(ctx, []routeapi.Item{})
	return err == nil
}

func (r *resolver) post(ctx context.Context, items []routeapi.Item) (res routeapi.Response, err error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	err = r.client.Do(ctx, http.MethodPost, routeapi.Path, routeapi.Request{Items: items}, &res)
	if err == nil {
		r.version.Store(res.Version)
	}
	return res, err
}

func (r *resolver) probe(ctx context.Context) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !r.healthy(ctx) {
			continue
		}
		r.log.Info("routd is back", "url", r.client.Base)
		r.down.Store(false)
		r.back <- struct{}{}
		return
	}
}

// refresh reads the version of the routes, unless routd is down.
func (r *resolver) refresh(ctx context.Context) {
	if !r.down.Load() {
		r.ask(ctx, []routeapi.Item{}, map[int64]routeapi.Answer{})
	}
}

// item is the question about a row.
func item(r *row, chat *msg.Chat) routeapi.Item {
	return routeapi.Item{
		ID: r.ID, ChatJID: r.ChatJID, Kind: chat.Kind, Topic: r.Topic, ThreadID: r.ThreadID,
		Sender: r.Sender, SenderName: r.SenderName[:min(len(r.SenderName), nameLimit)], Verb: r.verb(),
		PlatformID: r.post, StickyGroup: chat.StickyGroup, ReceivedAt: r.ReceivedAt,
		HomeOnly: r.command != nil, Stale: r.old,
	}
}

// local answers in place of routd for chats whose address names their group, and
// for rows whose group is already known.
func local(it routeapi.Item, registered func(folder string) bool, defaults msg.Impulse) (a routeapi.Answer, ok bool) {
	folder := it.Folder
	addressed := msg.AddressedFolder(it.ChatJID)
	if folder == "" && it.StickyGroup != "" && registered(it.StickyGroup) {
		folder = it.StickyGroup
	}
	if folder == "" {
		folder = addressed
	}
	if addressed == "" || folder == "" {
		return a, false
	}
	surface := msg.SurfaceOf(it.ChatJID, it.Kind, it.ThreadID)
	a = routeapi.Answer{ID: it.ID, Action: routeapi.None, Reason: msg.ReasonNoGroup, ThreadID: it.ThreadID,
		Surface: surface.Name, Ceiling: surface.Ceiling, Impulse: defaults}
	if registered(folder) {
		a.Home, a.Folder = folder, folder
		a.Action, a.Reason = routeapi.Trigger, msg.ReasonAddress
	}
	return a, true
}
