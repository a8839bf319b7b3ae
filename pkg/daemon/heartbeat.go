package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/store"
)

// HeartbeatInterval is how often a daemon refreshes its row in daemons. A row older than three
// intervals belongs to a daemon that is down.
const HeartbeatInterval = 5 * time.Second

// lastBeatTimeout bounds the final write at a stop.
const lastBeatTimeout = 2 * time.Second

// Connection is the state of a daemon's connection to its platform; daemons without one are
// connected as soon as they run.
type Connection string

// The states a row of daemons may have.
const (
	Connecting     Connection = "connecting"
	Connected      Connection = "connected"
	Degraded       Connection = "degraded"
	BadCredentials Connection = "bad_credentials"
	Stopped        Connection = "stopped"
)

// Heartbeat keeps a daemon's row in daemons. It is safe for concurrent use.
type Heartbeat struct {
	write   func(context.Context, rows.Daemon) error
	outage  *store.Outage
	changed chan struct{} // cap 1

	mu  sync.Mutex
	row rows.Daemon
}

// NewHeartbeat returns the heartbeat of a daemon that is connecting. write stores the row.
func NewHeartbeat(name, version string, log *slog.Logger, write func(context.Context, rows.Daemon) error) *Heartbeat {
	return &Heartbeat{
		write: write, outage: store.NewOutage(log, "heartbeat"), changed: make(chan struct{}, 1),
		row: rows.Daemon{Name: name, Version: version, StartedAt: failpoint.Now().UnixMilli(),
			Connection: string(Connecting)},
	}
}

// Report sets the state of the connection, with a detail for operators. A change is written at once.
func (h *Heartbeat) Report(c Connection, detail string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.row.Connection == string(c) && h.row.Detail == detail {
		return
	}
	h.row.Connection, h.row.Detail = string(c), detail
	h.Refresh()
}

// Refresh writes the row at once.
func (h *Heartbeat) Refresh() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// Event records that the platform has just sent an event; the next beat writes it.
func (h *Heartbeat) Event() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.row.LastEventAt = failpoint.Now().UnixMilli()
}

// Probe records that a test of the connection has just succeeded; the next beat writes it.
func (h *Heartbeat) Probe() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.row.LastProbeAt = failpoint.Now().UnixMilli()
}

// Run writes the row until ctx ends, then writes that the daemon is stopped. It returns nil: a
// write that fails is logged, and the next one may succeed.
func (h *Heartbeat) Run(ctx context.Context) error {
	ticker := time.NewTicker(HeartbeatInterval)
	defer ticker.Stop()
	for {
		h.beat(ctx)

		select {
		case <-ctx.Done():
			h.mu.Lock()
			h.row.Connection = string(Stopped)
			h.mu.Unlock()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastBeatTimeout)
			defer cancel()
			h.beat(last)
			return nil
		case <-ticker.C:
		case <-h.changed:
		}
	}
}

func (h *Heartbeat) beat(ctx context.Context) {
	h.mu.Lock()
	row := h.row
	h.mu.Unlock()
	row.HeartbeatAt = failpoint.Now().UnixMilli()
	_ = h.outage.Note(ctx, h.write(ctx, row)) // the next one has it all
}
