package outbound

import (
	"context"
	"time"

	"arizuko/teled/internal/telegramapi"
)

const (
	// forumFor is how long it is remembered whether a group has topics, which its administrators may change.
	forumFor = 10 * time.Minute
	// unknownForumFor is how long a group that cannot be asked counts as one without topics.
	unknownForumFor = time.Minute
)

// forum is whether a group has topics, as far as that is known.
type forum struct {
	is    bool
	until time.Time
}

// isForum reports whether a supergroup has topics. One that cannot be asked counts as one without.
func (s *Sender) isForum(ctx context.Context, chat int64) bool {
	now := s.Now()
	if known := s.forums.Get(chat); known.until.After(now) {
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
	s.forums.Put(chat, forum{c.IsForum, now.Add(remembered)})
	return c.IsForum
}
