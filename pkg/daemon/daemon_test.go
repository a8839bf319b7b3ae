package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"arizuko/migrations"
	"arizuko/pkg/buildinfo"
	"arizuko/pkg/config"
	"arizuko/pkg/config/configtest"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/pkg/lockfile"
	"arizuko/pkg/store"
)

// TestMain is also a helper process: a daemon whose commands print the user that they run as.
func TestMain(m *testing.M) {
	if command := os.Getenv("DAEMON_TEST_COMMAND"); command != "" {
		os.Exit(whoami().Run(context.Background(), []string{command}, os.Stdout, os.Stderr))
	}
	configtest.Isolate(config.Base{})
	goleak.VerifyTestMain(m)
}

func whoami() daemon.Program {
	show := func(context.Context, io.Writer) error {
		fmt.Println(os.Getuid())
		return nil
	}
	return daemon.Program{
		Name:  "gated",
		Serve: func(ctx context.Context) error { return show(ctx, nil) },
		Check: show,
		Commands: map[string]func(context.Context, []string, io.Writer) error{
			"list": func(ctx context.Context, _ []string, _ io.Writer) error { return show(ctx, nil) },
		},
		Privileged: []string{"serve"},
	}
}

func TestProgram_RootInFolderOfAnotherUser_BecomesThatUserUnlessPrivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root becomes another user: run this test with sudo")
	}
	data := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(data), 0o755), os.Chown(data, 4242, 4243)); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{"serve": "0", "check": "4242", "list": "4242", "--help": "usage"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "DAEMON_TEST_COMMAND="+command, "ARIZUKO_DATA="+data)
		if out, _ := cmd.Output(); !strings.HasPrefix(string(out), want) {
			t.Errorf("%s runs as %s, want %s", command, out, want)
		}
	}
}

func TestCheck_WeakSecret_Refused(t *testing.T) {
	t.Setenv("ARIZUKO_DATA", t.TempDir())
	for secret, want := range map[string]int{"0123456789abcdef": 0, "0123456789abcde": 78, "x": 78} {
		t.Setenv("ARIZUKO_SECRET", secret)
		var out bytes.Buffer
		if got := program(nil).Run(t.Context(), []string{"check"}, &out, &out); got != want || (want == 0) != (out.String() == "teled: ok\n") {
			t.Errorf("%s: exit %d, want %d: %s", secret, got, want, out.String())
		}
	}
}

func program(serve error) daemon.Program {
	return daemon.Program{
		Name:  "teled",
		Serve: func(context.Context) error { return serve },
		Check: func(context.Context, io.Writer) error { return serve },
		Commands: map[string]func(context.Context, []string, io.Writer) error{
			"echo": func(_ context.Context, args []string, out io.Writer) error {
				fmt.Fprint(out, strings.Join(args, ","))
				return serve
			},
		},
	}
}

func TestExitCodes(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"clean":     {nil, 0},
		"failure":   {io.EOF, 1},
		"problems":  {fmt.Errorf("load: %w", config.Problems{"A: one", "B: two"}), 78},
		"server":    {fmt.Errorf("start: %w", migrations.ErrServer), 78},
		"schema":    {fmt.Errorf("start: %w", store.ErrSchemaRefused), 78},
		"lock":      {fmt.Errorf("start: %w", &lockfile.HeldError{Path: "x"}), 75},
		"explicit":  {fmt.Errorf("start: %w", &daemon.ExitError{Code: 75, Err: io.EOF}), 75},
		"cancelled": {context.Canceled, 1}, // without a signal it is a failure like others
	} {
		for _, command := range [][]string{nil, {"serve"}, {"check"}, {"echo", "a"}} {
			var stderr bytes.Buffer
			if got := program(tc.err).Run(t.Context(), command, io.Discard, &stderr); got != tc.want {
				t.Errorf("%s, %v: exit %d, want %d", name, command, got, tc.want)
			}
			if (stderr.Len() > 0) != (tc.err != nil) {
				t.Errorf("%s, %v: stderr %q", name, command, stderr.String())
			}
		}
	}
}

func TestRun_ConfigProblems_OneLineEach(t *testing.T) {
	var stderr bytes.Buffer
	program(config.Problems{"A: one", "B: two"}).Run(t.Context(), nil, io.Discard, &stderr)
	if want := "teled: A: one\nteled: B: two\n"; stderr.String() != want {
		t.Errorf("got %q, want %q", stderr.String(), want)
	}
}

func TestCommands(t *testing.T) {
	for _, tc := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"check"}, 0, "teled: ok\n", ""},
		{[]string{"echo", "a", "b"}, 0, "a,b", ""},
		{[]string{"--version"}, 0, "teled " + buildinfo.Version() + "\n", ""},
		{[]string{"fly"}, 78, "", "teled: usage: teled [serve | check | health | echo | --help | --version]\n"},
		{[]string{"serve", "now"}, 78, "", "teled: usage: teled [serve | check | health | echo | --help | --version]\n"},
	} {
		var stdout, stderr bytes.Buffer
		code := program(nil).Run(t.Context(), tc.args, &stdout, &stderr)
		if code != tc.code || stdout.String() != tc.stdout || stderr.String() != tc.stderr {
			t.Errorf("%v: exit %d, %q, %q", tc.args, code, stdout.String(), stderr.String())
		}
	}
}

func TestRun_Help_ExitsWith0(t *testing.T) {
	var stderr bytes.Buffer
	if code := program(flag.ErrHelp).Run(t.Context(), []string{"echo", "-h"}, io.Discard, &stderr); code != 0 || stderr.Len() > 0 {
		t.Errorf("exit %d: %s", code, &stderr)
	}
}

func TestRun_HelpOfTheProgram_IsPrintedToStdout(t *testing.T) {
	failing := program(errors.New("it ran"))
	for _, args := range [][]string{{"--help"}, {"-h"}, {"-help"}, {"check", "--help"}, {"serve", "-h"}, {"fly", "--help"}} {
		var stdout, stderr bytes.Buffer
		code := failing.Run(t.Context(), args, &stdout, &stderr)
		if code != 0 || stderr.Len() > 0 || !strings.HasPrefix(stdout.String(), "usage: teled [serve | check | health | echo | ") {
			t.Errorf("%v: exit %d, %q, %q", args, code, &stdout, &stderr)
		}
		for _, want := range []string{"  check ", "teled/README.md", "--help of their own"} {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%v: no %q in %q", args, want, &stdout)
			}
		}
	}
}

func TestRun_Signal_ExitsWith0(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := program(nil)
		p.Serve = func(ctx context.Context) error {
			if err := syscall.Kill(syscall.Getpid(), signal); err != nil {
				return err
			}
			<-ctx.Done()
			return fmt.Errorf("waiting for the schema: %w", ctx.Err())
		}
		var stderr bytes.Buffer
		if code := p.Run(t.Context(), nil, io.Discard, &stderr); code != 0 || stderr.Len() > 0 {
			t.Errorf("%v: exit %d, %s", signal, code, stderr.String())
		}
		p.Serve = func(ctx context.Context) error {
			if err := syscall.Kill(syscall.Getpid(), signal); err != nil {
				return err
			}
			<-ctx.Done()
			return errors.New("the disk is on fire")
		}
		if code := p.Run(t.Context(), nil, io.Discard, io.Discard); code != 1 {
			t.Errorf("%v and a failure: exit %d", signal, code)
		}
	}
}

func TestHealth(t *testing.T) {
	base := config.Base{Data: t.TempDir()}
	t.Setenv("ARIZUKO_DATA", base.Data)
	health := func() (int, string) {
		var stdout, stderr bytes.Buffer
		code := program(nil).Run(t.Context(), []string{"health"}, &stdout, &stderr)
		return code, stdout.String() + stderr.String()
	}
	if code, out := health(); code != 1 || !strings.Contains(out, "teled.http.sock does not answer") {
		t.Errorf("never started: exit %d, %q", code, out)
	}
	if err := os.Mkdir(base.RunDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	status := http.StatusOK
	server, err := httpx.ListenLocal(base.Socket("teled"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintln(w, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Authorization")))
	}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	t.Setenv("ARIZUKO_SECRET", "s3cret")
	if code, out := health(); code != 0 || out != "/readyz\n" {
		t.Errorf("ready: exit %d, %q", code, out)
	}
	status = http.StatusServiceUnavailable
	if code, out := health(); code != 1 || out != "teled: not ready: /readyz\n" {
		t.Errorf("not ready: exit %d, %q", code, out)
	}
	if err := errors.Join(server.Close(t.Context()), <-served); err != nil {
		t.Fatal(err)
	}
	if code, _ := health(); code != 1 {
		t.Errorf("daemon down: exit %d", code)
	}
	t.Setenv("LOG_LEVEL", "loud")
	if code, _ := health(); code != 1 {
		t.Errorf("no configuration: exit %d", code)
	}
}
