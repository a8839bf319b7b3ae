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
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

const (
	// pile is more than any page of rows.
	pile = 1200
	// tries is how often a point is aimed at in one round until the daemon comes to it.
	tries = 6
	// gapMost is how long a platform is out of reach between two faults, and outageLasts at the end.
	gapMost     = 3 * time.Second
	outageLasts = time.Minute
	// lingers is how long a daemon may take after everything came to rest to come to points
	// that need no message: the end of an idle agent, a checkpoint.
	lingers = 2 * time.Second
)

// fault is a daemon that dies when it comes to a point for the nth time.
type fault struct {
	daemon string
	point  fp.Point
	nth    int
}

func (f fault) String() string { return fmt.Sprintf("%s:%d", f.point, f.nth) }

// nthMost is how often a point is passed at most before the daemon dies there.
const nthMost = 8

// adapters are where daemons that deliver can die, but for one that keeps no cursor.
var adapters = slices.Concat([]fp.Point{fp.Received, fp.Sending, fp.Sent},
	around(fp.PutMessage, fp.ClaimOutbound, fp.PutDelivery, fp.SettleOutbound))

// pathPoints is every point that the path of a message comes by in each daemon.
var pathPoints = map[string][]fp.Point{
	"gated": slices.Concat([]fp.Point{fp.Read, fp.Resolved, fp.Spawned, fp.Piping, fp.Framed, fp.Exited, fp.Recovering, fp.Checkpoint},
		around(fp.PutMessage, fp.Decide, fp.PutTurn, fp.OfferTurn, fp.StartRun, fp.RecordProcess, fp.AnswerTurn, fp.EndTurn,
			fp.RequeueTurn, fp.EndRun, fp.Pin, fp.ResetSession, fp.CancelTurn, fp.TakeSystem, fp.ChangeContent)),
	"routd": slices.Concat([]fp.Point{fp.Answering, fp.Delivered}, around(fp.PutEngagement, fp.PutCursor)),
	"dashd": adapters,
	"teled": slices.Concat(adapters, around(fp.PutCursor)),
	"discd": slices.Concat(adapters, around(fp.PutCursor)),
	"slakd": adapters,
}

func around(verbs ...fp.Verb) (points []fp.Point) {
	for _, v := range verbs {
		points = append(points, v.Before(), v.After())
	}
	return points
}

// plan is n faults: each place in turn, shuffled anew each time round.
func plan(n int, random *rand.Rand) (faults []fault) {
	for len(faults) < n {
		var all []fault
		for _, daemon := range daemons {
			for _, point := range pathPoints[daemon] {
				all = append(all, fault{daemon, point, 1 + random.IntN(nthMost)})
			}
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		faults = append(faults, all...)
	}
	return faults[:n]
}

// everywhere is how many faults it takes to come to each place once.
func everywhere() (n int) {
	for _, points := range pathPoints {
		n += len(points)
	}
	return n
}

// faults has daemons die in n places, one after another, and returns what that did. Each fault
// has choices of its own, so that how long the ones before took does not matter to it.
func (t *trial) faults(ctx context.Context, n int, seed uint64, out io.Writer) (*verdict, error) {
	if err := t.pileUp(ctx); err != nil {
		return nil, err
	}
	var missed []fault
	for i, f := range plan(n, t.random) {
		t.random = rand.New(rand.NewPCG(seed, uint64(i)+1))
		t.crowd.random = rand.New(rand.NewPCG(seed, uint64(i)+1<<32))
		began := time.Now()
		died, err := t.fault(ctx, &f)
		if err == nil {
			err = t.settle(ctx)
		}
		if errors.Is(err, errStuck) {
			fmt.Fprintf(out, "%s at %s: %v\n%s", f.daemon, f, err, t.complaints())
			return t.judge(out, t.stillRuns)
		}
		if err != nil {
			return nil, fmt.Errorf("%s at %s: %w", f.daemon, f, err)
		}
		fmt.Fprintf(out, "%3d/%d %s died at %s: %t, %d messages, %s\n", i+1, n, f.daemon, f, died, len(t.crowd.all),
			time.Since(began).Round(10*time.Millisecond))
		if !died {
			missed = append(missed, f)
		}
	}
	switch err := t.outage(ctx); {
	case errors.Is(err, errStuck):
		fmt.Fprintf(out, "out of reach: %v\n%s", err, t.complaints())
		return t.judge(out, t.stillRuns)
	case err != nil:
		return nil, fmt.Errorf("out of reach: %w", err)
	}
	problem := t.finish(ctx)
	if len(missed) > 0 {
		problem = errors.Join(problem, fmt.Errorf("daemons never came to %v: the faults there were not tried", missed))
	}
	v, err := t.judge(out, none)
	return v, errors.Join(err, problem)
}

// pileUp has more written into one chat than is read at once, while nobody decides.
func (t *trial) pileUp(ctx context.Context) error {
	for _, name := range []string{"gated", "routd"} {
		if err := t.Kill(name); err != nil {
			return err
		}
	}
	for range pile {
		t.crowd.write(ctx, t.worlds[0].Conversations()[0], t.crowd.text(), msg.VerbMessage)
	}
	if err := harness.Await(ctx, "everything to be stored", func() (bool, error) { return t.crowd.stored(t.db) }); err != nil {
		return err
	}
	for _, name := range []string{"routd", "gated"} {
		if err := t.up(ctx, name); err != nil {
			return err
		}
	}
	return t.settle(ctx)
}

// upset has something go wrong on the way to some platform.
func (t *trial) upset() {
	w := t.worlds[t.random.IntN(len(t.worlds))]
	if t.random.IntN(4) > 0 {
		w.InjectRandomFault(t.random)
		return
	}
	w.SetReachable(false)
	time.AfterFunc(time.Duration(t.random.Int64N(int64(gapMost))), func() { w.SetReachable(true) })
}

// outage has no platform be reached for a minute, while people write on.
func (t *trial) outage(ctx context.Context) error {
	for _, w := range t.worlds {
		w.SetReachable(false)
	}
	for began := time.Now(); time.Since(began) < outageLasts && ctx.Err() == nil; {
		t.burst(ctx)
		pause(ctx, time.Second)
	}
	for _, w := range t.worlds {
		w.SetReachable(true)
	}
	return t.settle(ctx)
}

func none(invariants.Invariant) bool { return false }

// stillRuns is what may be found while agents run.
func (t *trial) stillRuns(i invariants.Invariant) bool { return i.Running }

// fault has a daemon die in a place, under load, and starts it again. It says whether the
// daemon came there.
func (t *trial) fault(ctx context.Context, f *fault) (died bool, err error) {
	for try := range tries {
		if try > 0 {
			f.nth = 1
		}
		died, err = t.aim(ctx, *f)
		if died || err != nil {
			return died, err
		}
	}
	return false, nil
}

func (t *trial) aim(ctx context.Context, f fault) (died bool, err error) {
	if t.random.IntN(2) == 0 {
		t.upset()
	}
	t.burst(ctx) // so that there is something under way when the daemon starts
	if err := t.Kill(f.daemon); err != nil {
		return false, err
	}
	if err := t.Start(f.daemon, "FAILPOINT="+f.String()); err != nil {
		return false, err
	}
	p := t.Process(f.daemon)
	t.burst(ctx)
	t.crowd.provoke(ctx, f.point)
	if t.random.IntN(3) == 0 {
		if err := t.killAnother(ctx, f.daemon); err != nil {
			return false, err
		}
	}
	t.burst(ctx)
	if err := t.untilDeath(ctx, p); err != nil {
		return false, err
	}
	died = !p.Running()
	if died && !p.Killed() {
		return false, fmt.Errorf("it ended by itself: %s\n%s", p.State(), t.complaints())
	}
	if err := t.Kill(f.daemon); err != nil {
		return false, err
	}
	return died, t.up(ctx, f.daemon)
}

// untilDeath returns when a process is gone, or seems to have no reason to go any more.
func (t *trial) untilDeath(ctx context.Context, p *harness.Process) error {
	died := func() bool { return !p.Running() }
	if err := t.await(ctx, died); err != nil {
		return err
	}
	timer := time.NewTimer(lingers)
	defer timer.Stop()
	select {
	case <-p.Done():
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// killAnother kills one of the other daemons as well.
func (t *trial) killAnother(ctx context.Context, but string) error {
	others := slices.DeleteFunc(slices.Clone(daemons), func(name string) bool { return name == but })
	name := others[t.random.IntN(len(others))]
	if err := t.Kill(name); err != nil {
		return err
	}
	return t.up(ctx, name)
}

// burst is some people writing within a moment.
func (t *trial) burst(ctx context.Context) {
	for range 3 + t.random.IntN(6) {
		t.crowd.speak(ctx)
		pause(ctx, time.Duration(t.random.IntN(30))*time.Millisecond)
	}
}
