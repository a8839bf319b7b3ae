package gateway

import (
	"context"
	"maps"
	"time"

	"arizuko/pkg/store"
)

const (
	// sweepEvery is how often open work is looked for among all rows, so that none
	// waits for a poke that never comes.
	sweepEvery = time.Minute
	// sweepsPerRestart is how many sweeps go by until what is known about waiting chats
	// is derived again too: that asks routd about all their rows.
	sweepsPerRestart = 10
	// movesEvery bounds how often moved chats are looked for after a poke.
	movesEvery = time.Second
)

// sweeper finds open work among the rows.
type sweeper struct {
	cursor  int64 // as it is stored
	poked   bool  // a poke came that may have been for something else than a row
	pokedAt time.Time
	count   int
	moves   map[string]string
	moving  map[string]bool
	looked  time.Time // when moves were read
	unread  bool      // a poke has come since, which may have been about a move

	parkedUnread bool      // a poke has come that may have been about a request
	parkedAt     time.Time // when chats with parked rows may be read again
}

// catchUp finds the chats with undecided rows. Rows that arrive from now on are
// found after the cursor.
func (g *Gateway) catchUp(ctx context.Context) error {
	for ctx.Err() == nil {
		if g.readBacklog(ctx) == nil {
			return nil
		}
		pause(ctx, dbRetryDelay)
	}
	return nil
}

// readBacklog sets the cursor to its stored value, or to the end of a shorter
// database, and finds the chats with undecided rows. They are taken up after those
// with new rows.
func (g *Gateway) readBacklog(ctx context.Context) error {
	cursor, err := g.st.Cursor(ctx)
	if err != nil {
		return g.reads.Note(ctx, err)
	}
	last, err := g.st.LastMessageID(ctx)
	if err != nil {
		return g.reads.Note(ctx, err)
	}
	g.cursor, g.sweeper.cursor = min(cursor, last), cursor
	g.sweeper.moves, g.sweeper.moving, err = g.st.ChatMoves(ctx)
	if err != nil {
		return g.reads.Note(ctx, err)
	}
	if err := g.readParked(ctx, true); err != nil {
		return err
	}
	return g.enqueueUndecided(ctx)
}

// sweep finds chats with undecided rows of which nothing is known, and from time to
// time derives the state of the others again.
func (g *Gateway) sweep(ctx context.Context) {
	g.storeCursor(ctx)
	g.sweeper.count++
	g.rates.prune(g.now())
	if g.sweeper.count%sweepsPerRestart == 0 {
		for _, c := range g.chats {
			if !c.queued && c.asked == nil && !g.waiting[c] && c.failures == 0 && !c.alone {
				g.restart(c)
				g.enqueueLater(c)
			}
		}
	}
	_ = g.readParked(ctx, g.sweeper.count%sweepsPerRestart == 0)
	g.requests.prune(g.now())
	_ = g.enqueueUndecided(ctx)
	g.lookForMoves(ctx)
}

// storeCursor stores the cursor. It is only a hint, so it costs no message a write.
func (g *Gateway) storeCursor(ctx context.Context) {
	if cursor := g.cursor; cursor != g.sweeper.cursor {
		if err := g.st.Write(ctx, func(tx *store.Tx) error { return tx.SetCursor(cursor) }); err == nil {
			g.sweeper.cursor = cursor
		}
	}
}

func (g *Gateway) enqueueUndecided(ctx context.Context) error {
	jids, err := g.st.UndecidedChats(ctx)
	if g.reads.Note(ctx, err) != nil {
		return err
	}
	for _, jid := range jids {
		if g.chats[jid] == nil {
			g.enqueueLater(g.chat(jid))
		}
	}
	return nil
}

// afterPoke looks for what else than a new row a poke may have been about: routes, a
// chat that was moved, or a request that was decided.
func (g *Gateway) afterPoke(ctx context.Context) {
	g.sweeper.poked, g.sweeper.unread, g.sweeper.parkedUnread = false, true, true
	if !g.versionAt.After(g.sweeper.pokedAt) {
		g.checkRoutes(ctx)
	}
	g.checkMoves(ctx)
	g.checkParked(ctx)
}

// checkMoves looks for moved chats if a poke asks for it.
func (g *Gateway) checkMoves(ctx context.Context) {
	if g.untilMoves() == 0 {
		g.lookForMoves(ctx)
	}
}

// untilMoves returns the time until moved chats are looked for, an hour if no poke asks
// for it.
func (g *Gateway) untilMoves() time.Duration {
	if !g.sweeper.unread {
		return time.Hour
	}
	return max(movesEvery-time.Since(g.sweeper.looked), 0)
}

// lookForMoves reads the rows of chats again that were moved: they keep their ids,
// which the cursor has passed.
func (g *Gateway) lookForMoves(ctx context.Context) {
	g.sweeper.looked = time.Now()
	moves, moving, err := g.st.ChatMoves(ctx)
	if g.reads.Note(ctx, err) != nil {
		return
	}
	for from, to := range moves {
		if g.sweeper.moves[from] == to && !moving[from] && !g.sweeper.moving[from] {
			continue
		}
		for _, jid := range []string{from, to} {
			c := g.chat(jid)
			g.restart(c)
			g.enqueueLater(c)
		}
	}
	g.sweeper.moves, g.sweeper.moving, g.sweeper.unread = maps.Clone(moves), moving, false
}
