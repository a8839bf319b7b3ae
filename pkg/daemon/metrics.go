package daemon

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"arizuko/pkg/buildinfo"
	"arizuko/pkg/disk"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/metrics"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// measure registers the metrics of every process, and makes its log.
func (p *Process) measure(o Options) {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "arizuko_build_info", Help: "1; the label is the version that the daemon was built from.",
	}, []string{"version"})
	build.WithLabelValues(buildinfo.Version()).Set(1)
	p.lines = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "arizuko_log_lines_total", Help: "Lines logged at level warn and above.",
	}, []string{"level"})
	p.lines.WithLabelValues("warn")
	p.lines.WithLabelValues("error")
	p.Log = p.counted(o.Base.Logger(o.Log, o.Name, o.Secrets...))
	p.Metrics.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build, p.lines,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "arizuko_time_seconds",
			Help: "The daemon's clock, as unix time."},
			func() float64 { return float64(failpoint.Now().UnixMilli()) / 1000 }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "arizuko_disk_free_bytes",
			Help: "Free space of the data folder's file system."},
			func() float64 { return float64(space(o.Base.Data).Free) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "arizuko_disk_size_bytes",
			Help: "Size of the data folder's file system."},
			func() float64 { return float64(space(o.Base.Data).Size) }))
}

// space is that of a folder's file system, 0 if it cannot be read.
func space(folder string) disk.Space {
	s, _ := disk.Of(folder) // each write that fails is counted
	return s
}

// observer records the store's measurements. full is called after a commit for which there was no space.
func observer(reg prometheus.Registerer, turnEnded func(msg.TurnState, msg.Reason), full func(error)) store.Observer {
	waits := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "arizuko_write_lock_wait_seconds", Help: "Wait of a commit for the write lock, also without getting it.",
		Buckets: metrics.Quick(),
	})
	commits := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "arizuko_commit_seconds", Help: "Time from the write lock to the end of a commit.",
		Buckets: metrics.Quick(),
	})
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "arizuko_commit_errors_total", Help: "Commits that failed as a whole, by cause.",
	}, []string{"cause"})
	for _, cause := range []string{"locked", "full", "other"} {
		failed.WithLabelValues(cause)
	}
	reg.MustRegister(waits, commits, failed)
	return store.Observer{
		Locked: func(wait time.Duration) { waits.Observe(wait.Seconds()) },
		Committed: func(took time.Duration, err error) {
			switch {
			case err == nil:
				commits.Observe(took.Seconds())
			case errors.Is(err, store.ErrLocked):
				failed.WithLabelValues("locked").Inc()
			case errors.Is(err, store.ErrFull):
				full(err)
				failed.WithLabelValues("full").Inc()
			default:
				failed.WithLabelValues("other").Inc()
			}
		},
		TurnEnded: turnEnded,
	}
}

func (p *Process) countPokes() func(daemon string, err error) {
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "arizuko_poke_errors_total",
		Help: "Pokes that failed, not counting daemons that are down or have a poke waiting.",
	}, []string{"daemon"})
	for _, daemon := range []string{"gated", "routd"} {
		failed.WithLabelValues(daemon)
	}
	p.Metrics.MustRegister(failed)
	return func(daemon string, err error) {
		failed.WithLabelValues(daemon).Inc()
		p.Log.Warn("poke failed", "daemon", daemon, "err", err)
	}
}

// counted returns a logger that counts its lines.
func (p *Process) counted(log *slog.Logger) *slog.Logger {
	return slog.New(&countingHandler{
		Handler: log.Handler(), warnings: p.lines.WithLabelValues("warn"), errors: p.lines.WithLabelValues("error"),
	})
}

// countingHandler counts the lines that operators should look at.
type countingHandler struct {
	slog.Handler
	warnings, errors prometheus.Counter
}

// Handle implements slog.Handler.
func (h *countingHandler) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case r.Level >= slog.LevelError:
		h.errors.Inc()
	case r.Level >= slog.LevelWarn:
		h.warnings.Inc()
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *countingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &countingHandler{h.Handler.WithAttrs(attrs), h.warnings, h.errors}
}

// WithGroup implements slog.Handler.
func (h *countingHandler) WithGroup(name string) slog.Handler {
	return &countingHandler{h.Handler.WithGroup(name), h.warnings, h.errors}
}

// measure registers a gauge for each state of the connection.
func (h *Heartbeat) measure(reg prometheus.Registerer) {
	for _, state := range []Connection{Connecting, Connected, Degraded, BadCredentials, Stopped} {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "arizuko_connection_state", Help: "1 for the state of the connection to the platform, " +
				"0 for the others.",
			ConstLabels: prometheus.Labels{"state": string(state)},
		}, func() float64 {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.row.Connection == string(state) {
				return 1
			}
			return 0
		}))
	}
}

// EventAt is when the platform's last event came, in unix ms, 0 for none since the start.
func (h *Heartbeat) EventAt() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.row.LastEventAt
}
