// Fakediscord is a Discord to play with: the API and the gateway for the adapter, and a page at
// / where a person writes to the bot as several people, in private, in channels of a guild, in
// threads and in a forum.
//
//	go run arizuko/pkg/testkit/fakes/cmd/fakediscord [-addr 127.0.0.1:8182] [-token <token>]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/internal/page"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fakediscord:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fakediscord", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8182", "where to listen; this machine only")
	token := flags.String("token", discord.DefaultToken, "the bot's token")
	noContent := flags.Bool("no-content", false, "the privileged intent for the content of messages is switched off")
	rates := flags.Bool("rates", false, "refuse what is sent faster than Discord takes it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := page.Local(*addr); err != nil {
		return err
	}
	options := discord.Options{Token: *token, RateLimits: *rates}
	if *noContent {
		options.Denied = discord.MessageContent
	}
	dc := discord.New(options)
	base, err := dc.StartWith(*addr, newPage(dc))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "export DISCORD_BOT_TOKEN=%s\nexport DISCORD_API_URL=%s\n# write to the bot at %s/\n", *token, base, base)
	<-ctx.Done()
	return dc.Close()
}
