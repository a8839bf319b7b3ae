package agents

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/queue"
	"arizuko/gated/internal/running/runtime"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/metrics"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// meter counts turns, runs and failures. Its labels are runtimes and kinds of failure, never a chat or a
// folder: folders may be named after the titles of chats.
type meter struct {
	turns, waits               *prometheus.HistogramVec
	runs, failures, notStarted *prometheus.CounterVec
}

// newMeter registers the metrics with reg, nil for nowhere.
func newMeter(reg prometheus.Registerer, q *queue.GroupQueue, st *store.Store, cfg *Config) *meter {
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: metrics.Slow()},
			[]string{"runtime"})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &meter{
		turns: histogram("arizuko_turn_seconds", "Time from a turn's creation to the end of its answer."),
		waits: histogram("arizuko_turn_wait_seconds", "Time from a turn's creation until an agent got it."),
		runs:  counter("arizuko_runs_total", "Agent processes started.", "runtime"),
		failures: counter("arizuko_agent_failures_total", "Runs that failed with a turn, by the kind of the failure.",
			"runtime", "kind"),
		notStarted: counter("arizuko_run_start_failures_total",
			"Agent processes that could not be started, by where the cause lies.", "runtime", "cause"),
	}
	for name := range cfg.Runtimes {
		m.turns.WithLabelValues(string(name))
		m.waits.WithLabelValues(string(name))
		m.runs.WithLabelValues(string(name))
		for _, kind := range []msg.ErrorKind{msg.ErrorSession, msg.ErrorTransient, msg.ErrorPermanent,
			msg.ErrorMachine} {
			m.failures.WithLabelValues(string(name), string(kind))
		}
		for _, class := range []runtime.Class{runtime.ClassSetup, runtime.ClassMachine, runtime.ClassAgent} {
			m.notStarted.WithLabelValues(string(name), causeOf(class))
		}
	}
	if reg == nil {
		return m
	}
	reg.MustRegister(m.turns, m.waits, m.runs, m.failures, m.notStarted,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "arizuko_agents_busy",
			Help: "Lanes with an unanswered turn."},
			func() float64 { return float64(q.Busy()) }))
	measureTurns(reg, st, cfg)
	return m
}

// measureTurns registers the metrics that are read from the rows of turns and runs.
func measureTurns(reg prometheus.Registerer, st *store.Store, cfg *Config) {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	queued := gauge("arizuko_turns_queued", "Queued turns, by what they wait for; at most 20,000 are counted.",
		"waits_for")
	oldest := gauge("arizuko_turns_queued_oldest_seconds",
		"Age of the oldest turn that waits for an agent alone, 0 for none.")
	running := gauge("arizuko_turns_running", "Turns that agents work on.")
	longest := gauge("arizuko_turns_running_oldest_seconds",
		"Time since the longest running turn was given to an agent, 0 for none.")
	live := gauge("arizuko_runs_live", "Agent processes that have not ended.", "runtime")
	failing := gauge("arizuko_groups_failing", "Groups whose turns fail alike; one of them is tried each minute.")
	metrics.FromRows(reg, func(ctx context.Context) error {
		at := cfg.Now()
		q, err := rows.CountQueue(ctx, st.Reader, at.UnixMilli(), metrics.MaxCount)
		if err != nil {
			return err
		}
		queued.WithLabelValues("agent").Set(float64(q.Ready.Count))
		queued.WithLabelValues("files").Set(float64(q.Files))
		queued.WithLabelValues("probe").Set(float64(q.Probe))
		queued.WithLabelValues("retry").Set(float64(max(q.Later-q.Files-q.Probe, 0)))
		oldest.WithLabelValues().Set(metrics.Age(at, q.Ready.Oldest))
		open, err := factrows.CountBacklog(ctx, st.Reader, factrows.ForAgent, "", 0)
		if err != nil {
			return err
		}
		running.WithLabelValues().Set(float64(open.Count))
		longest.WithLabelValues().Set(metrics.Age(at, open.Oldest))
		groups, err := factrows.FailingGroups(ctx, st.Reader)
		if err != nil {
			return err
		}
		failing.WithLabelValues().Set(float64(len(groups)))
		runs, err := rows.LiveRuns(ctx, st.Reader)
		for name := range cfg.Runtimes {
			live.WithLabelValues(string(name)).Set(float64(runs[string(name)]))
		}
		return err
	}, queued, oldest, running, longest, live, failing)
}

// since adds the time since a turn's creation to waits or turns.
func since(h *prometheus.HistogramVec, runtime string, t *msg.Turn, now time.Time) {
	h.WithLabelValues(runtime).Observe(metrics.Age(now, t.CreatedAt))
}

// ended records how a run ended: with a failure, or without having started.
func (m *meter) ended(name string, f failure, exit runtime.Exit) {
	if f.problem != "" {
		m.failures.WithLabelValues(name, string(f.kind)).Inc()
	}
	if exit.Err == nil {
		return
	}
	m.notStarted.WithLabelValues(name, causeOf(runtime.ClassOf(exit.Err))).Inc()
}

// causeOf is the label of a class of failures.
func causeOf(c runtime.Class) string {
	if c == runtime.ClassAgent {
		return "other"
	}
	return c.String()
}
