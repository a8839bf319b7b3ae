package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchdog_HeartbeatHangs_EndsTheProcess(t *testing.T) {
	for name, tt := range map[string]struct {
		beat time.Duration // how long each heartbeat takes, 0 for ever
		want bool
	}{
		"quick": {time.Second, false}, "slow, on a full disk": {110 * time.Second, false}, "hangs": {0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, ended := time.Now(), false
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := &start
				watchdog{
					heartbeat: func() *time.Time {
						if tt.beat > 0 && time.Since(*began) >= tt.beat {
							now := time.Now()
							began = &now
						}
						return began
					},
					answers: func(context.Context) bool { return true },
					hangs:   func() { ended = true },
				}.watch(ctx)
				if took := time.Since(start); ended != tt.want || ended && took > hangTimeout+2*aliveEvery {
					t.Errorf("ended %t after %s", ended, took)
				}
			})
		})
	}
}
