package discordapi

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/adapter"
)

// maxBuckets is how many buckets are remembered before those that are full again are forgotten.
const maxBuckets = 1000

// buckets tracks rate limits from the headers of answers, to avoid calls that would be refused:
// Discord blocks a bot that makes too many of those. It is safe for concurrent use.
type buckets struct {
	now func() time.Time

	mu     sync.Mutex
	until  map[string]time.Time // empty buckets, and when they are full again
	global time.Time            // until when no call is allowed but those of interactions
	banned time.Time            // until when no call at all is allowed
}

func newBuckets(now func() time.Time) *buckets {
	return &buckets{now: now, until: map[string]time.Time{}}
}

// wait is how long a call would be refused for, and whether all calls would be.
func (b *buckets) wait(method, path string) (wait time.Duration, all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	until := b.until[bucket(method, path)]
	if b.global.After(until) && !strings.HasPrefix(path, "interactions/") { // the global limit does not count them
		until, all = b.global, true
	}
	if b.banned.After(until) {
		until, all = b.banned, true
	}
	return until.Sub(b.now()), all
}

// update reads the rate limits from an answer.
func (b *buckets) update(method, path string, header http.Header, refused *Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	limited := refused != nil && refused.Status == http.StatusTooManyRequests && !refused.ofOneMessage()
	switch {
	case limited && !ownLimit(header):
		refused.Account = true
		b.banned = now.Add(max(refused.RetryAfter, adapter.ForeignWait))
	case limited && (header.Get("X-RateLimit-Global") != "" || header.Get("X-RateLimit-Scope") == "global"):
		refused.Account = true
		b.global = now.Add(refused.RetryAfter)
	case limited:
		b.until[bucket(method, path)] = now.Add(refused.RetryAfter)
	case header.Get("X-RateLimit-Remaining") == "0":
		const rounding = time.Millisecond // of the header, which may be 0.000
		if after, err := strconv.ParseFloat(header.Get("X-RateLimit-Reset-After"), 64); err == nil {
			b.until[bucket(method, path)] = now.Add(seconds(after) + rounding)
		}
	}
	if len(b.until) > maxBuckets {
		for key, until := range b.until {
			if !until.After(now) {
				delete(b.until, key)
			}
		}
	}
}

// ownLimit reports whether a rate limit is one of Discord's API. Another one is of the proxy before it, which
// does not know bots but addresses.
func ownLimit(header http.Header) bool {
	for name := range header {
		if strings.HasPrefix(name, "X-Ratelimit-") {
			return true
		}
	}
	return false
}

// bucket is the key of a rate limit: the method and the path, in which all ids but the channel's are
// replaced.
func bucket(method, path string) string {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for i := 2; i < len(parts); i++ {
		if parts[i-1] == "reactions" || IsID(parts[i]) {
			parts[i] = "*"
		}
	}
	return method + " " + strings.Join(parts, "/")
}

func headerSeconds(header http.Header, name string) time.Duration {
	n, err := strconv.ParseFloat(header.Get(name), 64)
	if err != nil {
		return 0
	}
	return seconds(n)
}

// seconds converts a duration of the API, which is never longer than an hour.
func seconds(n float64) time.Duration {
	return time.Duration(min(max(n, 0), time.Hour.Seconds()) * float64(time.Second))
}
