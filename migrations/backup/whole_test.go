package backup

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/testkit/need"
)

// writeSparse makes a file of a size that has some texts, and holes between them.
func (i *instance) writeSparse(name string, size int64, texts map[int64]string) {
	i.t.Helper()
	i.write(name, "")
	f, err := os.OpenFile(i.path(name), os.O_WRONLY, 0)
	i.ok(err)
	for _, at := range slices.Sorted(maps.Keys(texts)) {
		_, err := f.WriteAt([]byte(texts[at]), at)
		i.ok(err)
	}
	i.ok(f.Truncate(size), f.Close())
}

// newFullInstance has in its folders all that a backup keeps.
func newFullInstance(t *testing.T) *instance {
	i := newInstance(t)
	i.write("groups/main/\xff\n\"tab\t.txt", "odd")
	i.write("groups/main/"+strings.Repeat("d/", 150)+strings.Repeat("n", 200), "deep")
	i.write("groups/main/run.sh", "#!")
	i.ok(os.Chmod(i.path("groups/main/run.sh"), 0o750))
	i.ok(os.Link(i.path("groups/main/run.sh"), i.path("groups/main/again.sh")))
	i.ok(os.Symlink("/etc/passwd", i.path("groups/main/out")))
	i.ok(os.Symlink("nowhere", i.path("groups/main/dangling")))
	i.write("groups/main/closed/x", "x")
	i.ok(os.Chmod(i.path("groups/main/closed"), 0o500))
	t.Cleanup(func() { _ = os.Chmod(i.path("groups/main/closed"), 0o700) })
	old := time.Date(1960, 1, 2, 3, 4, 5, 0, time.UTC)
	i.ok(os.Chtimes(i.path("groups/main/notes.txt"), old, old))

	i.writeSparse("groups/main/disk.img", 1<<24, map[int64]string{0: "begin", 1 << 23: "middle"})
	i.writeSparse("groups/main/"+strings.Repeat("ü", 100)+".img", 1<<20, nil)
	i.writeSparse("media/202611/unaligned", 1<<20+3, map[int64]string{12345: "text", 100_000: strings.Repeat("x", 70_001)})
	return i
}

// tree describes the files in the folders of an instance.
func tree(t *testing.T, data string) map[string]string {
	t.Helper()
	all, links := map[string]string{}, map[inode]string{}
	for _, top := range []string{groupsName, mediaName, secretName} {
		err := filepath.WalkDir(filepath.Join(data, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			text := info.Mode().String()
			if d.Type() == fs.ModeSymlink {
				to, err := os.Readlink(path)
				all[path[len(data):]] = text + " " + to
				return err
			}
			text += info.ModTime().UTC().Format(" 2006-01-02 15:04:05")
			if d.Type().IsRegular() {
				first, ok := links[inodeOf(info)]
				if !ok {
					first = path[len(data):]
					links[inodeOf(info)] = first
				}
				text += fmt.Sprintf(" %q %d %s", first, info.Size(), contentOf(t, path))
			}
			all[path[len(data):]] = text
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	return all
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestBackup_Restored_KeepsAll(t *testing.T) {
	t.Parallel()
	i := newFullInstance(t)
	target := i.backup()
	if info, err := os.Stat(target); err != nil || info.Size() > 1<<20 {
		t.Errorf("the backup has %d bytes, %v", info.Size(), err)
	}
	data := i.restore(target)
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(data, "groups/main/closed"), 0o700) })
	if diff := cmp.Diff(tree(t, i.data), tree(t, data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An operator can read a backup without dashd.
func TestBackup_TarAndSqlite3_ReadAll(t *testing.T) {
	t.Parallel()
	need.Program(t, "tar", "tar")
	need.Program(t, "sqlite3", "sqlite3")
	i := newFullInstance(t)
	target := i.backup()
	i.say("after the backup")
	folder := t.TempDir()
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(folder, "groups/main/closed"), 0o700) })
	if out := command(t, "tar", "-xpzf", target, "-C", folder); strings.Contains(out, "header") {
		t.Errorf("tar says: %s", out)
	}
	if diff := cmp.Diff(tree(t, i.data), tree(t, folder)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	listed := strings.Split(command(t, "tar", "-tzf", target), "\n")
	for _, name := range []string{headName, databaseName, secretName, "groups/main/disk.img", manifestName} {
		if !slices.Contains(listed, name) {
			t.Errorf("%s is not listed", name)
		}
	}
	const query = "PRAGMA integrity_check; PRAGMA journal_mode; SELECT content FROM messages"
	if got := command(t, "sqlite3", filepath.Join(folder, databaseName), query); got != "ok\ndelete\nhello\n" {
		t.Errorf("the database says %q", got)
	}
}

// An agent can make a file of any size. Holes are stored as zeros, but for those of a file that is almost nothing else.
func TestBackup_MostlyHoles_IsNamedAndLeftOut(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	i.writeSparse("groups/main/endless", 1<<62, map[int64]string{0: "x", 1 << 61: "y"})
	i.writeSparse("groups/main/at the limit", minMostlyHoles, nil)
	data := i.restore(i.backup())
	if !strings.Contains(i.log.String(), `"groups/main/endless": not in the backup: it is far larger than what it takes on disk`) {
		t.Errorf("log: %s", &i.log)
	}
	if _, err := os.Stat(filepath.Join(data, "groups/main/endless")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the endless file: %v", err)
	}
	kept := "groups/main/at the limit"
	if got, want := contentOf(t, filepath.Join(data, kept)), contentOf(t, i.path(kept)); got != want {
		t.Errorf("%s has other content", kept)
	}
}
