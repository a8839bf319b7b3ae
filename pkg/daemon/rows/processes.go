// Package rows has the statements on daemons: their reports, and the processes and leases of those on several machines.
package rows

import (
	"context"

	"arizuko/migrations"
	"arizuko/pkg/store"
)

// Process is a start of a daemon that works on a database which several machines share. Times are unix ms by the
// database's clock.
type Process struct {
	ID      int64 // never used again: the epoch of the leases that the process has taken
	Daemon  string
	Place   string // the host and the data folder
	Addr    string // where the process is called, host:port
	Version string
	Since   int64
	Until   int64 // when others may take over
	Now     int64 // by the database's clock

	// Its last report; "" if it has made none, as one that stands by.
	Connection, Detail string

	Holds string // the leases that it has, separated by commas
	Held  int64  // since when it has the first of them, 0 for none
}

// Renewed is when the process last renewed its lease.
func (p Process) Renewed() int64 { return p.Until - store.LeaseTime.Milliseconds() }

// Join adds a process, whose lease begins. Former ones of the daemon at the same place are fenced: only one process of
// a daemon runs there at a time. Their ids are returned. It returns an ErrMoved if the database was copied to another
// one meanwhile.
func Join(tx *store.Tx, daemon, place, addr, version string) (id int64, former []int64, err error) {
	var moved string
	switch found, err := tx.Get(store.Uncancelled(), []any{&moved}, migrations.QueryMoved); {
	case err != nil:
		return 0, nil, err
	case found:
		return 0, nil, store.MovedTo(moved)
	}
	former, err = store.All(store.Uncancelled(), tx.Reader, store.One[int64],
		`DELETE FROM processes WHERE daemon = ? AND place = ? RETURNING id`, daemon, place)
	if err != nil {
		return 0, nil, err
	}
	id, err = tx.Insert(`INSERT INTO processes (daemon, place, addr, version, since, until) VALUES (?1, ?2, ?3, ?4, clock_ms(), clock_ms() + ?5+0)`,
		daemon, place, addr, version, store.LeaseTime.Milliseconds())
	return id, former, err
}

// LeaveProcess gives up all that a process has.
func LeaveProcess(tx *store.Tx, id int64) error {
	return tx.Exec(`DELETE FROM processes WHERE id = ?`, id)
}

// Claim takes a lease for a process, and reports whether it has it: no other has, or one whose time has passed, which
// is fenced.
func Claim(tx *store.Tx, name string, process int64) (held bool, err error) {
	if err := tx.Exec(`DELETE FROM processes WHERE until < clock_ms() AND id <> ?2
		AND id = (SELECT l.process FROM leases l WHERE l.name = ?1)`, name, process); err != nil {
		return false, err
	}
	n, err := tx.Change(`INSERT INTO leases AS l (name, process, since) VALUES (?1, ?2, clock_ms())
		ON CONFLICT (name) DO UPDATE SET process = excluded.process, since = excluded.since
		WHERE l.process = excluded.process OR NOT EXISTS (SELECT 1 FROM processes m WHERE m.id = l.process)`,
		name, process)
	return n > 0, err
}

// JoinLeases takes a lease of the process's own, one of those whose names begin with a prefix, and removes those of
// processes that are gone.
func JoinLeases(tx *store.Tx, prefix, name string, process int64) error {
	if err := tx.Exec(`DELETE FROM leases WHERE name > ?1 AND name < ?1 || '~'
		AND NOT EXISTS (SELECT 1 FROM processes m WHERE m.id = leases.process)`, prefix); err != nil {
		return err
	}
	_, err := Claim(tx, name, process)
	return err
}

// LeaveLeases gives up the leases of a process whose names begin with a prefix.
func LeaveLeases(tx *store.Tx, prefix string, process int64) error {
	return tx.Exec(`DELETE FROM leases WHERE name > ?1 AND name < ?1 || '~' AND process = ?2`, prefix, process)
}

// GiveUp gives up a lease of a process.
func GiveUp(tx *store.Tx, name string, process int64) error {
	return tx.Exec(`DELETE FROM leases WHERE name = ? AND process = ?`, name, process)
}

// LeaseHolders returns who has the leases whose names begin with a prefix, by name: 0 if the time of the process has
// passed.
func LeaseHolders(ctx context.Context, r store.Reader, prefix string) (map[string]int64, error) {
	holders := map[string]int64{}
	err := r.Each(ctx, func(scan store.Scan) (bool, error) {
		var name string
		var process int64
		err := scan(&name, &process)
		holders[name] = process
		return true, err
	}, `SELECT l.name, ifnull((SELECT m.id FROM processes m WHERE m.id = l.process AND m.until >= clock_ms()), 0)
		FROM leases l WHERE l.name > ?1 AND l.name < ?1 || '~' ORDER BY l.name`, prefix)
	return holders, err
}

// LeaseHolder returns the process that has a lease, nil if none has it.
func LeaseHolder(ctx context.Context, r store.Reader, name string) (*Process, error) {
	all, err := store.All(ctx, r, scanProcess, `SELECT `+processColumns+
		`, l.name, l.since FROM leases l CROSS JOIN processes m ON m.id = l.process WHERE l.name = ?`, name)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// Processes returns all processes, by daemon.
func Processes(ctx context.Context, r store.Reader) ([]Process, error) {
	return store.All(ctx, r, scanProcess, `SELECT `+processColumns+
		`, ifnull((SELECT group_concat(l.name, ',') FROM leases l WHERE l.process = m.id), ''),
		ifnull((SELECT min(l.since) FROM leases l WHERE l.process = m.id), 0) FROM processes m ORDER BY m.daemon, m.id`)
}

// processColumns are those of processes that scanProcess reads first.
const processColumns = `m.id, m.daemon, m.place, m.addr, m.version, m.since, m.until, clock_ms(), ` +
	`m.connection, m.detail`

func scanProcess(scan store.Scan) (p Process, err error) {
	err = scan(&p.ID, &p.Daemon, &p.Place, &p.Addr, &p.Version, &p.Since, &p.Until, &p.Now, &p.Connection, &p.Detail,
		&p.Holds, &p.Held)
	return p, err
}
