package launcher

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"arizuko/deploy/e2e/foreign"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// Root starts everything with one command, in folders that are closed to other users, and the demo
// agent answers as a user of its own.
func TestLauncher_AsRoot_AgentHasAUserOfItsOwn(t *testing.T) {
	need.Root(t)
	f := withDaemons(t)
	l := f.Launch()
	l.WaitReady()
	adapter, err := foreign.Open(f.Instance.Database(), f.Instance.Data, func(_ string, err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = adapter.Close() })
	if _, err := adapter.Receive(t.Context(), msg.Message{ChatJID: "web:main", Content: "hello"}); err != nil {
		t.Fatal(err)
	}
	var answer []string
	f.Until("the answer", func() bool {
		answer = f.Query("SELECT content FROM messages WHERE direction = 'out' AND chat_jid = 'web:main'")
		return len(answer) > 0
	})
	if !strings.Contains(answer[0], "hello") {
		t.Errorf("the answer is %q", answer)
	}
	var folder syscall.Stat_t
	if err := syscall.Stat(filepath.Join(f.Instance.Data, "groups", "main"), &folder); err != nil || folder.Uid != 30000 || folder.Mode&0o777 != 0o700 {
		t.Errorf("the group's folder is of user %d, mode %o, %v", folder.Uid, folder.Mode, err)
	}
	if out := l.Stderr(); !strings.Contains(out, `runtime=process user="a number for each group, from 30000"`) {
		t.Errorf("the log does not say who runs agents:\n%s", out)
	}
	l.Signal(syscall.SIGINT)
	l.WantEnd(0)
}
