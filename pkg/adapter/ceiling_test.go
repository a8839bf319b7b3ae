package adapter

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slowWay is a platform to which calls take any time, as its answers do.
type slowWay struct {
	mu      sync.Mutex
	random  *rand.Rand
	arrived []time.Time
	refuse  error
}

func (w *slowWay) delay() {
	w.mu.Lock()
	d := time.Duration(w.random.ExpFloat64() * float64(100*time.Millisecond))
	w.mu.Unlock()
	<-time.After(d)
}

func (w *slowWay) RoundTrip(*http.Request) (*http.Response, error) {
	w.delay()
	w.mu.Lock()
	w.arrived = append(w.arrived, time.Now())
	w.mu.Unlock()
	w.delay()
	if w.refuse != nil {
		return nil, w.refuse
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
}

func TestCeiling_CallsHeldUpOnTheWay_NeverTooManyArriveAtOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			const calls, in, count = 30, time.Second, 300
			way := &slowWay{random: rand.New(rand.NewPCG(seed, 0))}
			if seed%2 == 1 {
				way.refuse = errors.New("connection reset")
			}
			ceiling := NewCeiling(calls, in)
			began := time.Now()
			var all sync.WaitGroup
			for i := range count {
				client := ceiling.Keep(&http.Client{Transport: way})
				all.Go(func() {
					<-time.After(time.Duration(i/100) * 2 * time.Second) // in bursts
					res, err := client.Post("https://platform.test", "", strings.NewReader("{}"))
					if !errors.Is(err, way.refuse) {
						t.Error(err)
					} else if err == nil {
						res.Body.Close()
					}
				})
			}
			all.Wait()
			slices.SortFunc(way.arrived, time.Time.Compare)
			for i := calls; i < len(way.arrived); i++ {
				if gap := way.arrived[i].Sub(way.arrived[i-calls]); gap < in {
					t.Fatalf("seed %d: %d calls arrived within %v", seed, calls+1, gap)
				}
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("seed %d: %d calls took %v", seed, count, took)
			}
		})
	}
}

func TestCeiling_CallEndsWhileItWaits_WasNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		way := &slowWay{random: rand.New(rand.NewPCG(1, 0))}
		client := NewCeiling(1, time.Minute).Keep(&http.Client{Transport: way})
		call := func(patience time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://platform.test", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			res, err := client.Do(req)
			if err == nil {
				res.Body.Close()
			}
			return err
		}
		if err := call(time.Hour); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := call(10 * time.Second); !errors.Is(err, ErrUnsent) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a call that waited too long: %v", err)
			}
		}
		if err := call(time.Hour); err != nil || len(way.arrived) != 2 {
			t.Errorf("%v, %d calls arrived", err, len(way.arrived))
		}
	})
}
