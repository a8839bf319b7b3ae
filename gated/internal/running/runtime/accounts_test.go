package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/testkit/need"
)

// output runs a script as the agent and returns its output.
func (e fixture) output(t *testing.T, r Runtime, script string) string {
	t.Helper()
	spec := e.spec
	spec.Command = "{ " + script + "\n} >out 2>&1"
	p, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	_, _, exit := finish(t, p)
	out, err := os.ReadFile(filepath.Join(spec.Dir, "out"))
	if err != nil || exit.Err != nil {
		t.Fatalf("%v, exit %+v", err, exit)
	}
	return strings.TrimSpace(string(out))
}

// Ssh, among others, refuses to work for a user without an account.
func TestAgentOfRoot_HasAnAccount(t *testing.T) {
	need.Root(t)
	needBwrap(t)
	need.Program(t, "ssh", "openssh-client")
	e := newFixture(t, "")
	for name, tt := range map[string]struct {
		runtime Runtime
		home    string
	}{
		"process": {Process{Temp: e.temp()}, e.spec.Dir},
		"bwrap":   {Sandbox{Temp: e.temp(), Data: e.data}, filepath.Join(e.data, "groups/main/eng")},
	} {
		script, want := "id -un; id -gn; echo ~agent $HOME; stat -c '%a %U' /etc/passwd /etc/group", "agent\nagent\n"+tt.home+" "+tt.home+"\n644 root\n644 root"
		if out := e.output(t, tt.runtime, script); out != want {
			t.Errorf("%s: %q, want %q", name, out, want)
		}
		if out := e.output(t, tt.runtime, "ssh -G host.example"); strings.Contains(out, "No user exists") || !strings.Contains(out, "user agent") {
			t.Errorf("%s: ssh: %.200q", name, out)
		}
	}
}

func TestSandbox_SharedMemory_IsTheAgentsOwnAndBounded(t *testing.T) {
	needBwrap(t)
	e := newFixture(t, "")
	r := Sandbox{Temp: e.temp(), Data: e.data}
	script := "stat -c %a /dev/shm; echo x > /dev/shm/arizuko-test && cat /dev/shm/arizuko-test; df --output=size -B1 /dev/shm | tail -1"
	if out, want := e.output(t, r, script), "1777\nx\n268435456"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	if out := e.output(t, r, "test -e /dev/shm/arizuko-test || echo none"); out != "none" {
		t.Errorf("another run finds the file: %q", out)
	}
	need.Program(t, "python3", "python3")
	if out := e.output(t, r, `python3 -c "import multiprocessing; multiprocessing.Lock(); print('ok')"`); out != "ok" {
		t.Errorf("a lock of Python: %q", out)
	}
}
