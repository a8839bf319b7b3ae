package slack

import (
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// Slack accepts one post a second in a conversation, and short bursts, whose length is not
// documented.
const (
	burst  = 3
	second = time.Second
	longer = 10 * time.Second
)

// rates holds the times of accepted posts. The server's lock guards it.
type rates struct{ channels map[string]fakeserver.Window }

func newRates() *rates { return &rates{channels: map[string]fakeserver.Window{}} }

// wait is how many seconds no more may be posted to a conversation; 0 if a post is allowed now.
func (r *rates) wait(channel string, now time.Time) int {
	sent := r.channels[channel]
	return fakeserver.Seconds(max(sent.Wait(burst+1, second, now), sent.Wait(burst+int(longer/second), longer, now)))
}

// note counts an accepted post.
func (r *rates) note(channel string, now time.Time) {
	r.channels[channel] = append(r.channels[channel].Since(longer, now), now)
}
