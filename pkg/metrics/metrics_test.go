package metrics_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"arizuko/pkg/metrics"
)

func TestFromRows_ManyScrapes_ReadOnceInFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "arizuko_test", Help: "Test."})
		reads := 0
		metrics.FromRows(reg, func(context.Context) error {
			reads++
			gauge.Set(float64(reads))
			return nil
		}, gauge)
		for second := range 11 {
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					if n, err := testutil.GatherAndCount(reg, "arizuko_test"); n != 1 || err != nil {
						t.Errorf("%d values, %v", n, err)
					}
				})
			}
			all.Wait()
			if want := second/5 + 1; reads != want {
				t.Fatalf("after %d s: %d readings, not %d", second, reads, want)
			}
			<-time.After(time.Second)
		}
	})
}

func TestFromRows_ReadFails_LeavesGaugesOutAndCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "arizuko_test", Help: "Test."})
		failing := errors.New("database locked")
		metrics.FromRows(reg, func(context.Context) error { return failing }, gauge)
		gather(t, reg)
		if n, _ := testutil.GatherAndCount(reg, "arizuko_test"); n != 0 {
			t.Error("an old value is given out as if it were new")
		}
		if n := value(t, reg, "arizuko_scrape_errors_total"); n != 1 {
			t.Errorf("%v errors counted, not 1", n)
		}
		failing = nil
		<-time.After(5 * time.Second)
		if n, _ := testutil.GatherAndCount(reg, "arizuko_test"); n != 1 {
			t.Error("the gauge did not come back")
		}
	})
}

func TestFromRows_HungDatabase_EndsTheReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		metrics.FromRows(reg, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			prometheus.NewGauge(prometheus.GaugeOpts{Name: "arizuko_test", Help: "Test."}))
		begun := time.Now()
		gather(t, reg)
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("a scrape took %v", took)
		}
	})
}

func TestShared_SecondRegistration_ReturnsTheFirst(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	options := prometheus.CounterOpts{Name: "arizuko_test_total", Help: "Test."}
	first := metrics.Shared(reg, prometheus.NewCounter(options))
	if second := metrics.Shared(reg, prometheus.NewCounter(options)); first != second {
		t.Error("two counters of one name")
	}
}

func TestAge_Edges_AreZero(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(10_000)
	for at, want := range map[int64]float64{0: 0, 4_000: 6, 12_000: 0} {
		if got := metrics.Age(now, at); got != want {
			t.Errorf("age of %d: %v, not %v", at, got, want)
		}
	}
}

func gather(t *testing.T, reg *prometheus.Registry) {
	t.Helper()
	if _, err := reg.Gather(); err != nil {
		t.Fatal(err)
	}
}

// value returns the value of a counter without labels.
func value(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
