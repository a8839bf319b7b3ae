package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	"arizuko/teled/internal/telegramapi"
)

// rivalTimeout is how long check waits for an update: another program that polls ends that wait by its next poll.
const rivalTimeout = 3 * time.Second

// check prints the problems that keep teled from working, or from receiving some updates.
func check(ctx context.Context, cfg Config, out io.Writer) error {
	base := adapter.NewCallClient()
	defer base.CloseIdleConnections()
	api := telegramapi.NewClient(string(cfg.APIURL), cfg.Token, apiCheck(cfg).Client(base))
	var me telegramapi.User
	if err := api.Call(ctx, "getMe", nil, &me); err != nil {
		if telegramapi.TokenRefused(err) {
			return &daemon.ExitError{Code: daemon.ExitRefused, Err: telegramapi.ConnectionError(err)}
		}
		return refusal(err)
	}
	fmt.Fprintf(out, "connects as: @%s (%d)\n", me.Username, me.ID)
	if !me.CanReadAllGroupMessages {
		fmt.Fprintln(out, "privacy mode is on: in groups the bot receives only commands, mentions and replies;\n"+
			"  to receive everything send /setprivacy to @BotFather, choose Disable, and add the bot to its "+
			"groups again,\n  or make it an administrator there")
	}
	if !me.CanJoinGroups {
		fmt.Fprintln(out, "the bot cannot be added to groups: send /setjoingroups to @BotFather to change that")
	}
	fmt.Fprintln(out, "anyone on Telegram may write to the bot: its access list in @BotFather keeps others "+
		"away before they reach this machine")
	if err := checkWebhook(ctx, api, cfg, out); err != nil {
		return err
	}
	return checkRival(ctx, api, cfg, out)
}

// apiCheck tells the Bot API from other servers.
func apiCheck(cfg Config) adapter.APICheck {
	return adapter.APICheck{
		API: "the Bot API", Variable: "TELEGRAM_API_URL", URL: cfg.APIURL,
		Valid: func(call string, _ int, answer any) bool {
			object, _ := answer.(map[string]any)
			ok, _ := object["ok"].(bool)
			result, done := object["result"]
			_, refused := object["error_code"].(float64)
			user, _ := result.(map[string]any)
			_, identified := user["id"].(float64)
			return !ok && refused || ok && done && (call != "getMe" || identified)
		},
	}
}

// refusal adds advice for operators to the error of a call that the API refused.
func refusal(err error) error {
	var refused *telegramapi.Error
	if !errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("%w: look at TELEGRAM_BOT_TOKEN, and whether the server at TELEGRAM_API_URL is a current Bot API",
		err)
}

// checkWebhook looks for a webhook, which receives the updates in place of teled.
func checkWebhook(ctx context.Context, api *telegramapi.Client, cfg Config, out io.Writer) error {
	var hook struct {
		URL     string `json:"url"`
		Pending int    `json:"pending_update_count"`
	}
	if err := api.Call(ctx, "getWebhookInfo", nil, &hook); err != nil {
		return refusal(err)
	}
	if hook.URL != "" {
		return &daemon.ExitError{Code: daemon.ExitFailure, Err: fmt.Errorf(
			"a webhook is set and updates go to %s: open %s/bot<token>/deleteWebhook once", hook.URL, cfg.APIURL)}
	}
	if hook.Pending > 0 {
		fmt.Fprintf(out, "%d updates wait for teled\n", hook.Pending)
	}
	return nil
}

// checkRival looks for another program that reads the bot's updates. It does not while teled runs itself, which it
// would disturb. The poll confirms no update.
func checkRival(ctx context.Context, api *telegramapi.Client, cfg Config, out io.Writer) error {
	if daemon.Running(cfg.Base, program().Identity(cfg).Daemon) {
		fmt.Fprintln(out, "teled runs: not checked whether another program reads this bot's updates, "+
			"its log would name that")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rivalTimeout+adapter.ConnectTimeout)
	defer cancel()
	err := api.Call(ctx, "getUpdates", telegramapi.Params{"limit": int64(1),
		"timeout": int64(rivalTimeout / time.Second)}, nil)
	if err != nil {
		return telegramapi.ConnectionError(err)
	}
	return nil
}
