package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"arizuko/pkg/daemon"
	"arizuko/teled/internal/telegramapi"
)

// conflict says who else reads the bot's updates.
func conflict(refused *telegramapi.Error) string {
	if strings.Contains(refused.Description, "webhook") {
		return "a webhook is set, so that updates go elsewhere: call deleteWebhook, or run `teled check`"
	}
	return "another program reads this bot's updates: stop it, or give it a bot of its own"
}

// check tells what would keep teled from working, and what it would not see.
func check(ctx context.Context, out io.Writer) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	api := telegramapi.NewClient(string(cfg.APIURL), cfg.Token)
	var me telegramapi.User
	if err := api.Call(ctx, "getMe", nil, &me); err != nil {
		var refused *telegramapi.Error
		if errors.As(err, &refused) && (refused.Code == http.StatusUnauthorized || refused.Code == http.StatusNotFound) {
			return &daemon.ExitError{Code: daemon.ExitRefused, Err: broken(err)}
		}
		return fmt.Errorf("%s does not answer: %w", cfg.APIURL, err)
	}
	fmt.Fprintf(out, "connects as: @%s (%d)\n", me.Username, me.ID)
	if !me.CanReadAllGroupMessages {
		fmt.Fprintln(out, "privacy mode is on: in groups only commands, mentions and replies are seen;\n"+
			"  to see everything send /setprivacy to @BotFather, choose Disable, and add the bot to its groups again,\n"+
			"  or make it an administrator there")
	}
	if !me.CanJoinGroups {
		fmt.Fprintln(out, "it cannot be added to groups: send /setjoingroups to @BotFather to change that")
	}
	var hook struct {
		URL string `json:"url"`
	}
	if err := api.Call(ctx, "getWebhookInfo", nil, &hook); err != nil {
		return err
	}
	if hook.URL != "" {
		return &daemon.ExitError{Code: daemon.ExitFailure, Err: fmt.Errorf(
			"a webhook is set, so that updates go to %s: open %s/bot<token>/deleteWebhook once", hook.URL, cfg.APIURL)}
	}
	return nil
}
