package adapter

import (
	"context"
	"io"
	"os"

	"github.com/go-chi/chi/v5"

	"arizuko/pkg/cli"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Config is the configuration of a platform's daemon.
type Config interface {
	Common() Common
}

// Common is the part that the configurations of all adapters have.
type Common struct {
	Base     config.Base
	Settings Settings
	Addr     config.Addr
	Account  Account // of the platform; the first one has no name
	// NeedsPort says that the platform posts its events to Addr.
	NeedsPort bool
}

// Identity has the names that distinguish the daemons of two accounts of a platform.
type Identity struct {
	Platform string // the first part of its chat addresses: "telegram", of a further account "telegram+work"
	Daemon   string // "teled", of a further account "teled+work"
}

// Program is a platform's daemon. C is its configuration.
type Program[C Config] struct {
	Name     string // of the daemon of the first account
	Platform string // the first part of that one's chat addresses
	Pace     Pace
	Load     func() (C, error)
	// Check prints the problems that keep the daemon from working, or from receiving some events.
	Check func(ctx context.Context, cfg C, out io.Writer) error
	// Build makes the sender and the listener. A listener that is a Mounter also serves HTTP.
	Build func(cfg C, p *daemon.Process, as Identity) (Platform, Listener)
}

// Identity is that of the daemon of a configuration's account.
func (p Program[C]) Identity(cfg C) Identity {
	account := string(cfg.Common().Account)
	return Identity{Platform: msg.WithAccount(p.Platform, account), Daemon: msg.WithAccount(p.Name, account)}
}

// Mounter is a Listener to which the platform posts its events.
type Mounter interface {
	Mount(r chi.Router, s *Shell)
}

// Main runs a program with the arguments of the process, and exits.
func Main[C Config](p Program[C]) {
	os.Exit(p.Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// Run interprets a command line and returns the exit code. Its output besides the log may
// contain words of the platform's server, so secrets are redacted there as well.
func (p Program[C]) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	redactor := p.redactor()
	cfg, _ := p.Load() // each command returns its error
	return daemon.Program{
		Name: p.Identity(cfg).Daemon,
		Serve: func(ctx context.Context) error {
			cfg, err := p.Load()
			if err != nil {
				return err
			}
			return p.Serve(ctx, cfg, stderr)
		},
		Check: func(ctx context.Context, out io.Writer) error {
			cfg, err := p.Load()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, CheckTimeout)
			defer cancel()
			return withoutClass(p.Check(ctx, cfg, out))
		},
	}.Run(ctx, args, cli.Safe(stdout, redactor), cli.Safe(stderr, redactor))
}

// withoutClass is an error as an operator reads it, without the class of a *Failure, which is for retries.
func withoutClass(err error) error {
	switch e := err.(type) { //nolint:errorlint // not one that is wrapped in words
	case *daemon.ExitError:
		return &daemon.ExitError{Code: e.Code, Err: withoutClass(e.Err)}
	case *Failure:
		return e.Err
	}
	return err
}

// redactor hides the secrets of the configuration, as far as it can be read.
func (p Program[C]) redactor() config.Redactor {
	cfg, err := p.Load()
	secrets := config.Secrets(cfg)
	if err == nil {
		if shared, err := cfg.Common().Base.Secret(); err == nil {
			secrets = append(secrets, shared)
		}
	}
	return config.NewRedactor(secrets...)
}

// Serve runs the daemon until ctx ends. It logs to log.
func (p Program[C]) Serve(ctx context.Context, cfg C, log io.Writer) error {
	common, secrets, as := cfg.Common(), config.Secrets(cfg), p.Identity(cfg)
	process, err := daemon.Start(ctx, daemon.Options{
		Name: as.Daemon, Base: common.Base, Addr: common.Addr, Secrets: secrets, Log: log,
		Checkpoint: store.DefaultAutocheckpoint, NeedsPort: common.NeedsPort,
	})
	if err != nil {
		return err
	}
	platform, listener := p.Build(cfg, process, as)
	redactor := config.NewRedactor(append(secrets, process.Secret)...)
	shell := New(platform, Options{
		Settings: common.Settings,
		Platform: as.Platform, Daemon: as.Daemon, Listener: listener, Store: process.Store,
		Heartbeat: process.Heartbeat, Wake: process.Wake.C(), Pace: p.Pace, Data: common.Base.Data,
		Redact: redactor.String, Growing: redactor.Growing,
		Note: func(notes ...string) { process.Ready.Note("platform", notes...) }, Log: process.Log,
		Metrics: process.Metrics, Now: process.Now,
	})
	if m, ok := listener.(Mounter); ok {
		m.Mount(process.Router, shell)
	}
	return process.Run(ctx, shell.Run)
}
