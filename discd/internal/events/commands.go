package events

import (
	"context"
	"encoding/json"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/inbound"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// commandMenu are the commands that Discord offers to users.
type commandMenu struct {
	api         *discordapi.Client
	store       *store.Store
	application string // whose commands are to be registered, "" once they are
}

// register registers the application's commands, until that is done, Discord refuses it or ctx ends. Discord
// takes only some at once: those that are there already are not sent again. The next connection
// goes on with the rest.
func (c *commandMenu) register(ctx context.Context, s *adapter.Shell) {
	for delay := firstReadDelay; ; delay = min(2*delay, maxReadDelay) {
		err := c.offer(ctx, s.Daemon)
		switch {
		case err == nil:
			c.application = ""
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

// offer registers the commands, and keeps a record of them: later versions change only those.
func (c *commandMenu) offer(ctx context.Context, daemon string) error {
	const key = "commands"
	kept, err := c.store.DaemonCursor(ctx, daemon, key)
	if err != nil {
		return err
	}
	var offered []discordapi.Command
	_ = json.Unmarshal([]byte(kept), &offered) // nothing before the first time
	if err := c.api.RegisterCommands(ctx, c.application, inbound.Commands(), offered); err != nil {
		return err
	}
	value, err := json.Marshal(inbound.Commands())
	if err != nil || string(value) == kept {
		return err
	}
	return c.store.Write(ctx, func(tx *store.Tx) error { return tx.PutCursor(daemon, key, string(value)) })
}
