package main

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
)

func TestProblems_EachSourceReplacesItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last rows.Daemon
		heartbeat := daemon.NewHeartbeat("gated", "v", slog.New(slog.DiscardHandler), func(_ context.Context, row rows.Daemon) error {
			last = row
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { _ = heartbeat.Run(ctx); close(ended) }()
		p := &problems{ready: &daemon.Readiness{}, heartbeat: heartbeat}
		for _, step := range []struct {
			act        func()
			notes      []string
			connection daemon.Connection
		}{
			{func() { p.ofAgents(nil) }, nil, daemon.Connected},
			{func() { p.ofMessages([]string{"routd does not answer"}) }, []string{"routd does not answer"}, daemon.Connected},
			{func() { p.ofAgents([]string{"no disk"}) }, []string{"no disk", "routd does not answer"}, daemon.Degraded},
			{func() { p.ofMessages(nil) }, []string{"no disk"}, daemon.Degraded},
			{func() { p.ofAgents(nil) }, nil, daemon.Connected},
		} {
			step.act()
			synctest.Wait()
			waiting, notes := p.ready.Status()
			if len(waiting) > 0 || !slices.Equal(notes, step.notes) || last.Connection != string(step.connection) {
				t.Errorf("%q, notes %q, %s; want %q, %s", waiting, notes, last.Connection, step.notes, step.connection)
			}
		}
		cancel()
		<-ended
	})
}
