package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/events"
	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
)

// permissions are those that the invitation asks for, and their names in Discord's settings.
func permissions() map[int64]string {
	return map[int64]string{
		1 << 6: "Add Reactions", 1 << 10: "View Channels", 1 << 11: "Send Messages", 1 << 14: "Embed Links",
		1 << 15: "Attach Files",
		1 << 16: "Read Message History", 1 << 18: "Use External Emoji", 1 << 35: "Create Public Threads",
		1 << 38: "Send Messages in Threads", 1 << 49: "Create Polls",
	}
}

// maxGuilds is how many guilds that lack permissions are named.
const maxGuilds = 5

// check prints the problems that keep discd from working, or from receiving some events.
func check(ctx context.Context, cfg Config, out io.Writer) error {
	base := adapter.NewCallClient()
	defer base.CloseIdleConnections()
	api := discordapi.NewClient(string(cfg.APIURL), cfg.Token, apiCheck(cfg).Client(base))
	me, err := api.Me(ctx)
	if err != nil {
		if discordapi.TokenRefused(err) {
			return &daemon.ExitError{Code: daemon.ExitRefused, Err: events.ConnectionError(err)}
		}
		return refusal(err)
	}
	fmt.Fprintf(out, "connects as: %s (%s)\n", me.Username, me.ID)
	app, err := api.Application(ctx)
	if err != nil {
		return refusal(err)
	}
	settings := "https://discord.com/developers/applications/" + app.ID
	if !app.HearsMembers() {
		fmt.Fprintf(out, "joins and leaves of members are not received: the Server Members Intent is "+
			"off;\n  switch it on at %s/bot\n", settings)
	}
	if app.CommandsURL != "" {
		fmt.Fprintf(out, "commands are not received, they go to %s:\n  remove the Interactions Endpoint URL at "+
			"%s/information\n", app.CommandsURL, settings)
	}
	if app.CodeGrant {
		fmt.Fprintf(out, "the bot cannot be added to guilds: switch off Requires OAuth2 Code Grant at %s/bot\n",
			settings)
	}
	if err := checkGuilds(ctx, api, app.ID, out); err != nil {
		return refusal(err)
	}
	if err := checkGateway(ctx, api, cfg); err != nil {
		return refusal(err)
	}
	if !app.ReadsContent() {
		return &daemon.ExitError{Code: daemon.ExitFailure, Err: fmt.Errorf("%s: %s/bot", events.ContentOff, settings)}
	}
	return nil
}

// apiCheck tells Discord's API from other servers. Discord answers a path that it does not have with 404 and no code of
// its own.
func apiCheck(cfg Config) adapter.APICheck {
	return adapter.APICheck{
		API: "Discord's API", Variable: "DISCORD_API_URL", URL: cfg.APIURL,
		Valid: func(call string, status int, answer any) bool {
			object, _ := answer.(map[string]any)
			if status != http.StatusOK {
				code, coded := object["code"].(float64)
				_, explained := object["message"].(string)
				return coded && explained && (status != http.StatusNotFound || code != 0)
			}
			_, list := answer.([]any)
			_, identified := object["id"].(string)
			_, address := object["url"].(string)
			return map[string]bool{"@me": identified, "guilds": list, "bot": address}[call]
		},
	}
}

// refusal adds advice for operators to the error of a call that the API refused.
func refusal(err error) error {
	var refused *discordapi.Error
	if !errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("%w: look at DISCORD_BOT_TOKEN, and whether the server at DISCORD_API_URL is Discord", err)
}

// checkGuilds prints how many guilds the bot is in, how to add it to one, and which permissions it lacks in them.
func checkGuilds(ctx context.Context, api *discordapi.Client, app string, out io.Writer) error {
	var guilds []struct {
		Name string `json:"name"`
		// of the bot, before the changes of channels: bits in decimal, as a string
		Permissions json.RawMessage `json:"permissions"`
	}
	if err := api.Call(ctx, http.MethodGet, "users/@me/guilds", nil, &guilds); err != nil {
		return err
	}
	all := permissions()
	var wanted int64
	for bit := range all {
		wanted |= bit
	}
	invitation := fmt.Sprintf("https://discord.com/oauth2/authorize?client_id=%s&scope=bot+applications.commands&permissions=%d", app, wanted)
	fmt.Fprintf(out, "is in %d guilds; an administrator of a guild can add it:\n  %s\n", len(guilds), invitation)
	named := 0
	for _, guild := range guilds {
		given, err := strconv.ParseInt(strings.Trim(string(guild.Permissions), `"`), 10, 64)
		if err != nil || given&discordapi.Administrator != 0 || given&wanted == wanted {
			continue // other servers may not say it
		}
		if named++; named <= maxGuilds {
			var lacking []string
			for bit, name := range all {
				if given&bit == 0 {
					lacking = append(lacking, name)
				}
			}
			slices.Sort(lacking)
			fmt.Fprintf(out, "in %q it lacks %s: give them to its role, or open the link above again\n", guild.Name,
				strings.Join(lacking, ", "))
		}
	}
	if named > maxGuilds {
		fmt.Fprintf(out, "in %d more guilds it lacks some, too\n", named-maxGuilds)
	}
	return nil
}

// checkGateway connects to the gateway, without beginning a session.
func checkGateway(ctx context.Context, api *discordapi.Client, cfg Config) error {
	at, err := api.Gateway(ctx)
	if err != nil {
		return err
	}
	if err := events.NewGateway(cfg.Token).Greeted(ctx, at.URL); err != nil {
		return fmt.Errorf("%s answers, but its gateway does not: %w: look at DISCORD_API_URL, and at proxies and "+
			"firewalls between", cfg.APIURL, err)
	}
	if at.Left == 0 {
		return fmt.Errorf("the bot has connected too often: Discord lets it connect again in %s", at.Till)
	}
	return nil
}
