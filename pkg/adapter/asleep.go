package adapter

import (
	"context"
	"time"

	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// asleepInterval is how often messages are looked for that nothing decides about.
	asleepInterval = 15 * time.Second
	// maxHeartbeatAge is how old the last heartbeat of a daemon that runs may be.
	maxHeartbeatAge = 15 * time.Second
	// asleepNotice answers a press while gated does not run.
	asleepNotice = "The bot is not running right now. This is kept, and counts as soon as it runs again."
)

// markAsleep marks messages which wait for gated. The adapter does it, since gated itself may be dead or hang.
func (s *Shell) markAsleep(ctx context.Context) {
	now := s.Now().UnixMilli()
	before := now - msg.AsleepAfter*1000
	waiting, err := s.Store.Asleep(ctx, s.Platform, before)
	if err == nil && len(waiting) > 0 {
		err = s.Store.Write(ctx, func(tx *store.Tx) error { return tx.MarkAsleep(s.Platform, before, now) })
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("marking messages that wait failed; retrying", "err", err)
	}
}

// gatedNotice is the notice for a user who presses a button while gated does not run, "" while it does.
func (s *Shell) gatedNotice(ctx context.Context) (string, error) {
	all, err := daemonrows.Daemons(ctx, s.Store.Reader)
	for _, d := range all {
		if d.Name == "gated" && (daemon.Connection(d.Connection) == daemon.Stopped ||
			s.Now().UnixMilli()-d.HeartbeatAt >= maxHeartbeatAge.Milliseconds()) {
			return asleepNotice, err
		}
	}
	return "", err
}
