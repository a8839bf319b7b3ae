package adapter

import (
	"sync"
	"time"
)

// Limit is how fast something may be done: Burst times at once, and from then on once in Every.
// The zero Limit is none.
type Limit struct {
	Every time.Duration
	Burst int
}

// Pace is how fast a platform lets us send.
type Pace struct {
	Account Limit                        // over all chats
	Chat    func(chatJID string) []Limit // in one chat; nil for no limit
}

// quietChats is how many chats are remembered before those are forgotten that have sent nothing
// for so long that they are as good as new.
const quietChats = 1000

// pacer hands out the moments at which parts may be sent. It is safe for concurrent use.
type pacer struct {
	pace  Pace
	clock func() time.Time

	mu      sync.Mutex
	last    time.Time // when it was asked last
	account meter
	chats   map[string][]meter
}

// meter holds moments to a limit.
type meter struct {
	Limit
	full time.Time // from when on Burst are allowed at once again
}

// free is the first moment not before at that the limit allows.
func (m *meter) free(at time.Time) time.Time {
	if free := m.full.Add(-time.Duration(m.Burst-1) * m.Every); m.Burst > 0 && free.After(at) {
		return free
	}
	return at
}

// take uses a moment that is free.
func (m *meter) take(at time.Time) {
	if m.full.Before(at) {
		m.full = at
	}
	m.full = m.full.Add(m.Every)
}

func newPacer(p Pace, clock func() time.Time) *pacer {
	return &pacer{pace: p, clock: clock, account: meter{Limit: p.Account}, chats: map[string][]meter{}}
}

// take takes the next moment at which a part may be sent to a chat, and says how long it is
// until then. Where the chat is not free when the account is, nothing is taken, so that nobody
// else waits for the chat: it is to be asked again after the wait.
func (p *pacer) take(chatJID string) (wait time.Duration, taken bool) {
	return p.upTo(chatJID, 1<<63-1)
}

// now takes this moment, if a part may be sent to a chat.
func (p *pacer) now(chatJID string) bool {
	_, taken := p.upTo(chatJID, 0)
	return taken
}

// upTo is take, which takes nothing that is further away than most.
func (p *pacer) upTo(chatJID string, most time.Duration) (wait time.Duration, taken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	if now.Before(p.last) { // it was set back, and all moments are in a time to come
		p.account.full, p.chats = time.Time{}, map[string][]meter{}
	}
	p.last = now
	limits := p.chat(chatJID, now)
	at := p.account.free(now)
	free := at
	for i := range limits {
		free = limits[i].free(free)
	}
	if free.After(at) || free.Sub(now) > most {
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
	if len(p.chats) >= quietChats {
		p.forget(now)
	}
	for _, l := range p.pace.Chat(chatJID) {
		limits = append(limits, meter{Limit: l})
	}
	p.chats[chatJID] = limits
	return limits
}

// forget lets go of the chats whose limits are as they were in the beginning.
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
