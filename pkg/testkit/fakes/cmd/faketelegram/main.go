// Faketelegram is a Telegram to play with: a Bot API for the adapter, and a page at / where a
// person writes to the bot as several people, in a private chat, a group and a forum.
//
//	go run arizuko/pkg/testkit/fakes/cmd/faketelegram
//		[-addr 127.0.0.1:8181] [-token <id>:<secret>] [-privacy-off] [-rates]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"arizuko/pkg/testkit/fakes/internal/page"
	"arizuko/pkg/testkit/fakes/telegram"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "faketelegram:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("faketelegram", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8181", "where to listen; this machine only")
	token := flags.String("token", telegram.DefaultToken, "the bot's token")
	privacyOff := flags.Bool("privacy-off", false, "the bot sees all that is said in groups")
	rates := flags.Bool("rates", false, "refuse what is sent faster than Telegram takes it")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if err := page.Local(*addr); err != nil {
		return err
	}
	tg := telegram.New(telegram.Options{Token: *token, PrivacyOff: *privacyOff, RateLimits: *rates})
	base, err := tg.StartWith(*addr, newPage(tg))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "export TELEGRAM_BOT_TOKEN=%s\nexport TELEGRAM_API_URL=%s\n# write to the bot at %s/\n", *token, base, base)
	<-ctx.Done()
	return tg.Close()
}
