package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"arizuko/pkg/daemon"
)

const (
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
	// settled is how long a daemon has to run for its earlier ends to be forgotten.
	settled = 30 * time.Second
	// maxTries is how often an essential daemon may end before everything was ready once;
	// with the pauses between them that takes about two seconds.
	maxTries = 5
)

// keeper runs one service, and runs it again when it ends.
type keeper struct {
	service
	l    *launcher
	fail func(error) // ends everything
	stop context.CancelFunc
	done chan struct{} // closed when the service has ended for good
}

// keep starts a service.
func (l *launcher) keep(s service, fail func(error)) *keeper {
	ctx, stop := context.WithCancel(context.Background())
	k := &keeper{service: s, l: l, fail: fail, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(k.done)
		k.run(ctx)
	}()
	return k
}

func (k *keeper) run(ctx context.Context) {
	past := newHistory()
	for {
		began := time.Now()
		end := k.l.execute(ctx, k.name)
		if ctx.Err() != nil {
			return
		}
		next, pause := past.after(end.code, time.Since(began), k.essential() && !k.l.ready.Load())
		switch next {
		case giveUp:
			k.fail(&daemon.ExitError{Code: passedOn(end.code), Err: fmt.Errorf("%s %s (attempt %d)", k.name, end, past.ends)})
			return
		case leave:
			k.l.console.say("%s: ended with %s, its configuration or the database is refused: not started again", k.name, end.how)
			return
		}
		k.l.console.say("%s: ended with %s, started again in %s", k.name, end.how, pause.Round(time.Millisecond))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// step is what follows the end of a service.
type step int

const (
	again  step = iota // after a pause
	leave              // alone, the others go on
	giveUp             // all of them
)

// history is what a keeper remembers of its service.
type history struct {
	ends   int // in a row
	pauses backoff.ExponentialBackOff
}

func newHistory() *history {
	return &history{pauses: backoff.ExponentialBackOff{
		InitialInterval: firstPause, MaxInterval: longestPause, Multiplier: 2, RandomizationFactor: 0.2,
	}}
}

// after says what follows an end that nobody asked for, and after which pause. lived is how
// long the service ran; decisive is true for services that the start depends on.
func (h *history) after(code int, lived time.Duration, decisive bool) (step, time.Duration) {
	if lived >= settled {
		h.ends = 0
		h.pauses.Reset()
	}
	h.ends++
	switch refused := code == daemon.ExitRefused; {
	case decisive && (refused || h.ends >= maxTries):
		return giveUp, 0
	case refused:
		return leave, 0
	}
	return again, h.pauses.NextBackOff()
}

// passedOn is the launcher's exit code when it gives up because of a daemon's.
func passedOn(code int) int {
	if code == daemon.ExitBusy || code == daemon.ExitRefused {
		return code
	}
	return daemon.ExitFailure
}
