package store

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Outage logs the beginning and the end of a time in which the database fails, not each failure. Reads
// and writes have one each: when the disk is full, reads work. It is safe for concurrent use.
type Outage struct {
	log  *slog.Logger
	step string // that fails, for the log

	mu    sync.Mutex
	count int // failures so far, 0 while there is no outage
	since time.Time
}

// NewOutage makes the outage of a step, such as "write".
func NewOutage(log *slog.Logger, step string) *Outage { return &Outage{log: log, step: step} }

// Note takes the result of one attempt and returns it. ErrStale and ErrRefused are not about the
// database: they begin no outage and end none.
func (o *Outage) Note(ctx context.Context, err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case errors.Is(err, ErrStale), errors.Is(err, ErrRefused):
	case err == nil && o.count > 0:
		o.log.Info("database access works again", "step", o.step, "count", o.count, "wait",
			time.Since(o.since).Round(time.Millisecond))
		o.count = 0
	case err != nil && ctx.Err() == nil:
		if o.count++; o.count == 1 {
			o.since = time.Now()
			o.log.Error("database access failed; retrying, further failures are counted", "step", o.step, "err", err)
		}
	}
	return err
}

// Repeat runs a step at once, then at an interval, and after a failure a second later if the interval is longer. It
// notes each result, and returns nil once ctx ends.
func (o *Outage) Repeat(ctx context.Context, every time.Duration, step func(context.Context) error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		wait := every
		if o.Note(ctx, step(ctx)) != nil {
			wait = min(every, time.Second)
		}
		timer.Reset(wait)
	}
}
