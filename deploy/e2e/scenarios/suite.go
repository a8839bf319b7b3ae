// Package scenarios runs the message path as it runs in earnest: migrate, routd,
// gated and agents as processes of their own, on a data folder of their own.
// A test plays the adapters by writing rows, and reads what became of them.
// When it ends, the daemons are stopped and the database must hold what is
// true of every history: see the invariants.
package scenarios

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/foreign"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
)

const (
	// patience is how long anything may take before a test gives up. It says
	// nothing about speed: the machine may be busy with something else.
	patience = 60 * time.Second
	// lookEvery is how often a condition is looked at meanwhile.
	lookEvery = 10 * time.Millisecond
	// pollInterval of the daemons: most waits end by a poke.
	pollInterval = "100ms"
)

// Names of the daemons.
const (
	Gated = "gated"
	Routd = "routd"
)

// Recording is the demo agent with its input kept for Input.
const Recording = "tee -a input.jsonl | exec %demo"

// Options of a suite.
type Options struct {
	Env   []string // further NAME=value for the daemons
	Agent string   // the agents' command line, %demo in it being the demo agent; "" is the demo agent
}

// Suite is one instance under test. Its methods fail the test themselves and
// belong on the test's goroutine.
type Suite struct {
	Data    string           // the data folder
	Adapter *foreign.Adapter // plays the platforms; there once the schema is

	t        testing.TB
	instance *harness.Instance
	db       *sql.DB
	st       *store.Store
	routd    *httpx.Client
	waiting  map[int64]bool // rows that may stay undecided
}

// Start makes an instance and returns when its daemons are ready.
func Start(t testing.TB, o Options) *Suite {
	t.Helper()
	s := New(t, o)
	s.Migrate()
	s.StartDaemon(Routd)
	s.StartDaemon(Gated)
	s.WaitReady(Routd)
	s.WaitReady(Gated)
	return s
}

// New makes an instance whose database is not there yet and whose daemons do
// not run.
func New(t testing.TB, o Options) *Suite {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	i, err := harness.New(bin)
	if err != nil {
		t.Fatal(err)
	}
	agent := o.Agent
	if agent == "" {
		agent = "exec %demo"
	}
	i.Env = append(append(i.Env, "POLL_INTERVAL="+pollInterval,
		"AGENT_COMMAND="+strings.ReplaceAll(agent, "%demo", i.Program("demo"))), o.Env...)
	s := &Suite{Data: i.Data, t: t, instance: i, waiting: map[int64]bool{}}
	t.Cleanup(s.release)
	t.Cleanup(s.checkEnd)
	return s
}

// Migrate brings the schema up to date and opens the database.
func (s *Suite) Migrate() {
	s.t.Helper()
	if err := s.instance.Migrate(); err != nil {
		s.t.Fatal(err)
	}
	var err error
	s.db, err = sql.Open("sqlite3", "file:"+s.path()+"?_busy_timeout=20000&_txlock=immediate&_foreign_keys=true")
	if err != nil {
		s.t.Fatal(err)
	}
	s.st, err = store.Open(s.t.Context(), store.Options{Path: s.path(), Autocheckpoint: store.DefaultAutocheckpoint})
	if err != nil {
		s.t.Fatal(err)
	}
	s.Adapter, err = foreign.Open(s.Data, func(daemon string, err error) { s.t.Errorf("poke %s: %v", daemon, err) })
	if err != nil {
		s.t.Fatal(err)
	}
	secret, err := s.instance.Secret()
	if err != nil {
		s.t.Fatal(err)
	}
	s.routd = httpx.NewClient(s.instance.URL(Routd), secret)
}

func (s *Suite) path() string { return s.instance.Database() }

// Until waits for something to become true.
func (s *Suite) Until(what string, holds func() bool) {
	s.t.Helper()
	if !becomes(holds) {
		s.t.Fatalf("waited in vain: %s", what)
	}
}

// becomes waits and says whether something became true.
func becomes(holds func() bool) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}

// release ends what still runs and shows what a failed test leaves behind.
func (s *Suite) release() {
	if s.t.Failed() {
		s.dump()
	}
	if s.Adapter != nil {
		if err := s.Adapter.Close(); err != nil {
			s.t.Error(err)
		}
	}
	if s.st != nil {
		if err := s.st.Close(); err != nil {
			s.t.Error(err)
		}
	}
	if s.db != nil {
		_ = s.db.Close()
	}
	if err := s.instance.Close(); err != nil {
		s.t.Error(err)
	}
}
