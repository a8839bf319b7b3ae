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

// disruptPlatform injects a random fault into one platform, or cuts it off for a while.
func (l *loadedInstance) disruptPlatform() {
	p := l.platforms[l.random.IntN(len(l.platforms))]
	if l.random.IntN(4) > 0 {
		p.InjectRandomFault(l.random)
		return
	}
	l.endOutage(p)
	restore := cutOff(p, l.random.IntN(4) == 0)
	l.outages[p] = outage{time.AfterFunc(time.Duration(l.random.Int64N(int64(maxOutage))), restore), restore}
}

// cutOff cuts a platform off and returns a function that restores it. With hangs, connections are accepted and
// requests not answered; else they are refused.
func cutOff(p chatsim.Platform, hangs bool) (restore func()) {
	if hangs {
		p.SetAnswering(false)
		return func() { p.SetAnswering(true) }
	}
	p.SetReachable(false)
	return func() { p.SetReachable(true) }
}

// outage is a platform's outage that will end by itself.
type outage struct {
	timer   *time.Timer
	restore func()
}

// endOutage ends a platform's outage that would end by itself later.
func (l *loadedInstance) endOutage(p chatsim.Platform) {
	if o, ok := l.outages[p]; ok && o.timer.Stop() {
		o.restore()
	}
	delete(l.outages, p)
}

// outageOfAll cuts all platforms off for finalOutage, while users keep writing. late says which adapters were
// not connected again within reconnectTimeout.
func (l *loadedInstance) outageOfAll(ctx context.Context, out io.Writer) (late, err error) {
	var restore []func()
	for _, p := range l.platforms {
		l.endOutage(p)
		hangs := l.random.IntN(2) == 0
		fmt.Fprintf(out, "outage of %s: hangs=%t\n", p.Info().Platform, hangs)
		restore = append(restore, cutOff(p, hangs))
	}
	for began := time.Now(); time.Since(began) < finalOutage && ctx.Err() == nil; {
		l.burst(ctx)
		pause(ctx, time.Second)
	}
	for i, p := range l.platforms {
		p.ClearFaults() // else connecting may fail for another reason
		restore[i]()
	}
	began := time.Now()
	late = l.awaitConnected(ctx, out)
	if err = l.awaitReminders(ctx); err == nil {
		err = l.awaitIdle(ctx)
	}
	fmt.Fprintf(out, "idle %s after the outage\n", time.Since(began).Round(10*time.Millisecond))
	return late, err
}

// awaitReminders waits until all reminders have fired, once every message that asks for one is handled.
func (l *loadedInstance) awaitReminders(ctx context.Context) error {
	if err := l.awaitIdle(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*reminderDelay)
	defer cancel()
	err := harness.Await(ctx, "reminders to fire", func() (done bool, err error) {
		err = l.db.QueryRow(`SELECT count(*) = 0 FROM reminders WHERE state = 'active'`).Scan(&done)
		return done, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // the result counts them
	}
	return err
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
