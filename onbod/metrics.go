package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/daemon"
	"arizuko/pkg/metrics"
)

// measure registers what is read from the rows of pending requests, of which there are at most
// REQUESTS_PENDING.
func measure(p *daemon.Process) {
	pending := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "arizuko_onboarding_pending", Help: "Requests that wait for an operator.",
	})
	oldest := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "arizuko_onboarding_oldest_seconds", Help: "Age of the oldest request that waits for an operator, 0 for none.",
	})
	metrics.FromRows(p.Metrics, func(ctx context.Context) error {
		requests, err := p.Store.PendingRequests(ctx)
		if err != nil {
			return err
		}
		now, age := p.Now(), 0.0
		for _, r := range requests {
			age = max(age, metrics.Age(now, r.CreatedAt))
		}
		pending.Set(float64(len(requests)))
		oldest.Set(age)
		return nil
	}, pending, oldest)
}
