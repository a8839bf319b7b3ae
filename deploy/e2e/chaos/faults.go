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
	"arizuko/pkg/store"
)

const (
	// backlog is more messages than any query reads at once.
	backlog = 1200
	// maxTries is how often a daemon is started with a failpoint until it reaches it.
	maxTries = 4
	// exitDelay is the time an idle daemon gets to reach failpoints that need no message, such as
	// the end of an idle agent or a checkpoint.
	exitDelay = 2 * time.Second
)

// faults kills daemons at n failpoints under load; with provoked only under the load that each needs.
func faults(ctx context.Context, o options, n int, provoked bool, out io.Writer) (r *result, err error) {
	l, err := start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.tearDown()) }()
	l.provoked = provoked
	return l.faults(ctx, n, o.seed, out)
}

// faults kills daemons at n failpoints, one after another, makes all platforms unreachable for a
// while, and checks the outcome. Each crash has its own random choices, so that they don't depend on
// how long the crashes before it took.
func (l *loadedInstance) faults(ctx context.Context, n int, seed uint64, out io.Writer) (*result, error) {
	if err := l.decideBacklog(ctx); err != nil {
		return nil, err
	}
	if !l.provoked {
		l.load.passOnTooOften(ctx)
	}

	var missed []error
	for i, c := range plan(n, store.IsServer(l.instance.Database()), l.random) {
		l.random = rand.New(rand.NewPCG(seed, uint64(i)+1))
		l.load.random = rand.New(rand.NewPCG(seed, uint64(i)+1<<32))
		began := time.Now()
		miss, err := l.crash(ctx, &c)
		if err == nil {
			err = l.awaitIdle(ctx)
		}
		if errors.Is(err, errStuck) {
			return l.conclude(out, allowedWhileRunning, fmt.Sprintf("daemon=%s failpoint=%s: %v", c.daemon, c, err))
		}
		if err != nil {
			return nil, fmt.Errorf("%s at failpoint %s: %w", c.daemon, c, err)
		}
		fmt.Fprintf(out, "%3d/%d daemon=%s failpoint=%s crashed=%t messages=%d took=%s\n", i+1, n, c.daemon, c,
			miss == nil, len(l.load.all),
			time.Since(began).Round(10*time.Millisecond))
		if miss != nil {
			missed = append(missed, fmt.Errorf("%s never reached failpoint %s, so it is not tested: %w", c.daemon,
				c.point, miss))
		}
	}

	late, err := l.outageOfAll(ctx, out)
	switch {
	case errors.Is(err, errStuck):
		return l.conclude(out, allowedWhileRunning, fmt.Sprintf("after outage of all platforms: %v", errors.Join(late, err)))
	case err != nil:
		return nil, fmt.Errorf("outage of all platforms: %w", err)
	}
	stopErr := l.stopDaemons(ctx)
	r, err := l.conclude(out, none, "")
	return r, errors.Join(append(missed, late, err, stopErr, findPanics(l.instance))...)
}

// decideBacklog stores more messages in one chat than gated reads at once, while gated is down, and
// lets it decide them.
func (l *loadedInstance) decideBacklog(ctx context.Context) error {
	for _, name := range []string{"gated", "routd"} {
		if err := l.kill(name); err != nil {
			return err
		}
	}
	for range backlog {
		l.load.sendText(ctx, l.platforms[0].Conversations()[0], l.load.text(), msg.VerbMessage)
	}
	if err := harness.Await(ctx, "backlog to be stored",
		func() (bool, error) { return l.load.allStored(l.db) }); err != nil {
		return err
	}
	for _, name := range []string{"routd", "gated"} {
		if err := l.startDaemon(ctx, name); err != nil {
			return err
		}
	}
	return l.awaitIdle(ctx)
}

// crash lets a daemon reach a failpoint under load, and restarts it. It sets c.nth to the last one tried, and
// returns why the daemon was never killed there, if so.
func (l *loadedInstance) crash(ctx context.Context, c *crash) (miss, err error) {
	for try := range maxTries {
		if try > 0 {
			c.nth = 1
		}
		miss, err = l.tryCrash(ctx, *c, workSeconds<<try)
		if miss == nil || err != nil {
			return nil, err
		}
		if l.provoked {
			break
		}
	}
	return miss, nil
}

// tryCrash is one try of crash. Agents that must be at work work for seconds.
func (l *loadedInstance) tryCrash(ctx context.Context, c crash, seconds int) (miss, err error) {
	if !l.provoked && l.random.IntN(2) == 0 {
		l.disruptPlatform()
	}
	l.burst(ctx) // so that the daemon finds work when it starts

	p, how := l.newProvoker(c.daemon, seconds), provocationOf(c)
	miss = p.run(ctx, how.before, c.nth)
	if err := l.kill(c.daemon); err != nil {
		return nil, err
	}
	miss = errors.Join(miss, p.run(ctx, how.down, c.nth))
	if err := l.instance.Start(c.daemon, "FAILPOINT="+c.String()); err != nil {
		return nil, err
	}

	l.burst(ctx)
	if !l.provoked && l.random.IntN(3) == 0 {
		if err := l.killAnother(ctx, c.daemon); err != nil {
			return nil, err
		}
	}
	l.burst(ctx)
	miss = errors.Join(miss, p.run(ctx, how.up, c.nth))
	return l.awaitCrash(ctx, c, miss)
}

// awaitCrash waits until a daemon has been killed at its failpoint, or is idle and unlikely to reach it, and
// restarts it. Its first result says why the daemon was not killed; miss is the reason known so far.
func (l *loadedInstance) awaitCrash(ctx context.Context, c crash, miss error) (_, err error) {
	process := l.instance.Process(c.daemon)
	if err := l.awaitIdleOr(ctx, func() bool { return !process.Running() }); err != nil {
		return nil, err
	}
	l.awaitExit(ctx, process)
	switch crashed := !process.Running(); {
	case crashed && !process.Killed():
		return nil, fmt.Errorf("exited by itself: %s\n%s", process.State(), l.diagnostics())
	case crashed:
		miss = nil
	default:
		miss = errors.Join(miss, fmt.Errorf("idle after %s was set and provoked", c))
	}
	if err := l.instance.Kill(c.daemon); err != nil {
		return nil, err
	}
	return miss, l.startDaemon(ctx, c.daemon)
}

// awaitExit waits until a process has ended, for exitDelay at most.
func (l *loadedInstance) awaitExit(ctx context.Context, p *harness.Process) {
	timer := time.NewTimer(exitDelay)
	defer timer.Stop()
	select {
	case <-p.Done():
	case <-timer.C:
	case <-ctx.Done():
	}
}

// kill kills a daemon, which must be running: daemons never exit by themselves.
func (l *loadedInstance) kill(name string) error {
	if p := l.instance.Process(name); !p.Running() {
		return fmt.Errorf("%s exited by itself: %s\n%s", name, p.State(), l.instance.LogTail(name, logTail))
	}
	return l.instance.Kill(name)
}

// killAnother kills and restarts a random daemon other than but.
func (l *loadedInstance) killAnother(ctx context.Context, but string) error {
	others := slices.DeleteFunc(slices.Clone(daemons), func(name string) bool { return name == but })
	name := others[l.random.IntN(len(others))]
	if err := l.kill(name); err != nil {
		return err
	}
	return l.startDaemon(ctx, name)
}

// burst sends a few messages within a moment.
func (l *loadedInstance) burst(ctx context.Context) {
	if l.provoked {
		return
	}
	if l.random.IntN(2) == 0 {
		l.load.callTools(ctx)
	}
	for range 3 + l.random.IntN(6) {
		l.load.act(ctx)
		pause(ctx, time.Duration(l.random.IntN(30))*time.Millisecond)
	}
}

// none skips no invariant.
func none(invariants.Invariant) bool { return false }

// allowedWhileRunning skips invariants that need not hold while agents run.
func allowedWhileRunning(i invariants.Invariant) bool { return i.AllowedWhileRunning }
