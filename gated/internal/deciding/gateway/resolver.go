package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync/atomic"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/routeapi"
)

const (
	// resolveTimeout bounds one request to routd.
	resolveTimeout = 2 * time.Second
	// probeEvery is how often a routd that does not answer is probed.
	probeEvery = 250 * time.Millisecond
)

// resolver asks routd where rows go. While routd does not answer, it is not asked: a
// probe in the background finds when it is back.
type resolver struct {
	client  *httpx.Client
	timeout time.Duration
	log     *slog.Logger
	back    chan struct{} // routd answers again
	down    atomic.Bool
	size    atomic.Int64 // how many rows routd is asked about at once
}

func newResolver(client *httpx.Client, log *slog.Logger) *resolver {
	r := &resolver{client: client, timeout: resolveTimeout, log: log, back: make(chan struct{}, 1)}
	r.size.Store(routeapi.MaxItems)
	return r
}

// away reports whether routd does not answer.
func (r *resolver) away() bool { return r.down.Load() }

// limit is how many rows a lookup may have: as many as routd has answered in time.
func (r *resolver) limit() int { return int(r.size.Load()) }

// resolve asks about items in one lookup. Items that routd refuses have an Error in
// their answer; an item may be without an answer.
func (r *resolver) resolve(ctx context.Context, items []routeapi.Item) (answers map[int64]routeapi.Answer,
	version int64, o outcome) {
	answers = make(map[int64]routeapi.Answer, len(items))
	for len(items) > 0 || version == 0 {
		n := cutChats(items, fitting(items))
		if o = r.ask(ctx, items[:n], answers, &version); o != askedDone || len(items) == 0 {
			break
		}
		items = items[n:]
	}
	return answers, version, o
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
func (r *resolver) ask(ctx context.Context, items []routeapi.Item, answers map[int64]routeapi.Answer,
	version *int64) outcome {
	begun := time.Now()
	res, err := r.post(ctx, items, r.timeout)
	if err == nil {
		for _, a := range res.Items {
			answers[a.ID] = a
		}
		*version = res.Version
		r.grow(len(items), time.Since(begun))
		return askedDone
	}
	kind := apierr.KindOf(err)
	refused := kind == apierr.BadRequest || kind == apierr.Internal
	switch {
	case refused && len(items) > 1: // one row must not fail the others
		half := cutChats(items, len(items)/2)
		if o := r.ask(ctx, items[:half], answers, version); o != askedDone {
			return o
		}
		return r.ask(ctx, items[half:], answers, version)
	case refused && len(items) == 1 && r.healthy(ctx):
		r.log.Error("routd refused row", "row", items[0].ID, "chat", items[0].ChatJID, "err", err)
		if kind == apierr.BadRequest { // else it may be a bug of routd that is fixed: the row waits
			answers[items[0].ID] = routeapi.Answer{ID: items[0].ID, Error: err.Error()}
		}
		return askedDone
	case len(items) > 0 && timedOut(err) && r.healthy(ctx):
		r.shrink(len(items))
		return askedTooMuch
	}
	r.outage(ctx, err)
	return askedAway
}

// timedOut reports whether a request took too long, by our clock or by routd's own,
// which then answers that it is not available.
func timedOut(err error) bool {
	var failed *url.Error // of the connection
	return errors.Is(err, context.DeadlineExceeded) ||
		apierr.KindOf(err) == apierr.Unavailable && !errors.As(err, &failed)
}

// shrink halves the size of lookups after one that timed out.
func (r *resolver) shrink(items int) {
	if items > 1 {
		r.size.Store(int64(max(items/2, 1)))
		r.log.Warn("routd answers too slowly; asking about fewer rows at once", "count", r.size.Load())
	}
}

// grow doubles the size of lookups after a large one that was quick.
func (r *resolver) grow(items int, took time.Duration) {
	size := r.size.Load()
	if 2*int64(items) > size && took < r.timeout/8 {
		r.size.Store(min(2*size, routeapi.MaxItems))
	}
}

// outage begins the time without routd.
func (r *resolver) outage(ctx context.Context, err error) {
	if ctx.Err() == nil && r.down.CompareAndSwap(false, true) {
		r.log.Error("routd is not answering; messages wait, commands still work", "url", r.client.Base, "err", err)
		go r.probe(ctx)
	}
}

// healthy reports whether routd answers an empty request: then it refused the
// rows, and is not down.
func (r *resolver) healthy(ctx context.Context) bool {
	_, err := r.post(ctx, []routeapi.Item{}, r.timeout)
	return err == nil
}

// post makes one request. A panic in it counts as a request that routd has refused.
func (r *resolver) post(ctx context.Context, items []routeapi.Item, timeout time.Duration) (res routeapi.Response,
	err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = apierr.New(apierr.BadRequest, "panic: %v\n%s", cause, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = r.client.Do(ctx, http.MethodPost, routeapi.Path, routeapi.Request{Items: items}, &res)
	return res, err
}

func (r *resolver) probe(ctx context.Context) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for since := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !r.healthy(ctx) {
			continue
		}
		r.log.Info("routd is back", "url", r.client.Base, "wait", time.Since(since).Round(time.Millisecond))
		r.down.Store(false)
		select {
		case r.back <- struct{}{}:
		default:
		}
		return
	}
}
