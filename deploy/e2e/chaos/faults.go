package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/deploy/e2e/invariants"
	"arizuko/pkg/msg"
)

const (
	// backlog is more messages than any query reads at once.
	backlog = 1200
	// maxTries is how often a daemon is started with a failpoint until it reaches it.
	maxTries = 6
	// maxOutage is the longest time that a platform is unreachable between two crashes; finalOutage
	// that of all platforms at the end.
	maxOutage   = 3 * time.Second
	finalOutage = time.Minute
	// exitDelay is the time an idle daemon gets to reach failpoints that need no message, such as
	// the end of an idle agent or a checkpoint.
	exitDelay = 2 * time.Second
)

// faults kills daemons at n failpoints under load.
func faults(ctx context.Context, bin string, seed uint64, n int, out io.Writer) (r *result, err error) {
	l, err := start(ctx, bin, seed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.tearDown()) }()
	return l.faults(ctx, n, seed, out)
}

// faults kills daemons at n failpoints, one after another, makes all platforms unreachable for a
// while, and checks the outcome. Each crash has its own random choices, so that they don't depend on
// how long the crashes before it took.
func (l *loadedInstance) faults(ctx context.Context, n int, seed uint64, out io.Writer) (*result, error) {
	if err := l.decideBacklog(ctx); err != nil {
		return nil, err
	}

	var missed []crash
	for i, c := range plan(n, l.random) {
		l.random = rand.New(rand.NewPCG(seed, uint64(i)+1))
		l.load.random = rand.New(rand.NewPCG(seed, uint64(i)+1<<32))
		began := time.Now()
		crashed, err := l.crash(ctx, &c)
		if err == nil {
			err = l.awaitIdle(ctx)
		}
		if errors.Is(err, errStuck) {
			fmt.Fprintf(out, "stuck: daemon=%s failpoint=%s: %v\n%s", c.daemon, c, err, l.diagnostics())
			return l.check(out, allowedWhileRunning)
		}
		if err != nil {
			return nil, fmt.Errorf("%s at failpoint %s: %w", c.daemon, c, err)
		}
		fmt.Fprintf(out, "%3d/%d daemon=%s failpoint=%s crashed=%t messages=%d took=%s\n", i+1, n, c.daemon, c, crashed, len(l.load.all),
			time.Since(began).Round(10*time.Millisecond))
		if !crashed {
			missed = append(missed, c)
		}
	}

	switch err := l.outageOfAll(ctx); {
	case errors.Is(err, errStuck):
		fmt.Fprintf(out, "stuck: after outage of all platforms: %v\n%s", err, l.diagnostics())
		return l.check(out, allowedWhileRunning)
	case err != nil:
		return nil, fmt.Errorf("outage of all platforms: %w", err)
	}
	stopErr := l.stopDaemons(ctx)
	if len(missed) > 0 {
		stopErr = errors.Join(stopErr, fmt.Errorf("failpoints never reached, not tested: %v", missed))
	}
	r, err := l.check(out, none)
	return r, errors.Join(err, stopErr)
}

// decideBacklog stores more messages in one chat than gated reads at once, while gated is down, and
// lets it decide them.
func (l *loadedInstance) decideBacklog(ctx context.Context) error {
	for _, name := range []string{"gated", "routd"} {
		if err := l.instance.Kill(name); err != nil {
			return err
		}
	}
	for range backlog {
		l.load.sendText(ctx, l.platforms[0].Conversations()[0], l.load.text(), msg.VerbMessage)
	}
	if err := harness.Await(ctx, "backlog to be stored", func() (bool, error) { return l.load.allStored(l.db) }); err != nil {
		return err
	}
	for _, name := range []string{"routd", "gated"} {
		if err := l.startDaemon(ctx, name); err != nil {
			return err
		}
	}
	return l.awaitIdle(ctx)
}

// disruptPlatform injects a random fault into one platform, or makes it unreachable for a while.
func (l *loadedInstance) disruptPlatform() {
	p := l.platforms[l.random.IntN(len(l.platforms))]
	if l.random.IntN(4) > 0 {
		p.InjectRandomFault(l.random)
		return
	}
	p.SetReachable(false)
	time.AfterFunc(time.Duration(l.random.Int64N(int64(maxOutage))), func() { p.SetReachable(true) })
}

// outageOfAll makes all platforms unreachable for finalOutage, while users keep writing.
func (l *loadedInstance) outageOfAll(ctx context.Context) error {
	for _, p := range l.platforms {
		p.SetReachable(false)
	}
	for began := time.Now(); time.Since(began) < finalOutage && ctx.Err() == nil; {
		l.burst(ctx)
		pause(ctx, time.Second)
	}
	for _, p := range l.platforms {
		p.SetReachable(true)
	}
	return l.awaitIdle(ctx)
}

// crash lets a daemon reach a failpoint under load, and restarts it. It reports whether the daemon
// was killed there, and sets c.nth to the last one tried.
func (l *loadedInstance) crash(ctx context.Context, c *crash) (crashed bool, err error) {
	for try := range maxTries {
		if try > 0 {
			c.nth = 1
		}
		crashed, err = l.tryCrash(ctx, *c)
		if crashed || err != nil {
			return crashed, err
		}
	}
	return false, nil
}

func (l *loadedInstance) tryCrash(ctx context.Context, c crash) (crashed bool, err error) {
	if l.random.IntN(2) == 0 {
		l.disruptPlatform()
	}
	l.burst(ctx) // so that the daemon finds work when it starts
	if err := l.instance.Kill(c.daemon); err != nil {
		return false, err
	}
	if err := l.instance.Start(c.daemon, "FAILPOINT="+c.String()); err != nil {
		return false, err
	}
	p := l.instance.Process(c.daemon)

	l.burst(ctx)
	l.load.provoke(ctx, c.point)
	if l.random.IntN(3) == 0 {
		if err := l.killAnother(ctx, c.daemon); err != nil {
			return false, err
		}
	}
	l.burst(ctx)

	if err := l.awaitCrash(ctx, p); err != nil {
		return false, err
	}
	crashed = !p.Running()
	if crashed && !p.Killed() {
		return false, fmt.Errorf("exited by itself: %s\n%s", p.State(), l.diagnostics())
	}
	if err := l.instance.Kill(c.daemon); err != nil {
		return false, err
	}
	return crashed, l.startDaemon(ctx, c.daemon)
}

// awaitCrash waits until a process has exited, or is idle and unlikely to reach its failpoint.
func (l *loadedInstance) awaitCrash(ctx context.Context, p *harness.Process) error {
	exited := func() bool { return !p.Running() }
	if err := l.awaitIdleOr(ctx, exited); err != nil {
		return err
	}
	timer := time.NewTimer(exitDelay)
	defer timer.Stop()
	select {
	case <-p.Done():
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// killAnother kills and restarts a random daemon other than but.
func (l *loadedInstance) killAnother(ctx context.Context, but string) error {
	others := slices.DeleteFunc(slices.Clone(daemons), func(name string) bool { return name == but })
	name := others[l.random.IntN(len(others))]
	if err := l.instance.Kill(name); err != nil {
		return err
	}
	return l.startDaemon(ctx, name)
}

// burst sends a few messages within a moment.
func (l *loadedInstance) burst(ctx context.Context) {
	for range 3 + l.random.IntN(6) {
		l.load.act(ctx)
		pause(ctx, time.Duration(l.random.IntN(30))*time.Millisecond)
	}
}

// none skips no invariant.
func none(invariants.Invariant) bool { return false }

// allowedWhileRunning skips invariants that need not hold while agents run.
func allowedWhileRunning(i invariants.Invariant) bool { return i.AllowedWhileRunning }
