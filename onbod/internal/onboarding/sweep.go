package onboarding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"arizuko/onbod/internal/rows"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/onboardapi"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

const (
	// sweepEvery is how often requests are looked at without a poke.
	sweepEvery = time.Minute
	// retryDelay is how long an approval waits for routd, or a sweep for the database.
	retryDelay = 5 * time.Second
	// resolvePage is how many chats routd is asked about at once.
	resolvePage = 100

	// Decided requests are deleted when they are old, or when there are many newer ones.
	purgeEvery = time.Hour
	maxAge     = 30 * 24 * time.Hour
	maxDecided = 10_000
	purgePage  = 500
)

// Run finishes approvals, ends requests that no operator decided or that routes have made needless, and
// deletes old ones: at once, after pokes, and every minute, until ctx ends.
func (o *Onboarding) Run(ctx context.Context, poked <-chan struct{}) error {
	outage := store.NewOutage(o.log, "requests")
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-poked:
		case <-o.recheck:
		}
		waiting, err := o.sweep(ctx)
		if outage.Note(ctx, err) != nil || waiting {
			timer.Reset(retryDelay)
		} else {
			timer.Reset(sweepEvery)
		}
	}
}

// wake makes Run look at the requests.
func (o *Onboarding) wake() {
	select {
	case o.recheck <- struct{}{}:
	default:
	}
}

// sweep does it once, and goes on after a request that the database refused. waiting: routd has to be
// asked again.
func (o *Onboarding) sweep(ctx context.Context) (waiting bool, err error) {
	unlock, err := o.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	pending, err := rows.PendingRequests(ctx, o.st.Reader)
	if err != nil {
		return false, err
	}
	slices.SortFunc(pending, func(a, b *factrows.Request) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	var open []*factrows.Request
	var refused []error
	noted := 0
	for _, r := range pending {
		if !r.Noted() {
			open = append(open, r)
			continue
		}
		if !waiting {
			waiting, err = o.resume(ctx, r)
			if err = collect(&refused, err); err != nil {
				return waiting, err
			}
		}
		if waiting {
			noted++
		}
	}
	o.report(noted)
	if open, err = o.expire(ctx, open, &refused); err != nil {
		return waiting, err
	}
	if !waiting {
		if err := o.closeRouted(ctx, open, &refused); err != nil {
			return waiting, err
		}
	}
	return waiting, errors.Join(append(refused, o.purge(ctx))...)
}

// collect keeps an error that concerns one row, and returns any other.
func collect(refused *[]error, err error) error {
	if errors.Is(err, store.ErrRefused) {
		*refused = append(*refused, err)
		return nil
	}
	return err
}

// resume finishes an approval that was noted. waiting: routd has not answered.
func (o *Onboarding) resume(ctx context.Context, r *factrows.Request) (waiting bool, err error) {
	_, err = o.connect(ctx, r, false)
	switch {
	case errors.Is(err, errUnanswered):
		return true, nil
	case errors.Is(err, store.ErrStale):
		return false, nil
	case apierr.KindOf(err) != apierr.Internal && err != nil:
		return false, o.tellWithdrawn(ctx, r, err)
	}
	return false, err
}

// tellWithdrawn says to the operator that an approval was taken back after it was accepted.
func (o *Onboarding) tellWithdrawn(ctx context.Context, r *factrows.Request, cause error) error {
	jid, err := factrows.DirectChat(ctx, o.st.Reader, r.DecidedBy)
	if err != nil || jid == "" || msg.AddressedFolder(jid) != "" {
		return err
	}
	return o.st.Write(ctx, func(tx *store.Tx) error { return o.notify(tx, jid, "", cause.Error()) })
}

func (o *Onboarding) report(waiting int) {
	if waiting == 0 {
		o.notes()
		return
	}
	o.notes(fmt.Sprintf("routd does not answer: approvals that wait for it: %d", waiting))
}

// expire ends requests that are older than the TTL, and returns the younger ones.
func (o *Onboarding) expire(ctx context.Context, open []*factrows.Request, refused *[]error) (left []*factrows.Request,
	err error) {
	for _, r := range open {
		now := o.now()
		if now-r.CreatedAt < o.cfg.TTL.Milliseconds() {
			left = append(left, r)
			continue
		}
		err := o.st.Write(ctx, func(tx *store.Tx) error {
			if err := rows.DecideRequest(tx, r.Code, rows.RequestDecision{State: factrows.RequestExpired,
				By: factrows.DecidedByTime}, now); err != nil {
				return err
			}
			return o.notify(tx, r.ChatJID, r.ThreadID, expiredNotice(r))
		})
		switch {
		case errors.Is(err, store.ErrStale): // it was decided meanwhile
		case err != nil:
			if err := collect(refused, err); err != nil {
				return nil, err
			}
		default:
			o.results.WithLabelValues("expired").Inc()
			o.log.Info("request expired", "chat", r.ChatJID)
		}
	}
	return left, nil
}

// closeRouted ends the requests of chats whose messages routes take. Silently: an operator did it, by
// other means. While routd does not answer they stay.
func (o *Onboarding) closeRouted(ctx context.Context, open []*factrows.Request, refused *[]error) error {
	for page := range slices.Chunk(open, resolvePage) {
		items, err := o.items(ctx, page)
		if err != nil {
			return err
		}
		ask, cancel := context.WithTimeout(ctx, routdTimeout)
		answers, err := o.routd.Resolve(ask, items)
		cancel()
		if err != nil {
			o.log.Debug("routd not asked about requests", "err", err)
			return nil // the next sweep asks
		}
		for _, a := range answers {
			if a.ID < 0 || a.ID >= int64(len(page)) || a.Error != "" {
				continue
			}
			if err := collect(refused, o.closeByRoute(ctx, page[a.ID], a)); err != nil {
				return err
			}
		}
	}
	return nil
}

// items ask where a message like the one that made a request would go.
func (o *Onboarding) items(ctx context.Context, page []*factrows.Request) ([]routeapi.Item, error) {
	items := make([]routeapi.Item, len(page))
	for i, r := range page {
		verb := msg.VerbMention
		if r.Kind == msg.ChatDM {
			verb = msg.VerbMessage
		}
		items[i] = routeapi.Item{
			ID: int64(i), ChatJID: r.ChatJID, Kind: r.Kind, Sender: r.Sender, SenderName: r.SenderName, Verb: verb,
			ThreadID: r.ThreadID, ReceivedAt: o.now(), Stale: true,
		}
		chat, err := o.st.Chat(ctx, r.ChatJID)
		if err != nil {
			return nil, err
		}
		if chat != nil {
			items[i].StickyGroup = chat.StickyGroup
		}
	}
	return items, nil
}

// closeByRoute ends a request if its chat's messages go anywhere but here.
func (o *Onboarding) closeByRoute(ctx context.Context, r *factrows.Request, a routeapi.Answer) error {
	d := rows.RequestDecision{State: factrows.RequestExpired, By: factrows.DecidedByRoutes}
	switch {
	case a.Action == routeapi.Trigger || a.Action == routeapi.Observe:
		d.State, d.Folder = factrows.RequestApproved, a.Folder
	case a.Action == routeapi.Builtin, a.Action == routeapi.Daemon && a.Target != routeapi.Onboarding:
	default:
		return nil
	}
	err := o.st.Write(ctx, func(tx *store.Tx) error { return rows.DecideRequest(tx, r.Code, d, o.now()) })
	if errors.Is(err, store.ErrStale) {
		return nil
	}
	if err == nil {
		o.results.WithLabelValues(string(d.State)).Inc()
		o.log.Info("request ended by a route", "chat", r.ChatJID, "state", d.State, "folder", a.Folder)
	}
	return err
}

// purge deletes decided requests, once an hour.
func (o *Onboarding) purge(ctx context.Context) error {
	now := o.cfg.Now()
	if since := now.Sub(o.purgedAt); since >= 0 && since < purgeEvery {
		return nil
	}
	before := now.Add(-maxAge).UnixMilli()
	nth, err := rows.NthRequestAt(ctx, o.st.Reader, maxDecided)
	if err != nil {
		return err
	}
	// Those of the last day say whether a chat may ask again.
	before = max(before, min(nth, now.Add(-onboardapi.RejectedFor).UnixMilli()))
	for deleted := int64(purgePage); deleted == purgePage; {
		err := o.st.Write(ctx, func(tx *store.Tx) (err error) {
			deleted, err = rows.PurgeRequests(tx, before, purgePage)
			return err
		})
		if err != nil {
			return err
		}
	}
	o.purgedAt = now
	return nil
}
