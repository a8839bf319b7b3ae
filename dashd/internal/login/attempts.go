package login

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"arizuko/pkg/httpx"
)

const (
	// compareInterval bounds how fast passwords are guessed: 500 a second, however many clients try.
	// Ten random letters are found in 4500 years on average.
	compareInterval = 2 * time.Millisecond
	// failureDelay is how long a wrong password waits for its answer.
	failureDelay = time.Second
	// maxDelayed bounds the requests that wait for failureDelay, delayedShare the share of the open
	// connections that they may take; further wrong ones are answered at once, since the
	// comparisons are slow already.
	maxDelayed   = 100
	delayedShare = 4
	// failureLogInterval bounds the log lines about failed attempts after the first ones.
	failureLogInterval = 10 * time.Second
	maxFailureLogs     = 20
)

// attempts compares passwords. It never refuses one without comparing it: a right one gets in, however
// many wrong ones were tried before, or are being tried, from whatever address. It waits for those
// that came before it, 2 ms each, and there are at most as many as open connections.
type attempts struct {
	password  [sha256.Size]byte
	comparing chan struct{} // holds one value from each comparison until the next may begin
	delayed   chan struct{} // holds one value for each delayed failure
	logs      *rate.Limiter // of failures
	unlogged  atomic.Int64  // failures since the last that was logged
}

func newAttempts(password string) *attempts {
	return &attempts{
		password:  sha256.Sum256([]byte(password)),
		comparing: make(chan struct{}, 1),
		delayed:   make(chan struct{}, min(maxDelayed, httpx.MaxConns()/delayedShare)),
		logs:      rate.NewLimiter(rate.Every(failureLogInterval), maxFailureLogs),
	}
}

// try compares a password, and delays the caller if it is wrong. It returns ctx's error if ctx ends
// before the comparison.
func (a *attempts) try(ctx context.Context, password string) (ok bool, err error) {
	select {
	case a.comparing <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	// Hashed, so that the time of the comparison does not depend on the length.
	got := sha256.Sum256([]byte(password))
	ok = subtle.ConstantTimeCompare(got[:], a.password[:]) == 1
	time.AfterFunc(compareInterval, func() { <-a.comparing })
	if !ok {
		a.delay(ctx)
	}
	return ok, nil
}

func (a *attempts) delay(ctx context.Context) {
	select {
	case a.delayed <- struct{}{}:
	default:
		return
	}
	defer func() { <-a.delayed }()
	timer := time.NewTimer(failureDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
