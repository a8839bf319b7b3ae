// Package polls ends polls: those whose time has come, and on their platform those that are closed.
// All state is in rows, so that it may be killed at any moment.
package polls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/endpoint"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// page is how many polls one query returns.
	page = 100
	// maxVotesDelay is how long the end of a poll waits for votes that came before it and are undecided.
	maxVotesDelay = 10 * time.Second
	// undeliveredEvery is how often polls that were never delivered are looked for.
	undeliveredEvery = time.Minute
)

// Closer closes polls. Its fields are set once.
type Closer struct {
	Store *store.Store
	Every time.Duration // how often to look
	Now   func() time.Time
	Log   *slog.Logger
	// Objects are the active context objects. A closed poll stays one for a short time.
	Objects *contextobjects.Objects

	started, lookedAt time.Time
}

// Run closes polls until ctx ends.
func (c *Closer) Run(ctx context.Context) error {
	return store.NewOutage(c.Log, "write").Repeat(ctx, c.Every, c.Step)
}

// Step closes the polls that are due, and ends closed ones. It may be repeated at any time.
func (c *Closer) Step(ctx context.Context) error {
	now := c.Now()
	if c.started.IsZero() {
		c.started = now
	}
	err := c.closeDue(ctx, now)
	if err == nil && now.Sub(c.lookedAt) >= undeliveredEvery {
		if err = c.closeUndelivered(ctx, now); err == nil {
			c.lookedAt = now
		}
	}
	if err == nil {
		err = c.end(ctx, now)
	}
	return err
}

// each calls do for every poll that list returns after an id, page by page.
func each(list func(after int64) ([]*msg.StoredPoll, error), do func(*msg.StoredPoll) error) error {
	for after := int64(0); ; {
		polls, err := list(after)
		if err != nil || len(polls) == 0 {
			return err
		}
		for _, p := range polls {
			after = p.ID
			if err := do(p); err != nil {
				return err
			}
		}
	}
}

// closeDue closes open polls whose time has come, at that time: votes that arrived later do not count,
// also if gated was down.
func (c *Closer) closeDue(ctx context.Context, now time.Time) error {
	return each(func(int64) ([]*msg.StoredPoll, error) {
		return rows.PollsDue(ctx, c.Store.Reader, now.UnixMilli(), page)
	}, func(p *msg.StoredPoll) error { return c.close(ctx, p, p.Poll.ClosesAt) })
}

// closeUndelivered closes open polls that no user can see.
func (c *Closer) closeUndelivered(ctx context.Context, now time.Time) error {
	return each(func(after int64) ([]*msg.StoredPoll, error) {
		return rows.PollsUndelivered(ctx, c.Store.Reader, after, page)
	}, func(p *msg.StoredPoll) error { return c.close(ctx, p, now.UnixMilli()) })
}

func (c *Closer) close(ctx context.Context, p *msg.StoredPoll, at int64) error {
	err := c.Store.Write(ctx, func(tx *store.Tx) error {
		if err := rows.ClosePoll(tx, p.ID, at); err != nil {
			return err
		}
		return c.Objects.ClosePoll(tx, p.ChatJID, p.ID, at, c.Now().UnixMilli())
	})
	if errors.Is(err, store.ErrStale) { // a tool or its platform has closed it
		return nil
	}
	if err == nil {
		c.Log.Info("poll closed", "chat", p.ChatJID, "row", p.MessageID)
	}
	return err
}

// end closes the messages of closed polls, once the votes that came before are counted.
func (c *Closer) end(ctx context.Context, now time.Time) error {
	return each(func(after int64) ([]*msg.StoredPoll, error) {
		return rows.PollsEnding(ctx, c.Store.Reader, after, page)
	}, func(p *msg.StoredPoll) error { return c.endOne(ctx, p, now) })
}

func (c *Closer) endOne(ctx context.Context, p *msg.StoredPoll, now time.Time) error {
	if now.Sub(c.started) < maxVotesDelay || now.Sub(time.UnixMilli(p.ClosedAt)) < maxVotesDelay {
		waiting, err := rows.VotesWaiting(ctx, c.Store.Reader, p.ChatJID, p.ClosedAt)
		if err != nil || waiting {
			return err
		}
	}
	return c.Store.Write(ctx, func(tx *store.Tx) error {
		_, err := rows.QueuePollEnd(tx, p.ID, now.UnixMilli())
		return err
	})
}

// Mount adds POST /v1/polls/{id}/close. The router must check the bearer secret.
func (c *Closer) Mount(r chi.Router) {
	r.Post("/v1/polls/{id}/close", endpoint.Handler(http.StatusOK, c.closeFor))
}

// closeFor closes an open poll for an operator.
func (c *Closer) closeFor(r *http.Request) (any, error) {
	id, err := endpoint.ID(r)
	if err != nil {
		return nil, err
	}
	p, err := rows.Poll(r.Context(), c.Store.Reader, id)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, apierr.New(apierr.NotFound, "there is no poll %d", id)
	}
	now := c.Now().UnixMilli()
	err = c.Store.Write(r.Context(), func(tx *store.Tx) error {
		if err := rows.ClosePoll(tx, id, now); err != nil {
			return err
		}
		if err := c.Objects.ClosePoll(tx, p.ChatJID, id, now, now); err != nil {
			return err
		}
		return tx.PutAudit(httpx.By(r), "close poll", fmt.Sprintf("%d of %s in %s", id, p.Folder, p.ChatJID), now)
	})
	if errors.Is(err, store.ErrStale) {
		err = apierr.New(apierr.Conflict, "poll %d is closed already", id)
	}
	return map[string]msg.PollState{"state": msg.PollClosed}, err
}
