package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/migrations/backup"
	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/metrics"
	"arizuko/pkg/msg"
)

// maxDaemons bounds the labels: any program that writes rows may have a row in daemons.
const maxDaemons = 32

// measure registers the metrics of dashd itself, and of all daemons: an adapter that is not of this
// repository has no metrics of its own.
func (d *dashd) measure() {
	d.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "arizuko_sse_clients", Help: "Open event streams of browsers.",
	}, func() float64 { return float64(d.hub.Streams()) }))
	age := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "arizuko_daemon_heartbeat_age_seconds",
		Help: "Time since a daemon's last heartbeat, of those that were not stopped.",
	}, []string{"daemon"})
	start := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "arizuko_daemon_start_time_seconds", Help: "When a daemon started, as unix time.",
	}, []string{"daemon"})
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	unserved := gauge("arizuko_unserved_oldest_seconds",
		"Age of the oldest answer for a platform that no adapter of this suite serves, 0 for none.")
	saved := gauge("arizuko_backup_timestamp_seconds",
		"When the last backup was completed, as unix time; 0: none was.")
	failed := gauge("arizuko_backup_failed", "1: the last backup failed.")
	media := gauge("arizuko_media_used_ratio", "Share of MEDIA_QUOTA that the files of messages take.")
	metrics.FromRows(d.Metrics, func(ctx context.Context) error {
		rows, err := daemonrows.Daemons(ctx, d.Store.Reader)
		if err != nil {
			return err
		}
		age.Reset()
		start.Reset()
		for _, row := range rows[:min(len(rows), maxDaemons)] {
			if row.Connection != string(daemon.Stopped) {
				age.WithLabelValues(row.Name).Set(metrics.Age(d.Now(), row.HeartbeatAt))
			}
			start.WithLabelValues(row.Name).Set(float64(row.StartedAt) / 1000)
		}
		done, fell := backup.Last(d.cfg.Data)
		saved.Set(max(0, float64(done.Unix()))) // of the zero time far below
		failed.Set(0)
		if fell.After(done) {
			failed.Set(1)
		}
		if used, err := d.media.Used(); err == nil {
			media.Set(float64(used) / float64(d.cfg.MediaQuota))
		}
		platforms, err := factrows.UnsentByPlatform(ctx, d.Store.Reader)
		oldest := 0.0
		for _, w := range platforms {
			if msg.DaemonOf(w.ChatJID) == "" {
				oldest = max(oldest, metrics.Age(d.Now(), w.Since))
			}
		}
		unserved.Set(oldest)
		return err
	}, age, start, unserved, saved, failed, media)
}
