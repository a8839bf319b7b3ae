package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/config"
	"arizuko/pkg/config/configtest"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/wake"
)

func TestMain(m *testing.M) {
	configtest.Isolate(Config{})
	goleak.VerifyTestMain(m)
}

const secret = "0123456789abcdef"

// dataFolder is a migrated data folder with a short path, because socket paths are limited.
func dataFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "routd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := storetest.Migrate(filepath.Join(dir, "arizuko.db")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// service is a routd that runs in this process.
type service struct {
	*httpx.Client
	data  string
	gated *wake.Listener // pokes of gated
}

func serve(t testing.TB) *service {
	t.Helper()
	data := dataFolder(t)
	gated, err := wake.Listen(filepath.Join(data, "run"), "gated")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gated.Close() })
	cfg, err := config.Load[Config]([]string{"ARIZUKO_DATA=" + data, "ROUTD_ADDR=127.0.0.1:0", "POLL_INTERVAL=10ms"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d, err := start(ctx, cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- d.run(ctx) }()
	client := httpx.NewClient("routd", "http://"+d.Addr, secret)
	t.Cleanup(func() {
		client.HTTP.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for deadline := time.Now().Add(30 * time.Second); client.Do(ctx, http.MethodGet, "/v1/groups", nil, nil) != nil; {
		if time.Now().After(deadline) {
			t.Fatal("routd does not answer")
		}
	}
	s := &service{Client: client, data: data, gated: gated}
	<-gated.C() // of the first table, so that tests see only the pokes they cause
	return s
}

// shell changes the database as an operator with a SQL shell would.
func (s *service) shell(t *testing.T, query string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.data, "arizuko.db")+"?_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

// fill adds n routes, one per chat, in one transaction.
func fill(t testing.TB, data string, n int) {
	t.Helper()
	st := storetest.OpenAt(t, filepath.Join(data, "arizuko.db"), nil)
	err := st.Write(t.Context(), func(tx *store.Tx) error {
		for i := range n {
			r := msg.Route{Seq: int64(i), Match: fmt.Sprintf("chat_jid=telegram:-%d verb=mention", i), Target: "acme"}
			if err := tx.PutRoute(&r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// storeRoutes adds a group and routes, as they were stored by an older routd or a SQL shell.
func storeRoutes(t *testing.T, data string, routes ...msg.Route) *store.Store {
	t.Helper()
	st := storetest.OpenAt(t, filepath.Join(data, "arizuko.db"), nil)
	err := st.Write(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.PutGroup(&msg.Group{Folder: "acme", Config: json.RawMessage(`{}`)}); err != nil {
			return err
		}
		for _, r := range routes {
			if err := tx.PutRoute(&r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestCheck_StoredRoutes_Named(t *testing.T) {
	data := dataFolder(t)
	t.Setenv("ARIZUKO_DATA", data)
	var out bytes.Buffer
	if err := check(t.Context(), &out); err != nil || out.Len() > 0 {
		t.Errorf("no routes: %v, %s", err, &out)
	}
	storeRoutes(t, data, msg.Route{Match: "platform=telegram", Target: "acme"}, msg.Route{Match: "sender=telegram:42", Target: "acme"})
	if err := check(t.Context(), &out); err != nil || !strings.HasPrefix(out.String(), "warning: route 1 (platform=telegram) lets any user reach group acme") ||
		strings.Contains(out.String(), "route 2") {
		t.Errorf("an open route: %v, %s", err, &out)
	}
	storeRoutes(t, data, msg.Route{Match: "sender=Ann", Target: "acme"})
	if err := check(t.Context(), io.Discard); err == nil || !strings.HasPrefix(err.Error(), "route 3 matches nothing: ") {
		t.Errorf("an invalid route: %v", err)
	}
	t.Setenv("ARIZUKO_DATA", t.TempDir())
	t.Setenv("ARIZUKO_SECRET", secret)
	if err := check(t.Context(), io.Discard); err != nil {
		t.Errorf("without a database: %v", err)
	}
}

// A route that relied on a display name, from before names had a key of their own.
func TestStart_StoredRoutes_NamedInLogAndDaemons(t *testing.T) {
	data := dataFolder(t)
	st := storeRoutes(t, data, msg.Route{Match: "sender=Ann", Target: "builtin:drop"}, msg.Route{Match: "platform=telegram", Target: "acme"})
	cfg, err := config.Load[Config]([]string{"ARIZUKO_DATA=" + data, "ROUTD_ADDR=127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	d, err := start(ctx, cfg, &log)
	if err != nil {
		t.Fatal(err)
	}
	d.report(d.loader.Table()) // reloaded, with the same rows
	done := make(chan error, 1)
	go func() { done <- d.run(ctx) }()
	const problem, opening = `route 1 matches nothing: match: sender: "Ann" is not an id`, "it drops no message\nroute 2 (platform=telegram) lets any user reach"
	for deadline := time.Now().Add(30 * time.Second); ; {
		daemons, err := rows.Daemons(t.Context(), st.Reader)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%v: no %q in %+v", err, problem, daemons)
		}
		if len(daemons) == 1 && daemons[0].Connection == "connected" &&
			strings.HasPrefix(daemons[0].Detail, problem) && strings.Contains(daemons[0].Detail, opening) {
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), `level=WARN msg="check routes and groups"`); n != 2 {
		t.Errorf("%d lines about the routes in the log:\n%s", n, &log)
	}
}

func TestEnvironment_PageMatchesConfig(t *testing.T) {
	configtest.CheckTable(t, "../docs/reference/environment.md", "routd", Config{}, config.Base{})
}

func TestConfig_InvalidValues_AllReported(t *testing.T) {
	_, err := config.Load[Config]([]string{
		"ROUTD_ADDR=8081", "POLL_INTERVAL=2ns", "IMPULSE_THRESHOLD=-1", "IMPULSE_MAX_HOLD=-1s",
	})
	problems, ok := err.(config.Problems)
	if !ok || len(problems) != 4 {
		t.Errorf("got %v", err)
	}
}

func TestResolve_FormerRows_ByTheStoredRoutes(t *testing.T) {
	t.Setenv("ARIZUKO_DATA", dataFolder(t))
	path := filepath.Join(os.Getenv("ARIZUKO_DATA"), "arizuko.db")
	storetest.Exec(t, path, `INSERT INTO registered_groups (folder, name, created_at, config) VALUES ('main', '', 1, '{}'), ('eng', '', 1, '{}')`)
	storetest.Exec(t, path, `INSERT INTO routes (seq, match, target) VALUES (0, 'platform=telegram', 'main')`)
	var out strings.Builder
	in := `{"items":[{"id":1,"chat_jid":"telegram:1"},{"id":2,"chat_jid":"telegram:1"}],"engaged":{"2":"eng"}}` + "\n" +
		`{"items":[{"id":3,"chat_jid":"slack:C1"}]}`
	if err := resolve(strings.NewReader(in))(t.Context(), nil, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"id":1,"action":"trigger","folder":"main"`) ||
		!strings.Contains(lines[0], `"id":2,"action":"trigger","folder":"eng"`) ||
		!strings.Contains(lines[1], `"reason":"no_route"`) {
		t.Errorf("%s", &out)
	}
	if err := resolve(strings.NewReader("nonsense"))(t.Context(), nil, &out); err == nil || !strings.Contains(err.Error(), "a question is not JSON") {
		t.Errorf("got %v", err)
	}
}
