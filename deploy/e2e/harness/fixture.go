package harness

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/foreign"
	"arizuko/deploy/e2e/invariants"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const (
	// maxWait is how long a test waits for anything by default. It says nothing about speed: the
	// machine may be busy.
	maxWait = raceFactor * 60 * time.Second
	// daemonPollInterval is POLL_INTERVAL of the daemons. Most of their waits end by a poke.
	daemonPollInterval = "100ms"
)

// Names of the daemons that every fixture may run. Start starts the first two.
const (
	Gated = "gated"
	Routd = "routd"
	Onbod = "onbod"
)

// Recording begins the command of an agent whose input is kept for Fixture.AgentInput. tee writes to its standard
// output first, which here is the file: an answered message is in it.
const Recording = "tee -a /dev/fd/3 3>&1 >>input.jsonl | "

// RecordingAgent is the demo agent with its input kept.
const RecordingAgent = Recording + "exec %demo"

// Options of a fixture.
type Options struct {
	Env []string // further NAME=value for the daemons; in AGENTS as in Agent
	// the agents' command line, %demo, %caller, %acp and %fakeagent in it being these programs; "" is the demo agent
	Agent string

	Delivers bool          // real adapters deliver: an idle instance has no queued outbound rows
	MaxWait  time.Duration // how long anything may take; 0 is one minute
}

// Fixture is an instance under test. Its methods fail the test and belong on the test's goroutine.
// At the end of a test that has passed it waits until the instance is idle, stops the daemons and
// checks the invariants.
type Fixture struct {
	T        testing.TB
	Instance *Instance
	Data     string           // the data folder
	DB       *sql.DB          // the database, once Migrate was called
	Store    *store.Store     // the same, as daemons use it
	Adapter  *foreign.Adapter // the adapter of all platforms that have no daemon; once Migrate was called
	Routd    *httpx.Client    // once Migrate was called

	options   Options
	undecided map[int64]bool // rows that may be undecided at the end
	onFailure []func()
	onClose   []func()
}

// Start makes an instance whose routd and gated are ready.
func Start(t testing.TB, p *Programs, o Options) *Fixture {
	t.Helper()
	f := NewFixture(t, p, o)
	f.Migrate()
	f.StartDaemon(Routd)
	f.StartDaemon(Gated)
	f.WaitReady(Routd)
	f.WaitReady(Gated)
	return f
}

// NewFixture makes an instance in which no daemon runs, without a database, or on one of its own on the server that
// storetest.PostgresEnv names.
func NewFixture(t testing.TB, p *Programs, o Options) *Fixture {
	t.Helper()
	bin, err := p.Bin()
	if err != nil {
		t.Fatal(err)
	}
	i, err := New(bin)
	if err != nil {
		t.Fatal(err)
	}
	if storetest.Server() != "" {
		i.UseDatabase(storetest.Empty(t))
	}
	if o.Agent == "" {
		o.Agent = "exec %demo"
	}
	if o.MaxWait == 0 {
		o.MaxWait = maxWait
	}
	// A test that stops daemons for minutes reads no messages about that.
	i.Env = append(append(i.Env, "ALERTS=off", "POLL_INTERVAL="+daemonPollInterval,
		"AGENT_COMMAND="+o.Agent), o.Env...)
	paths := strings.NewReplacer("%demo", i.Program("demo"), "%caller", i.Program("caller"), "%acp", i.Program("acp"),
		"%fakeagent", i.Program("fakeagent"))
	for n, entry := range i.Env {
		if strings.HasPrefix(entry, "AGENT_COMMAND=") || strings.HasPrefix(entry, "AGENTS=") {
			i.Env[n] = paths.Replace(entry)
		}
	}
	f := &Fixture{T: t, Instance: i, Data: i.Data, options: o, undecided: map[int64]bool{}}
	t.Cleanup(f.release)
	t.Cleanup(f.checkEnd)
	return f
}

// Migrate creates the database or upgrades its schema, and opens it.
func (f *Fixture) Migrate() {
	f.T.Helper()
	f.OK(f.Instance.Migrate())
	f.open()
}

func (f *Fixture) open() {
	f.T.Helper()
	database := f.Instance.Database()
	var err error
	f.DB, err = storetest.OpenSQL(database)
	f.OK(err)
	f.Store, err = store.Open(f.T.Context(), store.Options{Path: database, Autocheckpoint: store.DefaultAutocheckpoint})
	f.OK(err)
	f.Adapter, err = foreign.Open(database, f.Data, func(daemon string,
		err error) {
		f.T.Errorf("poke %s: %v", daemon, err)
	})
	f.OK(err)
	f.Routd = f.Client(Routd)
}

// Reopen closes the database, calls a function that may replace it, and opens it again.
func (f *Fixture) Reopen(replace func()) {
	f.T.Helper()
	f.OK(errors.Join(f.Adapter.Close(), f.Store.Close(), f.DB.Close()))
	f.Adapter, f.Store, f.DB = nil, nil, nil
	replace()
	f.open()
}

// Client is a client of a daemon's HTTP API that shows the secret.
func (f *Fixture) Client(daemon string) *httpx.Client {
	f.T.Helper()
	client, err := f.Instance.Client(daemon)
	f.OK(err)
	return client
}

// OK fails the test if there is an error.
func (f *Fixture) OK(err error) {
	f.T.Helper()
	if err != nil {
		f.T.Fatal(err)
	}
}

// Until waits until a condition holds.
func (f *Fixture) Until(what string, holds func() bool) {
	f.T.Helper()
	ctx, cancel := f.timeout()
	defer cancel()
	f.OK(Await(ctx, what, func() (bool, error) { return holds(), nil }))
}

func (f *Fixture) timeout() (context.Context, context.CancelFunc) { return timeout(f.options.MaxWait) }

// timeout is a context that outlives that of a test, which has ended when its cleanups run.
func timeout(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), limit)
}

// OnFailure calls a function at the end of a test that has failed, to log what may help.
func (f *Fixture) OnFailure(log func()) { f.onFailure = append(f.onFailure, log) }

// OnClose calls a function at the end of the test, when the daemons of a test that has passed have
// stopped.
func (f *Fixture) OnClose(closer func()) { f.onClose = append(f.onClose, closer) }

// checkEnd waits until the instance is idle, stops the daemons and checks the invariants.
func (f *Fixture) checkEnd() {
	if f.T.Failed() || f.DB == nil {
		return
	}
	if f.Instance.Running(Gated) && f.Instance.Running(Routd) {
		f.WaitIdle()
	}
	for _, name := range f.Instance.stopOrder() {
		if !f.Instance.Running(name) {
			continue
		}
		if code := f.Stop(name); code != 0 {
			f.T.Errorf("%s ended with exit code %d", name, code)
		}
	}
	if left := f.Agents(); len(left) > 0 {
		f.T.Errorf("agents still run: %v", left)
	}
	if undecided := f.Query(undecidedRows); !f.mayBeUndecided(undecided) {
		f.T.Errorf("rows are undecided: %v", undecided)
	}
	f.CheckInvariants(invariants.OfMessages())
}

// CheckInvariants fails the test if an invariant is broken.
func (f *Fixture) CheckInvariants(all []invariants.Invariant) {
	f.T.Helper()
	found, err := invariants.Check(f.DB, all)
	if err != nil {
		f.T.Error(err)
	}
	for _, broken := range found {
		f.T.Error(broken)
	}
}

// release logs the state after a failed test, and ends everything.
func (f *Fixture) release() {
	if f.T.Failed() {
		f.logFailure()
	}
	for _, closer := range f.onClose {
		closer()
	}
	if f.Adapter != nil {
		if err := f.Adapter.Close(); err != nil {
			f.T.Error(err)
		}
	}
	if f.Store != nil {
		if err := f.Store.Close(); err != nil {
			f.T.Error(err)
		}
	}
	if f.DB != nil {
		_ = f.DB.Close()
	}
	if err := f.Instance.Close(); err != nil {
		f.T.Error(err)
	}
}
