package adapter

import (
	"maps"
	"sync"
	"time"
)

const (
	// quietFor is how long nothing was sent to a chat that cannot be at its own limit, of some messages a minute.
	quietFor = time.Minute
	// maxBusy is how many chats are remembered before those that have become quiet are forgotten: twice as many as
	// can be busy at the 30 messages a second of the fastest platform.
	maxBusy = 2 * 30 * 60
)

// Floods tells a rate limit of the account from one of a chat, for platforms that answer both alike: it is the
// account's once two chats are refused, one of them quiet, with nothing accepted in between. Busy chats may all be
// at their own limits. The zero value is ready. It is safe for concurrent use.
type Floods struct {
	mu      sync.Mutex
	refused map[string]refusedChat
	busy    map[string]time.Time // chats, and when the platform accepted something for them last
}

type refusedChat struct {
	until time.Time
	quiet bool // the platform had accepted nothing for it within quietFor
}

// Refused notes that a chat has to wait, and reports whether the account has to.
func (f *Floods) Refused(chat string, wait time.Duration) (account bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	f.forget(now)
	if f.refused == nil {
		f.refused = map[string]refusedChat{}
	}
	_, busy := f.busy[chat]
	f.refused[chat] = refusedChat{now.Add(wait), !busy}
	for _, r := range f.refused {
		account = account || r.quiet
	}
	return account && len(f.refused) > 1
}

// forget removes waits that are over and chats that have become quiet.
func (f *Floods) forget(now time.Time) {
	maps.DeleteFunc(f.refused, func(_ string, r refusedChat) bool { return !r.until.After(now) })
	maps.DeleteFunc(f.busy, func(_ string, last time.Time) bool { return now.Sub(last) >= quietFor })
}

// Accepted notes that the platform has accepted something for a chat.
func (f *Floods) Accepted(chat string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.refused)
	if f.busy == nil {
		f.busy = map[string]time.Time{}
	}
	now := time.Now()
	if len(f.busy) >= maxBusy {
		f.forget(now)
	}
	f.busy[chat] = now
}
