package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"arizuko/migrations"
	"arizuko/pkg/apierr"
	"arizuko/pkg/buildinfo"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/disk"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/httpx"
	"arizuko/pkg/lockfile"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// stopTimeout is below the 10 s after which container runtimes kill a process.
	stopTimeout = 8 * time.Second
	// defaultSchemaWait covers a migration of a large database.
	defaultSchemaWait = time.Minute
	// lockWait is how long a start waits for a lock that a killed process may hold for a moment.
	lockWait = time.Second
)

// Options of Start.
type Options struct {
	Name       string
	Base       config.Base
	Addr       config.Addr // of the HTTP listener
	Secrets    []string    // redacted in the log, besides the shared secret
	Log        io.Writer   // where log lines go
	Checkpoint int         // WAL pages until this process checkpoints by itself, 0 for never
	ManyChats  bool        // see store.Options
	// all processes of this name that share a database work; else one does, and the others stand by
	Shared     bool
	SchemaWait time.Duration // how long to wait for the migration, 0 for a minute
	NeedsPort  bool          // the port is for more than health and metrics: without it the daemon does not run
	// another daemon runs it when it is needed, and reports its trouble: it has no row in daemons
	OnDemand bool
	// Starting wraps the handler of every path but those of health until Run; nil leaves that as it is, an error in
	// JSON.
	Starting func(http.Handler) http.Handler
	// TurnEnded is called for each turn whose end this process has stored; nil for nothing.
	TurnEnded func(msg.TurnState, msg.Reason)
}

// Process is a started daemon, with the parts that all daemons share.
type Process struct {
	Log       *slog.Logger
	Secret    string               // the shared bearer secret
	Metrics   *prometheus.Registry // served at /metrics
	Router    chi.Router           // add routes before Run
	Addr      string               // bound address of Router, host:port
	Ready     *Readiness
	Store     *store.Store
	Leases    *Leases // nil if the database is a file
	Wake      Waker   // pokes of other daemons
	Poke      func(daemon string)
	Heartbeat *Heartbeat
	Stop      *Stopper // add the daemon's own parts

	base       config.Base
	lines      *prometheus.CounterVec // of the log
	servers    []*httpx.Server        // of Addr and of the socket
	pokeFailed func(daemon string, err error)
	handler    atomic.Pointer[chi.Router]
	// listenAgain listens on the port that another process had at the start; nil if none had
	listenAgain func() error
	unusable    atomic.Bool // the schema does not fit this program any more
	full        atomic.Pointer[full]
	beating     atomic.Pointer[time.Time] // when the heartbeat under way began, nil between two
	serving     chan error
}

// Start takes the first steps of every daemon, in this order: check the database's file system, take the singleton
// lock, answer /readyz with the reason for waiting, wait for the schema, open the database, join the processes that
// share it, open the poke socket. If a step fails or ctx ends, the steps before it are undone. On success the caller
// adds its routes and calls Run or Close.
func Start(ctx context.Context, o Options) (*Process, error) {
	p := &Process{
		Metrics: prometheus.NewRegistry(),
		Ready:   &Readiness{},
		Stop:    &Stopper{},
		base:    o.Base,
		serving: make(chan error, 3), // one of each server: the port, the socket and one of the daemon's own
	}
	p.measure(o)
	for _, step := range []func(context.Context, Options) error{p.checkFileSystem, p.lock, p.listen, p.openStore,
		p.join, p.openSockets} {
		if err := step(ctx, o); err != nil {
			p.Close()
			return nil, err
		}
	}
	p.Router = p.newRouter(o.Name, func() string { return p.Secret })
	return p, nil
}

// checkFileSystem refuses a file system that cannot carry the database.
func (p *Process) checkFileSystem(_ context.Context, o Options) error {
	if o.Base.DB != "" {
		return nil
	}
	err := disk.CheckCarry(o.Base.DBPath())
	if err != nil && o.Base.UnsafeFS {
		p.Log.Warn("the database is on a file system that cannot carry it", "err", err)
		return nil
	}
	if err != nil {
		return &ExitError{ExitRefused, err}
	}
	return nil
}

func (p *Process) lock(_ context.Context, o Options) error {
	if err := os.MkdirAll(o.Base.RunDir(), 0o700); err != nil {
		return &ExitError{ExitRefused, fmt.Errorf("ARIZUKO_DATA: %w", err)}
	}
	lock, err := lockfile.WaitLock(lockPath(o.Base, o.Name), lockWait)
	if err != nil {
		return err
	}
	p.Stop.Add("lock", func(context.Context) error { return lock.Close() })
	return lock.Note(fmt.Sprintf("schema %d", migrations.Latest())) // for `migrate down`
}

func (p *Process) listen(_ context.Context, o Options) error {
	p.Ready.Wait("start", o.Name+" is starting", nil)
	starting := p.newRouter(o.Name, func() string {
		secret, _ := o.Base.Secret() // it may not be there before the migration
		return secret
	})
	var answer http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		waiting, _ := p.Ready.Status()
		reason, state := strings.Join(waiting, "; "), o.Name+" is starting"
		if p.unusable.Load() {
			state = o.Name + " is not ready"
		}
		if !strings.HasPrefix(reason, state) {
			reason = state + ": " + reason
		}
		httpx.Error(w, apierr.New(apierr.Unavailable, "%s", reason))
	})
	if o.Starting != nil {
		answer = o.Starting(answer)
	}
	starting.NotFound(answer.ServeHTTP)
	p.handler.Store(&starting)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.unusable.Load() {
			starting.ServeHTTP(w, r)
			return
		}
		(*p.handler.Load()).ServeHTTP(w, r)
	})
	if err := p.listenOnPort(o, handler); err != nil {
		return err
	}
	local, err := httpx.ListenLocal(o.Base.Socket(o.Name), handler, p.Log)
	if err != nil {
		return err
	}
	p.Serve(local)
	p.watch(o)
	return nil
}

// listenOnPort listens on the port. Where that is for health and metrics alone, and another process has it, the port
// is tried again later.
func (p *Process) listenOnPort(o Options, handler http.Handler) error {
	listen := func() error {
		server, err := httpx.Listen(string(o.Addr), handler, p.Log)
		if err == nil {
			p.Addr = server.Addr()
			p.Serve(server)
		}
		return err
	}
	err := listen()
	if !errors.Is(err, syscall.EADDRINUSE) || o.NeedsPort || o.Base.DB != "" { // other machines call it there
		return err
	}
	p.Ready.Note("port", PortTaken+string(o.Addr))
	p.Log.Warn("port taken; retrying", "addr", o.Addr, "err", err)
	p.listenAgain = func() error {
		err := listen()
		if err == nil {
			p.Ready.Note("port")
			p.Log.Info("listening", "addr", o.Addr)
		}
		return err
	}
	return nil
}

// watch starts the watchdog.
func (p *Process) watch(o Options) {
	ctx, stop := context.WithCancel(context.Background())
	p.Stop.Add("watch", func(context.Context) error { stop(); return nil })
	go watchdog{
		heartbeat: p.beating.Load,
		answers: func(ctx context.Context) bool {
			_, err := Unready(ctx, o.Base, o.Name)
			return err == nil
		},
		hangs: func() {
			p.Log.Error("heartbeat hangs; ending")
			os.Exit(ExitFailure)
		},
	}.watch(ctx)
}

// PortTaken begins the note of a daemon whose port another process has. Other daemons and commands use its socket.
const PortTaken = "health and metrics are not served, since another process has the port "

// takePort tries again to listen on the port.
func (p *Process) takePort(ctx context.Context) error {
	retry := time.NewTicker(HeartbeatInterval)
	defer retry.Stop()
	for p.listenAgain != nil && p.listenAgain() != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-retry.C:
		}
	}
	return nil
}

// Serve serves until the process ends, and ends it if that fails.
func (p *Process) Serve(server *httpx.Server) {
	p.servers = append(p.servers, server)
	p.Stop.Add("http", server.Close)
	go func() { p.serving <- server.Serve() }()
}

func (p *Process) openStore(ctx context.Context, o Options) error {
	if err := p.waitSchema(ctx, o); err != nil {
		return err
	}
	p.Ready.Wait("start", o.Name+" is starting", nil) // it waits for the schema no longer
	secret, err := o.Base.StrongSecret()
	if err != nil {
		return &ExitError{ExitRefused, err}
	}
	p.Secret = secret
	// A second time, because migrate may have made the secret in the meantime.
	p.Log = p.counted(o.Base.Logger(o.Log, o.Name, o.Secrets...))
	p.Store, err = store.Open(ctx, store.Options{
		Path: o.Base.Database(), Autocheckpoint: o.Checkpoint, ManyChats: o.ManyChats, Poke: p.poker(o),
		Observer: observer(p.Metrics, o.TurnEnded, p.noteFull),
	})
	if err != nil {
		return err
	}
	p.Stop.Add("store", func(context.Context) error { return p.Store.Close() })
	p.Heartbeat = NewHeartbeat(o.Name, buildinfo.Version(), p.Log, func(ctx context.Context, row rows.Daemon) error {
		began := time.Now()
		p.beating.Store(&began)
		defer p.beating.Store(nil)
		var err error
		if scope := (store.Scope{"daemons/" + o.Name}); !o.OnDemand {
			err = p.Store.WriteIn(ctx, scope, func(tx *store.Tx) error { return rows.Heartbeat(tx, row) })
		}
		p.checkDatabase(ctx, err)
		return err
	})
	p.Heartbeat.measure(p.Metrics)
	return nil
}

// full is when a commit failed as the disk is full.
type full struct {
	at  time.Time
	err error
}

func (p *Process) noteFull(err error) { p.full.Store(&full{time.Now(), err}) }

// checkDatabase notes whether the database can be used, after a heartbeat. On a full disk that small row may be stored
// while others are not. From a schema that was taken back no request is answered.
func (p *Process) checkDatabase(ctx context.Context, err error) {
	if f := p.full.Load(); err == nil && f != nil && time.Since(f.at) < 2*HeartbeatInterval {
		err = f.err
	}
	p.Ready.Wait("database", store.Reason(err), err)
	problem, err := p.Store.SchemaProblem(ctx, migrations.Latest())
	if err != nil {
		return // the heartbeat fails, too, or the next one
	}
	p.Ready.Wait("schema", problem, nil)
	if was := p.unusable.Swap(problem != ""); was != (problem != "") {
		p.Log.Warn("schema changed", "reason", cmp.Or(problem, "it fits again"))
	}
}

func (p *Process) waitSchema(ctx context.Context, o Options) error {
	limit := cmp.Or(o.SchemaWait, defaultSchemaWait)
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := store.WaitSchema(wait, o.Base.Database(), migrations.Latest(), func(reason string, cause error) {
		p.Ready.Wait("start", reason, cause)
		keys := []any{"reason", reason}
		if cause != nil {
			keys = append(keys, "err", cause)
		}
		p.Log.Info("waiting for the schema", keys...)
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return &ExitError{ExitBusy, fmt.Errorf("timed out after %s: %w", limit, err)}
	}
	return err
}

func (p *Process) openSockets(_ context.Context, o Options) (err error) {
	if p.Wake, err = p.listenForPokes(o); err != nil {
		return err
	}
	p.Stop.Add("wake", func(context.Context) error { return p.Wake.Close() })
	// A second time, so that it stops before the store: requests need the store.
	for _, server := range p.servers {
		p.Stop.Add("http", server.Close)
	}
	return nil
}

func (p *Process) newRouter(name string, secret func() string) chi.Router {
	r := httpx.NewRouter(p.Log, p.Metrics)
	r.Use(httpx.Verify(name, secret))
	httpx.Health(r, p.Metrics, secret, p.Ready.Status)
	return r
}

// Run serves the router and runs the heartbeat and the given loops until ctx ends or one of them
// fails, then stops everything in reverse order. A loop returns nil or ctx's error when ctx ends;
// if one returns nil before that, the others go on.
func (p *Process) Run(ctx context.Context, loops ...func(context.Context) error) error {
	defer p.Close()
	p.handler.Store(&p.Router)
	p.Ready.Wait("start", "", nil)
	p.Log.Info("ready", "addr", p.Addr)
	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range slices.Concat(loops, []func(context.Context) error{p.Heartbeat.Run, p.watchServer,
		p.Leases.watch, p.takePort}) {
		group.Go(func() error { return loop(ctx) })
	}
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	p.Log.Info("stopping")
	return nil
}

// watchServer ends the process if the HTTP listener fails.
func (p *Process) watchServer(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.serving:
		return err
	}
}

// Now is the daemon's clock, which tests can set.
func (p *Process) Now() time.Time { return failpoint.Now() }

// Close stops everything that was started, last first. Run calls it.
func (p *Process) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	p.Stop.StopAll(ctx, p.Log)
}

// Running reports whether a daemon runs on a data folder. One that cannot be locked counts as running.
func Running(base config.Base, name string) bool {
	lock, err := lockfile.TryLock(lockPath(base, name))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return lock.Close() != nil
}

// Unready asks a daemon of this data folder whether it is ready, and returns the first reason why it is not; err if it
// does not answer.
func Unready(ctx context.Context, base config.Base, name string) (reason string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client := httpx.NewLocalClient(base.Socket(name))
	defer client.HTTP.CloseIdleConnections()
	status, body, err := client.Get(ctx, "/readyz")
	if err != nil || status == http.StatusOK {
		return "", err
	}
	reason, _, _ = strings.Cut(string(body), "\n")
	return reason, nil
}

// lockPath is the file whose lock a daemon holds as long as it runs.
func lockPath(base config.Base, name string) string {
	return filepath.Join(base.RunDir(), name+".lock")
}
