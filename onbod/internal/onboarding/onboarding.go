// Package onboarding decides which chats get a group. A chat without one makes a request, once; an
// operator approves or rejects it. Everything about a request is in its row: a process that ends
// between two steps of an approval finishes it at its next start.
package onboarding

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/facts/rows"
	"arizuko/pkg/metrics"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

const (
	// An approved chat makes no new request within approvedFor: messages sent before the approval may
	// still arrive.
	approvedFor = time.Minute
	// maxNotices is of how many requests within an hour operators are notified one by one.
	maxNotices = 10
	// limitTime is the time that the limits of requests are about.
	limitTime = time.Hour
	// routdTimeout is how long routd may take. A caller of ours waits 10 s, for two of its answers.
	routdTimeout = 3 * time.Second
)

// Config has the settings of the operator.
type Config struct {
	Operators    map[string]bool // of OPERATORS
	TTL          time.Duration   // until an undecided request expires
	MaxPerSender int             // requests of one sender within an hour
	MaxPerHour   int             // requests of all senders within an hour
	MaxPending   int
	Groups       string // the folder of the groups' folders
	Now          func() time.Time
}

// Routd makes groups and routes, and knows which chats have one.
type Routd interface {
	// Connect returns an error made by Refused if this call has changed nothing.
	Connect(ctx context.Context, a routeapi.Approval) (routeapi.Approved, error)
	Resolve(ctx context.Context, items []routeapi.Item) ([]routeapi.Answer, error)
}

// Onboarding is safe for concurrent use.
type Onboarding struct {
	cfg   Config
	st    *store.Store
	routd Routd
	log   *slog.Logger

	deciding chan struct{} // holds a value while requests are decided
	recheck  chan struct{} // wakes Run
	results  *prometheus.CounterVec
	newCode  func() string
	purgedAt time.Time // of Run's goroutine
	notes    func(...string)
}

// New makes one; Run finishes the work that an earlier process left. notes receives texts that an operator should
// know about approvals that do not go on.
func New(cfg Config, st *store.Store, routd Routd, log *slog.Logger, reg prometheus.Registerer,
	notes func(...string)) *Onboarding {
	o := &Onboarding{
		cfg: cfg, st: st, routd: routd, log: log, deciding: make(chan struct{}, 1), recheck: make(chan struct{}, 1),
		newCode: newCode, notes: notes,
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "arizuko_onboarding_requests_total",
			Help: "Requests to connect a chat, by outcome.",
		}, []string{"result"}),
	}
	for _, result := range []string{"created", "existing", "limited", "approved", "rejected", "expired"} {
		o.results.WithLabelValues(result)
	}
	reg.MustRegister(o.results)
	o.gauges(reg)
	return o
}

// gauges registers the metrics that are read from rows.
func (o *Onboarding) gauges(reg prometheus.Registerer) {
	pending := prometheus.NewGauge(prometheus.GaugeOpts{Name: "arizuko_onboarding_pending",
		Help: "Requests that wait for an operator."})
	oldest := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "arizuko_onboarding_oldest_seconds", Help: "Age of the oldest request that waits, 0 without one.",
	})
	metrics.FromRows(reg, func(ctx context.Context) error {
		waiting, _, err := rows.WaitingRequests(ctx, o.st.Reader)
		if err != nil {
			return err
		}
		pending.Set(float64(waiting.Rows))
		oldest.Set(metrics.Age(o.cfg.Now(), waiting.Since))
		return nil
	}, pending, oldest)
}

func (o *Onboarding) now() int64 { return o.cfg.Now().UnixMilli() }

// within reports whether a time is less than d ago, and not ahead: a clock that was set back must not
// make a limit last.
func within(at, now int64, d time.Duration) bool { return at <= now && now-at < d.Milliseconds() }

// lock waits until no other request is being decided. The caller calls unlock.
func (o *Onboarding) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case o.deciding <- struct{}{}:
		return func() { <-o.deciding }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
