package adapter

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestCounters_Arrived_CountsMessagesFromTheFuture(t *testing.T) {
	t.Parallel()
	c := &counters{
		eventAge:   prometheus.NewHistogram(prometheus.HistogramOpts{Name: "age", Help: "Test."}),
		fromFuture: prometheus.NewCounter(prometheus.CounterOpts{Name: "future", Help: "Test."}),
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMilli()
	c.arrived(now-1000, now)
	c.arrived(now+1000, now) // whole seconds of a platform's clock
	c.arrived(now+6000, now)
	if n := testutil.ToFloat64(c.fromFuture); n != 1 {
		t.Errorf("%v messages from the future, not 1", n)
	}
	if n := testutil.CollectAndCount(c.eventAge); n != 1 {
		t.Errorf("%d histograms", n)
	}
}
