package backup

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
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

	i.writeSparse("groups/main/disk.img", 1<<40, map[int64]string{0: "begin", 1 << 39: "middle"})
	i.writeSparse("groups/main/1NU.sparse.map", 1<<40+7, map[int64]string{1 << 40: "the end"})
	i.writeSparse("groups/main/"+strings.Repeat("ü", 100)+".img", 1<<40, nil)
	i.writeSparse("media/202611/unaligned", 1<<20+3, map[int64]string{12345: "text", 100_000: strings.Repeat("x", 70_001)})
	return i
}

// tree describes what the folders of an instance have.
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
				text += fmt.Sprintf(" %q %d %s", first, info.Size(), contentOf(t, path, info))
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

// contentOf is a checksum of a file's blocks that are not all zeros. A file of many such blocks has few of these on disk.
func contentOf(t *testing.T, path string, info fs.FileInfo) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := pieces(f, info.Size(), 1<<50)
	if err != nil {
		t.Fatal(err)
	}
	if blocks := info.Sys().(*syscall.Stat_t).Blocks; blocks > 1<<20 {
		t.Fatalf("%s takes %d blocks of the disk", path, blocks)
	}
	hash, zeros := sha256.New(), make([]byte, blockSize)
	for _, p := range all {
		text := make([]byte, p.length)
		if _, err := f.ReadAt(text, p.offset); err != nil {
			t.Fatal(err)
		}
		at := p.offset
		for block := range slices.Chunk(text, blockSize) {
			if !bytes.Equal(block, zeros[:len(block)]) {
				fmt.Fprintf(hash, "%d %q", at, block)
			}
			at += blockSize
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
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

// What an operator has without dashd.
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

// An agent can make a file of any size, and any number of holes in it.
func TestBackup_TooManyHoles_StoredOrNamed(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	const step = 8 << 10
	texts := map[int64]string{}
	for n := range int64(maxPieces + 9) {
		texts[n*step] = "x"
	}
	i.writeSparse("groups/main/many", step*int64(len(texts)), texts)
	if diff := cmp.Diff(tree(t, i.data), tree(t, i.restore(i.backup()))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	i.ok(os.Truncate(i.path("groups/main/many"), 1<<40))
	i.backup()
	if !strings.Contains(i.log.String(), `"groups/main/many": not in the backup: it is far larger than what it takes on disk`) {
		t.Errorf("log: %s", &i.log)
	}
}

// format1.tgz was made by the last program that wrote this format.
func TestRestore_Format1_IsWhole(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	const former = "testdata/format1.tgz"
	if s, err := Verify(t.Context(), former, nil, io.Discard); err != nil || s.Format != 1 || s.Rows["messages"] != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	i.writeSparse("groups/main/disk.img", 1<<40, map[int64]string{0: "begin", 1 << 39: "middle"})
	i.writeSparse("groups/main/hole.img", 1<<40, nil)
	want, got := tree(t, i.data), tree(t, i.restore(former))
	times := regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)
	for _, all := range []map[string]string{want, got} {
		for name, text := range all {
			all[name] = times.ReplaceAllString(text, "then")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
