package browser_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
)

// maxRequest is how long an HTTP request of a test may take.
const maxRequest = 30 * time.Second

// instance is an instance as a new operator runs it: started by the launcher with defaults.
type instance struct {
	*harness.LauncherFixture
	t    *testing.T
	url  string // of dashd
	link string // the login link that the launcher has printed

	launcher *harness.Launcher
}

// start runs the launcher on an empty folder, with env added to its environment, and returns when
// it is ready. The end of the test checks the rows and stops it.
func start(t *testing.T, env ...string) *instance {
	t.Helper()
	bin, err := programs.Bin()
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{LauncherFixture: harness.NewLauncherFixture(t, bin, env...), t: t}
	i.url = i.Instance.URL("dashd")
	t.Cleanup(i.logRows)
	i.launch()
	t.Cleanup(i.finish)
	return i
}

// readyLine is all that the launcher prints on stdout.
var readyLine = regexp.MustCompile(`^arizuko ready: (http://\S+)\n$`)

// launch starts the launcher and waits until it is ready.
func (i *instance) launch() {
	i.T.Helper()
	i.launcher = i.Launch()
	line := i.launcher.WaitReady()
	match := readyLine.FindStringSubmatch(line)
	if match == nil {
		i.T.Fatalf("the launcher printed %q", line)
	}
	i.link = match[1]
}

// stop stops the launcher as Ctrl-C does.
func (i *instance) stop() {
	i.T.Helper()
	i.launcher.Signal(syscall.SIGINT)
	i.launcher.WantEnd(0)
}

// finish waits until the instance is idle, checks the rows and stops the launcher.
func (i *instance) finish() {
	if i.T.Failed() || !i.launcher.Process.Running() {
		return
	}
	i.WaitIdle()
	i.checkRows()
	i.stop()
}

// letGo makes the file that the demo agent waits for in the group main at "until NAME".
func (i *instance) letGo(name string) {
	i.T.Helper()
	if err := os.WriteFile(filepath.Join(i.Instance.Data, "groups", "main", name), nil, 0o644); err != nil {
		i.T.Fatal(err)
	}
}

// logRows logs the last rows of a failed test.
func (i *instance) logRows() {
	if i.T.Failed() {
		i.T.Log(strings.Join(i.Query(`SELECT id, chat_jid, direction, topic, substr(content, 1, 60), disposition, reason, turn_id, out_state
			FROM messages ORDER BY id DESC LIMIT 60`), "\n"))
	}
}
