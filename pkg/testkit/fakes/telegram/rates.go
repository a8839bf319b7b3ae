package telegram

import (
	"strings"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// The documented rates: one message a second in a chat, and short bursts, whose length is not
// documented; twenty a minute in a group; thirty a second overall.
const (
	burst       = 3
	inWindow    = burst + int(window/time.Second)
	perChat     = burst + int(chatWindow/time.Second)
	perGroup    = 20
	overall     = 30
	groupWindow = time.Minute
	chatWindow  = 10 * time.Second
	window      = time.Second
)

// rates holds the times of accepted messages and edits. No rates are documented for edits, so they count as much as
// messages. The server's lock guards it.
type rates struct {
	all   fakeserver.Window
	chats map[int64]fakeserver.Window
}

func newRates() *rates { return &rates{chats: map[int64]fakeserver.Window{}} }

// wait is how many seconds no more messages may be sent to a chat; 0 if one may be sent now.
func (r *rates) wait(chat int64, now time.Time) int {
	sent := r.chats[chat]
	wait := max(r.all.Wait(overall, window, now), sent.Wait(inWindow, window, now), sent.Wait(perChat, chatWindow, now))
	if chat < 0 {
		wait = max(wait, sent.Wait(perGroup, groupWindow, now))
	}
	return fakeserver.Seconds(wait)
}

// floodWait is how many seconds a call is too early; 0 if it is allowed. A flood of the whole account refuses
// whatever acts.
func (s *Server) floodWait(m method, chat int64) int {
	now := time.Now()
	if acts := !strings.HasPrefix(m.name, "get"); acts && s.flooded.After(now) {
		return fakeserver.Seconds(s.flooded.Sub(now))
	}
	if s.rates == nil || !m.sends {
		return 0
	}
	return s.rates.wait(chat, now)
}

// Flood refuses all that the bot does, in every chat, for a while: only reading goes on.
func (s *Server) Flood(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flooded = time.Now().Add(d)
}

// note counts n accepted messages, or one call that changes one.
func (r *rates) note(chat int64, n int, now time.Time) {
	r.all = r.all.Since(groupWindow, now)
	r.chats[chat] = r.chats[chat].Since(groupWindow, now)
	for range n {
		r.all = append(r.all, now)
		r.chats[chat] = append(r.chats[chat], now)
	}
}
