// Fakeslack is a Slack to play with: the Web API and Socket Mode for the adapter, and a page at
// / where a person writes to the bot as several people: directly, in the assistant's pane, in
// channels, and in threads.
//
//	go run arizuko/pkg/testkit/fakes/cmd/fakeslack [-addr 127.0.0.1:8183] [-events <URL>]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"arizuko/pkg/testkit/fakes/internal/page"
	"arizuko/pkg/testkit/fakes/slack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fakeslack:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fakeslack", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8183", "where to listen; this machine only")
	bot := flags.String("bot-token", slack.DefaultBotToken, "the bot's token")
	app := flags.String("app-token", slack.DefaultAppToken, "the app-level token")
	secret := flags.String("signing-secret", slack.DefaultSigningSecret, "what the Events API signs with")
	events := flags.String("events", "", "the URL that the Events API posts to, instead of Socket Mode")
	rates := flags.Bool("rates", false, "refuse what is sent faster than Slack takes it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := page.Local(*addr); err != nil {
		return err
	}
	sl := slack.New(slack.Options{BotToken: *bot, AppToken: *app, SigningSecret: *secret, EventsURL: *events, RateLimits: *rates})
	base, err := sl.StartWith(*addr, newPage(sl))
	if err != nil {
		return err
	}
	if *events != "" {
		*app = "" // without one the adapter takes the Events API
	}
	fmt.Fprintf(out, "export SLACK_BOT_TOKEN=%s\nexport SLACK_APP_TOKEN=%s\nexport SLACK_SIGNING_SECRET=%s\nexport SLACK_API_URL=%s/api/\n# write to the bot at %s/\n",
		*bot, *app, *secret, base, base)
	<-ctx.Done()
	return sl.Close()
}
