package events

import (
	"context"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/inbound"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// registerCommands registers the application's commands, until that is done, Discord refuses it or ctx ends. Discord takes only
// some at once: those that are there already are not sent again. What is left to do goes on with the next connection.
func (l *Listener) registerCommands(ctx context.Context, s *adapter.Shell) {
	for delay := firstReadDelay; ; delay = min(2*delay, maxReadDelay) {
		err := l.api.RegisterCommands(ctx, l.application, inbound.Commands())
		switch {
		case err == nil:
			l.application = ""
			return
		case ctx.Err() != nil:
			return
		}
		f := discordapi.Failure(err)
		wait := max(f.After, delay)
		switch f.Class {
		case msg.Rate:
			s.Log.Debug("registering commands has to wait", "wait", wait, "err", err)
		case msg.Permanent:
			s.Log.Warn("registering commands failed; the next connection retries", "err", err)
			return
		default:
			s.Log.Warn("registering commands failed; retrying", "wait", wait, "err", err)
		}
		adapter.Pause(ctx, wait)
	}
}
