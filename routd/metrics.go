package main

import (
	"context"

	"arizuko/routd/internal/rows"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/metrics"
)

// measure registers the metrics that are read from rows.
func (d *routd) measure() {
	backlog := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "arizuko_engagement_backlog", Help: "Changes of deliveries whose effect on engagement is not stored.",
	})
	metrics.FromRows(d.Metrics, func(ctx context.Context) error {
		read, last, err := rows.DeliveriesRead(ctx, d.Store.Reader)
		backlog.Set(float64(max(last-read, 0)))
		return err
	}, backlog)
}
