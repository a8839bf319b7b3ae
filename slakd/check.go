package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
	"arizuko/slakd/internal/events"
	"arizuko/slakd/internal/slackapi"
)

// check prints the problems that keep slakd from working, or from receiving some events.
func check(ctx context.Context, cfg Config, out io.Writer) error {
	base := adapter.NewCallClient()
	defer base.CloseIdleConnections()
	api := slackapi.NewClient(string(cfg.APIURL), cfg.BotToken, cfg.AppToken, apiCheck(cfg).Client(base))
	me, err := api.AuthTestContext(ctx)
	if err != nil {
		return unusable("auth.test", slackapi.ConnectionError(err, slackapi.BotToken))
	}
	fmt.Fprintf(out, "connects as: @%s (%s) in %s\n", me.User, me.UserID, me.Team)
	if me.BotID == "" {
		return &daemon.ExitError{Code: daemon.ExitRefused,
			Err: errors.New("SLACK_BOT_TOKEN is a user token; the bot's begins with xoxb-")}
	}
	if strings.HasPrefix(cfg.BotToken, "xoxe") {
		fmt.Fprintln(out, "SLACK_BOT_TOKEN expires within 12 hours, since Token Rotation is on, "+
			"which cannot be undone: make an app without it")
	}
	lacking := checkScopes(me.Header, out)
	switch invited, err := api.InSomeChannel(ctx); {
	case err != nil:
		fmt.Fprintf(out, "cannot tell which channels it is in: %v\n", slackapi.Explain(err))
	case !invited:
		fmt.Fprintf(out, "it is in no channel: write /invite @%s in one; until then only direct messages reach it\n",
			me.User)
	}
	fmt.Fprint(out, settingsHint)
	if !cfg.socketMode() {
		fmt.Fprintln(out, "events are posted: give the URL of /slack/events under Event Subscriptions, "+
			"under Interactivity & Shortcuts, and for the slash command")
		return missing(lacking)
	}
	if err := checkSocket(ctx, api, cfg, out); err != nil {
		return err
	}
	return missing(lacking)
}

// checkSocket opens a connection of Socket Mode, and looks for other programs that have one. While slakd runs itself,
// it only asks where to: Slack would send events on the new one.
func checkSocket(ctx context.Context, api *slackapi.Client, cfg Config, out io.Writer) error {
	_, address, err := api.StartSocketModeContext(ctx)
	switch {
	case err != nil:
		return unusable("apps.connections.open", slackapi.ConnectionError(err, slackapi.AppToken))
	case daemon.Running(cfg.Base, program().Identity(cfg).Daemon):
		return nil
	}
	open, err := events.CountConnections(ctx, address, adapter.Network{})
	if err != nil {
		return fmt.Errorf("%s answers, but Socket Mode does not: %w: look at SLACK_API_URL, and at proxies and "+
			"firewalls between", cfg.APIURL, err)
	}
	if open > 1 {
		fmt.Fprintf(out, "%s (Slack counts a slakd that was killed for half a minute longer)\n",
			events.Competitors(open-1))
	}
	return nil
}

// apiCheck tells Slack's Web API from other servers. Slack refuses with status 200, too.
func apiCheck(cfg Config) adapter.APICheck {
	return adapter.APICheck{
		API: "Slack's Web API", Variable: "SLACK_API_URL", URL: cfg.APIURL,
		Valid: func(call string, status int, answer any) bool {
			object, _ := answer.(map[string]any)
			ok, _ := object["ok"].(bool)
			if code, _ := object["error"].(string); !ok {
				return status == http.StatusOK && code != ""
			}
			field := map[string]string{"auth.test": "user_id", "apps.connections.open": "url"}[call]
			text, _ := object[field].(string)
			return field == "" || text != ""
		},
	}
}

// checkScopes prints the scopes that the bot's token lacks, and returns them.
func checkScopes(header http.Header, out io.Writer) (lacking []string) {
	const name = "X-OAuth-Scopes"
	if len(header.Values(name)) == 0 {
		fmt.Fprintf(out, "cannot tell which scopes the bot has: the server sends no header %s\n", name)
		return nil
	}
	lacking = slackapi.Missing(header.Get(name))
	for _, scope := range lacking {
		fmt.Fprintf(out, "the scope %s is missing: it is for %s\n", scope, slackapi.Scopes()[scope])
	}
	return lacking
}

// missing is the error of missing scopes.
func missing(scopes []string) error {
	if len(scopes) == 0 {
		return nil
	}
	return fmt.Errorf("the bot lacks %s: add that under OAuth & Permissions of your app at %s, "+
		"and install the app again",
		strings.Join(scopes, ", "), slackapi.AppSettings)
}

// settingsHint names the settings that no token can query.
const settingsHint = "settings that only the app's page shows, in case some events do not arrive:\n" +
	"  Event Subscriptions, Subscribe to bot events: those in deploy/slack/manifest.yaml\n" +
	"  Interactivity & Shortcuts: on, for the buttons of questions and answers\n" +
	"  App Home, Messages Tab: on, with \"Allow users to send Slash commands and messages from the messages tab\"\n"

// unusable is the error of a call that Slack refuses.
func unusable(call string, err error) error {
	var f *adapter.Failure
	if !errors.As(err, &f) {
		return err
	}
	if f.Class == msg.Auth {
		return &daemon.ExitError{Code: daemon.ExitRefused, Err: f.Err}
	}
	return fmt.Errorf("%s: %w", call, f.Err)
}
