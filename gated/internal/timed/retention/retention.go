// Package retention deletes rows that are older than RETENTION_DAYS, keeps the audit and the media folder within their
// bounds, and moves the rows of chats that got another address.
package retention

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/chatmove"
	egressrows "arizuko/pkg/egress/rows"
	"arizuko/pkg/store"
)

const (
	// movesEvery is how often rows of moved chats are looked for.
	movesEvery = time.Minute
	// Purges begin firstPurge after the start, when the daemons have caught up.
	firstPurge = 10 * time.Minute
	purgeEvery = 24 * time.Hour
	retryDelay = 10 * time.Minute

	// pageRows is how many rows one commit deletes: it holds the write lock for
	// about 20 ms, and pagePause lets others write.
	pageRows  = 200
	pagePause = 100 * time.Millisecond
	// requestAge is how long the session of a request between groups is kept that was not ended with it: questions are
	// open for a day at most.
	requestAge = 7 * 24 * time.Hour
	// maxPasses over a table: a row goes once the later rows that need it are gone.
	maxPasses = 8
)

// Config of a Job.
type Config struct {
	Days       int    // older rows are deleted; 0 keeps everything
	Data       string // the data folder
	MediaQuota int64  // bytes; beyond about as many the oldest files are removed
	Now        func() time.Time
}

// Job does all of it, in the background.
type Job struct {
	cfg    Config
	st     *store.Store
	log    *slog.Logger
	purged *prometheus.CounterVec
	pause  func(ctx context.Context, d time.Duration) // between pages

	mediaFull bool // and the log says so
}

// New makes a job; Run starts it.
func New(cfg Config, st *store.Store, log *slog.Logger, reg prometheus.Registerer) *Job {
	j := &Job{cfg: cfg, st: st, log: log, pause: pause, purged: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "arizuko_purged_total", Help: "Rows and files deleted because of their age or their number, by kind.",
	}, []string{"kind"})}
	for _, kind := range []string{"turns", "messages", "runs", "broadcasts", "receipts", "audit", "logs", "media"} {
		j.purged.WithLabelValues(kind)
	}
	reg.MustRegister(j.purged)
	return j
}

// Run works until ctx ends.
func (j *Job) Run(ctx context.Context) error {
	moves := time.NewTicker(movesEvery)
	defer moves.Stop()
	purge := time.NewTimer(firstPurge)
	defer purge.Stop()
	trim := time.NewTicker(trimEvery)
	defer trim.Stop()
	j.finishMoves(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-moves.C:
			j.finishMoves(ctx)
		case <-trim.C:
			if _, err := j.TrimMedia(ctx); err != nil && ctx.Err() == nil {
				j.log.Error("trimming the media folder failed; retrying", "wait", trimEvery, "err", err)
			}
		case <-purge.C:
			wait := purgeEvery
			if _, err := j.Purge(ctx); err != nil && ctx.Err() == nil {
				wait = retryDelay
				j.log.Error("purging history failed; retrying", "wait", wait, "err", err)
			}
			purge.Reset(wait)
		}
	}
}

func (j *Job) finishMoves(ctx context.Context) {
	pages, err := chatmove.Finish(ctx, j.st, j.cfg.Now().UnixMilli())
	switch {
	case ctx.Err() != nil:
	case err != nil:
		j.log.Error("moving rows of a chat failed; retrying", "wait", movesEvery, "err", err)
	case pages > 0:
		j.log.Info("rows of moved chats follow", "count", fmt.Sprintf("%d pages", pages))
	}
}

// Counts are the numbers of rows and files that a purge deleted.
type Counts struct{ Turns, Messages, Runs, Broadcasts, Receipts, Audit, Logs, Media int }

func (c Counts) String() string {
	return fmt.Sprintf("%d turns, %d messages, %d runs, %d broadcasts, %d requests, %d changes, %d logs, "+
		"%d media files",
		c.Turns, c.Messages, c.Runs, c.Broadcasts, c.Receipts, c.Audit, c.Logs, c.Media)
}

// Purge deletes once all rows older than Config.Days, changes beyond a bound, and files that no row names. It may be
// interrupted anywhere; the next one continues.
func (j *Job) Purge(ctx context.Context) (c Counts, err error) {
	start := j.cfg.Now()
	c.Audit, err = j.purgeAudit(ctx, start)
	j.purged.WithLabelValues("audit").Add(float64(c.Audit))
	if err != nil {
		return c, err
	}
	if err = j.st.Write(ctx, func(tx *store.Tx) error {
		return rows.EndOldRequests(tx, start.Add(-requestAge).UnixMilli(), start.UnixMilli())
	}); err != nil {
		return c, err
	}
	if j.cfg.Days == 0 {
		if c.Audit > 0 {
			j.log.Info("oldest changes deleted from the audit", "count", c.Audit)
		}
		if c.Media, err = j.purgeMedia(ctx, start.Add(-minOrphanAge)); c.Media > 0 {
			j.purged.WithLabelValues("media").Add(float64(c.Media))
			j.log.Info("files that no message names removed", "count", c.Media)
		}
		return c, err
	}
	cutoff := start.AddDate(0, 0, -j.cfg.Days)
	for _, step := range []struct {
		kind  string
		count *int
		purge func() (int, error)
	}{
		{"turns", &c.Turns, func() (int, error) { return j.purgeRows(ctx, rows.HistoryTurns, cutoff) }},
		{"messages", &c.Messages, func() (int, error) { return j.purgeRows(ctx, rows.HistoryMessages, cutoff) }},
		{"runs", &c.Runs, func() (int, error) { return j.purgeRows(ctx, rows.HistoryRuns, cutoff) }},
		{"broadcasts", &c.Broadcasts, func() (int, error) { return j.purgeRows(ctx, rows.HistoryBroadcasts, cutoff) }},
		{"receipts", &c.Receipts, func() (int, error) {
			return j.purgePages(ctx, func(tx *store.Tx) (int, error) {
				return egressrows.DeleteReceiptsBefore(tx, cutoff.UnixMilli(), pageRows)
			})
		}},
		{"logs", &c.Logs, func() (int, error) { return j.purgeLogs(ctx, cutoff) }},
		{"media", &c.Media, func() (int, error) { return j.purgeMedia(ctx, start.Add(-minOrphanAge)) }},
	} {
		*step.count, err = step.purge()
		j.purged.WithLabelValues(step.kind).Add(float64(*step.count))
		if err != nil {
			break
		}
	}
	j.log.Info("history purged", "count", c.String(), "took", j.cfg.Now().Sub(start))
	return c, err
}

// purgeRows deletes the old rows of one kind, page by page.
func (j *Job) purgeRows(ctx context.Context, h rows.History, cutoff time.Time) (total int, err error) {
	before := cutoff.UnixMilli()
	for range maxPasses {
		deleted, err := j.purgePass(ctx, h, before)
		total += deleted
		if err != nil || deleted == 0 {
			return total, err
		}
	}
	return total, nil
}

// purgePass goes once through the rows up to the first page without an old one.
func (j *Job) purgePass(ctx context.Context, h rows.History, before int64) (total int, err error) {
	for after := int64(0); ; {
		ids, next, err := rows.OldRows(ctx, j.st.Reader, h, after, before, pageRows)
		if err != nil || len(ids) == 0 {
			return total, err
		}
		after = next
		deleted := 0
		err = j.st.Write(ctx, func(tx *store.Tx) (err error) {
			deleted, err = rows.Purge(tx, h, ids, before)
			return err
		})
		if err != nil {
			return total, err
		}
		total += deleted
		j.pause(ctx, pagePause)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// purgeAudit deletes changes by operators: those beyond store.MaxAuditRows, and with Config.Days those that are older
// than that, and than store.MinAuditDays.
func (j *Job) purgeAudit(ctx context.Context, now time.Time) (total int, err error) {
	before := int64(0)
	if j.cfg.Days > 0 {
		before = now.AddDate(0, 0, -max(j.cfg.Days, rows.MinAuditDays)).UnixMilli()
	}
	return j.purgePages(ctx, func(tx *store.Tx) (int, error) { return rows.PurgeAudit(tx, before, pageRows) })
}

// purgePages deletes rows, page by page, until there are none left.
func (j *Job) purgePages(ctx context.Context, purge func(*store.Tx) (int, error)) (total int, err error) {
	for {
		deleted := 0
		err := j.st.Write(ctx, func(tx *store.Tx) (err error) {
			deleted, err = purge(tx)
			return err
		})
		total += deleted
		if err != nil || deleted == 0 {
			return total, err
		}
		j.pause(ctx, pagePause)
	}
}
