// Slakd is Slack's adapter: it stores what happens there and delivers what is said.
//
//	slakd [serve]          until SIGTERM
//	slakd check | health   what is wrong with the configuration and the app; is it ready
package main

import (
	"context"
	"io"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/adapter"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/store"
	"arizuko/slakd/internal/eventsapi"
	"arizuko/slakd/internal/names"
	"arizuko/slakd/internal/slackapi"
)

const name = "slakd"

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
	s := &slack{api: slackapi.NewClient(string(cfg.APIURL), cfg.BotToken, cfg.AppToken), store: p.Store, data: cfg.Data}
	l := &listener{
		slack: s, names: names.New(s.api.Client, p.Now), sockets: cfg.sockets(), log: p.Log, bots: cfg.Bots, undecoded: undecoded, now: p.Now,
	}
	shell := adapter.New(platform{s, l}, adapter.Options{
		Platform: "slack", Daemon: name, Store: p.Store, Heartbeat: p.Heartbeat, Wake: p.Wake.C(), Poll: cfg.PollInterval,
		Mark: cfg.Resend == adapter.ResendMarked, Pace: pace(), Data: cfg.Data, MediaMax: cfg.MediaMax,
		Redact: config.NewRedactor(append(secrets, p.Secret)...).String, Log: p.Log, Metrics: p.Metrics, Now: p.Now,
	})
	if !l.sockets {
		p.Router.Method(http.MethodPost, "/slack/events", &eventsapi.Handler{Secret: cfg.SigningSecret, Take: l.taking(shell)})
	}
	return p.Run(ctx, shell.Run)
}
