package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// LeaseTime is how long a process may work after it last renewed its lease. Then another process may take over what it
// has: within 15 s of its end, with the time that the other one takes to notice and to connect.
const LeaseTime = 12 * time.Second

// Process is a start of a daemon that works on a database which several machines share. Times are unix ms by the
// database's clock.
type Process struct {
	ID      int64 // never used again: the epoch of what the process has taken
	Daemon  string
	Place   string // the host and the data folder
	Addr    string // where the process is called, host:port
	Version string
	Since   int64
	Until   int64 // when others may take over
	Now     int64 // what the database's clock showed

	// What it has last reported; "" if it has not, as one that stands by.
	Connection, Detail string

	Holds string // the leases that it has, separated by commas
	Held  int64  // since when it has the first of them, 0 for none
}

// Renewed is when the process last renewed its lease.
func (p Process) Renewed() int64 { return p.Until - LeaseTime.Milliseconds() }

// ErrFenced fails the writes of a process whose lease has ended and was taken over: what it knows may be out of date.
var ErrFenced = errors.New("another process has taken over: this one has not renewed its lease in time")

// Join adds a process, whose lease begins. Former ones of the daemon at the same place are fenced: only one process of
// a daemon runs there at a time. Their ids are returned. It returns an ErrMoved if the database was copied to another
// one meanwhile.
func (tx *Tx) Join(daemon, place, addr, version string) (id int64, former []int64, err error) {
	var moved string
	switch found, err := tx.Get(Uncancelled(), []any{&moved}, queryMoved); {
	case err != nil:
		return 0, nil, err
	case found:
		return 0, nil, errMoved(moved)
	}
	if former, err = All(Uncancelled(), tx.Reader, One[int64], deleteFormer, daemon, place); err != nil {
		return 0, nil, err
	}
	id, err = tx.Insert(insertProcess, daemon, place, addr, version, LeaseTime.Milliseconds())
	return id, former, err
}

// RenewProcess renews a process's lease for LeaseTime from now on. It returns ErrFenced if another process has taken
// over. On a server it does not wait for the writes of others: where those take long, no process could renew its lease
// in time.
func (s *Store) RenewProcess(ctx context.Context, id int64) error {
	renewed, err := s.engine.renew(ctx, id)
	if err == nil && !renewed {
		err = ErrFenced
	}
	if err != nil {
		return fmt.Errorf("renew the lease of process %d: %w", id, Explain(err))
	}
	return nil
}

// LeaveProcess gives up all that a process has.
func (tx *Tx) LeaveProcess(id int64) error {
	return tx.Exec(deleteProcess, id)
}

// Claim takes a lease for a process, and reports whether it has it: no other has, or one whose time has passed, which
// is fenced.
func (tx *Tx) Claim(name string, process int64) (held bool, err error) {
	if err := tx.Exec(deleteHolder, name); err != nil {
		return false, err
	}
	n, err := tx.Change(putLease, name, process)
	return n > 0, err
}

// LeaseHolder returns the process that has a lease, nil if none has it.
func (r Reader) LeaseHolder(ctx context.Context, name string) (*Process, error) {
	all, err := All(ctx, r, scanProcess, queryLeaseHolder, name)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// Processes returns all processes, by daemon.
func (r Reader) Processes(ctx context.Context) ([]Process, error) {
	return All(ctx, r, scanProcess, queryProcesses)
}

// processColumns are those of processes that scanProcess reads first.
const processColumns = `m.id, m.daemon, m.place, m.addr, m.version, m.since, m.until, clock_ms(), m.connection, m.detail`

func scanProcess(scan Scan) (p Process, err error) {
	err = scan(&p.ID, &p.Daemon, &p.Place, &p.Addr, &p.Version, &p.Since, &p.Until, &p.Now, &p.Connection, &p.Detail,
		&p.Holds, &p.Held)
	return p, err
}
