package login

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"sync"
	"time"
)

// linkLife is how long a one-time link can be used.
const linkLife = 24 * time.Hour

// links are the one-time tokens that nobody has used yet. They are in memory only, by hash:
// looking one up tells nothing by the time it takes.
type links struct {
	mu      sync.Mutex
	expires map[[sha256.Size]byte]time.Time
	shown   string // the token of first, in the clear: it is shown more than once
}

func newLinks() *links { return &links{expires: map[[sha256.Size]byte]time.Time{}} }

// mint makes a new token of 256 bits.
func (l *links) mint(now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(now)
}

// first is the same token until it is used or has expired, then another.
func (l *links) first(now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now.Before(l.expires[sha256.Sum256([]byte(l.shown))]) {
		l.shown = l.add(now)
	}
	return l.shown
}

func (l *links) add(now time.Time) string {
	maps.DeleteFunc(l.expires, func(_ [sha256.Size]byte, at time.Time) bool { return !now.Before(at) })
	random := make([]byte, sha256.Size)
	_, _ = rand.Read(random) // never fails: it ends the program instead
	token := base64.RawURLEncoding.EncodeToString(random)
	l.expires[sha256.Sum256([]byte(token))] = now.Add(linkLife)
	return token
}

// use tells whether the token is one that may be used, and makes it one that was.
func (l *links) use(token string, now time.Time) bool {
	hash := sha256.Sum256([]byte(token))
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.expires[hash]
	delete(l.expires, hash)
	return now.Before(at)
}
