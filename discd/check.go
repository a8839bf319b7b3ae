package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/events"
	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
)

// permissions are those that the invitation asks for: to see channels, send messages, embed links,
// attach files, read the history, react with any emoji, start threads, send messages in them, and make polls.
const permissions = 1<<10 | 1<<11 | 1<<14 | 1<<15 | 1<<16 | 1<<6 | 1<<18 | 1<<35 | 1<<38 | 1<<49

// check prints what keeps discd from working, and what it does not receive.
func check(ctx context.Context, cfg Config, out io.Writer) error {
	api := discordapi.NewClient(string(cfg.APIURL), cfg.Token, adapter.NewCallClient())
	defer api.Close()
	me, err := api.Me(ctx)
	if err != nil {
		if discordapi.TokenRefused(err) {
			return &daemon.ExitError{Code: daemon.ExitRefused, Err: events.ConnectionError(err)}
		}
		return fmt.Errorf("%s does not answer: %w", cfg.APIURL, err)
	}
	fmt.Fprintf(out, "connects as: %s (%s)\n", me.Username, me.ID)
	app, err := api.Application(ctx)
	if err != nil {
		return err
	}
	portal := "https://discord.com/developers/applications/" + app.ID + "/bot"
	if !app.HearsMembers() {
		fmt.Fprintf(out, "joins and leaves of members are not received: the Server Members Intent is off;\n  switch it on at %s\n", portal)
	}
	var guilds []discordapi.Guild
	if err := api.Call(ctx, http.MethodGet, "users/@me/guilds", nil, &guilds); err != nil {
		return err
	}
	fmt.Fprintf(out, "is in %d guilds\n", len(guilds))
	if len(guilds) == 0 {
		fmt.Fprintf(out, "  an administrator of a guild can add it:\n"+
			"  https://discord.com/oauth2/authorize?client_id=%s&scope=bot+applications.commands&permissions=%d\n", app.ID, permissions)
	}
	if !app.ReadsContent() {
		return &daemon.ExitError{Code: daemon.ExitFailure, Err: fmt.Errorf("%s: %s", events.ContentOff, portal)}
	}
	return nil
}
