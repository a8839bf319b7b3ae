package upkeep

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// user is a user of the machine, who needs no name.
type user struct{ uid, gid uint32 }

// Root makes the backup while the daemons run, and restores it. The daemons are another user's before and
// after.
func TestRestore_ByRoot_DaemonsOfAnotherUserGoOn(t *testing.T) {
	t.Parallel()
	need.Root(t)
	former, other := user{4242, 4243}, user{65534, 65534}
	d := newDrill(t)
	d.give(former)
	d.runAs(former)
	d.Migrate()
	d.startAll()
	d.AddGroups("main")
	d.AddRoute("platform=telegram", "main")
	d.ask("before the backup")
	file := filepath.Join(d.Instance.Dir, "b.tgz")
	d.runAs(user{})
	d.command("backup", file)
	d.stopAndCheckOwners(former)

	t.Run("into a folder of root, empty", func(t *testing.T) {
		restored := d.elsewhere(t)
		restored.command("restore", file)
		restored.goOnAs(former)
	})
	t.Run("into a folder of another user", func(t *testing.T) {
		restored := d.elsewhere(t)
		restored.give(other)
		restored.command("restore", file)
		restored.goOnAs(other)
	})
	t.Run("over the instance", func(t *testing.T) {
		restored := d.elsewhere(t)
		restored.give(other)
		restored.command("restore", file)
		restored.command("restore", "--force", file)
		restored.goOnAs(other)
	})
}

// give gives the data folder, which is empty, to a user.
func (d *drill) give(to user) {
	d.T.Helper()
	d.OK(os.Chown(d.Data, int(to.uid), int(to.gid)))
}

func (d *drill) runAs(u user) {
	d.T.Helper()
	d.OK(d.Instance.RunAs(u.uid, u.gid))
}

// goOnAs starts a restored instance as a user. It must read what the backup has, answer, store files and stop.
func (d *drill) goOnAs(u user) {
	d.T.Helper()
	d.runAs(u)
	d.Migrate()
	d.startAll()
	for _, name := range daemons {
		if got := d.ownerOf(fmt.Sprint("/proc/", d.Instance.Process(name).PID())); got != u {
			d.T.Errorf("%s runs as %v", name, got)
		}
	}
	d.wantFile("before the backup")
	d.ask("after the restore")
	if input := d.AgentInput("main"); !strings.Contains(input, "before the backup") || !strings.Contains(input, "after the restore") {
		d.T.Errorf("the agent's file has %q", input)
	}
	d.command("backup", filepath.Join(d.Data, "own.tgz"))
	d.stopAndCheckOwners(u)
}

// ask writes a message with a file, whose content is the text, and waits for the answer.
func (d *drill) ask(text string) {
	d.T.Helper()
	answers := strings.Count(arrived(d.platform), "You said: "+text)
	a := chatsim.Action{Conversation: d.dms[0], Verb: msg.VerbMessage, Text: text, File: &chatsim.File{Name: "file.txt", Data: []byte(text)}}
	if _, err := d.platform.Do(a); err != nil {
		d.T.Fatal(err)
	}
	d.Until("an answer to "+text, func() bool { return strings.Count(arrived(d.platform), "You said: "+text) > answers })
	d.WaitIdle()
	d.wantFile(text)
}

// wantFile fails the test unless the message is stored once, with its file.
func (d *drill) wantFile(text string) {
	d.T.Helper()
	paths := d.Query(`SELECT attachments ->> '$[0].path' FROM messages WHERE direction = 'in' AND content = ?`, text)
	if len(paths) != 1 {
		d.T.Fatalf("%q has the files %v", text, paths)
	}
	if got, err := os.ReadFile(filepath.Join(d.Data, paths[0])); err != nil || string(got) != text {
		d.T.Errorf("the file of %q is %q, %v", text, got, err)
	}
}

// stopAndCheckOwners stops the daemons. All in the data folder must belong to the user.
func (d *drill) stopAndCheckOwners(want user) {
	d.T.Helper()
	stopping, cancel := context.WithTimeout(d.T.Context(), 2*time.Minute)
	defer cancel()
	d.OK(d.Instance.StopAll(stopping))
	d.OK(filepath.WalkDir(d.Data, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && d.ownerOf(path) != want {
			d.T.Errorf("%s belongs to %v, want %v", path, d.ownerOf(path), want)
		}
		return err
	}))
}

func (d *drill) ownerOf(path string) user {
	d.T.Helper()
	info, err := os.Lstat(path)
	d.OK(err)
	st := info.Sys().(*syscall.Stat_t)
	return user{st.Uid, st.Gid}
}
