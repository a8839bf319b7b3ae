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

// ErrFenced fails the writes of a process whose lease has ended and was taken over: what it knows may be out of date.
var ErrFenced = errors.New("another process has taken over: this one has not renewed its lease in time")

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
