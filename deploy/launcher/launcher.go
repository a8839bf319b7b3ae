package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"arizuko/pkg/daemon"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/lockfile"
)

const (
	// pollInterval is how often an awaited condition is checked.
	pollInterval = 20 * time.Millisecond
	// addressTimeout covers the daemons of a killed launcher: they stop by themselves.
	addressTimeout = 10 * time.Second
)

// launcher is one run of arizuko.
type launcher struct {
	cfg     Config
	bin     string          // the folder of the programs
	out     io.Writer       // of the line with the login link
	console *console        // of everything else
	kill    <-chan struct{} // closed when running daemons are to be killed

	ready atomic.Bool // every essential service was ready once
}

// run returns when all daemons have stopped: nil after the end of ctx, an error if arizuko cannot be
// started.
func (l *launcher) run(ctx context.Context) error {
	lock, err := l.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	accounts, err := furtherAccounts()
	if err != nil {
		return &daemon.ExitError{Code: daemon.ExitRefused, Err: err}
	}
	start, skipped, err := choose(services(l.cfg, accounts), l.bin, isSet)
	if err != nil {
		return err
	}
	if err := l.migrate(ctx); err != nil {
		return err
	}
	if err := l.awaitAddresses(ctx, start); err != nil {
		return err
	}
	for _, line := range skipped {
		l.console.printf("%s", line)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var supervisors []*supervisor
	for _, s := range start {
		supervisors = append(supervisors, l.supervise(s, fail))
	}
	if err := l.announce(ctx, start); err != nil {
		fail(err)
	}
	<-ctx.Done()
	l.stop(supervisors)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// lock keeps other launchers from the data folder.
func (l *launcher) lock() (*lockfile.Lock, error) {
	if err := dataowner.RefuseLinks(l.cfg.Data); err != nil {
		return nil, &daemon.ExitError{Code: daemon.ExitRefused, Err: err}
	}
	if err := os.MkdirAll(l.cfg.RunDir(), 0o700); err != nil {
		return nil, &daemon.ExitError{Code: daemon.ExitRefused, Err: fmt.Errorf("ARIZUKO_DATA: %w", err)}
	}
	return lockfile.TryLock(filepath.Join(l.cfg.RunDir(), "launcher.lock"))
}

func (l *launcher) migrate(ctx context.Context) error {
	end := l.execute(ctx, service{name: "migrate"}, "up")
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case end.code == 0:
		return nil
	}
	code := end.code
	if code < 0 { // a signal
		code = daemon.ExitFailure
	}
	return &daemon.ExitError{Code: code, Err: fmt.Errorf("migrate up: %s", end)}
}

// awaitAddresses waits until no other process listens on the daemons' addresses, on which they could not listen.
func (l *launcher) awaitAddresses(ctx context.Context, start []service) error {
	timeout, cancel := context.WithTimeout(ctx, addressTimeout)
	defer cancel()
	for _, s := range start {
		if !s.essential() || !inUse(string(s.ready)) {
			continue
		}
		l.console.printf("%s: another process listens on %s, waiting for it to end", s.name, s.ready)
		for inUse(string(s.ready)) {
			select {
			case <-time.After(pollInterval):
			case <-timeout.Done():
				return &daemon.ExitError{Code: daemon.ExitBusy,
					Err: fmt.Errorf("another process listens on %s, the address of %s", s.ready, s.name)}
			}
		}
	}
	return nil
}

// inUse is false for addresses that are invalid for another reason, which the daemon itself reports.
func inUse(addr string) bool {
	listener, err := net.Listen("tcp", addr)
	if err == nil {
		listener.Close()
	}
	return errors.Is(err, syscall.EADDRINUSE)
}

// stop stops the services, highest rank first, and returns when they have ended.
func (l *launcher) stop(supervisors []*supervisor) {
	l.console.printf("stopping")
	slices.SortStableFunc(supervisors, func(a, b *supervisor) int { return b.rank - a.rank })
	for len(supervisors) > 0 {
		rank := supervisors[0].rank
		n := 0
		for ; n < len(supervisors) && supervisors[n].rank == rank; n++ {
			supervisors[n].stop()
		}
		for _, k := range supervisors[:n] {
			<-k.done
		}
		supervisors = supervisors[n:]
	}
}
