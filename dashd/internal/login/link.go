package login

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"sync"
	"time"
)

const (
	// linkLife is how long a one-time link can be used.
	linkLife = 24 * time.Hour
	// tokenSize is how much of a link nobody can guess, in bytes.
	tokenSize = 32
)

// oneTime is the token of the one-time link, in memory only. The zero value has none that may be
// used yet.
type oneTime struct {
	mu      sync.Mutex
	current string
	expires time.Time // zero once it is used
}

// token is the same one until it is used or has expired, then another.
func (o *oneTime) token(now time.Time) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !now.Before(o.expires) {
		random := make([]byte, tokenSize)
		_, _ = rand.Read(random) // never fails: it ends the program instead
		o.current, o.expires = base64.RawURLEncoding.EncodeToString(random), now.Add(linkLife)
	}
	return o.current
}

// use tells whether the token is the one that may be used, and makes it one that was.
func (o *oneTime) use(token string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	// Compared so that the time it takes tells nothing of the token.
	if !now.Before(o.expires) || subtle.ConstantTimeCompare([]byte(token), []byte(o.current)) == 0 {
		return false
	}
	o.expires = time.Time{}
	return true
}
