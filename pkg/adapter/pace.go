package adapter

import (
	"sync"
	"time"
)

// Limit allows Burst sends at once, and after that one in every Every. The zero Limit is none.
type Limit struct {
	Every time.Duration
	Burst int
}

// Pace holds the limits of a platform.
type Pace struct {
	Account Limit                        // over all chats
	Chat    func(chatJID string) []Limit // in one chat; nil for no limit
}

// maxChats is how many chats are remembered at least before those whose limits are unused are forgotten.
const maxChats = 1000

// pacer gives permits to send parts. It is safe for concurrent use.
type pacer struct {
	pace  Pace
	clock func() time.Time

	mu      sync.Mutex
	last    time.Time // of the last call
	account meter
	chats   map[string][]meter
	most    int // how many chats may be remembered before some are forgotten
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

// take records a send at a time that is free.
func (m *meter) take(at time.Time) {
	if m.full.Before(at) {
		m.full = at
	}
	m.full = m.full.Add(m.Every)
}

func newPacer(p Pace, clock func() time.Time) *pacer {
	return &pacer{pace: p, clock: clock, account: meter{Limit: p.Account}, chats: map[string][]meter{}, most: maxChats}
}

// take takes the next permit to send a part to a chat, and returns the time until it is valid. If
// the chat's limit allows that later than the account's, no permit is taken, so that other chats
// don't wait: the caller asks again after the wait.
func (p *pacer) take(chatJID string) (wait time.Duration, taken bool) {
	return p.upTo(chatJID, 1<<63-1)
}

// now takes a permit if it is valid at once.
func (p *pacer) now(chatJID string) bool {
	_, taken := p.upTo(chatJID, 0)
	return taken
}

// upTo is take, except that it takes no permit that is valid only after more than maxWait.
func (p *pacer) upTo(chatJID string, maxWait time.Duration) (wait time.Duration, taken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	if now.Before(p.last) { // the clock was set back
		p.account.full, p.chats = time.Time{}, map[string][]meter{}
	}
	p.last = now
	limits := p.chat(chatJID, now)
	at := p.account.free(now)
	free := at
	for i := range limits {
		free = limits[i].free(free)
	}
	if free.After(at) || free.Sub(now) > maxWait {
		return free.Sub(now), false
	}
	p.account.take(at)
	for i := range limits {
		limits[i].take(at)
	}
	return at.Sub(now), true
}

func (p *pacer) chat(chatJID string, now time.Time) []meter {
	if p.pace.Chat == nil {
		return nil
	}
	limits, known := p.chats[chatJID]
	if known {
		return limits
	}
	if len(p.chats) >= p.most {
		p.forget(now)
		p.most = max(maxChats, 2*len(p.chats)) // so that a chat costs the same however many are in use
	}
	for _, l := range p.pace.Chat(chatJID) {
		limits = append(limits, meter{Limit: l})
	}
	p.chats[chatJID] = limits
	return limits
}

// forget removes the chats whose limits are unused.
func (p *pacer) forget(now time.Time) {
	for chat, limits := range p.chats {
		full := true
		for i := range limits {
			full = full && !limits[i].full.After(now)
		}
		if full {
			delete(p.chats, chat)
		}
	}
}
