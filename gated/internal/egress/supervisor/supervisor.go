// Package supervisor keeps the egress proxy running for gated.
package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"syscall"
	"time"
)

const (
	// pause is between the end of the proxy and its next start.
	pause = time.Second
	// readyTimeout is how long a run waits for the proxy.
	readyTimeout = 15 * time.Second
	// readyPoll is how often it is asked whether it is ready.
	readyPoll = 20 * time.Millisecond
	// stopTimeout is how long the proxy may take to end.
	stopTimeout = 5 * time.Second
)

// Supervisor starts the proxy with the first run that needs it, and again whenever it ends.
type Supervisor struct {
	command func(context.Context) *exec.Cmd
	former  func(context.Context) error
	ready   func(context.Context) error
	log     *slog.Logger
	needed  chan struct{} // holds a value once a run needs the proxy
}

// New makes a supervisor. command makes the proxy's process, which ends when its stdin does. former ends what the one
// before has left. ready returns nil once the proxy takes requests.
func New(command func(context.Context) *exec.Cmd, former, ready func(context.Context) error,
	log *slog.Logger) *Supervisor {
	return &Supervisor{command, former, ready, log, make(chan struct{}, 1)}
}

// Await starts the proxy unless it runs, and returns when it takes requests.
func (s *Supervisor) Await(ctx context.Context) error {
	select {
	case s.needed <- struct{}{}:
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for {
		err := s.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("the egress proxy does not run, gated's log has its errors: %w", err)
		}
	}
}

// Run keeps the proxy running from the first Await until ctx ends.
func (s *Supervisor) Run(ctx context.Context) error {
	select {
	case <-s.needed:
	case <-ctx.Done():
		return nil
	}
	for {
		if err := s.serve(ctx); ctx.Err() == nil {
			s.log.Error("egress proxy ended; starting it again", "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// serve runs the proxy once.
func (s *Supervisor) serve(ctx context.Context) error {
	if err := s.former(ctx); err != nil {
		return err
	}
	cmd := s.command(ctx)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	if _, err := cmd.StdinPipe(); err != nil { // open as long as this process lives
		return err
	}
	return cmd.Run()
}
