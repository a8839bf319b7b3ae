package discord

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// The rate limits. Discord documents only the global one; those of a channel are what its answers
// carry, and may change.
const (
	overall       = 50
	overallWindow = time.Second
	perChannel    = 5
	channelWindow = 5 * time.Second
	reactions     = 1
	reactWindow   = 250 * time.Millisecond
)

// rates remembers when calls came. The server's lock guards it.
type rates struct {
	all     fakeserver.Window
	buckets map[string]fakeserver.Window
}

func newRates() *rates { return &rates{buckets: map[string]fakeserver.Window{}} }

// take counts a call, writes the state of its bucket to the headers, and refuses a call above the
// limit.
func (r *rates) take(h http.Header, route, channel string, now time.Time) error {
	r.all = r.all.Since(overallWindow, now)
	if len(r.all) >= overall {
		return limited(r.all.Wait(overall, overallWindow, now), true)
	}
	limit, window := perChannel, channelWindow
	if strings.Contains(route, "/reactions/") {
		limit, window = reactions, reactWindow
	}
	key := route + " " + channel
	used := r.buckets[key].Since(window, now)
	isFull := len(used) >= limit
	if !isFull {
		used = append(used, now)
		r.all = append(r.all, now)
	}
	r.buckets[key] = used
	reset := used[0].Add(window)
	h.Set("X-RateLimit-Bucket", fmt.Sprintf("%x", route))
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(limit-len(used)))
	h.Set("X-RateLimit-Reset", fmt.Sprintf("%.3f", float64(reset.UnixMilli())/1000))
	h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", reset.Sub(now).Seconds()))
	if isFull {
		return limited(reset.Sub(now), false)
	}
	return nil
}
