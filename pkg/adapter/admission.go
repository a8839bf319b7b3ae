package adapter

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// firstProbe and maxProbe bound the pauses between the rows that are tried while no call is answered.
	// They double up to maxProbe, or up to maxDoubtfulProbe where each try may have arrived.
	firstProbe       = time.Second
	maxProbe         = 10 * time.Second
	maxDoubtfulProbe = 30 * time.Second
	// hungAfter and slowAfter are how long a send without files may go on once the platform answers again after an
	// outage, and while it answers later calls.
	hungAfter = 4 * time.Second
	slowAfter = 20 * time.Second
	// renewAfter bounds how long rows that wait because the platform did not answer still wait once it does.
	renewAfter = 10 * time.Second
)

// admission lets rows call the platform. It is open while calls are answered. Once one is not, and none that
// began later was, it lets a single row through from time to time; the answer to that opens it for all. It
// is shut while the platform asks the account to wait. All times are elapsed ones: setting the clock
// changes nothing. It is safe for concurrent use.
type admission struct {
	listens bool          // there is a connection that tells whether the platform answers
	changed chan struct{} // has a value when rows that were held may go on
	log     *slog.Logger

	mu        sync.Mutex
	connected bool
	answered  time.Time // when a call was answered last
	back      time.Time // when one was answered for the first time after the connection was lost
	lost      time.Time // when the connection was lost, or the start
	since     bool      // a call was answered since then
	shutAt    time.Time // when a call was not answered for the first time, zero while open
	pause     time.Duration
	nextProbe time.Time
	probing   bool // a row has been let through
	until     time.Time
}

// passage is how a row is let through.
type passage int

// The passages: none, one for a row that is tried, and one for all.
const (
	shut passage = iota
	probe
	open
)

func newAdmission(listens bool, log *slog.Logger) *admission {
	return &admission{listens: listens, changed: make(chan struct{}, 1), log: log, lost: time.Now()}
}

// enter asks for a row to be let through. wait is when to ask again if it is not, unless it opens
// before. A probe must be ended by leave.
func (a *admission) enter() (p passage, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	switch {
	case now.Before(a.until):
		return shut, a.until.Sub(now)
	case a.shutAt.IsZero():
		return open, 0
	case a.probing:
		return shut, maxDoubtfulProbe // its end comes before
	case now.Before(a.nextProbe):
		return shut, a.nextProbe.Sub(now)
	}
	a.probing = true
	return probe, 0
}

// leave ends a probe.
func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probing = false
}

// connection reports that the platform's connection works, or was lost, and returns whether that is news.
// refused means that the platform itself has ended it: it answers.
func (a *admission) connection(works, refused bool) (news bool) {
	a.mu.Lock()
	news = a.connected != works
	if news && !works {
		a.lost, a.since = time.Now(), false
	}
	a.mu.Unlock()
	if works || refused {
		a.answer()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.connected = works
	return news
}

// answer reports that the platform has answered a call.
func (a *admission) answer() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pause > 0 {
		a.log.Info("the platform answers again", "wait", time.Since(a.shutAt).Round(time.Millisecond))
	}
	isBack := !a.works()
	news := !a.shutAt.IsZero() || isBack
	a.answered, a.since, a.shutAt, a.pause = time.Now(), true, time.Time{}, 0
	if isBack {
		a.back = a.answered
	}
	if news {
		signal(a.changed)
	}
}

// noAnswer reports that the platform did not answer a call of a row that was let through with p. The call began at a
// time; sent means that it may have arrived.
func (a *admission) noAnswer(p passage, began time.Time, sent bool, err string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	switch {
	case a.answered.After(began): // others are answered
	case a.shutAt.IsZero(): // another row is tried at once
		a.shutAt, a.nextProbe = now, now
	case p == probe:
		if a.pause == 0 {
			a.log.Error("the platform does not answer; one row is tried from time to time", "err", err)
		}
		longest := maxProbe
		if sent {
			longest = maxDoubtfulProbe
		}
		a.pause = min(max(2*a.pause, firstProbe), longest)
		a.nextProbe = now.Add(a.pause)
	}
}

// endHung looks every second whether a call that began at a time hangs while the platform answers others, and ends it
// then.
func (a *admission) endHung(ctx context.Context, began time.Time, end func()) {
	if ctx.Err() != nil {
		return
	}
	a.mu.Lock()
	hangs := a.back.After(began) && time.Since(a.back) >= hungAfter ||
		time.Since(began) >= slowAfter && a.answered.Sub(began) >= slowAfter/2
	a.mu.Unlock()
	if hangs {
		end()
		return
	}
	time.AfterFunc(time.Second, func() { a.endHung(ctx, began, end) })
}

// justBack reports whether the platform has begun to answer again within the last second.
func (a *admission) justBack() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.back) < time.Second
}

// hold lets no row through for a time.
func (a *admission) hold(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if until := time.Now().Add(d); until.After(a.until) {
		a.until = until
	}
}

// mayCall reports whether a row that was let through with p may still call the platform.
func (a *admission) mayCall(p passage) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return p != shut && (p == probe || a.shutAt.IsZero()) && !time.Now().Before(a.until)
}

// answers reports whether the platform answers, as far as is known, and for how long it has not, 0 while
// calls are answered and the connection works.
func (a *admission) answers() (yes bool, outFor time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	yes = a.works()
	var since time.Time
	if !yes {
		since = a.lost
	}
	if !a.shutAt.IsZero() && (since.IsZero() || a.shutAt.Before(since)) {
		since = a.shutAt
	}
	if !since.IsZero() {
		outFor = time.Since(since)
	}
	return yes, outFor
}

// works reports whether the connection works, or a call was answered after it was lost. Where there is no
// connection, any call may be answered. The caller holds the lock.
func (a *admission) works() bool {
	return !a.listens || a.connected || a.since
}
