// Package metrics has the parts that daemons share to measure themselves: gauges that are read from rows when
// Prometheus asks, so that a restart changes none, and the buckets of histograms.
package metrics

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// maxAge is for how long values read from rows are given out again: several scrapers, or one
	// that asks too often, cost the message path nothing.
	maxAge = 5 * time.Second
	// readTimeout is below the scrape timeout of Prometheus, 10 s.
	readTimeout = 2 * time.Second
	// MaxCount bounds the rows that one reading counts: 20,000 rows of a partial index take about 10 ms.
	MaxCount = 20_000
)

// Quick are the buckets, in seconds, of histograms of steps that take milliseconds: 0.5 ms to 8 s.
func Quick() []float64 { return prometheus.ExponentialBuckets(0.0005, 4, 8) }

// Slow are those for steps of an agent, a platform or a user: 10 ms to 11 min.
func Slow() []float64 { return prometheus.ExponentialBuckets(0.01, 4, 9) }

// FromRows registers gauges that are set by read, which is called for a scrape, at most once in 5 s
// and never twice at once. When it fails the gauges are left out of the scrape, and
// arizuko_scrape_errors_total counts it. A nil reg registers nothing.
func FromRows(reg prometheus.Registerer, read func(context.Context) error, gauges ...prometheus.Collector) {
	if reg == nil {
		return
	}
	failed := Shared(reg, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "arizuko_scrape_errors_total", Help: "Scrapes for which rows could not be read.",
	}))
	reg.MustRegister(&rows{read: read, gauges: gauges, failed: failed})
}

// Shared registers a collector that several parts of a process use, and returns the one that was
// registered first.
func Shared[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	var already prometheus.AlreadyRegisteredError
	if errors.As(reg.Register(c), &already) {
		if shared, ok := already.ExistingCollector.(C); ok {
			return shared
		}
	}
	return c
}

// rows is a collector of gauges that are read from rows.
type rows struct {
	read   func(context.Context) error
	gauges []prometheus.Collector
	failed prometheus.Counter

	mu  sync.Mutex
	at  time.Time // of the last reading
	err error     // of it
}

// Describe implements prometheus.Collector.
func (r *rows) Describe(descriptions chan<- *prometheus.Desc) {
	for _, g := range r.gauges {
		g.Describe(descriptions)
	}
}

// Collect implements prometheus.Collector.
func (r *rows) Collect(values chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() || time.Since(r.at) >= maxAge {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		r.err = r.read(ctx)
		cancel()
		r.at = time.Now()
		if r.err != nil {
			r.failed.Inc()
		}
	}
	if r.err != nil {
		return
	}
	for _, g := range r.gauges {
		g.Collect(values)
	}
}

// Age is the time from at, in unix ms, to now in seconds: 0 for an at of 0, and for one in the future.
func Age(now time.Time, at int64) float64 {
	if at == 0 {
		return 0
	}
	return max(now.Sub(time.UnixMilli(at)).Seconds(), 0)
}
