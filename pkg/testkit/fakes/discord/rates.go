package discord

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The limits on the rate. Discord documents only the one on everything; those of a channel
// are what it answers with, and may change.
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
	all     []time.Time
	buckets map[string][]time.Time
}

func newRates() *rates { return &rates{buckets: map[string][]time.Time{}} }

// take counts a call, tells in headers how full its bucket is, and refuses what is too much.
func (r *rates) take(h http.Header, route, channel string, now time.Time) error {
	r.all = within(r.all, now, overallWindow)
	if len(r.all) >= overall {
		return limited(r.all[len(r.all)-overall].Add(overallWindow).Sub(now), true)
	}
	limit, window := perChannel, channelWindow
	if strings.Contains(route, "/reactions/") {
		limit, window = reactions, reactWindow
	}
	key := route + " " + channel
	used := within(r.buckets[key], now, window)
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

// within are the times that still count.
func within(times []time.Time, now time.Time, window time.Duration) []time.Time {
	return slices.DeleteFunc(times, func(at time.Time) bool { return now.Sub(at) >= window })
}
