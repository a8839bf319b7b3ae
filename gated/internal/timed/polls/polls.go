// Package polls ends polls: those whose time has come, and on their platform those that are closed.
// All state is in rows, so that it may be killed at any moment.
package polls

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
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

// closeDue closes open polls whose time has come, at that time: votes that arrived later do not count,
// also if gated was down.
func (c *Closer) closeDue(ctx context.Context, now time.Time) error {
	for {
		due, err := rows.PollsDue(ctx, c.Store.Reader, now.UnixMilli(), page)
		if err != nil || len(due) == 0 {
			return err
		}
		for _, p := range due {
			if err := c.close(ctx, p, p.Poll.ClosesAt); err != nil {
				return err
			}
		}
	}
}

// closeUndelivered closes open polls that no user can see.
func (c *Closer) closeUndelivered(ctx context.Context, now time.Time) error {
	for after := int64(0); ; {
		lost, err := rows.PollsUndelivered(ctx, c.Store.Reader, after, page)
		if err != nil || len(lost) == 0 {
			return err
		}
		for _, p := range lost {
			if after = p.ID; err == nil {
				err = c.close(ctx, p, now.UnixMilli())
			}
		}
		if err != nil {
			return err
		}
	}
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
	for after := int64(0); ; {
		ending, err := rows.PollsEnding(ctx, c.Store.Reader, after, page)
		if err != nil || len(ending) == 0 {
			return err
		}
		for _, p := range ending {
			after = p.ID
			if err := c.endOne(ctx, p, now); err != nil {
				return err
			}
		}
	}
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
