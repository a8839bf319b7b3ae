package slack

import (
	"slices"
	"time"
)

// Slack takes one post a second in a conversation, and a short burst beyond that, whose length it
// does not tell.
const (
	burst  = 3
	second = time.Second
	longer = 10 * time.Second
)

// rates remembers when posts were accepted. The server's lock guards it.
type rates struct{ channels map[string][]time.Time }

func newRates() *rates { return &rates{channels: map[string][]time.Time{}} }

// wait is for how many seconds nothing more may be posted to a conversation, 0 for none.
func (r *rates) wait(channel string, now time.Time) int {
	var longest time.Duration
	sent := r.channels[channel]
	for _, window := range []time.Duration{second, longer} {
		if limit := burst + int(window/second); len(sent) >= limit {
			longest = max(longest, sent[len(sent)-limit].Add(window).Sub(now))
		}
	}
	if longest <= 0 {
		return 0
	}
	return int((longest + second - 1) / second)
}

// note counts a post that was accepted.
func (r *rates) note(channel string, now time.Time) {
	old := func(at time.Time) bool { return now.Sub(at) > longer }
	r.channels[channel] = append(slices.DeleteFunc(r.channels[channel], old), now)
}
