package main

import (
	"context"
	"fmt"
	"io"

	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	"arizuko/teled/internal/telegramapi"
)

// check prints what keeps teled from working, and what it does not receive.
func check(ctx context.Context, cfg Config, out io.Writer) error {
	api := telegramapi.NewClient(string(cfg.APIURL), cfg.Token, adapter.NewCallClient())
	defer api.Close()
	var me telegramapi.User
	if err := api.Call(ctx, "getMe", nil, &me); err != nil {
		if telegramapi.TokenRefused(err) {
			return &daemon.ExitError{Code: daemon.ExitRefused, Err: telegramapi.ConnectionError(err)}
		}
		return fmt.Errorf("%s does not answer: %w", cfg.APIURL, err)
	}
	fmt.Fprintf(out, "connects as: @%s (%d)\n", me.Username, me.ID)
	if !me.CanReadAllGroupMessages {
		fmt.Fprintln(out, "privacy mode is on: in groups the bot receives only commands, mentions and replies;\n"+
			"  to receive everything send /setprivacy to @BotFather, choose Disable, and add the bot to its groups again,\n"+
			"  or make it an administrator there")
	}
	if !me.CanJoinGroups {
		fmt.Fprintln(out, "the bot cannot be added to groups: send /setjoingroups to @BotFather to change that")
	}
	var hook struct {
		URL string `json:"url"`
	}
	if err := api.Call(ctx, "getWebhookInfo", nil, &hook); err != nil {
		return err
	}
	if hook.URL != "" {
		return &daemon.ExitError{Code: daemon.ExitFailure, Err: fmt.Errorf(
			"a webhook is set and updates go to %s: open %s/bot<token>/deleteWebhook once", hook.URL, cfg.APIURL)}
	}
	return nil
}
