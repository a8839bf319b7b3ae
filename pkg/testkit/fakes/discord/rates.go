package discord

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// The rate limits. Discord documents only the global one; those of a channel are taken from its answers,
// and may change.
const (
	overall       = 50
	overallWindow = time.Second
	perChannel    = 5
	channelWindow = 5 * time.Second
	reactions     = 1
	reactWindow   = 250 * time.Millisecond
)

// walls refuse all calls. The server's lock guards them.
type walls struct {
	banned  time.Time // until when the proxy refuses all calls
	flooded time.Time // until when the global limit is exceeded
}

// Flood refuses all calls of the bot for a while by the global limit. Those without its token, to webhooks and about
// interactions, are not counted for that.
func (s *Server) Flood(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.walls.flooded = s.clock().Add(d)
}

// Ban refuses all calls for a while by the proxy before the API, as after 10,000 invalid ones in ten minutes: without
// the headers of rate limits, and with a page.
func (s *Server) Ban(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.walls.banned = s.clock().Add(d)
}

// ban is how long the proxy refuses a call.
func (s *Server) ban() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.walls.banned.Sub(s.clock())
}

// writeBan answers as the proxy does.
func writeBan(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(fakeserver.Seconds(wait)))
	writeProxyPage(w, http.StatusTooManyRequests, "Error 1015: You are being rate limited")
}

// writeProxyPage writes an answer of the proxy before the API.
func writeProxyPage(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("Server", "cloudflare")
	w.WriteHeader(status)
	_, _ = w.Write([]byte("<html><head><title>" + text + "</title></head><body><center><h1>" + text +
		"</h1></center><hr><center>cloudflare</center></body></html>"))
}

// limit refuses a call above a limit.
func (s *Server) limit(h http.Header, q *request, r route) error {
	now := s.clock()
	if wait := s.walls.flooded.Sub(now); wait > 0 && r.token {
		return limited(wait, true)
	}
	if s.rates == nil {
		return nil
	}
	return s.rates.take(h, r, q.path("channel")+q.path("webhook"), now)
}

// rates remembers when calls came. The server's lock guards it.
type rates struct {
	all     fakeserver.Window
	buckets map[string]fakeserver.Window
}

func newRates() *rates { return &rates{buckets: map[string]fakeserver.Window{}} }

// take counts a call, writes the state of its bucket to the headers, and refuses a call above the
// limit.
func (r *rates) take(h http.Header, to route, place string, now time.Time) error {
	r.all = r.all.Since(overallWindow, now)
	if len(r.all) >= overall && to.token {
		return limited(r.all.Wait(overall, overallWindow, now), true)
	}
	limit, window := perChannel, channelWindow
	if strings.Contains(to.name, "/reactions/") {
		limit, window = reactions, reactWindow
	}
	key := to.name + " " + place
	used := r.buckets[key].Since(window, now)
	isFull := len(used) >= limit
	if !isFull {
		used = append(used, now)
	}
	if !isFull && to.token {
		r.all = append(r.all, now)
	}
	r.buckets[key] = used
	reset := used[0].Add(window)
	h.Set("X-RateLimit-Bucket", fmt.Sprintf("%x", to.name))
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(limit-len(used)))
	h.Set("X-RateLimit-Reset", fmt.Sprintf("%.3f", float64(reset.UnixMilli())/1000))
	h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", reset.Sub(now).Seconds()))
	if isFull {
		return limited(reset.Sub(now), false)
	}
	return nil
}
