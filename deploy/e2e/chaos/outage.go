package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

const (
	// maxOutage is the longest time that a platform is unreachable between two crashes; finalOutage
	// that of all sites at the end.
	maxOutage   = 3 * time.Second
	finalOutage = time.Minute
	// reconnectTimeout is how long after an outage an adapter may take until it is connected again.
	reconnectTimeout = 15 * time.Second
)

// site is where outages happen: a platform, or the network between browsers and the web chat.
type site struct {
	name    string // as in JIDs
	network chatsim.Network
	faults  chatsim.FaultInjector // nil for the web chat, whose outages let requests pass
}

// sitesOf lists the platforms and the web chat.
func sitesOf(platforms []chatsim.Platform, web *webNetwork) (all []site) {
	for _, p := range platforms {
		all = append(all, site{p.Info().Platform, p, p})
	}
	return append(all, site{name: msg.PlatformWeb, network: web})
}

// outageKinds are the ways in which a site is out of reach: its server refuses connections, resets them, hangs, or
// is replaced by a proxy that answers with pages.
func outageKinds() []outageKind {
	return []outageKind{refuses, resets, hangs, http.StatusBadGateway, http.StatusServiceUnavailable}
}

// outageKind is refuses, resets, hangs, or the status of a page.
type outageKind int

const (
	refuses outageKind = iota
	resets
	hangs
)

// String names the kind in the log.
func (k outageKind) String() string {
	switch k {
	case refuses:
		return "refuses connections"
	case resets:
		return "resets connections"
	case hangs:
		return "hangs"
	}
	return fmt.Sprintf("answers pages of %d", int(k))
}

// randomKind returns one of outageKinds.
func (l *loadedInstance) randomKind() outageKind {
	all := outageKinds()
	return all[l.random.IntN(len(all))]
}

// disruptPlatform injects a random fault into one platform, or cuts it off for a while.
func (l *loadedInstance) disruptPlatform() {
	p := l.sites[l.random.IntN(len(l.sites))]
	if p.faults != nil && l.random.IntN(4) > 0 {
		p.faults.InjectRandomFault(l.random)
		return
	}
	if time.Now().After(l.outages[p.name].plannedTill) {
		l.beginOutage(p, l.randomKind(), time.Duration(l.random.Int64N(int64(maxOutage))), false)
	}
}

// beginOutage cuts a site off for a time. A planned outage is not ended by a random one.
func (l *loadedInstance) beginOutage(p site, kind outageKind, length time.Duration, planned bool) {
	l.endOutage(p)
	restore := l.cutOff(p, kind)
	o := outage{timer: time.AfterFunc(length, restore), restore: restore}
	if planned {
		o.plannedTill = time.Now().Add(length)
	}
	l.outages[p.name] = o
}

// cutOff cuts a site off and returns a function that restores it once. Failures end the run.
func (l *loadedInstance) cutOff(p site, kind outageKind) (restore func()) {
	l.load.failure.set(setOutage(p.network, kind, true))
	return sync.OnceFunc(func() { l.load.failure.set(setOutage(p.network, kind, false)) })
}

// setOutage begins or ends an outage.
func setOutage(n chatsim.Network, kind outageKind, on bool) error {
	switch {
	case kind == refuses:
		return n.SetListening(!on)
	case kind == resets:
		n.SetReachable(!on)
	case kind == hangs:
		n.SetAnswering(!on)
	case on:
		n.SetPaging(int(kind))
	default:
		n.SetPaging(0)
	}
	return nil
}

// outage is a site's outage that will end by itself.
type outage struct {
	timer       *time.Timer
	restore     func()    // returns when the site is restored, by this call or another
	plannedTill time.Time // the end of a planned one
}

// endOutage ends a site's outage that would end by itself later.
func (l *loadedInstance) endOutage(p site) {
	if o, ok := l.outages[p.name]; ok {
		o.timer.Stop()
		o.restore()
	}
	delete(l.outages, p.name)
}

// outageOfAll cuts all sites off for finalOutage, while users keep writing. late says which adapters were
// not connected again within reconnectTimeout.
func (l *loadedInstance) outageOfAll(ctx context.Context, out io.Writer) (late, err error) {
	var restore []func()
	for _, p := range l.sites {
		l.endOutage(p)
		kind := l.randomKind()
		fmt.Fprintf(out, "outage of %s: it %s\n", p.name, kind)
		restore = append(restore, l.cutOff(p, kind))
	}
	for began := time.Now(); time.Since(began) < finalOutage && ctx.Err() == nil; {
		l.burst(ctx)
		pause(ctx, time.Second)
	}
	for i, p := range l.sites {
		if p.faults != nil {
			p.faults.ClearFaults() // else connecting may fail for another reason
		}
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
		if harness.Await(deadline, daemon+" to be connected",
			func() (bool, error) { return p.Connected(), nil }) != nil {
			late = errors.Join(late, fmt.Errorf("%s was not connected within %s after an outage\n%s",
				daemon, reconnectTimeout, l.instance.LogTail(daemon, logTail)))
			continue
		}
		fmt.Fprintf(out, "%s connected %s after the outage\n", daemon, time.Since(began).Round(10*time.Millisecond))
	}
	return late
}
