package store

import "context"

// Daemon is one row of daemons: the state that a process reports about itself.
// Times are unix milliseconds, 0 for never.
type Daemon struct {
	Name        string
	Version     string
	StartedAt   int64
	HeartbeatAt int64
	Connection  string // connecting, connected, degraded, bad_credentials or stopped
	LastEventAt int64
	LastProbeAt int64
	Detail      string
}

// Heartbeat writes a daemon's own row.
func (tx *Tx) Heartbeat(d Daemon) error {
	_, err := tx.exec(`INSERT INTO daemons (name, version, started_at, heartbeat_at, connection, last_event_at, last_probe_at, detail)
		VALUES (?,?,?,?,?,?,?,?) ON CONFLICT (name) DO UPDATE SET version = excluded.version, started_at = excluded.started_at,
		heartbeat_at = excluded.heartbeat_at, connection = excluded.connection, last_event_at = excluded.last_event_at,
		last_probe_at = excluded.last_probe_at, detail = excluded.detail`,
		d.Name, d.Version, d.StartedAt, d.HeartbeatAt, d.Connection, null(d.LastEventAt), null(d.LastProbeAt), d.Detail)
	return err
}

// Daemons returns the row of every daemon, sorted by name.
func (r Reader) Daemons(ctx context.Context) ([]Daemon, error) {
	return collect(ctx, r.q, func(scan scanner) (d Daemon, err error) {
		err = scan(&d.Name, &d.Version, &d.StartedAt, &d.HeartbeatAt, &d.Connection, &d.LastEventAt, &d.LastProbeAt, &d.Detail)
		return d, err
	}, `SELECT name, version, started_at, heartbeat_at, connection, ifnull(last_event_at,0), ifnull(last_probe_at,0), detail
		FROM daemons ORDER BY name`)
}
