package login

import (
	"crypto/rand"
	"crypto/subtle"
	"sync"
	"time"
)

// linkLife is how long a one-time link can be used.
const linkLife = time.Hour

// oneTime is the token of the one-time link, in memory only. The zero value has no valid one.
type oneTime struct {
	mu      sync.Mutex
	current string
	expires time.Time // zero once it is used
}

// token returns the same token until it is used or has expired, then another.
func (o *oneTime) token(now time.Time) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !now.Before(o.expires) {
		o.current, o.expires = rand.Text()+rand.Text(), now.Add(linkLife) // 260 random bits
	}
	return o.current
}

// use reports whether the token is the valid one, and invalidates it.
func (o *oneTime) use(token string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	// In constant time, which reveals nothing of the token.
	if !now.Before(o.expires) || subtle.ConstantTimeCompare([]byte(token), []byte(o.current)) == 0 {
		return false
	}
	o.expires = time.Time{}
	return true
}
