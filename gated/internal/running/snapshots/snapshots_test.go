package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"arizuko/pkg/dataowner"
)

// fixture is a store with one group.
type fixture struct {
	*testing.T
	store *Store
	dir   string
	op    int64
}

const testFolder = "acme/eng"

func newFixture(t *testing.T) *fixture {
	data := t.TempDir()
	f := &fixture{T: t, dir: filepath.Join(data, "groups", "acme+eng")}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // folders that are not writable could not be removed
		filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	f.store = &Store{
		Root: filepath.Join(data, "undo"), Quota: 1 << 20, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Dir: func(string) (string, error) { return f.dir, nil },
	}
	return f
}

// restart goes on with a store that remembers nothing.
func (f *fixture) restart() {
	old := f.store
	f.store = &Store{Root: old.Root, Quota: old.Quota, Dir: old.Dir, Log: old.Log, Now: old.Now}
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fixture) write(name, content string) {
	f.Helper()
	f.must(os.MkdirAll(filepath.Dir(f.path(name)), 0o755))
	f.must(os.WriteFile(f.path(name), []byte(content), 0o644))
}

func (f *fixture) read(name string) string {
	content, err := os.ReadFile(f.path(name))
	if err != nil {
		return err.Error()
	}
	return string(content)
}

func (f *fixture) begin(turn int64) { f.Helper(); f.must(f.store.Begin(testFolder, turn)) }
func (f *fixture) end(turn int64)   { f.Helper(); f.must(f.store.End(testFolder, turn)) }

// turn runs a turn that does something.
func (f *fixture) turn(turn int64, do func()) {
	f.Helper()
	f.begin(turn)
	do()
	f.end(turn)
}

func (f *fixture) restore(turn int64, to Side, rest bool) Report {
	f.Helper()
	f.op++
	report, err := f.store.Restore(Request{testFolder, f.op, turn, to, rest})
	f.must(err)
	f.must(f.store.Forget(testFolder, f.op))
	return report
}

func TestRestore_ChangedFile_ThereAndBack(t *testing.T) {
	f := newFixture(t)
	f.write("a", "old")
	f.write("d/b", "gone")
	f.turn(1, func() {
		f.write("a", "new")
		f.must(os.RemoveAll(f.path("d")))
		f.write("e/c", "made")
	})
	report := f.restore(1, Before, false)
	if want := []string{"a", "d", "d/b", "e", "e/c"}; !slices.Equal(report.Paths, want) || report.Restored != 5 {
		t.Errorf("%+v", report)
	}
	if f.read("a") != "old" || f.read("d/b") != "gone" {
		t.Error(f.read("a"), f.read("d/b"))
	}
	if _, err := os.Stat(f.path("e")); err == nil {
		t.Error("e is still there")
	}
	f.restore(1, After, false)
	if f.read("a") != "new" || f.read("e/c") != "made" {
		t.Error(f.read("a"), f.read("e/c"))
	}
	if _, err := os.Stat(f.path("d")); err == nil {
		t.Error("d is still there")
	}
}

// A turn whose process was killed ends with the next process, unless it is open and runs again.
func TestEndFormer_TurnThatIsNotOpen_Ends(t *testing.T) {
	f := newFixture(t)
	f.must(f.store.EndFormer(testFolder, nil)) // nothing is known yet
	f.must(f.store.Begin(testFolder, 1))
	f.must(f.store.Begin(testFolder, 2))
	f.write("a", "1")
	f.must(f.store.EndFormer(testFolder, func(turn int64) bool { return turn == 2 }))
	f.write("b", "2")
	f.must(f.store.End(testFolder, 2))
	if r := f.restore(2, Before, false); !slices.Equal(r.Paths, []string{"b"}) || len(r.NotCovered) != 1 {
		t.Errorf("%+v", r)
	}
}

// The data folder's owner may put a link in place of a group's folder, which root does not follow.
func TestBegin_GroupFolderIsALinkOfAnotherUser_IsNotFollowed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root has other users")
	}
	f := newFixture(t)
	f.must(os.Rename(f.dir, f.dir+".was"))
	f.must(os.Symlink(t.TempDir(), f.dir))
	f.must(os.Chown(filepath.Dir(f.store.Root), 1234, 1234))
	if err := f.store.Begin(testFolder, 1); !errors.Is(err, dataowner.ErrLink) {
		t.Error(err)
	}
}

// Caches, and sessions that go back by themselves, are no files of a turn.
func TestBegin_SessionsAndCaches_AreLeftOut(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{".claude/projects/x", ".claude/arizuko", ".cache", ".npm", "sub/.cache"} {
		f.must(os.MkdirAll(f.path(name), 0o700))
	}
	f.turn(1, func() {
		for _, name := range []string{".claude/projects/x/s.jsonl", ".claude/arizuko/s", ".cache/a", ".npm/a", "sub/.cache/a", ".claude/projects/x/m.md"} {
			f.write(name, "1")
		}
	})
	f.restore(1, Before, false)
	for name, gone := range map[string]bool{".claude/projects/x/s.jsonl": false, ".claude/arizuko/s": false, ".cache/a": false,
		"sub/.cache/a": true, ".claude/projects/x/m.md": true} {
		if _, err := os.Lstat(f.path(name)); errors.Is(err, fs.ErrNotExist) != gone {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is remembered in memory is read again when another process has changed it, and survives that it is deleted.
func TestStore_ChangedByOthers_IsReadAgain(t *testing.T) {
	f := newFixture(t)
	here := f.store
	f.restart()
	there := f.store
	for turn := int64(1); turn < 20; turn++ {
		f.store = []*Store{here, there}[turn%2]
		f.turn(turn, func() { f.write("a", fmt.Sprint(turn)) })
	}
	f.store = here
	for turn := int64(19); turn > 1; turn-- {
		f.store = []*Store{there, here}[turn%2]
		if r := f.restore(turn, Before, false); r.Restored != 1 || f.read("a") != fmt.Sprint(turn-1) {
			t.Fatalf("turn %d: %+v, a is %s", turn, r, f.read("a"))
		}
	}
	f.must(os.RemoveAll(f.store.Root))
	_ = f.store.Begin(testFolder, 30) // it may fail once
	f.turn(31, func() { f.write("b", "1") })
	f.turn(32, func() { f.write("b", "2") })
	if r := f.restore(32, Before, false); r.Restored != 1 {
		t.Errorf("%+v", r)
	}
}
