package discordapi

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// bucketsMost is how many buckets are remembered before those are forgotten that are full again.
const bucketsMost = 1000

// buckets knows which calls would be refused because their limit is reached, from what the API
// says with each answer: a bot that asks all the same is shut out after a while. It is safe for
// concurrent use.
type buckets struct {
	now func() time.Time

	mu     sync.Mutex
	until  map[string]time.Time // empty buckets, and when they are full again
	global time.Time            // until when nothing may be called
}

func newBuckets(now func() time.Time) *buckets {
	return &buckets{now: now, until: map[string]time.Time{}}
}

// wait is how long a call would be refused.
func (b *buckets) wait(method, path string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	until := b.until[bucket(method, path)]
	if b.global.After(until) && !strings.HasPrefix(path, "interactions/") { // they have no part in it
		until = b.global
	}
	return until.Sub(b.now())
}

// heed takes in what an answer says of the limits.
func (b *buckets) heed(method, path string, header http.Header, refused *Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	limited := refused != nil && refused.Status == http.StatusTooManyRequests
	switch {
	case limited && (header.Get("X-RateLimit-Global") != "" || header.Get("X-RateLimit-Scope") == "global"):
		b.global = now.Add(refused.RetryAfter)
	case limited:
		b.until[bucket(method, path)] = now.Add(refused.RetryAfter)
	case header.Get("X-RateLimit-Remaining") == "0":
		b.until[bucket(method, path)] = now.Add(headerSeconds(header, "X-RateLimit-Reset-After"))
	}
	if len(b.until) > bucketsMost {
		for key, until := range b.until {
			if !until.After(now) {
				delete(b.until, key)
			}
		}
	}
}

// bucket is what a limit is for: a method and a kind of path, of which only the channel counts by
// its id.
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

// seconds is a time as the API tells it. It says no longer ones than an hour.
func seconds(n float64) time.Duration {
	return time.Duration(min(max(n, 0), time.Hour.Seconds()) * float64(time.Second))
}
