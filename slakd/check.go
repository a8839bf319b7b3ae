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
	"arizuko/slakd/internal/slackapi"
)

// check prints what keeps slakd from working, and what it does not receive.
func check(ctx context.Context, cfg Config, out io.Writer) error {
	by := adapter.NewCallClient()
	defer by.CloseIdleConnections()
	if err := probe(ctx, cfg, by); err != nil {
		return err
	}
	api := slackapi.NewClient(string(cfg.APIURL), cfg.BotToken, cfg.AppToken, by)
	me, err := api.AuthTestContext(ctx)
	if err != nil {
		return unusable(&cfg, slackapi.ConnectionError(err, slackapi.BotToken))
	}
	fmt.Fprintf(out, "connects as: @%s (%s) in %s\n", me.User, me.UserID, me.Team)
	if me.BotID == "" {
		return &daemon.ExitError{Code: daemon.ExitRefused, Err: errors.New("SLACK_BOT_TOKEN is a user token; the bot's begins with xoxb-")}
	}
	lacking := checkScopes(me.Header, out)
	switch invited, err := api.InSomeChannel(ctx); {
	case err != nil:
		fmt.Fprintf(out, "cannot tell which channels it is in: %v\n", slackapi.Explain(err))
	case !invited:
		fmt.Fprintf(out, "it is in no channel: write /invite @%s in one; until then only direct messages reach it\n", me.User)
	}
	fmt.Fprint(out, settingsHint)
	if !cfg.socketMode() {
		fmt.Fprintln(out, "events are posted: give the URL of /slack/events under Event Subscriptions, under Interactivity & Shortcuts, and for the slash command")
		return missing(lacking)
	}
	if _, _, err := api.StartSocketModeContext(ctx); err != nil {
		return unusable(&cfg, slackapi.ConnectionError(err, slackapi.AppToken))
	}
	return missing(lacking)
}

// probe checks that the server is Slack's Web API.
func probe(ctx context.Context, cfg Config, by *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(cfg.APIURL)+"/auth.test", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+cfg.BotToken)
	return adapter.Probe{
		API: "Slack's Web API", Variable: "SLACK_API_URL", URL: cfg.APIURL,
		Valid: func(answer map[string]any) bool {
			ok, is := answer["ok"].(bool)
			user, _ := answer["user_id"].(string)
			return is && (!ok || user != "")
		},
	}.Run(ctx, by, req)
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
	return fmt.Errorf("the bot lacks %s: add that under OAuth & Permissions of your app at %s, and install the app again",
		strings.Join(scopes, ", "), slackapi.AppSettings)
}

// settingsHint names the settings that no token can query.
const settingsHint = "settings that only the app's page shows, in case some events do not arrive:\n" +
	"  Event Subscriptions, Subscribe to bot events: those in deploy/slack/manifest.yaml\n" +
	"  Interactivity & Shortcuts: on, for the buttons of questions\n" +
	"  App Home, Messages Tab: on, with \"Allow users to send Slash commands and messages from the messages tab\"\n"

// unusable is the error of a connection that Slack refuses.
func unusable(cfg *Config, err error) error {
	var f *adapter.Failure
	if errors.As(err, &f) && f.Class == msg.Auth {
		return &daemon.ExitError{Code: daemon.ExitRefused, Err: f.Err}
	}
	return fmt.Errorf("%s does not answer: %w", cfg.APIURL, err)
}
