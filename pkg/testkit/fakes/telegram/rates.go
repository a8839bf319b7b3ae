package telegram

import (
	"slices"
	"time"
)

// The documented rates: one message a second in a chat, but for short bursts, whose length is not
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

// rates remembers when messages were accepted. The server's lock guards it.
type rates struct {
	all   []time.Time
	chats map[int64][]time.Time
}

func newRates() *rates { return &rates{chats: map[int64][]time.Time{}} }

// wait is for how many seconds nothing more may be sent to a chat, 0 for none.
func (r *rates) wait(chat int64, now time.Time) int {
	var longest time.Duration
	full := func(sent []time.Time, limit int, window time.Duration) {
		if len(sent) >= limit {
			longest = max(longest, sent[len(sent)-limit].Add(window).Sub(now))
		}
	}
	full(r.all, overall, window)
	full(r.chats[chat], inWindow, window)
	full(r.chats[chat], perChat, chatWindow)
	if chat < 0 {
		full(r.chats[chat], perGroup, groupWindow)
	}
	if longest <= 0 {
		return 0
	}
	return int((longest + time.Second - 1) / time.Second)
}

// note counts n messages that were accepted.
func (r *rates) note(chat int64, n int, now time.Time) {
	old := func(at time.Time) bool { return now.Sub(at) > groupWindow }
	r.all = slices.DeleteFunc(r.all, old)
	r.chats[chat] = slices.DeleteFunc(r.chats[chat], old)
	for range n {
		r.all = append(r.all, now)
		r.chats[chat] = append(r.chats[chat], now)
	}
}
