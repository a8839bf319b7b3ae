// Dashd is the dashboard: the state of the instance, and the web chat, which makes it the
// adapter of the platform "web".
//
//	dashd [serve]          until SIGTERM
//	dashd check | health   checks the configuration; reports readiness
//	dashd status [CHAT_JID] [--thread ID] [--topic TOPIC] [--json]
//	                       the state of the instance, or of a chat
//	dashd login            prints a link that logs a browser in, once
//	dashd doctor [--json] [--deep] [--fix]
//	                       what is wrong with the instance, and what to do about it
//	dashd backup FILE      writes the instance into one file, while it runs
//	dashd restore FILE     makes the data folder from such a file
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"arizuko/dashd/internal/alerts"
	"arizuko/dashd/internal/console"
	"arizuko/dashd/internal/hooks"
	"arizuko/dashd/internal/hosts"
	"arizuko/dashd/internal/indexer"
	"arizuko/dashd/internal/live"
	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/news"
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/push"
	"arizuko/dashd/internal/status"
	"arizuko/dashd/internal/webchat"
	"arizuko/migrations"
	"arizuko/pkg/adapter"
	"arizuko/pkg/buildinfo"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/disk"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const name = "dashd"

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
			d, err := start(ctx, cfg, os.Stderr)
			if err != nil {
				return err
			}
			return d.run(ctx, os.Stdout)
		},
		Check: func(context.Context, io.Writer) error {
			cfg, err := loadConfig()
			if err != nil {
				return err
			}
			_, err = cfg.Secret()
			return err
		},
		Commands:   commands(),
		Privileged: []string{"backup", "restore"}, // they read, and give away, files of agents
	}
}

// dashd is a started process with its parts.
type dashd struct {
	*daemon.Process
	cfg     Config
	hosts   *hosts.Hosts
	login   *login.Login
	pages   *pages.Pages
	status  *status.Status
	hub     *live.Hub
	chat    *webchat.Chat
	console *console.Console
	push    *push.Push
	news    *news.News
	alerts  *alerts.Alerts
	media   *disk.Usage   // of the files of messages
	outbox  chan struct{} // wakes the shell
}

// start opens everything; the caller calls run, or Close.
func start(ctx context.Context, cfg Config, log io.Writer) (*dashd, error) {
	all, err := pages.New()
	if err != nil {
		return nil, err
	}
	p, err := daemon.Start(ctx, daemon.Options{
		Name: name, Base: cfg.Base, Addr: cfg.Addr, Secrets: config.Secrets(cfg), Log: log,
		Checkpoint: store.DefaultAutocheckpoint, Starting: all.Starting, NeedsPort: true,
	})
	if err != nil {
		return nil, err
	}
	d := &dashd{Process: p, cfg: cfg, pages: all, outbox: make(chan struct{}, 1),
		media: &disk.Usage{Folder: cfg.MediaDir(), Quota: cfg.MediaQuota, Now: p.Now}}
	if err := d.open(); err != nil {
		p.Close()
		return nil, err
	}
	return d, nil
}

func (d *dashd) open() (err error) {
	d.hosts = &hosts.Hosts{Public: d.base(), Proxies: d.cfg.Proxies, Secret: d.Secret}
	d.login, err = login.New(login.Config{
		Secret: d.Secret, Password: d.cfg.Password, Base: d.base(),
		Revoked: revoked{d.Store, d.Now, func() { d.hub.Notify() }},
		Form:    d.pages.Login, Now: d.Now, Log: d.Log,
	})
	if err != nil {
		return err
	}
	d.status = &status.Status{
		Store: d.Store, Base: d.cfg.Base, Now: d.Now, Log: d.Log,
	}
	d.hub = live.NewHub(func(r *http.Request) bool { return d.login.Valid(r.Context(), login.Current(r.Context())) },
		d.Log)
	d.pages.Redact = config.NewRedactor(append(config.Secrets(d.cfg), d.Secret)...).String
	if d.push, err = push.New(d.Store, d.Secret, d.cfg.pushContact(), d.Now, d.Log); err != nil {
		return err
	}
	d.console = d.newConsole()
	d.chat = &webchat.Chat{
		Store: d.Store, Hub: d.hub, Data: d.cfg.Data, Assistant: d.cfg.AssistantName,
		Sender: func(r *http.Request) (sender, name string) { return login.Sender(r.Context()), "operator" },
		Shell: adapter.New(webchat.Platform{}, adapter.Options{
			Platform: msg.PlatformWeb, Daemon: name, Store: d.Store, Heartbeat: d.Heartbeat, Wake: d.outbox,
			Settings: adapter.Settings{PollInterval: d.cfg.PollInterval, MediaMax: d.cfg.MediaMax,
				MediaQuota: d.cfg.MediaQuota, MediaDaily: d.cfg.MediaDaily},
			Settled: func(*msg.Message) { d.hub.Notify() },
			Data:    d.cfg.Data, Log: d.Log, Metrics: d.Metrics, Now: d.Now,
		}),
	}
	d.chat.Files = adapter.NewUploads(d.chat.Shell)
	receiver := hooks.New(hooks.Config{Store: d.Store, Files: d.chat.Files, Log: d.Log, Now: d.Now, Data: d.cfg.Data})
	receiver.Mount(d.Router)
	if err := d.listenForHooks(receiver); err != nil {
		return err
	}
	worker, err := d.pages.Asset("worker.js")
	if err != nil {
		return err
	}
	d.news = &news.News{
		Store: d.Store.Reader, Hub: d.hub, Worker: worker,
		Login: func(r *http.Request) string { return login.Sender(r.Context()) },
		Runs:  func(ctx context.Context) (bool, error) { return d.status.Runs(ctx, "gated") },
	}
	d.alerts = &alerts.Alerts{
		Store: d.Store, Examine: d.examineRows, Operators: d.cfg.Operators, Off: d.cfg.Alerts == "off",
		Quiet: d.cfg.AlertQuiet, Heartbeat: d.cfg.HeartbeatURL, Dashboard: string(d.cfg.PublicURL),
		Now: d.Now, Log: d.Log,
	}
	d.push.Quiet = d.alerts.Hushed
	d.measure()
	d.routes()
	return nil
}

func (d *dashd) newConsole() *console.Console {
	return console.New(console.Config{
		Store: d.Store.Reader, Status: d.status, Pages: d.pages, Push: d.push,
		Daemons: map[string]*httpx.Client{"routd": d.Client("routd", d.cfg.RoutdURL),
			"gated": d.Client("gated", d.cfg.GatedURL), "onbod": d.Client("onbod", d.cfg.OnbodURL)},
		Examine: d.examineRows, Restart: d.restart, Operators: d.cfg.Operators, Data: d.cfg.Data,
		Now: d.Now, Log: d.Log, Bin: programs(), Environ: environ(), Public: strings.TrimSuffix(string(d.base()), "/"),
		Settings: config.Show(d.cfg), Paths: paths(&d.cfg), Version: buildinfo.Version(), Schema: migrations.Latest(),
	})
}

// listenForHooks serves the hooks alone at an address of their own, if one is set, so that others reach nothing else.
func (d *dashd) listenForHooks(receiver *hooks.Receiver) error {
	if d.cfg.HooksAddr == "" {
		return nil
	}
	router := httpx.NewRouter(d.Log, d.Metrics)
	receiver.Mount(router)
	server, err := httpx.Listen(string(d.cfg.HooksAddr), router, d.Log)
	if err == nil {
		d.Serve(server)
	}
	return err
}

// base is the address of dashd for browsers.
func (d *dashd) base() config.URL {
	return d.cfg.PublicURL.Or(config.Addr(d.Addr)) // the bound one: the port may have been left open
}

// run serves until ctx ends. The first link is printed to out, and not logged.
func (d *dashd) run(ctx context.Context, out io.Writer) error {
	d.Heartbeat.Report(daemon.Connected, "")
	if d.cfg.PrintLink {
		fmt.Fprintf(out, "log in: %s\n", d.login.Link())
	}
	index := &indexer.Indexer{Store: d.Store, Log: d.Log}
	return d.Run(ctx, d.chat.Shell.Run, d.notifyChanges, index.Run, d.alerts.Run, d.push.Run)
}

// notifyChanges notifies the outbox and, if rows have changed, the open pages.
func (d *dashd) notifyChanges(ctx context.Context) error {
	defer d.hub.Close()
	watch, err := d.Store.Watch(ctx)
	if err != nil {
		return err
	}
	defer watch.Close()
	ticker := time.NewTicker(d.cfg.PollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-d.Wake.C():
			select {
			case d.outbox <- struct{}{}:
			default:
			}
		}
		changed, err := watch.Changed(ctx)
		if err != nil && ctx.Err() == nil {
			d.Log.Warn("watching the database failed", "err", err)
		}
		if changed {
			d.hub.Notify()
		}
	}
}
