package slack

import (
	"slices"
	"time"
)

// Slack takes one post a second in a conversation, and a short burst beyond that.
const (
	burst  = 3
	refill = time.Second
)

// rates remembers when posts were accepted. The server's lock guards it.
type rates struct{ channels map[string][]time.Time }

func newRates() *rates { return &rates{channels: map[string][]time.Time{}} }

// wait is for how many seconds nothing more may be posted to a conversation, 0 for none.
func (r *rates) wait(channel string, now time.Time) int {
	sent := r.channels[channel]
	if len(sent) < burst {
		return 0
	}
	left := sent[len(sent)-burst].Add(burst * refill).Sub(now)
	if left <= 0 {
		return 0
	}
	return int((left + time.Second - 1) / time.Second)
}

// note counts a post that was accepted.
func (r *rates) note(channel string, now time.Time) {
	old := func(at time.Time) bool { return now.Sub(at) > burst*refill }
	r.channels[channel] = append(slices.DeleteFunc(r.channels[channel], old), now)
}
