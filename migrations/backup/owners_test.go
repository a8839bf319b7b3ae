package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"arizuko/pkg/lockfile"
	"arizuko/pkg/testkit/need"
)

func TestRestore_AsRoot_KeepsAgentsOwnersAndMapsTheInstances(t *testing.T) {
	t.Parallel()
	need.Root(t)
	i := newInstance(t)
	i.write("groups/main/agents.txt", "x")
	i.ok(os.Chown(i.path("groups/main/agents.txt"), 30007, 30007))
	i.ok(os.Lchown(i.path("groups/main"), 30007, 30007))
	data := t.TempDir()
	i.ok(os.Chown(data, 4242, 4243))
	_, err := restoration(data, i.backup()).Run(t.Context())
	i.ok(err)
	i.wantOwners(data, map[string]string{
		databaseName: "4242:4243", "secret": "4242:4243", "groups": "4242:4243", "groups/main": "30007:30007", "groups/main/agents.txt": "30007:30007",
		"run": "4242:4243", "run/gated.lock": "4242:4243", "run/slakd.lock": "4242:4243", "run/backup.lock": "4242:4243",
	})

	r := restoration(data, i.backup())
	r.Force = true
	done, err := r.Run(t.Context())
	i.ok(err)
	i.wantOwners(done.Aside, map[string]string{".": "4242:4243"})
}

// wantOwners fails the test unless files of a folder, and the folder "." itself, belong to these.
func (i *instance) wantOwners(folder string, want map[string]string) {
	i.t.Helper()
	for name, want := range want {
		var st unix.Stat_t
		i.ok(unix.Lstat(filepath.Join(folder, name), &st))
		if got := fmt.Sprintf("%d:%d", st.Uid, st.Gid); got != want {
			i.t.Errorf("%s belongs to %s, want %s", name, got, want)
		}
	}
}

// As on a new machine, where nothing else names the user of the daemons.
func TestRestore_AsRootIntoNewFolder_GivesAllToTheFormerUser(t *testing.T) {
	t.Parallel()
	need.Root(t)
	i := newInstance(t)
	i.write("groups/main/agents.txt", "x")
	i.write("groups/main/roots.txt", "x")
	i.ok(filepath.WalkDir(i.data, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, 4242, 4243))
	}))
	i.ok(os.Chown(i.path("groups/main/agents.txt"), 30007, 30007))
	i.ok(os.Chown(i.path("groups/main/roots.txt"), 0, 0))
	source := i.backup()
	i.wantOwners(i.data, map[string]string{"run/backup.lock": "4242:4243"})
	for _, data := range []string{filepath.Join(t.TempDir(), "new"), t.TempDir()} {
		_, err := restoration(data, source).Run(t.Context())
		i.ok(err)
		i.wantOwners(data, map[string]string{
			".": "4242:4243", databaseName: "4242:4243", "secret": "4242:4243", "groups": "4242:4243", "media": "4242:4243",
			"run": "4242:4243", "run/gated.lock": "4242:4243", "run/migrate.lock": "4242:4243",
			"groups/main/agents.txt": "30007:30007", "groups/main/roots.txt": "0:0",
		})
	}
}

func TestRestore_DaemonRuns_Refused(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	r := restoration(filepath.Join(t.TempDir(), "a[b*"), i.backup()) // no pattern
	i.ok(os.MkdirAll(filepath.Join(r.Data, "run"), 0o700))
	for _, name := range []string{"gated.lock", "foreignd.lock"} {
		lock, err := lockfile.TryLock(filepath.Join(r.Data, "run", name))
		i.ok(err)
		_, err = r.Run(t.Context())
		if !errors.Is(err, lockfile.ErrHeld) || !strings.Contains(err.Error(), "stop all daemons first: ") ||
			!strings.Contains(err.Error(), name+" is locked by process") {
			t.Errorf("%s: %v", name, err)
		}
		i.ok(lock.Close())
	}
}

// Another user of the machine may have made the file, and has it open.
func TestBackup_PartialFilesExist_NotWrittenInto(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	target := filepath.Join(t.TempDir(), "b.tgz")
	var open []*os.File
	for _, suffix := range []string{".partial", ".partial.db"} {
		f, err := os.Create(target + suffix)
		i.ok(err)
		defer f.Close()
		open = append(open, f)
	}
	_, err := i.creation(target).Run(t.Context())
	i.ok(err)
	for _, f := range open {
		if info, err := f.Stat(); err != nil || info.Size() > 0 {
			t.Errorf("%s got %d bytes, %v", f.Name(), info.Size(), err)
		}
	}
}

func TestBackup_LockUnusable_NotCalledBusy(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	i.ok(os.MkdirAll(i.path("run"), 0o700))
	i.ok(os.Symlink(i.path("secret"), i.path("run/backup.lock")))
	_, err := i.creation(filepath.Join(t.TempDir(), "b.tgz")).Run(t.Context())
	if err == nil || strings.Contains(err.Error(), "another backup") {
		t.Errorf("got %v", err)
	}
	if got, err := os.ReadFile(i.path("secret")); err != nil || len(got) == 0 {
		t.Errorf("the linked file is %q, %v", got, err)
	}
}
