package gateway

import (
	"context"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/store"
)

const (
	// sweepEvery is how often open work is looked for among all rows, so that none
	// waits for a poke that never comes.
	sweepEvery = time.Minute
	// sweepsPerRestart is how many sweeps go by until the state of waiting chats
	// is derived again too: that asks routd about all their rows.
	sweepsPerRestart = 10
)

// sweeper is kept between looks at all rows.
type sweeper struct {
	cursor  int64 // as it is stored
	poked   bool  // a poke came that may have been for something else than a row
	pokedAt time.Time
	count   int
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
	cursor, err := rows.Cursor(ctx, g.st.Reader)
	if err != nil {
		return g.reads.Note(ctx, err)
	}
	last, err := g.st.LastMessageID(ctx)
	if err != nil {
		return g.reads.Note(ctx, err)
	}
	g.cursor, g.sweeper.cursor = min(cursor, last), cursor
	if err := g.moves.read(ctx); err != nil {
		return err
	}
	if err := g.parked.read(ctx, true); err != nil {
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
	again := g.sweeper.count%sweepsPerRestart == 0
	if again {
		g.waits.restartSettled()
	}
	_ = g.parked.read(ctx, again)
	g.requests.prune(g.now())
	_ = g.enqueueUndecided(ctx)
	g.moves.look(ctx)
}

// storeCursor stores the cursor. It is only a hint, so it costs no message a write.
func (g *Gateway) storeCursor(ctx context.Context) {
	if cursor := g.cursor; cursor != g.sweeper.cursor {
		if err := g.st.Write(ctx, func(tx *store.Tx) error { return rows.SetCursor(tx, cursor) }); err == nil {
			g.sweeper.cursor = cursor
		}
	}
}

func (g *Gateway) enqueueUndecided(ctx context.Context) error {
	jids, err := rows.UndecidedChats(ctx, g.st.Reader)
	if g.reads.Note(ctx, err) != nil {
		return err
	}
	for _, jid := range jids {
		if g.waits.chats[jid] == nil {
			g.waits.addLater(g.waits.chat(jid))
		}
	}
	return nil
}

// afterPoke looks for other reasons of a poke than a new row: routes, a
// chat that was moved, or a request that was decided.
func (g *Gateway) afterPoke(ctx context.Context) {
	g.sweeper.poked, g.moves.unread, g.parked.unread = false, true, true
	if !g.routd.versionAt.After(g.sweeper.pokedAt) {
		g.checkRoutes(ctx)
	}
	g.moves.check(ctx)
	g.parked.check(ctx)
}
