// Routd keeps the routing table and the group registry, and decides for gated where inbound rows go.
//
//	routd [serve]                           until SIGTERM
//	routd check | health                    checks the configuration; reports readiness
//	routd routes list | add | rm | test     through the running routd
//	routd groups list | show | add | set | rm
//	routd hooks list | add | remove | rotate | test
//	routd access CHAT SENDER                who may do what in a chat, and why
//	routd resolve                           answers gated's questions about former rows from the database
package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	pkgcli "arizuko/pkg/cli"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/pkg/metrics"
	"arizuko/pkg/routecheck"
	"arizuko/pkg/store"
	"arizuko/routd/internal/api"
	"arizuko/routd/internal/cli"
	"arizuko/routd/internal/engagement"
	"arizuko/routd/internal/routing"
	"arizuko/routd/internal/rows"
)

func main() {
	os.Exit(program().Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

func program() daemon.Program {
	return daemon.Program{
		Name: "routd",
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
		Check:    check,
		Commands: commands(),
	}
}

func commands() map[string]pkgcli.Func {
	all := cli.Commands(func() (*httpx.Client, error) {
		cfg, err := loadConfig()
		if err != nil {
			return nil, err
		}
		return cfg.client()
	})
	all["resolve"] = resolve(os.Stdin)
	return all
}

// routd is a started process with its table.
type routd struct {
	*daemon.Process
	cfg        Config
	loader     *routing.Loader
	engagement *engagement.Tracker
	noted      []string // the log's message about the current table
}

// start opens everything; the caller calls run, or Close.
func start(ctx context.Context, cfg Config, log io.Writer) (*routd, error) {
	p, err := daemon.Start(ctx, daemon.Options{
		Name: "routd", Base: cfg.Base, Addr: cfg.Addr, Log: log, ManyChats: true,
		Checkpoint: store.DefaultAutocheckpoint,
	})
	if err != nil {
		return nil, err
	}
	d := &routd{Process: p, cfg: cfg}
	if err := d.open(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return d, nil
}

func (d *routd) open(ctx context.Context) (err error) {
	invalidRows := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "arizuko_routd_bad_rows", Help: "Invalid rows of routes and groups; /readyz names them.",
	})
	d.Metrics.MustRegister(invalidRows)
	d.loader, err = routing.Open(ctx, d.Store, d.cfg.impulse(), func(t *routing.Table) {
		invalidRows.Set(float64(t.InvalidRows()))
		d.report(t)
		d.Poke("gated") // rows that waited for a route can be decided
		d.Poke("onbod") // chats that asked for a group may have one
	})
	if err != nil {
		return err
	}
	d.Stop.Add("table", func(context.Context) error { return d.loader.Close() })
	if d.engagement, err = engagement.Open(ctx, d.Store, d.cfg.EngagementTTL, d.Now, d.Log); err != nil {
		return err
	}
	d.measure()
	a := api.API{
		Store: d.Store, Loader: d.loader, Engagement: d.engagement, TTL: d.cfg.EngagementTTL, Log: d.Log,
		Operators: d.cfg.Operators, Resolved: api.Resolved(d.Metrics), Now: d.Now, Data: d.cfg.Data,
		Dashd: api.Dashd{Client: d.Client("dashd", d.cfg.DashdURL),
			Public: strings.TrimSuffix(string(d.cfg.PublicURL.Or(d.cfg.DashdAddr)), "/")},
	}
	a.Mount(d.Router.With(httpx.Bearer(d.Secret)))
	return nil
}

// measure registers the metrics that are read from rows.
func (d *routd) measure() {
	backlog := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "arizuko_engagement_backlog", Help: "Changes of deliveries whose effect on engagement is not stored.",
	})
	metrics.FromRows(d.Metrics, func(ctx context.Context) error {
		read, last, err := rows.DeliveriesRead(ctx, d.Store.Reader)
		backlog.Set(float64(max(last-read, 0)))
		return err
	}, backlog)
}

// report tells operators about a table: on /readyz, in routd's row of daemons, which the dashboard
// shows, and in the log, once per problem. It is called by one goroutine at a time.
func (d *routd) report(t *routing.Table) {
	d.Log.Info("table reloaded", "version", t.Version, "count", t.Len(), "invalid", t.InvalidRows())
	notes := slices.Concat(t.Notes(), routecheck.Lines(t.Warnings(), routecheck.MaxLines))
	for _, note := range notes {
		if !slices.Contains(d.noted, note) {
			d.Log.Warn("check routes and groups", "reason", note)
		}
	}
	d.noted = notes
	d.Ready.Note("table", t.Notes()...)
	d.Heartbeat.Report(daemon.Connected, strings.Join(notes, "\n"))
}

func (d *routd) run(ctx context.Context) error {
	return d.Run(ctx, func(ctx context.Context) error {
		return d.loader.Watch(ctx, d.cfg.PollInterval, d.Wake.C(), d.reloaded())
	}, func(ctx context.Context) error {
		return d.engagement.Watch(ctx, d.cfg.PollInterval, d.stored())
	})
}

// reloaded reports on /readyz a table that may be out of date. It also passes the poke on: it may be
// about deliveries.
func (d *routd) reloaded() func(error) {
	failing := false
	return func(err error) {
		d.engagement.Poke()
		reason := ""
		if err != nil {
			reason = "changes of routes and groups are not seen"
		}
		d.Ready.Wait("table", reason, err)
		if err != nil && !failing {
			d.Log.Error("reloading the table failed, retrying", "err", err)
		}
		failing = err != nil
	}
}

// stored logs when storing deliveries begins to fail, and when it works again. Meanwhile
// questions are answered from memory.
func (d *routd) stored() func(error) {
	failing := false
	return func(err error) {
		switch {
		case err != nil && !failing:
			d.Log.Error("storing engagement failed, retrying", "err", err)
		case err == nil && failing:
			d.Log.Info("storing engagement works again")
		}
		failing = err != nil
	}
}
