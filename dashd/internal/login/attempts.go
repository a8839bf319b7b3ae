package login

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How many attempts may fail at once, and how long it takes until one more may. At the overall rate
// ten random letters are not found in a million years.
const (
	failuresPerAddress = 5
	refillPerAddress   = 10 * time.Second
	failuresOverall    = 50
	refillOverall      = time.Second
)

// attempts limits failed attempts per address and overall. An address is forgotten once it may fail
// as often as a new one; until then the overall limit lets at most 100 others fail, so the map
// stays small.
type attempts struct {
	mu      sync.Mutex
	overall *rate.Limiter
	byAddr  map[netip.Prefix]*rate.Limiter
}

func newAttempts() *attempts {
	return &attempts{
		overall: rate.NewLimiter(rate.Every(refillOverall), failuresOverall),
		byAddr:  map[netip.Prefix]*rate.Limiter{},
	}
}

// try calls verify and counts a failure. Over the limit it calls nothing and returns how long to
// wait. Attempts run one after the other, else many at once would pass a limit together.
func (a *attempts) try(remoteAddr string, now time.Time, verify func() bool) (ok bool, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	addr := network(remoteAddr)
	mine := a.byAddr[addr]
	if mine == nil {
		mine = rate.NewLimiter(rate.Every(refillPerAddress), failuresPerAddress)
	}
	if wait = max(untilNext(a.overall, now), untilNext(mine, now)); wait > 0 {
		return false, wait
	}
	if verify() {
		return true, 0
	}
	a.overall.AllowN(now, 1)
	mine.AllowN(now, 1)
	maps.DeleteFunc(a.byAddr, func(_ netip.Prefix, l *rate.Limiter) bool { return l.TokensAt(now) >= failuresPerAddress })
	a.byAddr[addr] = mine
	return false, 0
}

// untilNext returns how long l allows nothing, 0 if it allows an attempt now.
func untilNext(l *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - l.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return max(1, time.Duration(missing/float64(l.Limit())*float64(time.Second)))
}

// network returns what counts as one address: of IPv6 the first 64 bits, since the client chooses
// the rest. All invalid addresses count as one.
func network(remoteAddr string) netip.Prefix {
	parsed, err := netip.ParseAddrPort(remoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := parsed.Addr().Unmap(), 64
	if addr.Is4() {
		bits = 32
	}
	prefix, err := addr.Prefix(bits) // without the zone
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
