package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"arizuko/deploy/e2e/invariants"
)

const (
	messageInterval    = 40 * time.Millisecond // the mean time between two messages
	disruptionInterval = 2 * time.Second       // the mean time between two disruptions
	maxHang            = 3 * time.Second       // of a suspended daemon
	maxClockJump       = 2 * time.Hour         // in either direction
	warmUp             = 10 * time.Second      // until daemons have reached their size
)

// misbehaving runs some agents of the group "second" in ways that agent authors get wrong: they are
// noisy, write invalid or oversized frames, hang, ignore SIGTERM, and leave children behind.
const misbehaving = `case "$PWD:$(($$ % 20))" in
*/second:0) yes noise | head -c 200000; yes noise | head -c 200000 >&2;;
*/second:1) echo ---ARIZUKO_OUTPUT_START---; echo '{"status":'; echo ---ARIZUKO_OUTPUT_END---;;
*/second:2) echo ---ARIZUKO_OUTPUT_START---; yes x | head -c 3000000; echo ---ARIZUKO_OUTPUT_END---;;
*/second:3) exec sleep 1000;;
*/second:4) trap '' TERM;;
*/second:5) sleep 1000 & ;;
esac; exec `

// soak puts an instance under load for a time. In the first two thirds daemons are killed, stopped and
// suspended and the clock jumps. In the last third only agents fail, and no daemon may grow.
func soak(ctx context.Context, o options, length time.Duration, out io.Writer) (r *result, err error) {
	clock := filepath.Join(o.bin, "clock")
	l, err := start(ctx, o, "FAILPOINT_CLOCK="+clock, "TURN_ATTEMPTS=2", "AGENT_TIMEOUT=3s",
		"AGENT_COMMAND="+misbehaving+filepath.Join(o.bin, "demo"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.tearDown()) }()
	l.load.hostile, l.clockSet = true, true

	d := &disruptor{loaded: l, clock: clock, count: map[string]int{}, out: out}
	if err := d.run(ctx, length*2/3); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "disrupted: messages=%d disruptions=%v\n", len(l.load.all), d.count)
	growth, err := l.measureGrowth(ctx, length/3, out)
	if err != nil {
		return nil, err
	}

	err = l.awaitIdle(ctx)
	if err == nil {
		err = l.stopDaemons(ctx)
	}
	stuck := ""
	if errors.Is(err, errStuck) {
		stuck = "at the end: " + err.Error()
	} else if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "total: messages=%d\n", len(l.load.all))
	r, err = l.conclude(out, func(i invariants.Invariant) bool { return i.ComparesTimes }, stuck)
	return r, errors.Join(err, growth, findPanics(l.instance))
}

// sendOne performs one action of a user, and pauses.
func (l *loadedInstance) sendOne(ctx context.Context) {
	l.load.act(ctx)
	pause(ctx, time.Duration(l.random.Int64N(int64(2*messageInterval))))
}

// disruptor disrupts daemons and platforms of an instance under load.
type disruptor struct {
	loaded *loadedInstance
	clock  string         // the file that sets the daemons' clock
	count  map[string]int // by kind of disruption
	next   []disruption   // the rest of the round
	out    io.Writer
}

// plannedOutage is one of the outages that each soak has: every site in every way, two sites at a time.
type plannedOutage struct {
	site site
	kind outageKind
}

// planOutages returns the outages in random order, in which no site has two in a row.
func planOutages(sites []site, random *rand.Rand) (all []plannedOutage) {
	kinds := map[string][]outageKind{} // by site, in its order
	for _, p := range sites {
		kinds[p.name] = outageKinds()
		random.Shuffle(len(kinds[p.name]), func(i, j int) {
			kinds[p.name][i], kinds[p.name][j] = kinds[p.name][j],
				kinds[p.name][i]
		})
	}
	for round := range outageKinds() {
		next := slices.Clone(sites)
		random.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
		if len(all) > 0 && next[0].name == all[len(all)-1].site.name {
			slices.Reverse(next)
		}
		for _, p := range next {
			all = append(all, plannedOutage{p, kinds[p.name][round]})
		}
	}
	return all
}

// outageTimes returns how long after each other n outages begin in a time, and how long each lasts: until shortly
// before the one after the next begins. In twenty minutes, those of a soak of thirty, each of twenty lasts a minute and
// a half.
func outageTimes(length time.Duration, n int) (every, lasts time.Duration) {
	every = length / time.Duration(n+1)
	return every, every * 8 / 5
}

// disruption is done to a daemon, to a platform, or to the clock of all daemons.
type disruption struct{ kind, daemon string }

// planDisruptions returns a round in random order: each daemon is killed, stopped and suspended, the clock jumps
// in both directions, and faults or short outages come to random platforms.
func planDisruptions(random *rand.Rand) (all []disruption) {
	for _, name := range daemons {
		for _, kind := range []string{"kill", "stop", "hang", "platform"} {
			all = append(all, disruption{kind, name})
		}
	}
	all = append(all, disruption{kind: "clock back"}, disruption{kind: "clock forward"})
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// run disrupts for a time.
func (d *disruptor) run(ctx context.Context, length time.Duration) error {
	began := time.Now()
	until, next := began.Add(length), began.Add(disruptionInterval)
	planned := planOutages(d.loaded.sites, d.loaded.random)
	every, lasts := outageTimes(length, len(planned))
	for i := 0; time.Now().Before(until) && ctx.Err() == nil; {
		if i < len(planned) && time.Since(began) >= time.Duration(i)*every {
			o := planned[i]
			i++
			fmt.Fprintf(d.out, "outage of %s for %s: it %s\n", o.site.name, lasts, o.kind)
			d.loaded.beginOutage(o.site, o.kind, lasts, true)
			d.count["outage"]++
		}
		d.loaded.sendOne(ctx)
		if time.Now().Before(next) {
			continue
		}
		if err := d.disrupt(ctx); err != nil {
			return err
		}
		next = time.Now().Add(time.Duration(d.loaded.random.Int64N(int64(2 * disruptionInterval))))
	}
	return ctx.Err()
}

// disrupt makes the next disruption.
func (d *disruptor) disrupt(ctx context.Context) error {
	l := d.loaded
	if len(d.next) == 0 {
		d.next = planDisruptions(l.random)
	}
	kind, name := d.next[0].kind, d.next[0].daemon
	d.next = d.next[1:]
	d.count[kind]++

	switch kind {
	case "kill":
		if err := l.kill(name); err != nil {
			return err
		}
	case "stop":
		stopping, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		if err := l.instance.Stop(stopping, name); err != nil {
			return err
		}
	case "hang":
		return d.hang(ctx, name)
	case "platform":
		l.disruptPlatform()
		return nil
	case "clock back":
		return d.setClock(-time.Duration(l.random.Int64N(int64(maxClockJump))))
	case "clock forward":
		return d.setClock(time.Duration(l.random.Int64N(int64(maxClockJump))))
	}

	l.sendOne(ctx)
	return l.startDaemon(ctx, name)
}

// hang suspends a daemon for up to maxHang, wherever it is.
func (d *disruptor) hang(ctx context.Context, name string) error {
	p := d.loaded.instance.Process(name)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	length := time.Duration(d.loaded.random.Int64N(int64(maxHang)))
	resumed := make(chan error, 1)
	// By a timer: it may hold the write lock, and then sending waits for it.
	time.AfterFunc(length, func() { resumed <- p.Signal(syscall.SIGCONT) })
	for until := time.Now().Add(length); time.Now().Before(until) && ctx.Err() == nil; {
		d.loaded.sendOne(ctx)
	}
	return <-resumed
}

// setClock sets the offset of all daemons' clocks.
func (d *disruptor) setClock(offset time.Duration) error {
	temp := d.clock + ".new"
	if err := os.WriteFile(temp, []byte(strconv.FormatInt(int64(offset.Seconds()), 10)), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, d.clock)
}
