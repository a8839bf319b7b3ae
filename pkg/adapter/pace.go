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

// pacer counts calls against the limits of a platform. It is safe for concurrent use.
type pacer struct {
	pace Pace

	mu      sync.Mutex
	account meter
	turn    time.Time // when the row that waits for the account may call
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

func newPacer(p Pace) *pacer {
	return &pacer{pace: p, account: meter{Limit: p.Account}, keys: map[string][]meter{}, most: maxKeys}
}

// take counts a call for a row of a lane, if it may be made now. Otherwise it returns for how long the lane has to
// wait. account means that all lanes have to: the caller then asks for the same lane first once the wait is over.
func (p *pacer) take(l store.Lane) (wait time.Duration, account bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	limits := p.meters(l, now)
	switch at, free := p.free(now, limits); {
	case free.After(at): // so that other lanes don't wait
		return free.Sub(now), false
	case at.After(now):
		p.turn = at
		return at.Sub(now), true
	}
	p.count(now, limits)
	return 0, false
}

// refund takes back a call for a lane that was counted, but not made.
func (p *pacer) refund(l store.Lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.account.full, p.turn = p.account.full.Add(-p.account.Every), time.Time{}
	limits := p.meters(l, time.Now())
	for i := range limits {
		limits[i].full = limits[i].full.Add(-limits[i].Every)
	}
}

// reserve counts a call for a lane at the first time that the account is free: it is made after the wait. If the lane
// itself is free later, the call is not counted, so that other lanes don't wait: the caller asks again after the wait.
func (p *pacer) reserve(l store.Lane) (wait time.Duration, counted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	limits := p.meters(l, now)
	at, free := p.free(now, limits)
	if free.After(at) {
		return free.Sub(now), false
	}
	p.count(at, limits)
	return at.Sub(now), true
}

// spare counts a call for a lane if it may be made at once, no row waits for the account, and half of the burst of each
// limit is left to rows.
func (p *pacer) spare(l store.Lane) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return p.spareOf(now, p.meters(l, now))
}

// spareCall is spare for a call that only the account's limit counts.
func (p *pacer) spareCall() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spareOf(time.Now(), nil)
}

// spareOf is spare for meters. The caller holds the lock.
func (p *pacer) spareOf(now time.Time, limits []meter) bool {
	for _, m := range append([]meter{p.account}, limits...) {
		m.Burst -= m.Burst / 2
		if m.free(now).After(now) || !now.After(p.turn) {
			return false
		}
	}
	p.count(now, limits)
	return true
}

// free returns when the account's limit allows the next call, and when a lane's limits do too. The caller holds the
// lock.
func (p *pacer) free(now time.Time, limits []meter) (account, all time.Time) {
	account = p.account.free(now)
	all = account
	for i := range limits {
		all = limits[i].free(all)
	}
	return account, all
}

// count counts a call. The caller holds the lock.
func (p *pacer) count(at time.Time, limits []meter) {
	p.account.count(at)
	for i := range limits {
		limits[i].count(at)
	}
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
