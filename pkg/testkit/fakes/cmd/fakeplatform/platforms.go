package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/internal/page"
	"arizuko/pkg/testkit/fakes/slack"
	"arizuko/pkg/testkit/fakes/telegram"
)

const (
	tokenUsage = "the bot's `token`"
	ratesUsage = "refuse messages that are sent faster than the platform allows"
)

func newTelegram(flags *flag.FlagSet) func() fake {
	token := flags.String("token", telegram.DefaultToken, tokenUsage)
	privacyOff := flags.Bool("privacy-off", false, "the bot receives all messages of groups")
	rates := flags.Bool("rates", false, ratesUsage)
	return func() fake {
		started := int(time.Since(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)) / time.Second)
		tg := telegram.New(telegram.Options{Token: *token, PrivacyOff: *privacyOff, RateLimits: *rates,
			FirstID: started})
		return fake{server: tg, handler: page.Telegram(tg), hasPage: true, env: func(base string) []string {
			return []string{"TELEGRAM_BOT_TOKEN=" + *token, "TELEGRAM_API_URL=" + base}
		}}
	}
}

func newDiscord(flags *flag.FlagSet) func() fake {
	token := flags.String("token", discord.DefaultToken, tokenUsage)
	noContent := flags.Bool("no-content", false, "the privileged intent for the content of messages is off")
	rates := flags.Bool("rates", false, ratesUsage)
	return func() fake {
		options := discord.Options{Token: *token, RateLimits: *rates}
		if *noContent {
			options.Denied = discord.MessageContent
		}
		dc := discord.New(options)
		return fake{server: dc, handler: page.Discord(dc), hasPage: true, env: func(base string) []string {
			return []string{"DISCORD_BOT_TOKEN=" + *token, "DISCORD_API_URL=" + base}
		}}
	}
}

func newSlack(flags *flag.FlagSet) func() fake {
	bot := flags.String("bot-token", slack.DefaultBotToken, tokenUsage)
	app := flags.String("app-token", slack.DefaultAppToken, "the app-level `token`")
	secret := flags.String("signing-secret", slack.DefaultSigningSecret, "the `secret` that the Events API signs with")
	events := flags.String("events", "", "the `URL` that the Events API posts to, instead of Socket Mode")
	rates := flags.Bool("rates", false, ratesUsage)
	return func() fake {
		sl := slack.New(slack.Options{BotToken: *bot, AppToken: *app, SigningSecret: *secret, EventsURL: *events,
			RateLimits: *rates})
		return fake{server: sl, handler: page.Slack(sl), hasPage: true, env: func(base string) []string {
			app := *app
			if *events != "" {
				app = "" // without an app token the adapter uses the Events API
			}
			return []string{
				"SLACK_BOT_TOKEN=" + *bot, "SLACK_APP_TOKEN=" + app, "SLACK_SIGNING_SECRET=" + *secret,
				"SLACK_API_URL=" + base + "/api/",
			}
		}}
	}
}

func newAnthropic(flags *flag.FlagSet) func() fake {
	key := flags.String("key", anthropic.DefaultKey, "the accepted API `key`")
	return func() fake {
		model := anthropic.New(anthropic.Options{Key: *key})
		return fake{
			server: model, handler: model,
			env: func(base string) []string {
				return []string{"ANTHROPIC_API_KEY=" + *key, "ANTHROPIC_BASE_URL=" + base}
			},
			report: func(ctx context.Context, out io.Writer) { reportCalls(ctx, model, out) },
		}
	}
}

// reportCalls prints each call once it is answered, in the order of arrival.
func reportCalls(ctx context.Context, model *anthropic.Server, out io.Writer) {
	shown := 0
	for {
		changed := model.Changed()
		for _, c := range model.Calls()[shown:] {
			if c.Open {
				break
			}
			fmt.Fprintf(out, "# %s %s → %d %q\n", c.At.Format("15:04:05"), c.Method, c.Status, c.Command)
			shown++
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
