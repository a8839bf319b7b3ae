package gateway

import (
	"context"
	"time"

	"arizuko/gated/internal/rows"
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
	poked   bool // a poke came that may have been for something else than a row
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

// readBacklog sets the cursor to the last row, and finds the chats with undecided rows. They are taken up after those
// with new rows.
func (g *Gateway) readBacklog(ctx context.Context) (err error) {
	if g.cursor, err = g.st.LastMessageID(ctx); err != nil {
		return g.reads.Note(ctx, err)
	}
	if err := g.outside.look(ctx, true); err != nil {
		return err
	}
	return g.enqueueUndecided(ctx)
}

// sweep finds chats with undecided rows of which nothing is known, and from time to
// time derives the state of the others again.
func (g *Gateway) sweep(ctx context.Context) {
	g.sweeper.count++
	g.rates.prune(g.now())
	again := g.sweeper.count%sweepsPerRestart == 0
	if again {
		g.waits.restartSettled()
	}
	_ = g.outside.look(ctx, again)
	g.requests.prune(g.now())
	_ = g.enqueueUndecided(ctx)
}

func (g *Gateway) enqueueUndecided(ctx context.Context) error {
	jids, err := rows.UndecidedChats(ctx, g.st.Reader)
	if g.reads.Note(ctx, err) != nil {
		return err
	}
	for _, jid := range jids {
		if g.waits.chats[jid] == nil {
			g.log.woken(g.cursor, jid)
			g.waits.addLater(g.waits.chat(jid))
		}
	}
	return nil
}

// afterPoke looks for other reasons of a poke than a new row: routes, a
// chat that was moved, or a request that was decided.
func (g *Gateway) afterPoke(ctx context.Context) {
	g.sweeper.poked, g.outside.poked = false, true
	if !g.routd.versionAt.After(g.sweeper.pokedAt) {
		g.checkRoutes(ctx)
	}
	g.outside.check(ctx)
}
