package events

import (
	"context"
	"strconv"
	"sync"

	"arizuko/pkg/store"
	"arizuko/slakd/internal/inbound"
)

const (
	// joinedPrefix begins the keys of the times of the bot's own joins, which the id of the conversation ends.
	joinedPrefix = "joined "
	// maxJoinSkew is how far the times of the event and of the message of one join may differ, in seconds.
	maxJoinSkew = 60
)

// joins gives the bot's join of a conversation one time, and so one id, whether its event comes or its message is
// read in the history: Slack gives these two different times. It is safe for concurrent use.
type joins struct {
	store  *store.Store
	daemon string

	mu sync.Mutex
}

// unify sets the time of a join of the bot to the one it was first seen with.
func (j *joins) unify(ctx context.Context, m *inbound.Member, me inbound.Self) {
	if m.Left || m.User != me.User {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	key := joinedPrefix + m.Channel
	// If one of these fails, there may be a second row of the join.
	known, _ := j.store.DaemonCursor(ctx, j.daemon, key)
	if isNear(known, m.EventTS) {
		m.EventTS = known
		return
	}
	_ = j.store.Write(ctx, func(tx *store.Tx) error { return tx.PutCursor(j.daemon, key, m.EventTS) })
}

func isNear(one, other string) bool {
	a, bad := strconv.ParseFloat(one, 64)
	b, odd := strconv.ParseFloat(other, 64)
	return bad == nil && odd == nil && a-b <= maxJoinSkew && b-a <= maxJoinSkew
}
