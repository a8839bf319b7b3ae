// Onbod connects unknown chats: a chat without a group makes a request, operators approve or reject it.
//
//	onbod [serve]                   until SIGTERM
//	onbod check | health            checks the configuration; reports readiness
//	onbod requests                  lists requests of the running onbod
//	onbod approve CODE [FOLDER]     connects a chat to a group
//	onbod reject CODE [REASON…]     rejects a chat
//	onbod reopen CODE               makes a rejected or expired request pending again
package main

import (
	"context"
	"io"
	"os"

	"arizuko/onbod/internal/api"
	"arizuko/onbod/internal/cli"
	"arizuko/onbod/internal/onboarding"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
)

func main() {
	os.Exit(program().Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

func program() daemon.Program {
	return daemon.Program{
		Name: "onbod",
		Serve: func(ctx context.Context) error {
			cfg, err := loadConfig()
			if err != nil {
				return err
			}
			d, err := start(ctx, cfg, os.Stderr)
			if err != nil {
				return err
			}
			return d.run(ctx)
		},
		Check: check,
		Commands: cli.Commands(func() (*httpx.Client, error) {
			cfg, err := loadConfig()
			if err != nil {
				return nil, err
			}
			return cfg.client()
		}),
	}
}

// onbod is a started process.
type onbod struct {
	*daemon.Process
	onboarding *onboarding.Onboarding
}

// start opens everything; the caller calls run, or Close.
func start(ctx context.Context, cfg Config, log io.Writer) (*onbod, error) {
	p, err := daemon.Start(ctx, daemon.Options{
		Name: "onbod", Base: cfg.Base, Addr: cfg.Addr, Log: log, Checkpoint: store.DefaultAutocheckpoint,
	})
	if err != nil {
		return nil, err
	}
	routd := p.Client("routd", cfg.RoutdURL)
	p.Stop.Add("routd client", func(context.Context) error { routd.HTTP.CloseIdleConnections(); return nil })
	o := onboarding.New(onboarding.Config{
		Operators: cfg.Operators, TTL: cfg.TTL, MaxPerSender: cfg.MaxPerSender, MaxPerHour: cfg.MaxPerHour,
		MaxPending: cfg.MaxPending,
		Groups:     cfg.GroupsDir(), Now: p.Now,
	}, p.Store, onboarding.RoutdClient{Client: routd}, p.Log, p.Metrics,
		func(notes ...string) { p.Ready.Note("requests", notes...) })
	a := api.API{Onboarding: o, Store: p.Store, TTL: cfg.TTL}
	a.Mount(p.Router.With(httpx.Bearer(p.Secret)))
	p.Heartbeat.Report(daemon.Connected, "")
	return &onbod{p, o}, nil
}

func (d *onbod) run(ctx context.Context) error {
	return d.Run(ctx, func(ctx context.Context) error { return d.onboarding.Run(ctx, d.Wake.C()) })
}
