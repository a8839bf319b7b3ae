package outbound

import (
	"context"
	"sync"
	"time"

	"arizuko/teled/internal/telegramapi"
)

const (
	// forumFor is how long it is remembered whether a group has topics, which its administrators may change,
	// and maxForums for how many groups.
	forumFor  = 10 * time.Minute
	maxForums = 1000
	// unknownForumFor is how long a group that cannot be asked counts as one without topics.
	unknownForumFor = time.Minute
)

// forums remembers which groups have topics. The zero value is ready.
type forums struct {
	mu    sync.Mutex
	known map[int64]forum
}

type forum struct {
	is    bool
	until time.Time
}

// isForum reports whether a supergroup has topics. One that cannot be asked counts as one without.
func (s *Sender) isForum(ctx context.Context, chat int64) bool {
	now := s.Now()
	s.forums.mu.Lock()
	known, found := s.forums.known[chat]
	s.forums.mu.Unlock()
	if found && known.until.After(now) {
		return known.is
	}
	var c telegramapi.Chat
	remembered := forumFor
	if err := s.API.Call(ctx, "getChat", telegramapi.Params{"chat_id": chat}, &c); err != nil {
		if ctx.Err() != nil {
			return false
		}
		c.IsForum, remembered = false, unknownForumFor
	}
	s.forums.mu.Lock()
	defer s.forums.mu.Unlock()
	if s.forums.known == nil || len(s.forums.known) >= maxForums {
		s.forums.known = map[int64]forum{}
	}
	s.forums.known[chat] = forum{c.IsForum, now.Add(remembered)}
	return c.IsForum
}
