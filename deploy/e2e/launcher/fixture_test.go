// Package launcher tests the launcher with real daemons and with shell scripts in their place.
package launcher

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/config"
	"arizuko/pkg/httpx"
	"arizuko/pkg/testkit/executable"
)

// parallel is how many instances run at once.
const parallel = "4"

var programs = harness.NewPrograms("", "arizuko/routd", "arizuko/gated", "arizuko/onbod", "arizuko/migrations/cmd/migrate",
	"arizuko/deploy/agents/demo", "arizuko/deploy/launcher")

// TestMain builds the programs. Under the name of dashd the test binary is a helper process, a fake
// of dashd with all that the launcher needs.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "dashd" {
		os.Exit(fakeDashd())
	}
	os.Exit(programs.RunTests(m, parallel))
}

// refusing is a file in the data folder with which the fake of dashd makes no links.
const refusing = "refusing"

func fakeDashd() int {
	base := config.Base{Data: os.Getenv("ARIZUKO_DATA")}
	addr := os.Getenv("DASHD_ADDR")
	if os.Getenv("DASH_PRINT_LINK") != "false" {
		fmt.Println("log in: token=abc")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /v1/login-link", func(w http.ResponseWriter, _ *http.Request) {
		_, refuse := os.Stat(filepath.Join(base.Data, refusing))
		switch {
		case refuse == nil:
			w.WriteHeader(http.StatusForbidden)
		case os.Getenv("DASH_PASSWORD") != "":
			w.WriteHeader(http.StatusConflict)
		default:
			fmt.Fprintf(w, `{"url":"http://%s/login?token=abc"}`, addr)
		}
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.DiscardHandler)
	local, err := httpx.ListenLocal(base.Socket("dashd"), mux, log)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() { _ = local.Serve() }() // it ends with the process
	server := &http.Server{Addr: addr, Handler: mux}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// fixture is an instance with its own folder of programs.
type fixture struct {
	*harness.LauncherFixture
	bin string
}

// newFixture makes an instance whose only program is the launcher, with env added to its
// environment.
func newFixture(t *testing.T, env ...string) *fixture {
	t.Helper()
	t.Parallel()
	bin := t.TempDir()
	f := &fixture{harness.NewLauncherFixture(t, bin, env...), bin}
	// No symbolic link: the launcher uses the folder of the file that it really is.
	if err := os.Link(built(t, "launcher"), filepath.Join(bin, "launcher")); err != nil {
		t.Fatal(err)
	}
	return f
}

// withDaemons makes an instance with the real programs and the fake of dashd.
func withDaemons(t *testing.T, env ...string) *fixture {
	t.Helper()
	f := newFixture(t, env...)
	for _, name := range []string{"routd", "gated", "migrate", "demo"} {
		f.symlink(built(t, name), name)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f.symlink(self, "dashd")
	return f
}

// withScripts makes an instance whose programs are shell scripts: the given ones, and else daemons
// that are never ready and a migrate that does nothing.
func withScripts(t *testing.T, scripts map[string]string, env ...string) *fixture {
	t.Helper()
	f := newFixture(t, env...)
	for _, name := range []string{"routd", "gated", "dashd"} {
		f.script(name, "echo started; exec sleep 1000")
	}
	f.script("migrate", "")
	for name, text := range scripts {
		f.script(name, text)
	}
	return f
}

// built is the path of a program that TestMain has built.
func built(t *testing.T, name string) string {
	t.Helper()
	bin, err := programs.Bin()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(bin, name)
}

func (f *fixture) symlink(from, name string) {
	f.T.Helper()
	if err := os.Symlink(from, filepath.Join(f.bin, name)); err != nil {
		f.T.Fatal(err)
	}
}

func (f *fixture) script(name, text string) {
	f.T.Helper()
	f.writeProgram(name, "#!/bin/sh\n"+text+"\n")
}

func (f *fixture) writeProgram(name, content string) {
	f.T.Helper()
	executable.Write(f.T, filepath.Join(f.bin, name), []byte(content))
}

// readyLine is the launcher's line on stdout, with the query of its link.
func (f *fixture) readyLine(query string) string {
	return "arizuko ready: " + f.Instance.URL("dashd") + "/login?" + query + "\n"
}
