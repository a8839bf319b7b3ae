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
	"arizuko/pkg/lockfile"
)

const (
	// lookEvery is how often something is looked at that is waited for.
	lookEvery = 20 * time.Millisecond
	// addressWait covers the daemons of a launcher that was killed: they stop by themselves.
	addressWait = 10 * time.Second
)

// launcher is one run of arizuko.
type launcher struct {
	cfg     Config
	bin     string          // folder of the programs
	out     io.Writer       // for the line that says ready
	console *console        // for everything else
	kill    <-chan struct{} // closed when there is no more time for a clean stop

	starter starter
	ready   atomic.Bool // everything was, once
}

// run returns when nothing of it is running any more: with nil once ctx has ended, with an
// error if arizuko cannot be started.
func (l *launcher) run(ctx context.Context) error {
	lock, err := l.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	l.starter = newStarter()
	defer l.starter.close()

	start, left, err := choose(services(l.cfg), l.bin, isSet)
	if err != nil {
		return err
	}
	if err := l.migrate(ctx); err != nil {
		return err
	}
	if err := l.awaitAddresses(ctx, start); err != nil {
		return err
	}
	for _, line := range left {
		l.console.say("%s", line)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var keepers []*keeper
	for _, s := range start {
		keepers = append(keepers, l.keep(s, fail))
	}
	if err := l.announce(ctx, start); err != nil {
		fail(err)
	}
	<-ctx.Done()
	l.stop(keepers)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// lock keeps a second launcher off the data folder.
func (l *launcher) lock() (*lockfile.Lock, error) {
	if err := os.MkdirAll(l.cfg.RunDir(), 0o700); err != nil {
		return nil, &daemon.ExitError{Code: daemon.ExitRefused, Err: fmt.Errorf("ARIZUKO_DATA: %w", err)}
	}
	return lockfile.TryLock(filepath.Join(l.cfg.RunDir(), "launcher.lock"))
}

func (l *launcher) migrate(ctx context.Context) error {
	end := l.execute(ctx, "migrate", "up")
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

// awaitAddresses makes sure that nobody else answers where our daemons will: that other one
// would be taken for ours, and be handed our secret.
func (l *launcher) awaitAddresses(ctx context.Context, start []service) error {
	patience, cancel := context.WithTimeout(ctx, addressWait)
	defer cancel()
	for _, s := range start {
		if !s.essential() || !taken(string(s.ready)) {
			continue
		}
		l.console.say("%s: another process listens on %s, waiting for it to end", s.name, s.ready)
		for taken(string(s.ready)) {
			select {
			case <-time.After(lookEvery):
			case <-patience.Done():
				return &daemon.ExitError{Code: daemon.ExitBusy, Err: fmt.Errorf("another process listens on %s, the address of %s", s.ready, s.name)}
			}
		}
	}
	return nil
}

// taken is false for addresses that cannot be listened on for another reason: the daemon
// itself has more to say about those.
func taken(addr string) bool {
	listener, err := net.Listen("tcp", addr)
	if err == nil {
		listener.Close()
	}
	return errors.Is(err, syscall.EADDRINUSE)
}

// stop ends the services, highest rank first, and returns when they are gone.
func (l *launcher) stop(keepers []*keeper) {
	l.console.say("stopping")
	slices.SortStableFunc(keepers, func(a, b *keeper) int { return b.rank - a.rank })
	for len(keepers) > 0 {
		rank := keepers[0].rank
		n := 0
		for ; n < len(keepers) && keepers[n].rank == rank; n++ {
			keepers[n].stop()
		}
		for _, k := range keepers[:n] {
			<-k.done
		}
		keepers = keepers[n:]
	}
}
