// Gated is the gateway: it decides every inbound row, queues turns and runs
// the agents that answer them.
//
//	gated [serve]          until SIGTERM
//	gated check | health   checks the configuration; asks whether gated is ready
//	gated why MESSAGE      prints the path of a message
//	gated context show TURN   prints the prompt of a turn again
//	gated reminders, broadcast   through the running gated
//	gated agent try | conform -- COMMAND   talks to an agent; checks it against the protocol
package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"arizuko/gated/internal/chats"
	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/deciding/gateway"
	"arizuko/gated/internal/egress/secrets"
	"arizuko/gated/internal/operators/api"
	"arizuko/gated/internal/operators/cli"
	"arizuko/gated/internal/running/agents"
	"arizuko/gated/internal/running/runtime/enter"
	"arizuko/gated/internal/running/transcribe"
	"arizuko/gated/internal/timed/broadcasts"
	"arizuko/gated/internal/timed/lost"
	"arizuko/gated/internal/timed/polls"
	"arizuko/gated/internal/timed/reminders"
	"arizuko/gated/internal/timed/retention"
	pkgcli "arizuko/pkg/cli"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// checkpointEvery is how often the write-ahead log is copied into the database.
const checkpointEvery = time.Second

func main() {
	enter.Intercept(environ())
	os.Exit(program().Run(context.Background(), os.Args[1:], os.Stdout, pkgcli.Safe(os.Stderr, hidden())))
}

func program() daemon.Program {
	return daemon.Program{
		Name: "gated",
		Serve: func(ctx context.Context) error {
			cfg, err := loadConfig()
			if err != nil {
				return err
			}
			if err := cfg.refuseLinks(); err != nil {
				return err
			}
			g, err := start(ctx, cfg, os.Stderr)
			if err != nil {
				return err
			}
			return g.run(ctx)
		},
		Check:      func(ctx context.Context, out io.Writer) error { return check(ctx, pkgcli.Safe(out, hidden())) },
		Commands:   commands(),
		Summaries:  summaries(),
		Privileged: []string{"serve", "check", "agent"}, // they run agents, as other users
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
	all["agent"], all["why"] = agentCommand, explain
	all["context"], all["redecide"] = contextCommand, redecide
	all["egress"] = egressCommand(all["egress"])
	all["secret"] = secrets.Command(func() (string, error) {
		cfg, err := loadConfig()
		return cfg.Data, err
	}, os.Stdin)
	return all
}

// summaries has a line about each command.
func summaries() map[string]string {
	return map[string]string{
		"agent":     "talk to an agent at the terminal, or check a program against the agent protocol",
		"broadcast": "send a message to the chats of a group, or to some chats",
		"cancel":    "end a turn",
		"context":   "print the prompt of a turn again",
		"egress":    "list and change the rules for what agents send, and list what they have sent",
		"lost":      "list the messages that were not sent, and send them again",
		"redecide":  "decide stored messages again, and print what differs: for `migrate rehearse`",
		"reminders": "list reminders, or cancel one",
		"replay":    "send a message again, or decide it again",
		"secret":    "set, list and remove the secrets that the egress proxy sends for agents",
		"retry":     "run a turn again that has failed",
		"spend":     "print what agents have used, by day, group or chat",
		"why":       "print what happened to a message: each decision, its turn, its answers",
	}
}

// gated is a started process with its parts.
type gated struct {
	*daemon.Process
	cfg        Config
	programs   programs
	agents     *agents.Manager
	transcribe *transcribe.Worker
	gateway    *gateway.Gateway
	polls      *polls.Closer
	reminders  *reminders.Scheduler
	broadcasts *broadcasts.Broadcasts
	retention  *retention.Job
	objects    *contextobjects.Objects
	checkpoint *store.Checkpointer
	problems   *problems
	root       string        // the data folder, absolute
	pokes      chan struct{} // see forwardPokes

	proxyNeeded chan struct{} // holds a value once a run needs the egress proxy

	tools       toolServer
	toolsFailed chan error
}

// start opens everything; the caller calls run.
func start(ctx context.Context, cfg Config, log io.Writer) (*gated, error) {
	secrets := cfg.agentSecrets(environ())
	defaults, err := cfg.groupDefaults()
	if err != nil {
		return nil, &daemon.ExitError{Code: daemon.ExitRefused, Err: err}
	}
	ended := newTurnsEnded()
	p, err := daemon.Start(ctx, daemon.Options{
		Name: "gated", Shared: true, ManyChats: true, Base: cfg.Base, Addr: cfg.Addr, Secrets: secrets, Log: log,
		TurnEnded: func(state msg.TurnState, reason msg.Reason) {
			ended.WithLabelValues(string(state), string(reason)).Inc()
		},
	})
	if err != nil {
		return nil, err
	}
	p.Metrics.MustRegister(ended)
	g := &gated{
		Process: p, cfg: cfg, programs: programs{defaults: defaults},
		problems: &problems{ready: p.Ready, heartbeat: p.Heartbeat}, toolsFailed: make(chan error, 1),
		pokes: make(chan struct{}, 1),
	}
	err = g.open(ctx, secrets)
	if err == nil {
		err = g.noteAgent(ctx)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return g, nil
}

func (g *gated) open(ctx context.Context, secrets []string) (err error) {
	if g.checkpoint, err = store.OpenCheckpointer(g.cfg.Database()); err != nil {
		return err
	}
	g.Stop.Add("checkpoints", func(context.Context) error { return g.checkpoint.Close() })
	root, err := filepath.Abs(g.cfg.Data)
	if err != nil {
		return err
	}
	if err = g.listenForTools(); err != nil {
		return err
	}
	p := &g.programs
	if err = p.open(&g.cfg, root, forward(g.tools.addr()), g.Log); err != nil {
		return err
	}
	hidden := config.NewRedactor(append(secrets, g.Secret)...)
	routd := g.Client("routd", g.cfg.RoutdURL)
	g.agents = agents.New(agents.Config{
		Defaults: p.defaults, Names: g.cfg.names(), Runtimes: p.runtimes, Environ: environ(),
		Data: root, Groups: filepath.Join(root, "groups"), Logs: filepath.Join(root, "logs"), Users: p.users,
		MaxAgents: g.cfg.MaxAgents, Attempts: g.cfg.TurnAttempts, Location: time.Local, Now: g.Now,
		Operators: g.cfg.Operators, AskTimeout: g.cfg.AskTimeout, WaitMark: g.cfg.WaitMark,
		Redact: hidden.String, Growing: hidden.Growing, Report: g.problems.ofAgents,
		Peers: g.peers(), MediaQuota: g.cfg.MediaQuota, MediaDaily: g.cfg.MediaDaily, Tools: g.tools.access,
		UndoQuota: g.cfg.UndoQuota, EndWindow: endWindow(routd), NextSlot: reminders.Next,
		RemindersChanged: func() { g.reminders.Changed() },
		ToolsURL:         g.cfg.toolsURLs(g.tools.addr()), Egress: g.egress,
	}, g.Store, g.Log, g.Metrics)
	g.objects = g.cfg.contextObjects()
	homes := &chats.Chats{}
	g.reminders = g.newReminders(homes)
	g.serveTools(homes, routd)
	daemons, err := g.daemons()
	if err != nil {
		return err
	}
	g.gateway = gateway.New(gateway.Config{
		Shards: g.shards(), Poll: g.cfg.PollInterval, MaxAge: g.cfg.MaxAge, MaxAgents: g.cfg.MaxAgents,
		Impulse:   msg.DefaultImpulse(g.cfg.ImpulseThreshold, g.cfg.ImpulseMaxHold),
		Operators: g.cfg.Operators, BotNames: g.cfg.names(), Daemons: daemons, Defaults: p.defaults,
		Routd: routd,
		Onbod: g.Client("onbod", g.cfg.OnbodURL),
		Dashd: g.Client("dashd", g.cfg.DashdURL),
		Now:   g.Now, Report: g.problems.ofMessages, Objects: g.objects, CheckAgent: g.checkChoice,
	}, g.Store, g.storedTurns(root, hidden.String), g.wakes(), g.Log, g.Metrics)
	g.broadcasts = broadcasts.New(g.Store, homes, g.Log, g.Now)
	g.retention = retention.New(retention.Config{Days: g.cfg.RetentionDays, Data: root, MediaQuota: g.cfg.MediaQuota,
		Now: g.Now}, g.Store, g.Log, g.Metrics)
	router := g.Router.With(httpx.Bearer(g.Secret))
	api.API{Store: g.Store, Agents: g.agents, Context: g.promptAgain, Now: g.Now,
		Names: p.defaults.Agents.Names()}.Mount(router)
	g.openEgress(root, router, hidden.String)
	g.polls = &polls.Closer{Store: g.Store, Every: g.cfg.PollInterval, Now: g.Now, Log: g.Log, Objects: g.objects}
	g.polls.Mount(router)
	g.reminders.Mount(router)
	g.broadcasts.Mount(router)
	g.problems.ofAgents(nil)
	g.Ready.Wait("start", "gated is starting: it ends the agents of the process before it", nil)
	return g.agents.Recover(ctx)
}

// daemons are clients of the services that routes name as daemon:NAME. A service at a URL is an operator's own: it need
// not know the secret, so its answers are taken as they are, and used for nothing but the reply in the row's chat.
func (g *gated) daemons() (map[string]*httpx.Client, error) {
	urls, err := g.cfg.daemonURLs()
	clients := make(map[string]*httpx.Client, len(urls))
	for name, url := range urls {
		if url == "" {
			clients[name] = httpx.NewLocalClient(g.cfg.Socket(name))
			continue
		}
		clients[name] = httpx.NewClient(name, url, g.Secret).AcceptUnsigned()
	}
	return clients, err
}

func (g *gated) newReminders(homes *chats.Chats) *reminders.Scheduler {
	return reminders.New(reminders.Config{
		MaxAgents: g.cfg.MaxAgents, Now: g.Now, Objects: g.objects, Chats: homes, Operators: g.cfg.Operators,
		Charged: func(folder string) { g.gateway.Recount(folder) }, Report: g.problems.ofReminders,
	}, g.Store, g.agents, g.Log, g.Metrics)
}

// shards is into how many parts the chats are divided among several machines, 0 if there is one.
func (g *gated) shards() int {
	if g.Leases == nil {
		return 0
	}
	return shards
}

func (g *gated) run(ctx context.Context) error {
	notices := &lost.Notices{Store: g.Store, Log: g.Log, Now: g.Now}
	leads := g.lead(g.polls.Run, g.transcribe.Run, g.reminders.Run, g.reminders.Watch, g.broadcasts.Run, notices.Run,
		g.retention.Run, g.contextObjects)
	return g.Run(ctx, g.decide, leads, g.agents.Run, g.forwardPokes, g.checkpoints, g.tryAgents, g.watchTools,
		g.runProxy)
}

// storedTurns runs the turns that the gateway stores, and transcribes the voice notes that they wait for.
type storedTurns struct {
	*agents.Manager
	transcribe *transcribe.Worker
}

// storedTurns makes the worker that transcribes; Run starts it.
func (g *gated) storedTurns(root string, redact func(string) string) storedTurns {
	g.transcribe = transcribe.New(transcribe.Config{
		Groups: g.agents, Runtimes: g.programs.runtimes, Environ: environ(), Data: root, Redact: redact, Now: g.Now,
	}, g.Store, g.Log, g.Metrics)
	return storedTurns{g.agents, g.transcribe}
}

// Dispatch starts turns, or the transcription that they wait for.
func (s storedTurns) Dispatch(turns ...*msg.Turn) {
	s.Manager.Dispatch(turns...)
	if slices.ContainsFunc(turns, func(t *msg.Turn) bool { return t.WaitsFor == msg.WaitsFiles }) {
		s.transcribe.Poke()
	}
}

// contextObjects deletes active context objects that have ended.
func (g *gated) contextObjects(ctx context.Context) error {
	return contextobjects.Run(ctx, g.Store, g.Log, g.Now)
}

// checkpoints copies the write-ahead log back once a second, so that no
// writer has to. A server does that itself.
func (g *gated) checkpoints(ctx context.Context) error {
	if store.IsServer(g.cfg.Database()) {
		return nil
	}
	ticker := time.NewTicker(checkpointEvery)
	defer ticker.Stop()
	outage := store.NewOutage(g.Log, "checkpoint")
	meter := newCheckpointMeter(g.Metrics, g.cfg.DBPath()+"-wal")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		result, err := g.checkpoint.Run(ctx)
		meter.note(result, err)
		_ = outage.Note(ctx, err) // the next one copies the rest
	}
}
