package agents

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/queue"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Metrics is where the manager registers its metrics; nil for nowhere.
type Metrics prometheus.Registerer

type meter struct {
	turns prometheus.Histogram
}

func newMeter(reg Metrics, q *queue.GroupQueue, st *store.Store) *meter {
	m := &meter{turns: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "arizuko_turn_seconds",
		Help:    "Time from a turn's creation to the end of its answer.",
		Buckets: prometheus.ExponentialBuckets(0.01, 4, 9),
	})}
	if reg == nil {
		return m
	}
	reg.MustRegister(m.turns,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "arizuko_turns_queued", Help: "Turns waiting for an agent."},
			func() float64 {
				waiting, err := st.CountQueued(context.Background())
				if err != nil {
					return math.NaN()
				}
				return float64(waiting)
			}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "arizuko_agents_busy", Help: "Lanes with an unanswered turn."},
			func() float64 { return float64(q.Busy()) }))
	return m
}

func (m *meter) answered(t *msg.Turn, now time.Time) {
	m.turns.Observe(now.Sub(time.UnixMilli(t.CreatedAt)).Seconds())
}
