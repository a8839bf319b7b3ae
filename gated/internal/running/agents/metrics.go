package agents

import (
	"context"
	"time"

	"arizuko/gated/internal/rows"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/running/queue"
	"arizuko/gated/internal/running/runtime"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/metrics"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Metrics is where the manager registers its metrics; nil for nowhere.
type Metrics prometheus.Registerer

// meter counts turns, runs and failures. Its labels are runtimes and kinds of failure, never a chat or a
// folder: folders may be named after the titles of chats.
type meter struct {
	turns, waits *prometheus.HistogramVec
	runs         *prometheus.CounterVec
	failures     *prometheus.CounterVec
	notStarted   *prometheus.CounterVec
}

func newMeter(reg Metrics, q *queue.GroupQueue, st *store.Store, now func() time.Time, runtimes []string) *meter {
	m := &meter{
		turns: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "arizuko_turn_seconds", Help: "Time from a turn's creation to the end of its answer.",
			Buckets: metrics.Slow(),
		}, []string{"runtime"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "arizuko_turn_wait_seconds", Help: "Time from a turn's creation until an agent got it.",
			Buckets: metrics.Slow(),
		}, []string{"runtime"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "arizuko_runs_total", Help: "Agent processes started.",
		}, []string{"runtime"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "arizuko_agent_failures_total", Help: "Runs that failed with a turn, by the kind of the failure.",
		}, []string{"runtime", "kind"}),
		notStarted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "arizuko_run_start_failures_total",
			Help: "Agent processes that could not be started, by where the cause lies.",
		}, []string{"runtime", "cause"}),
	}
	for _, runtime := range runtimes {
		m.turns.WithLabelValues(runtime)
		m.waits.WithLabelValues(runtime)
		m.runs.WithLabelValues(runtime)
		for _, kind := range []msg.ErrorKind{msg.ErrorSession, msg.ErrorTransient, msg.ErrorPermanent,
			msg.ErrorMachine} {
			m.failures.WithLabelValues(runtime, string(kind))
		}
		for _, cause := range []string{"setup", "machine", "other"} {
			m.notStarted.WithLabelValues(runtime, cause)
		}
	}
	if reg == nil {
		return m
	}
	reg.MustRegister(m.turns, m.waits, m.runs, m.failures, m.notStarted,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "arizuko_agents_busy",
			Help: "Lanes with an unanswered turn."},
			func() float64 { return float64(q.Busy()) }))
	measureTurns(reg, st, now, runtimes)
	return m
}

// measureTurns registers the metrics that are read from the rows of turns and runs.
func measureTurns(reg Metrics, st *store.Store, now func() time.Time, runtimes []string) {
	queued := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "arizuko_turns_queued", Help: "Queued turns, by what they wait for; at most 20,000 are counted.",
	}, []string{"waits_for"})
	oldest := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "arizuko_turns_queued_oldest_seconds",
		Help: "Age of the oldest turn that waits for an agent alone, 0 for none.",
	})
	running := prometheus.NewGauge(prometheus.GaugeOpts{Name: "arizuko_turns_running",
		Help: "Turns that agents work on."})
	longest := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "arizuko_turns_running_oldest_seconds",
		Help: "Time since the longest running turn was given to an agent, 0 for none.",
	})
	live := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "arizuko_runs_live", Help: "Agent processes that have not ended.",
	}, []string{"runtime"})
	failing := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "arizuko_groups_failing", Help: "Groups whose turns fail alike, of which one a minute is tried.",
	})
	metrics.FromRows(reg, func(ctx context.Context) error {
		at := now()
		q, err := rows.CountQueue(ctx, st.Reader, at.UnixMilli(), metrics.MaxCount)
		if err != nil {
			return err
		}
		queued.WithLabelValues("agent").Set(float64(q.Ready.Count))
		queued.WithLabelValues("files").Set(float64(q.Files))
		queued.WithLabelValues("probe").Set(float64(q.Probe))
		queued.WithLabelValues("retry").Set(float64(max(q.Later-q.Files-q.Probe, 0)))
		oldest.Set(metrics.Age(at, q.Ready.Oldest))
		open, err := factrows.CountBacklog(ctx, st.Reader, factrows.ForAgent, "", 0)
		if err != nil {
			return err
		}
		running.Set(float64(open.Count))
		longest.Set(metrics.Age(at, open.Oldest))
		groups, err := factrows.FailingGroups(ctx, st.Reader)
		if err != nil {
			return err
		}
		failing.Set(float64(len(groups)))
		runs, err := rows.LiveRuns(ctx, st.Reader)
		for _, runtime := range runtimes {
			live.WithLabelValues(runtime).Set(float64(runs[runtime]))
		}
		return err
	}, queued, oldest, running, longest, live, failing)
}

// began records that an agent was given a turn.
func (m *meter) began(runtime string, t *msg.Turn, now time.Time) {
	m.waits.WithLabelValues(runtime).Observe(metrics.Age(now, t.CreatedAt))
}

func (m *meter) turnAnswered(runtime string, t *msg.Turn, now time.Time) {
	m.turns.WithLabelValues(runtime).Observe(metrics.Age(now, t.CreatedAt))
}

// ended records how a run ended: with a failure, or without having started.
func (m *meter) ended(name string, f failure, exit runtime.Exit) {
	if f.problem != "" {
		m.failures.WithLabelValues(name, string(f.kind)).Inc()
	}
	if exit.Err == nil {
		return
	}
	cause := "other"
	switch runtime.ClassOf(exit.Err) {
	case runtime.ClassSetup:
		cause = "setup"
	case runtime.ClassMachine:
		cause = "machine"
	}
	m.notStarted.WithLabelValues(name, cause).Inc()
}
