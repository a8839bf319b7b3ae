package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
	"arizuko/slakd/internal/slackapi"
)

// check prints what keeps slakd from working, and what it does not receive.
func check(ctx context.Context, cfg Config, out io.Writer) error {
	api := slackapi.NewClient(string(cfg.APIURL), cfg.BotToken, cfg.AppToken, adapter.NewCallClient())
	defer api.Close()
	me, err := api.AuthTestContext(ctx)
	if err != nil {
		return unusable(&cfg, slackapi.ConnectionError(err, slackapi.BotToken))
	}
	fmt.Fprintf(out, "connects as: @%s (%s) in %s\n", me.User, me.UserID, me.Team)
	if me.BotID == "" {
		return &daemon.ExitError{Code: daemon.ExitRefused, Err: errors.New("SLACK_BOT_TOKEN is a user token; the bot's begins with xoxb-")}
	}
	lacking := slackapi.Missing(me.Header.Get("X-OAuth-Scopes"))
	for _, scope := range lacking {
		fmt.Fprintf(out, "the scope %s is missing: it is for %s\n", scope, slackapi.Scopes()[scope])
	}
	switch invited, err := api.InSomeChannel(ctx); {
	case err != nil:
		fmt.Fprintf(out, "cannot tell which channels it is in: %v\n", slackapi.Explain(err))
	case !invited:
		fmt.Fprintf(out, "it is in no channel: write /invite @%s in one; until then only direct messages reach it\n", me.User)
	}
	fmt.Fprint(out, settingsHint)
	if !cfg.socketMode() {
		fmt.Fprintln(out, "events are posted: give the URL of /slack/events under Event Subscriptions, and for the slash command")
		return missing(lacking)
	}
	if _, _, err := api.StartSocketModeContext(ctx); err != nil {
		return unusable(&cfg, slackapi.ConnectionError(err, slackapi.AppToken))
	}
	return missing(lacking)
}

// missing is the error of missing scopes.
func missing(scopes []string) error {
	if len(scopes) == 0 {
		return nil
	}
	return fmt.Errorf("the bot lacks %s: add that under OAuth & Permissions of your app at %s, and install the app again",
		strings.Join(scopes, ", "), slackapi.AppSettings)
}

// settingsHint names the settings that no token can query.
const settingsHint = "settings that only the app's page shows, in case some events do not arrive:\n" +
	"  Event Subscriptions, Subscribe to bot events: those in deploy/slack/manifest.yaml\n" +
	"  App Home, Messages Tab: on, with \"Allow users to send Slash commands and messages from the messages tab\"\n"

// unusable is the error of a connection that Slack refuses.
func unusable(cfg *Config, err error) error {
	var f *adapter.Failure
	if errors.As(err, &f) && f.Class == msg.Auth {
		return &daemon.ExitError{Code: daemon.ExitRefused, Err: f.Err}
	}
	return fmt.Errorf("%s does not answer: %w", cfg.APIURL, err)
}
