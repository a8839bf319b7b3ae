package daemon

import (
	"context"
	"net"
	"time"
)

const (
	// aliveEvery is how often a daemon looks whether it is alive: well within the units' WatchdogSec.
	aliveEvery = 10 * time.Second
	// hangTimeout is how long a heartbeat may take. One that fails returns sooner, also on a full disk or without the
	// server or the write lock: a restart would not help then, and does not happen.
	hangTimeout = 2 * time.Minute
)

// watchdog watches a process while it works.
type watchdog struct {
	heartbeat func() *time.Time          // when the heartbeat under way began, nil between two
	answers   func(context.Context) bool // the process answers on its socket
	hangs     func()                     // ends it
}

// watch tells systemd, if that has started the process, that it is alive as long as it answers. It ends the process
// when a heartbeat hangs: a container engine restarts only processes that have ended. It counts looks, not time, so
// that a process that was suspended has its time as well.
func (w watchdog) watch(ctx context.Context) {
	ticker := time.NewTicker(aliveEvery)
	defer ticker.Stop()
	tellSystemd("READY=1")
	var last *time.Time
	for looks := 0; ; looks++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if began := w.heartbeat(); began == nil || began != last {
			last, looks = began, 0
		}
		if time.Duration(looks)*aliveEvery >= hangTimeout {
			w.hangs()
			return
		}
		if w.answers(ctx) {
			tellSystemd("WATCHDOG=1")
		}
	}
}

// tellSystemd sends a state to the socket of sd_notify(3), if there is one. It may get lost: the next one counts.
func tellSystemd(state string) {
	path := notifySocket()
	if path == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state))
}
