package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
)

const (
	// maxOutage is the longest time that a platform is unreachable between two crashes; finalOutage
	// that of all platforms at the end.
	maxOutage   = 3 * time.Second
	finalOutage = time.Minute
	// reconnectTimeout is how long after an outage an adapter may take until it is connected again.
	reconnectTimeout = 15 * time.Second
)

// disruptPlatform injects a random fault into one platform, or makes it unreachable for a while.
func (l *loadedInstance) disruptPlatform() {
	p := l.platforms[l.random.IntN(len(l.platforms))]
	if l.random.IntN(4) > 0 {
		p.InjectRandomFault(l.random)
		return
	}
	l.endOutage(p)
	p.SetReachable(false)
	l.outages[p] = time.AfterFunc(time.Duration(l.random.Int64N(int64(maxOutage))), func() { p.SetReachable(true) })
}

// endOutage ends a platform's outage that would end by itself later.
func (l *loadedInstance) endOutage(p chatsim.Platform) {
	if timer := l.outages[p]; timer != nil && timer.Stop() {
		p.SetReachable(true)
	}
	delete(l.outages, p)
}

// outageOfAll makes all platforms unreachable for finalOutage, while users keep writing. late says which
// adapters were not connected again within reconnectTimeout.
func (l *loadedInstance) outageOfAll(ctx context.Context, out io.Writer) (late, err error) {
	for _, p := range l.platforms {
		l.endOutage(p)
		p.SetReachable(false)
	}
	for began := time.Now(); time.Since(began) < finalOutage && ctx.Err() == nil; {
		l.burst(ctx)
		pause(ctx, time.Second)
	}
	for _, p := range l.platforms {
		p.ClearFaults() // else connecting may fail for another reason
		p.SetReachable(true)
	}
	began := time.Now()
	late = l.awaitConnected(ctx, out)
	err = l.awaitIdle(ctx)
	fmt.Fprintf(out, "idle %s after the outage\n", time.Since(began).Round(10*time.Millisecond))
	return late, err
}

// awaitConnected waits until all adapters are connected, and returns which were not within reconnectTimeout.
func (l *loadedInstance) awaitConnected(ctx context.Context, out io.Writer) (late error) {
	began := time.Now()
	deadline, cancel := context.WithDeadline(ctx, began.Add(reconnectTimeout))
	defer cancel()
	for _, p := range l.platforms {
		daemon := p.Info().Daemon
		if harness.Await(deadline, daemon+" to be connected", func() (bool, error) { return p.Connected(), nil }) != nil {
			late = errors.Join(late, fmt.Errorf("%s was not connected within %s after an outage\n%s",
				daemon, reconnectTimeout, l.instance.LogTail(daemon, logTail)))
			continue
		}
		fmt.Fprintf(out, "%s connected %s after the outage\n", daemon, time.Since(began).Round(10*time.Millisecond))
	}
	return late
}
