package daemon

import (
	"context"
	"errors"
	"net"
	"time"

	"arizuko/pkg/config"
)

const (
	// aliveEvery is how often a daemon looks whether it is alive: well within the units' WatchdogSec.
	aliveEvery = 10 * time.Second
	// hangTimeout is how long a heartbeat may take. One that fails returns sooner, also on a full disk or without the
	// server or the write lock: a restart would not help then, and does not happen.
	hangTimeout = 2 * time.Minute
)

var errHangs = errors.New("this daemon hangs: it has not finished a heartbeat for " + hangTimeout.String())

// watch tells systemd, if that has started the process, that it is alive as long as it answers on its socket. It ends
// the process when its heartbeat hangs: a container engine restarts only processes that have ended.
func (p *Process) watch(ctx context.Context, base config.Base, name string, hangs func(error)) {
	ticker := time.NewTicker(aliveEvery)
	defer ticker.Stop()
	tellSystemd("READY=1")
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if began := p.beating.Load(); began != nil && time.Since(*began) > hangTimeout {
			p.Log.Error("heartbeat hangs; ending", "err", errHangs)
			hangs(errHangs)
			return
		}
		if _, err := Unready(ctx, base, name); err == nil {
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
