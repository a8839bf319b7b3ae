package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"arizuko/pkg/daemon"
)

const (
	minDelay = 100 * time.Millisecond
	maxDelay = 10 * time.Second
	// stableAfter is the uptime after which earlier exits no longer count.
	stableAfter = 30 * time.Second
	// maxEarlyExits is how often an essential daemon may exit before everything was ready once. With
	// the delays between restarts that takes about two seconds.
	maxEarlyExits = 5
)

// supervisor runs one service and restarts it when it ends.
type supervisor struct {
	service
	l    *launcher
	fail func(error) // stops the launcher
	stop context.CancelFunc
	done chan struct{} // closed when the service has ended and is not restarted
}

// supervise starts a service.
func (l *launcher) supervise(svc service, fail func(error)) *supervisor {
	ctx, stop := context.WithCancel(context.Background())
	s := &supervisor{service: svc, l: l, fail: fail, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.run(ctx)
	}()
	return s
}

func (s *supervisor) run(ctx context.Context) {
	past := newHistory()
	for {
		began := time.Now()
		end := s.l.execute(ctx, s.service)
		if ctx.Err() != nil {
			return
		}
		next, delay := past.after(end.code, time.Since(began), s.essential() && !s.l.ready.Load())
		switch next {
		case failAll:
			s.fail(&daemon.ExitError{Code: launcherExitCode(end.code),
				Err: fmt.Errorf("%s %s (attempt %d)", s.name, end, past.exits)})
			return
		case leaveStopped:
			s.l.console.printf("%s: ended with %s: invalid configuration or incompatible database, not restarted",
				s.name, end.how)
			return
		}
		s.l.console.printf("%s: ended with %s, restarting in %s", s.name, end.how, delay.Round(time.Millisecond))
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// step is the launcher's action after a service has ended.
type step int

const (
	restart      step = iota // after a delay
	leaveStopped             // the others go on
	failAll                  // stop the launcher
)

// history counts the exits of a service.
type history struct {
	exits  int // in a row
	delays backoff.ExponentialBackOff
}

func newHistory() *history {
	return &history{delays: backoff.ExponentialBackOff{
		InitialInterval: minDelay, MaxInterval: maxDelay, Multiplier: 2, RandomizationFactor: 0.2,
	}}
}

// after decides the step after an unexpected exit, and the delay before a restart. decisive means that
// the start of the launcher depends on the service.
func (h *history) after(code int, uptime time.Duration, decisive bool) (step, time.Duration) {
	if uptime >= stableAfter {
		h.exits = 0
		h.delays.Reset()
	}
	h.exits++
	switch refused := code == daemon.ExitRefused; {
	case decisive && (refused || h.exits >= maxEarlyExits):
		return failAll, 0
	case refused:
		return leaveStopped, 0
	}
	return restart, h.delays.NextBackOff()
}

// launcherExitCode is the launcher's exit code when a daemon's exit code stops it.
func launcherExitCode(code int) int {
	if code == daemon.ExitBusy || code == daemon.ExitRefused {
		return code
	}
	return daemon.ExitFailure
}
