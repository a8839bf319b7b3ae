package gateway

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/deciding/decide"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/metrics"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// meter counts decisions, holds and lookups. Its labels are closed sets, never a chat, a sender or a folder.
type meter struct {
	decided   *prometheus.CounterVec
	wake      prometheus.Histogram
	held      prometheus.Gauge
	holds     prometheus.Histogram
	lookups   *prometheus.HistogramVec
	clockSets prometheus.Counter
}

func newMeter(reg prometheus.Registerer, st *store.Store, now func() time.Time) *meter {
	m := &meter{
		decided: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "arizuko_decisions_total", Help: "Inbound rows, by decision.",
		}, []string{"disposition", "reason"}),
		wake: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "arizuko_wake_seconds",
			Help: "Time from the arrival of a row at its adapter, before its commit, until gated has found it; " +
				"of several the oldest.",
			Buckets: metrics.Quick(),
		}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{Name: "arizuko_gate_held_rows", Help: "Rows that gates hold."}),
		holds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "arizuko_gate_hold_seconds", Help: "How long a gate held its oldest row, when it released rows.",
			Buckets: metrics.Slow(),
		}),
		lookups: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "arizuko_routd_question_seconds", Help: "Time until routd had answered about rows, or not, " +
				"by how that ended.",
			Buckets: metrics.Quick(),
		}, []string{"outcome"}),
		clockSets: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "arizuko_clock_steps_total", Help: "Times that the clock was set by more than a second.",
		}),
	}
	for _, reason := range []msg.Reason{msg.ReasonBadRow, msg.ReasonDaemonFailed} {
		m.decided.WithLabelValues(string(msg.Dropped), string(reason))
	}
	for _, o := range []outcome{askedDone, askedTooMuch, askedAway} {
		m.lookups.WithLabelValues(o.String())
	}
	if reg != nil {
		reg.MustRegister(m.decided, m.wake, m.held, m.holds, m.lookups, m.clockSets)
	}
	measureRows(reg, st, now)
	return m
}

// measureRows registers the gauges that are read from the rows of messages.
func measureRows(reg prometheus.Registerer, st *store.Store, now func() time.Time) {
	rows := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "arizuko_rows_waiting",
		Help: "Inbound rows without a decision, and those parked until their chat is approved; " +
			"at most 20,000 are counted.",
	}, []string{"state"})
	oldest := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "arizuko_rows_waiting_oldest_seconds", Help: "Age of the oldest inbound row that waits, 0 for none.",
	}, []string{"state"})
	metrics.FromRows(reg, func(ctx context.Context) error {
		for state, waits := range map[string]factrows.Waits{
			"undecided": factrows.ForDecision, "onboarding": factrows.ForApproval,
		} {
			b, err := factrows.CountBacklog(ctx, st.Reader, waits, "", metrics.MaxCount)
			if err != nil {
				return err
			}
			rows.WithLabelValues(state).Set(float64(b.Count))
			oldest.WithLabelValues(state).Set(metrics.Age(now(), b.Oldest))
		}
		return nil
	}, rows, oldest)
}

// woken records that new rows were found, the first of which arrived at a time in unix ms; 0 for none.
func (m *meter) woken(arrived int64, now time.Time) {
	if arrived != 0 {
		m.wake.Observe(metrics.Age(now, arrived))
	}
}

// changed records the rows in a chat's gate after a step, or before its rows are read again.
func (m *meter) changed(before, after *decide.State, now time.Time) {
	b, a := &before.Gate, &after.Gate
	if b.Count == 0 && a.Count == 0 {
		return
	}
	m.held.Add(float64(a.Count - b.Count))
	if b.Count > 0 && (a.Count == 0 || a.First != b.First) {
		m.holds.Observe(metrics.Age(now, b.First))
	}
}

// forgotten records that a chat's rows will be read again: its gate is empty until then.
func (m *meter) forgotten(state *decide.State) {
	if state.Gate.Count > 0 {
		m.held.Sub(float64(state.Gate.Count))
	}
}

// asked records how a lookup ended. Those about the version of the routes do not count.
func (m *meter) asked(l *lookup) {
	if len(l.items) > 0 {
		m.lookups.WithLabelValues(l.outcome.String()).Observe(time.Since(l.asked).Seconds())
	}
}

// String is the outcome as a label.
func (o outcome) String() string {
	switch o {
	case askedDone:
		return "answered"
	case askedTooMuch:
		return "slow"
	case askedAway:
		return "away"
	}
	return "unknown"
}
