package events

import (
	"context"
	"time"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
)

const (
	// startsInterval is how often Discord is asked how many sessions the bot may still begin.
	startsInterval = 10 * time.Minute
	// startsNamed is how long another program is named after it began a session: a session lasts for hours, and nothing
	// shows when it ends.
	startsNamed = 24 * time.Hour
)

const anotherSession = "another program has begun a session with this bot token in the last 24 hours: " +
	"stop it and restart discd, or give it a bot of its own; it gets every event too, and what it does is " +
	"done as this bot"

// sessionStarts finds sessions that another program began with the bot's token: fewer are left of those that Discord
// allows in a day, and discd began none.
type sessionStarts struct {
	own  int64 // that discd had begun, or resumed, at the last look
	left int   // at the last look, -1 if that is not to be compared
}

// look compares the number that is left with the last one. A look shortly after a start of discd's own is not compared
// with: Discord may not have counted that yet.
func (c *sessionStarts) look(left int, own int64) (others bool) {
	quiet := own == c.own
	others = quiet && left < c.left
	c.own, c.left = own, -1
	if quiet {
		c.left = left
	}
	return others
}

// watchStarts names another program that begins a session with the bot's token, until ctx ends.
func watchStarts(ctx context.Context, s *adapter.Shell, api *discordapi.Client, g *Gateway) {
	seen := sessionStarts{own: g.starts.Load(), left: -1}
	for {
		adapter.Pause(ctx, startsInterval)
		if ctx.Err() != nil {
			return
		}
		gateway, err := api.Gateway(ctx)
		if err != nil {
			continue // the next look compares with the last answer
		}
		if seen.look(gateway.Left, g.starts.Load()) {
			s.CompeteFor(startsNamed, anotherSession)
		}
	}
}
