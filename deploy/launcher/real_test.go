package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// routd calls the routd of a place that is ready.
func (p *place) routd() *httpx.Client {
	p.t.Helper()
	secret, err := os.ReadFile(filepath.Join(p.data, "secret"))
	if err != nil {
		p.t.Fatal(err)
	}
	return httpx.NewClient("http://"+p.addr(8081), strings.TrimSpace(string(secret)))
}

// groups are the folders of the registered groups.
func (p *place) groups() string {
	p.t.Helper()
	var known struct{ Groups []msg.Group }
	if err := p.routd().Do(p.t.Context(), http.MethodGet, "/v1/groups", nil, &known); err != nil {
		p.t.Fatal(err)
	}
	var folders []string
	for _, g := range known.Groups {
		folders = append(folders, g.Folder)
	}
	return strings.Join(folders, " ")
}

func TestFromAnEmptyFolder(t *testing.T) {
	p := installed(t)
	for range 2 { // the second time it is there
		l := p.launch()
		if got, want := l.ready(), p.readyLine("token=abc&next=/chat/main"); got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
		if got := p.groups(); got != "main" {
			t.Errorf("groups: %s", got)
		}
		l.signal(syscall.SIGINT)
		l.ends(0)
	}
}

func TestGroupsOfOthers(t *testing.T) {
	p := installed(t)
	first := p.launch()
	first.ready()
	err := p.routd().Do(t.Context(), http.MethodPost, "/v1/groups", msg.Group{Folder: "team"}, nil)
	if err == nil {
		err = p.routd().Do(t.Context(), http.MethodDelete, "/v1/groups/main", nil, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	first.signal(syscall.SIGTERM)
	first.ends(0)

	second := p.launch()
	if got, want := second.ready(), p.readyLine("token=abc&next=/chat/"); got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	if got := p.groups(); got != "team" {
		t.Errorf("groups: %s", got)
	}
}

func TestPasswordMeansNoToken(t *testing.T) {
	l := installed(t, "DASH_PASSWORD=x", "DASH_PUBLIC_URL=https://chat.example").launch()
	if got := l.ready(); got != "arizuko ready: https://chat.example/login?next=/chat/main\n" {
		t.Errorf("printed %q", got)
	}
}

func TestTwoAtOnce(t *testing.T) {
	p := installed(t)
	first := p.launch()
	first.ready()
	second := p.launch()
	<-second.done
	if code := second.cmd.ProcessState.ExitCode(); code != 75 {
		t.Errorf("the second ended with %d", code)
	}
	want := "launcher: " + p.data + "/run/launcher.lock is locked by process " + strconv.Itoa(first.cmd.Process.Pid) + " since "
	if !strings.HasPrefix(second.stderr(), want) {
		t.Errorf("the second said %q", second.stderr())
	}
	first.signal(syscall.SIGINT)
	first.ends(0)
}

func TestKilledDaemonComesBack(t *testing.T) {
	l := installed(t).launch()
	l.ready()
	for name, port := range map[string]int{"routd": 8081, "gated": 8080, "dashd": 8083} {
		pids := l.running(name)
		if len(pids) != 1 {
			t.Fatalf("%s runs as %v", name, pids)
		}
		if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		l.says("launcher | " + name + ": ended with signal: killed, started again in ")
		l.until(name+" is back", func() bool {
			now := l.running(name)
			res, err := http.Get("http://" + l.addr(port) + "/readyz")
			if err != nil {
				return false
			}
			res.Body.Close()
			return res.StatusCode == http.StatusOK && len(now) == 1 && now[0] != pids[0]
		})
	}
	if lines := strings.Count(l.stdout(), "\n"); lines != 1 {
		t.Errorf("%d lines on stdout", lines)
	}
	l.signal(syscall.SIGINT)
	l.ends(0)
}

func TestKilledLauncher(t *testing.T) {
	p := installed(t)
	first := p.launch()
	first.ready()
	first.signal(syscall.SIGKILL)
	<-first.done
	// At once, while the daemons of the first are stopping.
	second := p.launch()
	second.ready()
	second.signal(syscall.SIGKILL)
	<-second.done
	p.until("nothing is left", func() bool { return len(p.left()) == 0 })
}

func TestRefusedConfiguration(t *testing.T) {
	for variable, says := range map[string]string{
		"GATED_ADDR=x":          `launcher: GATED_ADDR="x": want host:port`,
		"MAX_AGENTS=0":          "gated    | gated: MAX_AGENTS: must be at least 1",
		"POLL_INTERVAL=-1s":     "POLL_INTERVAL: must be at least 10ms",
		"ARIZUKO_SECRET_FILE=/": "ARIZUKO_SECRET_FILE: ",
	} {
		t.Run(variable, func(t *testing.T) {
			l := installed(t, variable).launch()
			l.ends(78)
			if !strings.Contains(l.stderr(), says) || l.stdout() != "" {
				t.Errorf("it said\n%s%s", l.stdout(), l.stderr())
			}
		})
	}
}

func TestAddressOfAnother(t *testing.T) {
	p := installed(t)
	other, err := net.Listen("tcp", p.addr(8083))
	if err != nil {
		t.Fatal(err)
	}
	l := p.launch()
	l.says("dashd: another process listens on " + p.addr(8083) + ", waiting for it to end")
	other.Close()
	l.ready()
	l.signal(syscall.SIGINT)
	l.ends(0)
}

func TestDashdThatIsNotOurs(t *testing.T) {
	p := installed(t)
	// It does not know the secret, which appears before it starts.
	p.env = append(p.env, "ARIZUKO_SECRET=another-secret")
	if err := os.MkdirAll(p.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.data, "secret"), []byte("unknown\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := p.launch()
	l.ends(1)
	if !strings.Contains(l.stderr(), "launcher: dashd: ") {
		t.Errorf("it said\n%s", l.stderr())
	}
}

func TestArgumentsAreRefused(t *testing.T) {
	p := installed(t)
	l := p.launch("serve")
	l.ends(78)
	if _, err := os.Stat(p.data); err == nil {
		t.Error("it has made the data folder")
	}
}
