package adapter

import (
	"sync"
	"time"

	"arizuko/pkg/store"
)

// Limit allows Burst sends at once, and after that one in every Every. The zero Limit is none.
type Limit struct {
	Every time.Duration
	Burst int
}

// Pace holds the limits of a platform.
type Pace struct {
	Account Limit // over all lanes
	// Lane returns the limits of a lane. Lanes with the same key share theirs: key is the chat on a
	// platform that limits chats, and differs by thread on one that limits those. nil is no limit.
	Lane func(store.Lane) (key string, limits []Limit)
}

// maxKeys is how many keys of lanes are remembered at least before those with unused limits are forgotten.
const maxKeys = 1000

// pacer gives permits to send parts. It is safe for concurrent use.
type pacer struct {
	pace  Pace
	clock func() time.Time

	mu      sync.Mutex
	last    time.Time // of the last call
	breaks  int       // how often calls were stopped
	called  time.Time // when a permit was last used
	account meter     // of permits, which may be for later
	calls   meter     // of those that were used
	keys    map[string][]meter
	most    int // how many keys may be remembered before some are forgotten
}

// meter applies a limit.
type meter struct {
	Limit
	full time.Time // when Burst sends are allowed at once again
}

// free returns the first time, at or later, that the limit allows.
func (m *meter) free(at time.Time) time.Time {
	if free := m.full.Add(-time.Duration(m.Burst-1) * m.Every); m.Burst > 0 && free.After(at) {
		return free
	}
	return at
}

// count counts a send at a time that is free.
func (m *meter) count(at time.Time) {
	if m.full.Before(at) {
		m.full = at
	}
	m.full = m.full.Add(m.Every)
}

// maxLate is how many permits beyond a limit's burst may be used late, together with others.
const maxLate = 2

// late is the limit of the calls for which a limit gives permits.
func (l Limit) late() Limit {
	if l.Burst > 0 {
		l.Burst += maxLate
	}
	return l
}

// permit is a permit for one call. The zero permit is none.
type permit struct{ number int } // that of the pacer's break before it, from 1

func newPacer(p Pace, clock func() time.Time) *pacer {
	return &pacer{pace: p, clock: clock, account: meter{Limit: p.Account},
		calls: meter{Limit: p.Account.late()}, keys: map[string][]meter{}, most: maxKeys}
}

// acquire returns the time until the next permit to send a part to a lane is valid: the caller asks again then, and
// gets 0 if it may call now. If the lane's limit allows that later than the account's, no permit is acquired, so that
// other lanes don't wait. A permit of before calls were stopped is void, and one of many that are used late waits: all
// of them together would exceed the limits.
func (p *pacer) acquire(l store.Lane, held *permit) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.time()
	if held.number != p.breaks+1 {
		if wait = p.permit(l, now, held); wait > 0 {
			return wait
		}
	}
	free := p.calls.free(now)
	if !free.After(now) {
		p.use(now)
	}
	return free.Sub(now)
}

// permit acquires a new permit in place of one that is void. The caller holds the lock.
func (p *pacer) permit(l store.Lane, now time.Time, held *permit) (wait time.Duration) {
	if limits := p.meters(l, now); held.number > 0 {
		for i := range limits {
			limits[i].full = limits[i].full.Add(-limits[i].Every)
		}
	}
	*held = permit{}
	wait, ok := p.upTo(l, now, 1<<63-1)
	if ok {
		held.number = p.breaks + 1
	}
	return wait
}

// stop voids the permits that were acquired, and lets the account begin again after a wait, one call at a time and not
// sooner after the last one than its limit allows: calls were stopped for all lanes.
func (p *pacer) stop(wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breaks++
	next := p.time().Add(wait)
	if soonest := p.called.Add(p.account.Every); soonest.After(next) {
		next = soonest
	}
	p.account.full = next.Add(time.Duration(max(p.account.Burst-1, 0)) * p.account.Every)
}

// now acquires a permit if it is valid at once, and late ones need not come first.
func (p *pacer) now(l store.Lane) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.time()
	if used := p.used(); used.free(now).After(now) {
		return false
	}
	_, ok := p.upTo(l, now, 0)
	if ok {
		p.use(now)
	}
	return ok
}

// use counts a call. The caller holds the lock.
func (p *pacer) use(now time.Time) {
	p.called = now
	p.calls.count(now)
}

// used is the account's limit of the calls that were made: late ones come before others. The caller holds the lock.
func (p *pacer) used() meter { return meter{Limit: p.account.Limit, full: p.calls.full} }

// spare acquires a permit if it is valid at once and leaves half of the burst of each limit. Rows come first, also
// those that use their permits late.
func (p *pacer) spare(l store.Lane) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.time()
	return p.spareOf(now, p.meters(l, now))
}

// spareCall is spare for a call that only the account's limit counts.
func (p *pacer) spareCall() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spareOf(p.time(), nil)
}

// spareOf is spare for meters. The caller holds the lock.
func (p *pacer) spareOf(now time.Time, limits []meter) bool {
	for _, m := range append([]meter{p.account, p.used()}, limits...) {
		m.Burst -= m.Burst / 2
		if m.free(now).After(now) {
			return false
		}
	}
	p.account.count(now)
	p.use(now)
	for i := range limits {
		limits[i].count(now)
	}
	return true
}

// upTo acquires a permit that is valid after at most maxWait. The caller holds the lock.
func (p *pacer) upTo(l store.Lane, now time.Time, maxWait time.Duration) (wait time.Duration, ok bool) {
	limits := p.meters(l, now)
	at := p.account.free(now)
	free := at
	for i := range limits {
		free = limits[i].free(free)
	}
	if free.After(at) || free.Sub(now) > maxWait {
		return free.Sub(now), false
	}
	p.account.count(at)
	for i := range limits {
		limits[i].count(at)
	}
	return at.Sub(now), true
}

// time is the present one. The caller holds the lock.
func (p *pacer) time() time.Time {
	now := p.clock()
	if now.Before(p.last) { // the clock was set back
		p.account.full, p.calls.full, p.called, p.keys = time.Time{}, time.Time{}, time.Time{}, map[string][]meter{}
	}
	p.last = now
	return now
}

func (p *pacer) meters(l store.Lane, now time.Time) []meter {
	if p.pace.Lane == nil {
		return nil
	}
	key, limits := p.pace.Lane(l)
	meters, known := p.keys[key]
	if known {
		return meters
	}
	if len(p.keys) >= p.most {
		p.forget(now)
		p.most = max(maxKeys, 2*len(p.keys)) // so that a key costs the same however many are in use
	}
	for _, limit := range limits {
		meters = append(meters, meter{Limit: limit})
	}
	p.keys[key] = meters
	return meters
}

// forget removes the keys with unused limits.
func (p *pacer) forget(now time.Time) {
	for key, limits := range p.keys {
		full := true
		for i := range limits {
			full = full && !limits[i].full.After(now)
		}
		if full {
			delete(p.keys, key)
		}
	}
}
