package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"runtime/debug"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/routeapi"
)

// resolveTimeout bounds one request to routd.
const resolveTimeout = 2 * time.Second

// resolver makes the requests of a lookup.
type resolver struct {
	routd   *httpx.Talk
	timeout time.Duration // of one request
	log     *slog.Logger
}

// resolve asks about the items of a lookup, and sets its results. Items that routd refuses have an Error in their
// answer; an item may be without an answer.
func (r *resolver) resolve(ctx context.Context, l *lookup) {
	l.answers = make(map[int64]routeapi.Answer, len(l.items))
	for items := l.items; len(items) > 0 || l.version == 0; {
		n := cutChats(items, fitting(items))
		if l.outcome = r.ask(ctx, l, items[:n]); l.outcome != askedDone || len(items) == 0 {
			break
		}
		items = items[n:]
	}
}

// fitting returns how many items fit into one request.
func fitting(items []routeapi.Item) int {
	size := 0
	for n := range items[:min(len(items), routeapi.MaxItems)] {
		if size += items[n].Size(); size > httpx.MaxBody-1024 && n > 0 {
			return n
		}
	}
	return routeapi.MaxItems
}

// cutChats returns how many items go into one request, at most limit: all items of
// a chat or none, if possible, since the claim of one counts for the next.
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

// ask makes one request, and after a refusal one for each half.
func (r *resolver) ask(ctx context.Context, l *lookup, items []routeapi.Item) outcome {
	begun := time.Now()
	res, err := r.post(ctx, items)
	if err == nil {
		for _, a := range res.Items {
			l.answers[a.ID] = a
		}
		l.version = res.Version
		l.grow(len(items), time.Since(begun) < r.timeout/8)
		return askedDone
	}
	kind := apierr.KindOf(err)
	refused := kind == apierr.BadRequest || kind == apierr.Internal
	switch {
	case refused && len(items) > 1: // one row must not fail the others
		half := cutChats(items, len(items)/2)
		if o := r.ask(ctx, l, items[:half]); o != askedDone {
			return o
		}
		return r.ask(ctx, l, items[half:])
	case refused && len(items) == 1 && r.healthy(ctx):
		r.log.Error("routd refused row", "row", items[0].ID, "chat", items[0].ChatJID, "err", err)
		if kind == apierr.BadRequest { // else it may be a bug of routd that is fixed: the row waits
			l.answers[items[0].ID] = routeapi.Answer{ID: items[0].ID, Error: err.Error()}
		}
		return askedDone
	case len(items) > 0 && timedOut(err) && r.healthy(ctx):
		if len(items) > 1 {
			l.limit = len(items) / 2
			r.log.Warn("routd answers too slowly; asking about fewer rows at once", "count", l.limit)
		}
		return askedTooMuch
	}
	l.err = err
	return askedAway
}

// timedOut reports whether a request took too long, by our clock or by routd's own,
// which then answers that it is not available.
func timedOut(err error) bool {
	var failed *url.Error // of the connection
	return errors.Is(err, context.DeadlineExceeded) ||
		apierr.KindOf(err) == apierr.Unavailable && !errors.As(err, &failed)
}

// healthy reports whether routd answers an empty request: then it refused the
// rows, and is not down.
func (r *resolver) healthy(ctx context.Context) bool {
	_, err := r.post(ctx, []routeapi.Item{})
	return err == nil
}

// post makes one request. A panic in it counts as a request that routd has refused.
func (r *resolver) post(ctx context.Context, items []routeapi.Item) (res routeapi.Response, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = apierr.New(apierr.BadRequest, "panic: %v\n%s", cause, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	err = r.routd.Ask(ctx, routeapi.Request{Items: items}, &res)
	return res, err
}
