package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/msg"
)

// otherGroups are the groups of the fixture besides that of its agent, main/eng:
// above it, beside it, right below it, and two levels below it.
func otherGroups() []string {
	return []string{"main", "main/ops", "main/eng/child", "main/eng/a/b", "other"}
}

// otherGroups tries to read, write, rename and replace the folder of every other
// group, and the folder of all groups, by each name they have on disk or had when
// folders were nested.
func (tr runtimeTest) otherGroups(t *testing.T, w testRuntime, e fixture) {
	if tr.name == "process" && e.spec.User.IsZero() {
		return // such agents may do what gated may
	}
	c := w.start(t, e.spec)
	groups := filepath.Join(e.data, "groups")
	for _, folder := range otherGroups() {
		for _, dir := range []string{
			filepath.Join(groups, folder), filepath.Join(groups, msg.DirName(folder)), filepath.Join("..", msg.DirName(folder)),
		} {
			c.unread(dir + "/notes")
			c.ask("rename " + dir + " taken")
			c.ask("rename taken " + dir)
			c.ask("rename " + dir + " " + dir + "-gone")
			c.ask("link " + e.spec.Dir + " " + dir)
			c.ask("write " + dir + "/notes")
		}
	}
	c.unread("child/notes", "a/b/notes")
	for _, order := range []string{
		"mkdir child", "write child/notes", "mkdir a/b", "write a/b/notes", "rename a x", "rename child y", "link ../other a", "link " + groups + " child",
	} {
		c.ask(order) // in its own folder
	}
	moved := []string{"x/b/notes", "y/notes", "a/notes", "child/main/notes", "child/other/notes"}
	c.unread(moved...)
	for _, dir := range []string{groups, ".."} {
		c.refused("rename "+dir+" gone", "rename "+dir+" "+dir+"-gone", "write "+dir+"/planted")
	}
	c.finish()
	e.spec.RunID++
	next := w.start(t, e.spec) // folders that a run has renamed are not where the next one expects them
	next.unread(moved...)
	next.unread("child/notes", "a/b/notes")
	next.finish()
	e.wantUntouched(t)
}

// unread fails the test if a file of another group can be read there.
func (c agentRun) unread(paths ...string) {
	c.t.Helper()
	for _, path := range paths {
		if answer := c.ask("read " + path); strings.Contains(answer, "content of") {
			c.t.Errorf("read %s: %q", path, answer)
		}
	}
}

// wantUntouched fails the test unless the other groups' folders are as they were, and
// nothing is beside them.
func (e fixture) wantUntouched(t *testing.T) {
	t.Helper()
	for _, folder := range otherGroups() {
		file := filepath.Join("groups", msg.DirName(folder), "notes")
		if b, err := os.ReadFile(filepath.Join(e.data, file)); err != nil || string(b) != "content of "+file {
			t.Errorf("%s is %q now, %v", file, b, err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(e.data, "groups"))
	if want := len(otherGroups()) + 1; err != nil || len(entries) != want {
		t.Errorf("%d folders of groups, want %d: %v, %v", len(entries), want, entries, err)
	}
}

// renamedDuringStart moves folders of its own about while a run of the group below
// starts: that run has its own files each time.
func (tr runtimeTest) renamedDuringStart(t *testing.T, w testRuntime, e fixture) {
	if tr.name == "process" && e.spec.User.IsZero() {
		return
	}
	above := w.start(t, e.spec)
	above.ask("mkdir a/b")
	below := e.spec
	below.RunID, below.Folder = e.spec.RunID+1, "main/eng/a/b"
	below.Dir = filepath.Join(e.data, "groups", msg.DirName(below.Folder))
	below.LogPath += ".below"
	below.User = ownedBy(t, below.Dir, 59003)
	for range 3 {
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, order := range []string{"rename a x", "link ../other a", "rename a l", "rename x a"} {
					above.ask(order)
				}
			}
		}()
		c := w.start(t, below)
		c.allowed(map[string]string{"read notes": "content of groups/main+eng+a+b/notes"})
		c.finish()
		close(stop)
		<-stopped
	}
	above.unread("a/b/notes", "x/b/notes")
	above.finish()
	e.wantUntouched(t)
}
