package rows

import (
	"context"

	"arizuko/pkg/store"
)

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

// Heartbeat writes the report of a daemon. Of several processes of a daemon each has a row in processes; the
// row in daemons is of the one that has the daemon's lease.
func Heartbeat(tx *store.Tx, d Daemon) error {
	if other, err := reportProcess(tx, d); err != nil || other {
		return err
	}
	return tx.Exec(`INSERT INTO daemons (name, version, started_at, heartbeat_at, connection, last_event_at, last_probe_at, detail)
		VALUES (?,?,?,?,?,?,?,?) ON CONFLICT (name) DO UPDATE SET version = excluded.version,
			started_at = excluded.started_at,
		heartbeat_at = excluded.heartbeat_at, connection = excluded.connection, last_event_at = excluded.last_event_at,
		last_probe_at = excluded.last_probe_at, detail = excluded.detail`,
		d.Name, d.Version, d.StartedAt, d.HeartbeatAt, d.Connection, store.Null(d.LastEventAt),
		store.Null(d.LastProbeAt), d.Detail)
}

// reportProcess writes the report of a process, and reports whether another one has the lease of its daemon.
func reportProcess(tx *store.Tx, d Daemon) (other bool, err error) {
	if tx.OwnProcess() == 0 {
		return false, nil
	}
	if err := tx.Exec(`UPDATE processes SET connection = ?2, detail = ?3 WHERE id = ?1`,
		tx.OwnProcess(), d.Connection, d.Detail); err != nil {
		return false, err
	}
	var holder int64
	held, err := tx.Find([]any{&holder}, `SELECT l.process FROM leases l WHERE l.name = ?`, d.Name)
	return held && holder != tx.OwnProcess(), err
}

// Daemons returns the row of every daemon, sorted by name.
func Daemons(ctx context.Context, r store.Reader) ([]Daemon, error) {
	return store.All(ctx, r, func(scan store.Scan) (d Daemon, err error) {
		err = scan(&d.Name, &d.Version, &d.StartedAt, &d.HeartbeatAt, &d.Connection, &d.LastEventAt, &d.LastProbeAt,
			&d.Detail)
		return d, err
	}, `SELECT name, version, started_at, heartbeat_at, connection, ifnull(last_event_at,0), ifnull(last_probe_at,0), detail
		FROM daemons ORDER BY name`)
}
