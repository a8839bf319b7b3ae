package runtime

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/testkit/docker"
	"arizuko/pkg/testkit/executable"
	"arizuko/pkg/testkit/need"
)

// threatModel has the table, between marks.
const threatModel = "../../../../docs/threat-model.md"

// observeEnv makes the test binary print the powers of an agent in the runtime process, while gated
// runs as this user.
const observeEnv = "ARIZUKO_OBSERVE_PROCESS"

// The columns of the table.
const (
	columnProcess = "`process`"
	columnRoot    = "`process`, gated is root"
	columnBwrap   = "`bwrap`"
	columnDocker  = "`docker`"
)

// TestThreatModel_Table_IsObserved runs an agent that tries to get out in each runtime, and compares
// its success with the page.
func TestThreatModel_Table_IsObserved(t *testing.T) {
	needBwrap(t)
	need.Root(t)
	attacker := buildAttacker(t)
	engine := docker.Start(t)
	engine.Import(t, attackerImage, map[string]string{"agent": attacker})
	got := map[string][]observation{
		columnProcess: observeAsUser(t, 59009),
		columnRoot:    observe(t, runtimeTest{name: "process", attacker: attacker}),
		columnBwrap:   observe(t, runtimeTest{name: "bwrap", attacker: attacker}),
		columnDocker:  observe(t, runtimeTest{name: "docker", attacker: attacker, engine: engine}),
	}
	rows := []string{"| an agent can |"}
	for _, o := range got[columnProcess] {
		rows = append(rows, "| "+o.What+" |")
	}
	for _, column := range []string{columnProcess, columnRoot, columnBwrap, columnDocker} {
		rows[0] += " " + column + " |"
		for i, o := range got[column] {
			rows[i+1] += " " + map[bool]string{true: "**yes**", false: "no"}[o.Can] + " |"
		}
	}
	rows = slices.Insert(rows, 1, "|---|---|---|---|---|")
	page, err := os.ReadFile(threatModel)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- isolation:start -->\n\n")
	table, _, _ = strings.Cut(table, "\n\n<!-- isolation:end -->")
	if diff := cmp.Diff(strings.Split(table, "\n"), rows); diff != "" {
		t.Errorf("docs/threat-model.md (-page +observed):\n%s", diff)
	}
}

// observation is one thing that an agent tried.
type observation struct {
	What string
	Can  bool
}

// observe lets the attacker try everything. It must not run as root: it would change the machine.
func observe(t *testing.T, tr runtimeTest) (seen []observation) {
	e := newFixture(t, tr.attacker)
	own := filepath.Join(t.TempDir(), "note")
	if err := os.WriteFile(own, []byte("private"), 0o600); err != nil {
		t.Fatal(err)
	}
	gated := fakeGated(t)
	loopback := serveText(t, listenOn(t, "tcp4", "127.0.0.1:0"), "daemon")
	socket := "arizuko-test-" + tr.name + strconv.Itoa(os.Getpid())
	serveText(t, listenOn(t, "unix", "@"+socket), "daemon")
	c := tr.open(e).start(t, e.spec)
	status := c.ask("read /proc/self/status")
	if strings.Contains(status, "\nUid:\t0") {
		t.Fatalf("the attacker is root:\n%s", status)
	}
	add := func(what string, can bool) { seen = append(seen, observation{what, can}) }
	answers := func(want string, orders ...string) bool {
		return slices.ContainsFunc(orders, func(order string) bool {
			answer := c.ask(order)
			return strings.HasPrefix(answer, "ok ") && strings.Contains(answer, want)
		})
	}
	file := func(order, name string) string { return order + " " + filepath.Join(e.data, name) }
	add("read its group's files", answers("content of", "read notes"))
	add("read other groups' files", answers("content of", file("read", "groups/other/notes"), "read ../other/notes", "read ../main/notes"))
	add("change other groups' files", answers("", file("write", "groups/other/planted"), "write ../other/planted"))
	add("take another group's folder away", tookAway(e, c))
	add("read the database, the shared secret, attachments, logs of runs", answers("content of",
		file("read", "arizuko.db"), file("read", "secret"), file("read", "media/202601/face.jpg"), file("read", "logs/main/run-1.log"), "read link"))
	add("read the environment of gated, with its tokens", answers("t-value", fmt.Sprintf("read /proc/%d/environ", gated)))
	add("see other programs of this machine", answers("fake-gated", fmt.Sprintf("read /proc/%d/cmdline", gated)))
	add("stop gated", answers("", fmt.Sprintf("signal %d", gated)))
	add("read other files of gated's user", answers("private", "read "+own))
	add("write to the system's folders", answers("", "write /etc/arizuko-planted", "write /usr/arizuko-planted", "write /dev/arizuko-planted") && planted())
	add("change the modes of this machine's devices", changedDevice(t, c))
	add("gain rights by setuid programs", !strings.Contains(status, "NoNewPrivs:\t1"))
	add("reach the daemons' ports on this machine's loopback", answers("daemon", "dial 127.0.0.1:"+loopback, "bound 127.0.0.1:"+loopback))
	add("reach abstract sockets of this machine", answers("daemon", "dial unix:"+socket))
	add("leave processes behind", leavesProcess(t, c))
	return seen
}

// fakeGated starts a process in the place of gated, with a token in its environment.
func fakeGated(t *testing.T) (pid int) {
	cmd := exec.Command("sleep", "1000")
	cmd.Args[0] = "fake-gated"
	cmd.Env = []string{"TELEGRAM_BOT_TOKEN=t-value"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// tookAway tries to rename the folder of another group, and looks whether that is gone.
func tookAway(e fixture, c agentRun) bool {
	other := filepath.Join(e.data, "groups", "main+ops")
	c.ask("rename " + other + " " + other + "-gone")
	c.ask("rename ../main+ops ../main+ops-gone")
	c.ask("rename ../ops ../ops-gone")
	_, err := os.Stat(filepath.Join(other, "notes"))
	return err != nil
}

// planted removes the attacker's files from the machine's folders, and reports whether there was any.
func planted() (any bool) {
	for _, dir := range []string{"/etc", "/usr", "/dev"} {
		any = os.Remove(filepath.Join(dir, "arizuko-planted")) == nil || any
	}
	return any
}

// changedDevice undoes the attacker's changes to this machine's devices.
func changedDevice(t *testing.T, c agentRun) (changed bool) {
	for _, path := range []string{"/dev/null", "/dev/full"} {
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		c.ask("chmod " + path)
		after, err := os.Stat(path)
		if err != nil || after.Mode() != before.Mode() {
			changed = true
			_ = os.Chmod(path, before.Mode().Perm())
		}
	}
	return changed
}

// leavesProcess ends the run, and processes that it has left.
func leavesProcess(t *testing.T, c agentRun) bool {
	name := "left-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	if answer := c.ask("detach " + name); answer != "ok " {
		t.Fatal(answer)
	}
	c.finish()
	left := false
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if b, err := os.ReadFile(path); err == nil && strings.HasSuffix(string(b), "\x00"+name+"\x00") {
			left = true
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return left
}

// observeAsUser runs this program as another user, who then is gated's.
func observeAsUser(t *testing.T, uid int) (seen []observation) {
	dir, err := os.MkdirTemp("", "observe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	attacker, err := os.ReadFile(buildAttacker(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"test": program, "attacker": attacker} {
		executable.Write(t, filepath.Join(dir, name), content)
	}
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "test"), "-test.run=^TestObserve_Process$")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), observeEnv+"="+filepath.Join(dir, "attacker"), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "[") && json.Unmarshal([]byte(line), &seen) == nil {
			return seen
		}
	}
	t.Fatalf("it observed nothing:\n%s", out)
	return nil
}

// TestObserve_Process is the other user's part of TestThreatModel_Table_IsObserved.
func TestObserve_Process(t *testing.T) {
	attacker := os.Getenv(observeEnv)
	if attacker == "" {
		need.Full(t)
		return
	}
	line, err := json.Marshal(observe(t, runtimeTest{name: "process", attacker: attacker}))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line))
}
