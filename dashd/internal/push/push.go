// Package push notifies users who have closed the dashboard's pages, by Web Push.
package push

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/store"
	"arizuko/pkg/webpush"
)

const (
	lookEvery  = 2 * time.Second
	minWork    = time.Minute      // of a turn whose answer is worth a notice
	shownDelay = 4 * time.Second  // an open page has fetched what is new by then
	maxAge     = 10 * time.Minute // of an event
	keep       = time.Hour        // notices
	maxHourly  = 3                // problems to a device
	retryDelay = 30 * time.Second
	maxSends   = 8 // at once
)

// The kinds of notices.
const (
	Answer   = "answer"
	Question = "question"
	Problem  = "problem"
)

// Push sends the notices. The exported fields are set once.
type Push struct {
	Store  *store.Store
	Client *webpush.Client // nil: without a contact there are no notices
	Quiet  func() bool     // problems wait; nil: they never do
	Now    func() time.Time
	Log    *slog.Logger

	mu      sync.Mutex
	shown   map[string]int64    // when a page showed a chat, in unix ms, by login and folder
	retryAt map[int64]time.Time // by device
}

// New makes a Push. contact is that of webpush.New, "" for no notices.
func New(st *store.Store, secret, contact string, now func() time.Time, log *slog.Logger) (p *Push, err error) {
	p = &Push{Store: st, Now: now, Log: log, shown: map[string]int64{}, retryAt: map[int64]time.Time{}}
	if contact != "" {
		p.Client, err = webpush.New(secret, contact, now)
	}
	return p, err
}

// Shown notes that a page of a login shows all of the chat with a group now.
func (p *Push) Shown(login, folder string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown[login+"\n"+folder] = p.Now().UnixMilli()
}

// Run sends notices until ctx ends.
func (p *Push) Run(ctx context.Context) error {
	if p.Client == nil {
		return nil
	}
	return store.NewOutage(p.Log, "notifications").Repeat(ctx, lookEvery, p.step)
}

func (p *Push) step(ctx context.Context) error {
	devices, err := rows.PushDevices(ctx, p.Store.Reader)
	if err != nil || len(devices) == 0 {
		return err
	}
	events, err := p.events(ctx)
	if err != nil || len(events) == 0 {
		return err
	}
	sent, err := rows.PushNotices(ctx, p.Store.Reader)
	if err != nil {
		return err
	}
	var sending errgroup.Group
	sending.SetLimit(maxSends)
	for _, d := range devices {
		sending.Go(func() error { return p.serve(ctx, d, events, sent) })
	}
	return sending.Wait()
}

// serve sends a device the events that it wants and was not sent.
func (p *Push) serve(ctx context.Context, d *rows.PushDevice, events []rows.PushEvent,
	sent map[rows.PushNotice]int64) (err error) {
	problems, hourAgo := 0, p.Now().Add(-time.Hour).UnixMilli()
	for n, at := range sent {
		if n.Device == d.ID && at > hourAgo && strings.HasPrefix(n.Event, "alert") {
			problems++
		}
	}
	for _, e := range events {
		_, had := sent[rows.PushNotice{Device: d.ID, Event: e.Key}]
		if had || !p.wanted(d, e) || e.Kind == Problem && problems >= maxHourly {
			continue
		}
		if e.Kind == Problem {
			problems++
		}
		err = cmp.Or(p.notify(ctx, d, e), err)
	}
	return err
}

// events are those of the last ten minutes, but for those that an open page may be about to show, and the problems that
// last, unless it is quiet now.
func (p *Push) events(ctx context.Context) ([]rows.PushEvent, error) {
	now := p.Now()
	found, err := rows.PushEvents(ctx, p.Store.Reader, now.Add(-maxAge).UnixMilli(), now.Add(-shownDelay).UnixMilli(),
		minWork.Milliseconds())
	if p.Quiet != nil && p.Quiet() {
		found = slices.DeleteFunc(found, func(e rows.PushEvent) bool { return e.Kind == Problem })
	}
	return found, err
}

// wanted reports whether a device gets an event now.
func (p *Push) wanted(d *rows.PushDevice, e rows.PushEvent) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(d.Kinds, e.Kind) && e.At >= d.CreatedAt && !p.Now().Before(p.retryAt[d.ID]) &&
		p.shown[d.Login+"\n"+e.Folder] < e.At
}

// notify sends a device an event, and stores the result, unless another attempt may succeed.
func (p *Push) notify(ctx context.Context, d *rows.PushDevice, e rows.PushEvent) error {
	err := p.Send(ctx, d, e)
	refused, problem := (*webpush.Refused)(nil), ""
	switch {
	case err == nil:
	case errors.As(err, &refused) && (refused.Status == http.StatusNotFound || refused.Status == http.StatusGone):
		p.Log.Info("push subscription has ended", "device", d.Name)
		return p.Store.Write(ctx, func(tx *store.Tx) error { return rows.DeletePushDevice(tx, d.ID) })
	case refused == nil, refused.Status == http.StatusTooManyRequests, refused.Status >= http.StatusInternalServerError:
		delay := retryDelay
		if refused != nil {
			delay = max(delay, refused.RetryAfter)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.retryAt[d.ID] = p.Now().Add(delay)
		return nil
	default:
		problem = err.Error()
		p.Log.Warn("notification refused", "device", d.Name, "err", err)
	}
	now := p.Now()
	return p.Store.Write(ctx, func(tx *store.Tx) error {
		return rows.PutPushNotice(tx, rows.PushNotice{Device: d.ID, Event: e.Key}, problem, now.UnixMilli(),
			now.Add(-keep).UnixMilli())
	})
}

// Send sends a device a notice, which replaces an earlier one of the same key.
func (p *Push) Send(ctx context.Context, d *rows.PushDevice, e rows.PushEvent) error {
	if p.Client == nil {
		return errors.New("PUSH_CONTACT is not set")
	}
	titles := map[string]string{Answer: "Your answer is ready", Question: "A question for you",
		Problem: "Needs attention"}
	notice := map[string]string{"title": cmp.Or(titles[e.Kind], "arizuko"),
		"body": cmp.Or(strings.TrimSpace(e.Name), e.Folder), "url": "/", "tag": e.Key}
	if e.Folder != "" {
		notice["url"] = "/chat/" + e.Folder + "/"
	}
	topic := sha256.Sum256([]byte(e.Key))
	return p.Client.Send(ctx, d.Subscription, notice, hex.EncodeToString(topic[:16]), maxAge)
}
