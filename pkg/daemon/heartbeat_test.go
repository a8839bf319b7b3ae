package daemon_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
)

func TestHeartbeat_ReportsChangesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rows []daemonrows.Daemon
		heartbeat := daemon.NewHeartbeat("teled", "v1", slog.New(slog.DiscardHandler), func(_ context.Context, row daemonrows.Daemon) error {
			rows = append(rows, row)
			return errors.New("the disk is full") // must not end it
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- heartbeat.Run(ctx) }()
		synctest.Wait()
		heartbeat.Report(daemon.Connected, "as @bot")
		synctest.Wait()
		heartbeat.Report(daemon.Connected, "as @bot") // no change, no beat
		heartbeat.Event()
		heartbeat.Probe()
		synctest.Wait()
		<-time.After(daemon.HeartbeatInterval) // of the bubble's clock
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		var states []string
		for _, row := range rows {
			states = append(states, row.Connection)
		}
		if want := []string{"connecting", "connected", "connected", "stopped"}; !slices.Equal(states, want) {
			t.Fatalf("states %v, want %v", states, want)
		}
		beat := rows[2]
		if beat.Name != "teled" || beat.Version != "v1" || beat.Detail != "as @bot" || beat.LastEventAt != beat.StartedAt ||
			beat.LastProbeAt != beat.StartedAt || beat.HeartbeatAt-beat.StartedAt != daemon.HeartbeatInterval.Milliseconds() {
			t.Errorf("row %+v", beat)
		}
	})
}
