// Discd is Discord's adapter: it stores what happens there and delivers what is said.
//
//	discd [serve]          until SIGTERM
//	discd check | health   what is wrong with the configuration and the bot; is it ready
package main

import (
	"context"
	"io"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/gateway"
	"arizuko/discd/internal/history"
	"arizuko/discd/internal/inbound"
	"arizuko/pkg/adapter"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/store"
)

const name = "discd"

func main() {
	os.Exit(program().Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

func program() daemon.Program {
	return daemon.Program{
		Name: name,
		Serve: func(ctx context.Context) error {
			cfg, err := loadConfig()
			if err != nil {
				return err
			}
			return serve(ctx, cfg, os.Stderr)
		},
		Check: check,
		Addr: func() (config.Addr, error) {
			cfg, err := loadConfig()
			return cfg.Addr, err
		},
	}
}

func serve(ctx context.Context, cfg Config, log io.Writer) error {
	secrets := config.Secrets(cfg)
	p, err := daemon.Start(ctx, daemon.Options{
		Name: name, Base: cfg.Base, Addr: cfg.Addr, Secrets: secrets, Log: log, Checkpoint: store.DefaultAutocheckpoint,
	})
	if err != nil {
		return err
	}
	undecoded := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "arizuko_updates_undecoded_total", Help: "Events that could not be read and were passed over.",
	})
	p.Metrics.MustRegister(undecoded)
	gateway.Rebase(string(cfg.APIURL))
	d := &discord{api: discordapi.NewClient(string(cfg.APIURL), cfg.Token), data: cfg.Data, store: p.Store, now: p.Now}
	shell := adapter.New(platform{d, &listener{
		discord: d, log: p.Log, bots: cfg.Bots, undecoded: undecoded,
		gateway: gateway.New(cfg.Token), known: inbound.NewGuilds(), read: history.New(nil),
	}}, adapter.Options{
		Platform: "discord", Daemon: name, Store: p.Store, Heartbeat: p.Heartbeat, Wake: p.Wake.C(), Poll: cfg.PollInterval,
		Mark: cfg.Resend == adapter.ResendMarked, Pace: pace(), Data: cfg.Data, MediaMax: cfg.MediaMax,
		Redact: config.NewRedactor(append(secrets, p.Secret)...).String, Log: p.Log, Metrics: p.Metrics, Now: p.Now,
	})
	return p.Run(ctx, shell.Run)
}
