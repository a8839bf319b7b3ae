package gateway

import (
	"context"
	"time"

	"arizuko/pkg/store"
)

// movesEvery bounds how often moved chats are looked for after a poke.
const movesEvery = time.Second

// moves finds chats that were moved.
type moves struct {
	st     *store.Store
	reads  *store.Outage
	waits  *waits
	known  map[string]string // from → to
	moving map[string]bool   // their rows are still being moved
	looked time.Time         // when they were read
	unread bool              // a poke has come since, which may have been about a move
}

// read reads those that the start has found with the rows.
func (m *moves) read(ctx context.Context) (err error) {
	m.known, m.moving, err = m.st.ChatMoves(ctx)
	return m.reads.Note(ctx, err)
}

// check looks for moved chats if a poke asks for it.
func (m *moves) check(ctx context.Context) {
	if m.until() == 0 {
		m.look(ctx)
	}
}

// until returns the time until moved chats are looked for, an hour if no poke asks for it.
func (m *moves) until() time.Duration {
	if !m.unread {
		return time.Hour
	}
	return max(movesEvery-time.Since(m.looked), 0)
}

// look reads the rows of chats again that were moved: they keep their ids, which the cursor has passed.
func (m *moves) look(ctx context.Context) {
	m.looked = time.Now()
	known, moving, err := m.st.ChatMoves(ctx)
	if m.reads.Note(ctx, err) != nil {
		return
	}
	for from, to := range known {
		if m.known[from] == to && !moving[from] && !m.moving[from] {
			continue
		}
		for _, jid := range []string{from, to} {
			c := m.waits.chat(jid)
			m.waits.restart(c)
			m.waits.addLater(c)
		}
	}
	m.known, m.moving, m.unread = known, moving, false
}
