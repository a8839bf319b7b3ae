package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"arizuko/pkg/testkit/need"
)

// Tests here are not parallel: the whole process has another user for a while.

// hostile is an instance of a user of the machine who can open it, and a folder of root.
func hostile(t *testing.T) (i *instance, victim string) {
	t.Helper()
	need.Root(t)
	i = newInstance(t)
	i.ok(os.Chmod(filepath.Dir(i.data), 0o755))
	i.own()
	victim = t.TempDir()
	for _, name := range []string{"yarn.lock", "gated.lock", "backup.partial.db", "ready.json"} {
		i.ok(os.WriteFile(filepath.Join(victim, name), []byte("kept"), 0o600))
	}
	i.ok(os.Mkdir(filepath.Join(victim, newName), 0o700))
	return i, victim
}

// own gives the data folder and its files to user 4242, a group's folder to an agent.
func (i *instance) own() {
	i.t.Helper()
	i.ok(filepath.WalkDir(i.data, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, 4242, 4243))
	}))
	i.ok(os.Lchown(i.path("groups/main"), 30007, 30007))
}

// wantKept fails the test unless the folder is as hostile left it.
func (i *instance) wantKept(victim string) {
	i.t.Helper()
	all, err := os.ReadDir(victim)
	i.ok(err)
	if len(all) != 5 {
		i.t.Errorf("the folder of root has %v", all)
	}
	for _, entry := range all {
		info, err := entry.Info()
		i.ok(err)
		if info.Sys().(*syscall.Stat_t).Uid != 0 || entry.Type().IsRegular() && info.Size() != 4 {
			i.t.Errorf("%s was changed", entry.Name())
		}
	}
}

// watched is a context that is asked while the database is copied.
type watched struct {
	context.Context //nolint:containedctx // it is one
	asked           func()
}

func (w watched) Err() error {
	w.asked()
	return w.Context.Err()
}

func TestBackup_AsRoot_CopiesTheDatabaseAsOwnerAndReadsAgentsFiles(t *testing.T) {
	i, _ := hostile(t)
	closed := t.TempDir() // to the owner
	for _, target := range []string{filepath.Join(closed, "b.tgz"), Stdout} {
		var users sync.Map // whose the copy was; it is asked from several goroutines, some of which are late
		c := i.creation(target)
		ctx := watched{t.Context(), func() {
			if info, err := os.Lstat(i.path("run/backup.partial.db")); err == nil {
				users.Store(info.Sys().(*syscall.Stat_t).Uid, true)
			}
		}}
		s, err := c.Run(ctx)
		i.ok(err)
		var all []any
		users.Range(func(user, _ any) bool { all = append(all, user); return true })
		if len(all) != 1 || all[0] != uint32(4242) {
			t.Errorf("%s: copied by users %v", target, all)
		}
		if s.Notes.Unreadable > 0 || os.Geteuid() != 0 {
			t.Errorf("%s: %d files were not read; user %d afterwards", target, s.Notes.Unreadable, os.Geteuid())
		}
		if _, err := os.Lstat(i.path("run/backup.partial.db")); err == nil {
			t.Error("the copy is left")
		}
	}
	i.wantOwners(closed, map[string]string{"b.tgz": "0:0"})
	data := i.restore(filepath.Join(closed, "b.tgz"))
	if text, err := os.ReadFile(filepath.Join(data, "groups/main/notes.txt")); err != nil || string(text) != "remember\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestBackupAndRestore_AsRoot_FollowNoLinkOfTheOwner(t *testing.T) {
	source := newInstance(t).backup()
	for _, name := range []string{runName, restoringName, groupsName, mediaName, secretName, databaseName} {
		i, victim := hostile(t)
		i.ok(os.RemoveAll(i.path(name)), os.Symlink(victim, i.path(name)), os.Lchown(i.path(name), 4242, 4243))
		_, err := i.creation(filepath.Join(t.TempDir(), "b.tgz")).Run(t.Context())
		if err == nil && name != restoringName {
			t.Errorf("%s is a link: a backup was made", name)
		}
		r := restoration(i.data, source)
		r.Force = true
		_, err = r.Run(t.Context())
		if (err == nil) != (name == secretName || name == databaseName) { // which are moved aside, as links
			t.Errorf("%s is a link: restored, %v", name, err)
		}
		i.wantKept(victim)
	}
}

func TestRestore_AsRootIntoFolderOfAnotherUser_OpensTheDatabaseAsThatUser(t *testing.T) {
	i, _ := hostile(t)
	source := i.backup()
	data := t.TempDir()
	i.ok(os.Chmod(filepath.Dir(data), 0o755), os.Chown(data, 4444, 4445))
	for range 2 {
		r := restoration(data, source)
		r.Force = true
		_, err := r.Run(t.Context())
		i.ok(err)
		i.wantOwners(data, map[string]string{
			databaseName: "4444:4445", "secret": "4444:4445", "groups": "4444:4445", "groups/main": "30007:30007", "run/gated.lock": "4444:4445",
		})
		if os.Geteuid() != 0 {
			t.Errorf("user %d afterwards", os.Geteuid())
		}
	}
}
