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

// The tiers of methods, in calls a minute, of which Slack documents the least that it allows. More are
// allowed in a short burst, whose length is not documented.
const (
	tier2   = 20
	tier3   = 50
	tier4   = 100
	special = 600 // "hundreds"
	// tierBurst is allowed above a tier in a minute.
	tierBurst = 5
)

// rates holds the times of accepted posts and of calls. The server's lock guards it.
type rates struct {
	channels map[string]fakeserver.Window
	calls    map[string]fakeserver.Window // by token and method
}

func newRates() *rates {
	return &rates{channels: map[string]fakeserver.Window{}, calls: map[string]fakeserver.Window{}}
}

// call counts a call of a method of a tier by a token, or returns in how many seconds it is allowed.
func (r *rates) call(key string, tier int, now time.Time) (wait int) {
	if tier == 0 {
		return 0
	}
	made := r.calls[key].Since(time.Minute, now)
	if wait = fakeserver.Seconds(made.Wait(tier+tierBurst, time.Minute, now)); wait == 0 {
		made = append(made, now)
	}
	r.calls[key] = made
	return wait
}

// wait is how many seconds no more may be posted to a conversation; 0 if a post is allowed now.
func (r *rates) wait(channel string, now time.Time) int {
	sent := r.channels[channel]
	return fakeserver.Seconds(max(sent.Wait(burst+1, second, now), sent.Wait(burst+int(longer/second), longer, now)))
}

// note counts an accepted post.
func (r *rates) note(channel string, now time.Time) {
	r.channels[channel] = append(r.channels[channel].Since(longer, now), now)
}

// Flood refuses all calls of a method for a while, in every conversation: such limits hold for an app in a workspace.
func (s *Server) Flood(method string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.floods[method] = time.Now().Add(d)
}
