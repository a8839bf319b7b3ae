package daemon_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/lockfile"
	"arizuko/pkg/store/storetest"
)

// dataFolder makes a folder with a short path, because socket paths are limited.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "daemon")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func migrate(t *testing.T, data string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(data, "secret"), []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Renamed into place, so that other processes never see half of it.
	if err := storetest.Migrate(filepath.Join(data, "new.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(data, "new.db"), filepath.Join(data, "arizuko.db")); err != nil {
		t.Fatal(err)
	}
}

// migratedFolder is a data folder with a migrated database and a secret.
func migratedFolder(t *testing.T) string {
	t.Helper()
	data := dataFolder(t)
	migrate(t, data)
	return data
}

// start starts a daemon, which the test runs or closes.
func start(t *testing.T, o daemon.Options) *daemon.Process {
	t.Helper()
	p, err := daemon.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs a daemon until stop is called.
func run(t *testing.T, p *daemon.Process, loops ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, loops...) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

func options(data string) daemon.Options {
	return daemon.Options{Name: "gated", Base: config.Base{Data: data}, Addr: "127.0.0.1:0", Log: io.Discard, Checkpoint: 1000}
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestProcess_StartRunStop(t *testing.T) {
	data := migratedFolder(t)
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(data, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	t.Setenv("NOTIFY_SOCKET", filepath.Join(data, "notify"))
	p := start(t, options(data))
	received := make([]byte, 100)
	if n, err := systemd.Read(received); err != nil || string(received[:n]) != "READY=1" {
		t.Errorf("systemd received %q, %v", received[:n], err)
	}
	if p.Secret != "0123456789abcdef" {
		t.Errorf("secret %q", p.Secret)
	}
	base := "http://" + p.Addr
	if code, _ := fetch(t, base+"/readyz"); code != 503 {
		t.Errorf("before Run: %d", code)
	}
	if code, body := fetch(t, base+"/v1/x"); code != 503 || !strings.Contains(body, "gated is starting") {
		t.Errorf("before Run: %d %s", code, body)
	}
	p.Router.Get("/v1/x", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") })
	running := make(chan struct{})
	stop := run(t, p, func(ctx context.Context) error {
		p.Heartbeat.Report(daemon.Connected, "")
		close(running)
		<-ctx.Done()
		return ctx.Err()
	})
	<-running
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/v1/x": 200, "/v1/y": 404} {
		if code, body := fetch(t, base+path); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	p.Poke("gated")
	<-p.Wake.C()
	if _, err := daemon.Start(t.Context(), options(data)); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("a second process: %v", err)
	}
	stop()
	rows, err := daemonrows.Daemons(t.Context(), storetest.OpenAt(t, filepath.Join(data, "arizuko.db"), nil).Reader)
	if err != nil || len(rows) != 1 || rows[0].Connection != "stopped" {
		t.Errorf("rows %+v, %v", rows, err)
	}
	start(t, options(data)).Close()
}

func TestProcess_LoopFails_Stops(t *testing.T) {
	p := start(t, options(migratedFolder(t)))
	err := p.Run(t.Context(),
		func(context.Context) error { return io.ErrUnexpectedEOF },
		func(ctx context.Context) error { <-ctx.Done(); return nil })
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Run: %v", err)
	}
}

// lineWatch closes found at the first write with text in it.
type lineWatch struct {
	text  string
	found chan struct{}
	once  sync.Once
}

func (w *lineWatch) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.once.Do(func() { close(w.found) })
	}
	return len(p), nil
}

func TestStart_NotMigrated_Waits(t *testing.T) {
	data := dataFolder(t)
	o := options(data)
	o.Addr = ownAddr()
	watch := &lineWatch{text: "migrate up", found: make(chan struct{})}
	o.Log = watch
	started := make(chan error)
	go func() {
		p, err := daemon.Start(t.Context(), o)
		if err == nil {
			p.Close()
		}
		started <- err
	}()
	<-watch.found
	if code, body := fetch(t, "http://"+string(o.Addr)+"/readyz"); code != 503 || !strings.Contains(body, "migrate up") || strings.Contains(body, data) {
		t.Errorf("readyz: %d %s", code, body)
	}
	if code, body := fetch(t, "http://"+string(o.Addr)+"/v1/x"); code != 503 || !strings.Contains(body, "gated is starting: there is no database yet: run `migrate up`") {
		t.Errorf("another path: %d %s", code, body)
	}
	migrate(t, data)
	if err := <-started; err != nil {
		t.Error(err)
	}
}

func TestReadyz_UnusableDatabase_SaysSo(t *testing.T) {
	o := options(migratedFolder(t))
	o.Addr = ownAddr()
	p := start(t, o)
	if _, body := fetch(t, "http://"+string(o.Addr)+"/readyz"); body != o.Name+" is starting\n" {
		t.Errorf("before it runs: %s", body)
	}
	stop := run(t, p)
	await := func(code int, text string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
			p.Heartbeat.Report(daemon.Connected, time.Now().String()) // a change is written at once
			got, body := fetch(t, "http://"+string(o.Addr)+"/readyz")
			if got == code && strings.HasPrefix(body, text) {
				return
			}
		}
		t.Fatalf("not answered: %d %s", code, text)
	}
	await(200, "ok")
	db, err := sql.Open("sqlite3", o.Base.DBPath())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, step := range []struct {
		change string
		code   int
		text   string
	}{
		{`ALTER TABLE daemons RENAME TO gone`, 503, "the database cannot be used"},
		{`ALTER TABLE gone RENAME TO daemons`, 200, "ok"},
		{`CREATE TRIGGER full BEFORE INSERT ON daemons BEGIN SELECT RAISE(ABORT, 'no'); END`, 503, "the database cannot be used"},
		{`DROP TRIGGER full`, 200, "ok"},
		{`UPDATE schema_migrations SET version = version - 1`, 503, "the schema was changed while this daemon ran: the schema is at "},
		{`UPDATE schema_migrations SET version = version + 1`, 200, "ok"},
		{`UPDATE schema_floor SET floor = floor + 1000`, 503, "the schema was changed while this daemon ran: this program is too old"},
		{`UPDATE schema_floor SET floor = floor - 1000`, 200, "ok"},
	} {
		if _, err := db.Exec(step.change); err != nil {
			t.Fatal(err)
		}
		await(step.code, step.text)
		if code, body := fetch(t, "http://"+string(o.Addr)+"/v1/x"); (code == 503) != strings.Contains(step.text, "schema") {
			t.Errorf("%s: a request is answered with %d %s", step.change, code, body)
		}
		if reason, err := daemon.Unready(t.Context(), o.Base, o.Name); err != nil || (reason == "") != (step.code == 200) || !strings.HasPrefix(reason+"ok", step.text) {
			t.Errorf("%s: not ready for %q, %v", step.change, reason, err)
		}
	}
	stop()
}

// ownAddr is an address at which nothing else on this machine listens: it has a loopback address of this process.
func ownAddr() config.Addr {
	pid := os.Getpid()
	return config.Addr(fmt.Sprintf("127.%d.%d.%d:8080", 128+pid>>16&63, pid>>8&255, 1+pid%254))
}

func TestStart_Fails_ReleasesLockAndPort(t *testing.T) {
	exit := func(err error) int {
		p := daemon.Program{Name: "gated", Serve: func(context.Context) error { return err }}
		return p.Run(context.Background(), nil, io.Discard, io.Discard)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waits := options(dataFolder(t))
	waits.SchemaWait = time.Millisecond
	noSecret := options(migratedFolder(t))
	if err := os.Remove(noSecret.Base.SecretPath()); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		o    daemon.Options
		code int
		text string
	}{
		"no folder": {options(filepath.Join(blocked, "x")), 78, "ARIZUKO_DATA"},
		"no schema": {waits, 75, "timed out after 1ms"},
		"no secret": {noSecret, 78, "migrate up"},
	} {
		// Twice: the first failure must have released lock and port.
		for range 2 {
			_, err := daemon.Start(t.Context(), tc.o)
			if code := exit(err); code != tc.code || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: exit %d, %v", name, code, err)
			}
		}
	}
}

// Only a daemon whose port is for more than health ends if another process has it.
func TestStart_PortTaken_RunsAndTakesItLater(t *testing.T) {
	data := migratedFolder(t)
	taken, err := net.Listen("tcp", string(ownAddr()))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	o := options(data)
	o.Addr, o.NeedsPort = ownAddr(), true
	if _, err := daemon.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Fatalf("with a port that it needs: %v", err)
	}
	o.NeedsPort = false
	p := start(t, o)
	stop := run(t, p)
	var notes []string
	until(t, "the daemon to be ready", func() bool {
		reason, err := daemon.Unready(t.Context(), o.Base, o.Name)
		return err == nil && reason == ""
	})
	if _, notes = p.Ready.Status(); len(notes) != 1 || notes[0] != daemon.PortTaken+string(o.Addr) {
		t.Errorf("notes %q", notes)
	}
	taken.Close()
	until(t, "the note to be gone", func() bool {
		_, notes = p.Ready.Status()
		return notes == nil
	})
	if code, body := fetch(t, "http://"+string(o.Addr)+"/healthz"); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	stop()
}

func TestStart_ContextEnds_Returns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := daemon.Start(ctx, options(dataFolder(t))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestProcess_PokeFails_IsCounted(t *testing.T) {
	p := start(t, options(migratedFolder(t)))
	defer p.Close()
	p.Poke(strings.Repeat("x", 120))
	if _, body := fetch(t, "http://"+p.Addr+"/metrics"); !strings.Contains(body, "arizuko_poke_errors_total{") {
		t.Error("no arizuko_poke_errors_total")
	}
}

func TestRunning_LockHeld_IsTrue(t *testing.T) {
	base := config.Base{Data: t.TempDir()}
	if daemon.Running(base, "teled") {
		t.Error("without a folder of locks")
	}
	if err := os.MkdirAll(base.RunDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := lockfile.TryLock(filepath.Join(base.RunDir(), "teled.lock"))
	if err != nil {
		t.Fatal(err)
	}
	if !daemon.Running(base, "teled") || daemon.Running(base, "discd") {
		t.Error("not that of the lock")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if daemon.Running(base, "teled") {
		t.Error("after its end")
	}
}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("timed out waiting for " + what)
		}
	}
}
