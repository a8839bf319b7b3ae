package launcher

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// routd is a client of routd, which must be ready.
func (f *fixture) routd() *httpx.Client {
	f.T.Helper()
	secret, err := f.Instance.Secret()
	if err != nil {
		f.T.Fatal(err)
	}
	return httpx.NewClient("routd", f.Instance.URL("routd"), secret)
}

// groups lists the folders of the registered groups.
func (f *fixture) groups() string {
	f.T.Helper()
	var all struct{ Groups []msg.Group }
	if err := f.routd().Do(f.T.Context(), http.MethodGet, "/v1/groups", nil, &all); err != nil {
		f.T.Fatal(err)
	}
	var folders []string
	for _, g := range all.Groups {
		folders = append(folders, g.Folder)
	}
	return strings.Join(folders, " ")
}

func TestLauncher_NoDataFolder_CreatesGroupAndPrintsLink(t *testing.T) {
	f := withDaemons(t)
	for range 2 { // the second time the folder exists
		l := f.Launch()
		if got, want := l.WaitReady(), f.readyLine("token=abc&next=/chat/main"); got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
		if got := f.groups(); got != "main" {
			t.Errorf("groups: %s", got)
		}
		l.Signal(syscall.SIGINT)
		l.WantEnd(0)
		if strings.Contains(l.Stderr(), "token=") {
			t.Errorf("the link is printed a second time:\n%s", l.Stderr())
		}
	}
}

func TestLauncher_OtherGroupsOnly_LinksToTheirList(t *testing.T) {
	f := withDaemons(t)
	first := f.Launch()
	first.WaitReady()
	err := f.routd().Do(t.Context(), http.MethodPost, "/v1/groups", msg.Group{Folder: "team"}, nil)
	if err == nil {
		err = f.routd().Do(t.Context(), http.MethodDelete, "/v1/groups/main", nil, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	first.Signal(syscall.SIGTERM)
	first.WantEnd(0)

	second := f.Launch()
	if got, want := second.WaitReady(), f.readyLine("token=abc&next=/chat/"); got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	if got := f.groups(); got != "team" {
		t.Errorf("groups: %s", got)
	}
}

func TestLauncher_Password_LinksToLoginForm(t *testing.T) {
	l := withDaemons(t, "DASH_PASSWORD=h7Gq-k2s-9Lp", "DASH_PUBLIC_URL=https://chat.example").Launch()
	if got := l.WaitReady(); got != "arizuko ready: https://chat.example/login?next=/chat/main\n" {
		t.Errorf("printed %q", got)
	}
}

func TestLauncher_SecondOnSameFolder_IsRefused(t *testing.T) {
	f := withDaemons(t)
	first := f.Launch()
	first.WaitReady()
	second := f.Launch()
	<-second.Process.Done()
	if code := second.Process.State().ExitCode(); code != 75 {
		t.Errorf("the second ended with %d", code)
	}
	want := "launcher: " + f.Instance.Data + "/run/launcher.lock is locked by process " + strconv.Itoa(first.Process.PID()) + " since "
	if !strings.HasPrefix(second.Stderr(), want) {
		t.Errorf("stderr of the second: %q", second.Stderr())
	}
	first.Signal(syscall.SIGINT)
	first.WantEnd(0)
}

func TestLauncher_KilledDaemon_IsRestarted(t *testing.T) {
	f := withDaemons(t)
	l := f.Launch()
	l.WaitReady()
	readyAgain := func(name string, pid int) {
		f.Until(name+" to be ready again", func() bool {
			now := f.Processes(name)
			status, _ := f.Instance.Readiness(t.Context(), name)
			return status == http.StatusOK && len(now) == 1 && now[0] != pid
		})
	}
	for _, name := range []string{"routd", "gated", "dashd"} {
		pid := f.Signal(name, syscall.SIGKILL)
		l.WaitOutput("launcher | " + name + ": ended with signal: killed, restarting in ")
		readyAgain(name, pid)
	}
	pid := f.Processes("gated")[0]
	_, printed, _ := strings.Cut(l.Stderr(), "to restart one daemon, such as gated: ")
	command, _, _ := strings.Cut(printed, "\n")
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%s: %v: %s", command, err, out)
	}
	readyAgain("gated", pid)
	if lines := strings.Count(l.Stdout(), "\n"); lines != 1 {
		t.Errorf("%d lines on stdout", lines)
	}
	l.Signal(syscall.SIGINT)
	l.WantEnd(0)
}

func TestLauncher_Killed_DaemonsEndAndNextOneStarts(t *testing.T) {
	f := withDaemons(t)
	first := f.Launch()
	first.WaitReady()
	first.Signal(syscall.SIGKILL)
	<-first.Process.Done()
	// Start at once, while the daemons of the first are stopping.
	second := f.Launch()
	second.WaitReady()
	second.Signal(syscall.SIGKILL)
	<-second.Process.Done()
	f.Until("all processes to end", func() bool { return len(f.Processes("")) == 0 })
}

func TestLauncher_InvalidConfiguration_Exits78(t *testing.T) {
	for variable, want := range map[string]string{
		"GATED_ADDR=x":          `launcher: GATED_ADDR="x": want host:port`,
		"MAX_AGENTS=0":          "gated    | gated: MAX_AGENTS: must be at least 1",
		"POLL_INTERVAL=-1s":     "POLL_INTERVAL: must be at least 10ms",
		"ARIZUKO_SECRET_FILE=/": "ARIZUKO_SECRET_FILE: ",
	} {
		t.Run(variable, func(t *testing.T) {
			l := withDaemons(t, variable).Launch()
			l.WantEnd(78)
			if !strings.Contains(l.Stderr(), want) || l.Stdout() != "" {
				t.Errorf("stderr:\n%s%s", l.Stdout(), l.Stderr())
			}
		})
	}
}

func TestLauncher_AddressInUse_Waits(t *testing.T) {
	f := withDaemons(t)
	other, err := net.Listen("tcp", f.Instance.Addr("dashd"))
	if err != nil {
		t.Fatal(err)
	}
	l := f.Launch()
	l.WaitOutput("dashd: another process listens on " + f.Instance.Addr("dashd") + ", waiting for it to end")
	other.Close()
	l.WaitReady()
	l.Signal(syscall.SIGINT)
	l.WantEnd(0)
}

func TestLauncher_DashdRefusesLink_Fails(t *testing.T) {
	f := withDaemons(t)
	if err := os.MkdirAll(f.Instance.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.Instance.Data, refusing), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := f.Launch()
	l.WantEnd(1)
	if !strings.Contains(l.Stderr(), "launcher: dashd: ") {
		t.Errorf("stderr:\n%s", l.Stderr())
	}
}

func TestLauncher_Arguments_AreRefused(t *testing.T) {
	f := withDaemons(t)
	l := f.Launch("serve")
	l.WantEnd(78)
	if _, err := os.Stat(f.Instance.Data); err == nil {
		t.Error("the data folder exists")
	}
}
