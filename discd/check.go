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
	by := adapter.NewCallClient()
	defer by.CloseIdleConnections()
	if err := probe(ctx, cfg, by); err != nil {
		return err
	}
	api := discordapi.NewClient(string(cfg.APIURL), cfg.Token, by)
	me, err := api.Me(ctx)
	if err != nil {
		if discordapi.TokenRefused(err) {
			return &daemon.ExitError{Code: daemon.ExitRefused, Err: events.ConnectionError(err)}
		}
		return err
	}
	fmt.Fprintf(out, "connects as: %s (%s)\n", me.Username, me.ID)
	app, err := api.Application(ctx)
	if err != nil {
		return err
	}
	settings := "https://discord.com/developers/applications/" + app.ID
	if !app.HearsMembers() {
		fmt.Fprintf(out, "joins and leaves of members are not received: the Server Members Intent is off;\n  switch it on at %s/bot\n", settings)
	}
	if app.CommandsURL != "" {
		fmt.Fprintf(out, "commands are not received, they go to %s:\n  remove the Interactions Endpoint URL at %s/information\n", app.CommandsURL, settings)
	}
	if err := checkGuilds(ctx, api, app.ID, out); err != nil {
		return err
	}
	if !app.ReadsContent() {
		return &daemon.ExitError{Code: daemon.ExitFailure, Err: fmt.Errorf("%s: %s/bot", events.ContentOff, settings)}
	}
	return nil
}

// probe checks that the server is Discord's API.
func probe(ctx context.Context, cfg Config, by *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, string(cfg.APIURL)+"/api/v9/users/@me", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bot "+cfg.Token)
	return adapter.Probe{
		API: "Discord's API", Variable: "DISCORD_API_URL", URL: cfg.APIURL,
		Valid: func(answer map[string]any) bool {
			_, user := answer["id"].(string)
			_, refusal := answer["message"].(string)
			return user || refusal
		},
	}.Run(ctx, by, req)
}

// checkGuilds prints how many guilds the bot is in, and how to add it to one.
func checkGuilds(ctx context.Context, api *discordapi.Client, app string, out io.Writer) error {
	var guilds []discordapi.Guild
	if err := api.Call(ctx, http.MethodGet, "users/@me/guilds", nil, &guilds); err != nil {
		return err
	}
	fmt.Fprintf(out, "is in %d guilds; an administrator of a guild can add it:\n"+
		"  https://discord.com/oauth2/authorize?client_id=%s&scope=bot+applications.commands&permissions=%d\n", len(guilds), app, permissions)
	return nil
}
