package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/gateway"
	"arizuko/pkg/daemon"
)

// permissions are what the bot asks for when it is invited: to see channels, write, embed links,
// attach files, read the history, react with any emoji, write in threads, and make polls.
const permissions = 1<<10 | 1<<11 | 1<<14 | 1<<15 | 1<<16 | 1<<6 | 1<<18 | 1<<38 | 1<<49

// check tells what would keep discd from working, and what it would not see.
func check(ctx context.Context, out io.Writer) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	api := discordapi.NewClient(string(cfg.APIURL), cfg.Token)
	me, err := api.Me(ctx)
	if err != nil {
		var refused *discordapi.Error
		if errors.As(err, &refused) && refused.Status == http.StatusUnauthorized {
			return &daemon.ExitError{Code: daemon.ExitRefused, Err: broken(err)}
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
		fmt.Fprintf(out, "joins and leaves of others are not seen: the Server Members Intent is off;\n  %s has its switch\n", portal)
	}
	var guilds []discordapi.Guild
	if err := api.Call(ctx, http.MethodGet, "users/@me/guilds", nil, &guilds); err != nil {
		return err
	}
	fmt.Fprintf(out, "is in %d guilds\n", len(guilds))
	if len(guilds) == 0 {
		fmt.Fprintf(out, "  somebody who manages one can add it:\n"+
			"  https://discord.com/oauth2/authorize?client_id=%s&scope=bot+applications.commands&permissions=%d\n", app.ID, permissions)
	}
	if !app.ReadsContent() {
		return &daemon.ExitError{Code: daemon.ExitFailure, Err: fmt.Errorf("%s: %s", gateway.ContentOff, portal)}
	}
	return nil
}
