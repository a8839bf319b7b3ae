package browser_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for anything. It says nothing about speed.
const patience = 30 * time.Second

// instance is arizuko as a newcomer runs it.
type instance struct {
	t    *testing.T
	data string
	host string
	url  string // of dashd
	env  []string
	link string // where the launcher said to log in

	launcher *exec.Cmd
	ended    chan struct{} // closed when the launcher has
	said     *os.File      // what the launcher and the daemons log, over all starts
}

// start launches arizuko on an empty folder, with more of the environment, and returns when it
// says that it is ready. The end of the test stops it and looks at what it leaves behind.
func start(t *testing.T, env ...string) *instance {
	t.Helper()
	// Not t.TempDir, whose path is too long for the sockets.
	dir, err := os.MkdirTemp("", "browse")
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{t: t, data: filepath.Join(dir, "data"), host: loopback(dir)}
	i.url = "http://" + i.host + ":8083"
	i.env = append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "TZ=UTC", "ARIZUKO_DATA=" + i.data,
		"GATED_ADDR=" + i.host + ":8080", "ROUTD_ADDR=" + i.host + ":8081",
		"ONBOD_ADDR=" + i.host + ":8082", "DASHD_ADDR=" + i.host + ":8083",
	}, env...)
	if i.said, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.remove(dir) })
	i.launch()
	t.Cleanup(i.finish)
	return i
}

// loopback is an address that no other instance listens on, so that the ports can stay the same
// over restarts, and that is an origin of its own to the browser.
func loopback(dir string) string {
	sum := crc32.ChecksumIEEE([]byte(dir))
	return fmt.Sprintf("127.%d.%d.%d", 192|sum>>16&31, sum>>8&255, 1+sum%254)
}

// readyLine is all that the launcher prints on stdout.
var readyLine = regexp.MustCompile(`^arizuko ready: (http://\S+)\n$`)

// launch starts the launcher and waits for its line.
func (i *instance) launch() {
	i.t.Helper()
	stdout := filepath.Join(filepath.Dir(i.data), "stdout")
	out, err := os.Create(stdout)
	if err != nil {
		i.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(filepath.Join(built, "launcher"))
	cmd.Env, cmd.Stdout, cmd.Stderr = i.env, out, i.said
	// A test that is killed takes the launcher with it, and that takes the daemons.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		i.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its exit code is what counts
		close(ended)
	}()
	i.launcher, i.ended = cmd, ended
	i.until("the launcher says that it is ready", func() bool {
		if !i.runs() {
			i.t.Fatalf("the launcher ended with %d", cmd.ProcessState.ExitCode())
		}
		line, err := os.ReadFile(stdout)
		if err != nil {
			i.t.Fatal(err)
		}
		match := readyLine.FindSubmatch(line)
		if match != nil {
			i.link = string(match[1])
		}
		return match != nil
	})
}

func (i *instance) runs() bool {
	select {
	case <-i.ended:
		return false
	default:
		return true
	}
}

// stop ends the launcher as Ctrl-C does. Nothing may be left.
func (i *instance) stop() {
	i.t.Helper()
	if err := i.launcher.Process.Signal(syscall.SIGINT); err != nil {
		i.t.Fatal(err)
	}
	i.until("the launcher has ended", func() bool { return !i.runs() })
	if code := i.launcher.ProcessState.ExitCode(); code != 0 {
		i.t.Errorf("the launcher ended with %d", code)
	}
	if left := i.processes(""); len(left) > 0 {
		i.t.Errorf("processes %v are left", left)
	}
}

// finish lets everything come to its end and looks at the rows.
func (i *instance) finish() {
	if i.t.Failed() || !i.runs() {
		return
	}
	i.settle()
	i.checkRows()
	i.stop()
}

// remove ends what a failed test has left and tidies up.
func (i *instance) remove(dir string) {
	for _, pid := range i.processes("") {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may just have gone by itself
	}
	i.until("all processes are gone", func() bool { return len(i.processes("")) == 0 })
	if i.t.Failed() {
		i.showLog()
	}
	i.said.Close()
	if err := os.RemoveAll(dir); err != nil {
		i.t.Error(err)
	}
}

// showLog logs the end of what the daemons said, and the last rows.
func (i *instance) showLog() {
	text, err := os.ReadFile(i.said.Name())
	if err != nil {
		i.t.Error(err)
	}
	i.t.Logf("%s:\n%s", i.host, text[max(0, len(text)-12_000):])
	i.t.Log(strings.Join(i.lastRows(), "\n"))
}

// processes are those of this instance whose program has the name, all for "".
func (i *instance) processes(name string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		i.t.Fatal(err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// All are empty for zombies and for processes that have just gone. Agents do not have the
		// folder in their environment, but work in it.
		env, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		args, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		folder, _ := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd"))
		program, _, _ := strings.Cut(string(args), "\x00")
		ours := bytes.Contains(env, []byte(i.data+"\x00")) || strings.HasPrefix(folder, i.data+"/")
		if ours && (name == "" || filepath.Base(program) == name) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// signal sends a daemon a signal and returns its process id.
func (i *instance) signal(name string, sig syscall.Signal) (pid int) {
	i.t.Helper()
	pids := i.processes(name)
	if len(pids) != 1 {
		i.t.Fatalf("%s runs as %v", name, pids)
	}
	if err := syscall.Kill(pids[0], sig); err != nil {
		i.t.Fatalf("%s to %s: %v", sig, name, err)
	}
	return pids[0]
}

// kill ends a daemon without any warning. The launcher starts it again.
func (i *instance) kill(name string) {
	i.t.Helper()
	pid := i.signal(name, syscall.SIGKILL)
	i.until(name+" is gone", func() bool { return !slices.Contains(i.processes(name), pid) })
}

// hang makes a daemon stand still until it gets a SIGCONT.
func (i *instance) hang(name string) {
	i.t.Helper()
	pid := i.signal(name, syscall.SIGSTOP)
	i.until(name+" stands still", func() bool {
		stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		return len(fields) > 0 && string(fields[0]) == "T"
	})
}

// run runs one of the programs in the instance's environment and returns what it prints.
func (i *instance) run(program string, args ...string) string {
	i.t.Helper()
	cmd := exec.Command(filepath.Join(built, program), args...)
	cmd.Env = i.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		i.t.Fatalf("%s %s: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// until waits for something to become true.
func (i *instance) until(what string, holds func() bool) {
	i.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-deadline.C:
			i.t.Fatalf("waited in vain: %s", what)
		}
	}
}
