package snapshots

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// The turns of a process that was killed end with the next one, and can run again. Those that are newer than all turns
// are of a database that has been replaced.
func TestEndFormer(t *testing.T) {
	f := newFixture(t)
	f.must(f.store.EndFormer(testFolder, 0)) // nothing is known yet
	f.begin(1)
	f.write("a", "1")
	f.restart()
	f.must(f.store.EndFormer(testFolder, 2))
	f.write("b", "mine")
	f.turn(1, func() { f.write("c", "1") })
	f.turn(2, func() { f.write("d", "1") })
	if r := f.restore(1, Before, false); !slices.Equal(r.Paths, []string{"a", "c"}) || len(r.NotCovered) > 0 {
		t.Errorf("%+v", r)
	}
	request := Request{testFolder, 7, 2, Before, false}
	_, err := f.store.Restore(request)
	f.must(err)
	f.restart()
	f.must(f.store.EndFormer(testFolder, 1))
	if r := f.restore(2, Before, false); !r.Unknown {
		t.Errorf("%+v", r)
	}
	f.turn(2, func() { f.write("e", "2") })
	request.Rest = true // another request of that number
	if r, err := f.store.Restore(request); err != nil || !slices.Equal(r.Paths, []string{"e"}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// Whatever goes wrong with a turn, the files that are not its own stay as they are.
func TestRestore_OthersFiles_Stay(t *testing.T) {
	failing := func(f *fixture, do func() error) {
		dir := f.store.Dir
		f.store.Dir = func(string) (string, error) { return "", unix.EMFILE }
		if err := do(); err == nil {
			f.Error("no error")
		}
		f.store.Dir = dir
	}
	for name, c := range map[string]struct {
		do   func(f *fixture)
		want []Uncovered
	}{
		"written after an end that failed": {func(f *fixture) {
			f.begin(1)
			failing(f, func() error { return f.store.End(testFolder, 1) })
			f.write("mine", "2")
		}, []Uncovered{{".", notCompared}}},
		"of a turn that began meanwhile": {func(f *fixture) {
			f.begin(1)
			failing(f, func() error { return f.store.End(testFolder, 1) })
			f.turn(2, func() { f.write("mine", "2") })
			if r := f.restore(2, Before, false); r.Restored != 1 {
				f.Errorf("%+v", r)
			}
			f.write("mine", "2")
		}, []Uncovered{{".", notCompared}}},
		"written in an attempt whose begin failed": {func(f *fixture) {
			f.turn(1, func() {})
			failing(f, func() error { return f.store.Begin(testFolder, 1) })
			f.write("mine", "2")
			f.must(f.store.End(testFolder, 1))
		}, []Uncovered{{".", notCompared}}},
		"written after gated was killed": {func(f *fixture) {
			f.begin(1)
			f.restart()
			f.must(f.store.EndFormer(testFolder, 1))
			f.write("mine", "2")
		}, nil},
		"an attachment of another topic": {func(f *fixture) {
			f.begin(1)
			f.write("inbox/9-1-mine.part", "2")
			f.turn(2, func() { f.must(os.Rename(f.path("inbox/9-1-mine.part"), f.path("inbox/9-1-mine"))) })
			f.end(1)
		}, nil},
		"a renewed login": {func(f *fixture) {
			f.write(".codex/auth.json", "1")
			f.turn(1, func() { f.write(".claude/.credentials.json", "2"); f.write(".codex/auth.json", "2") })
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write("mine", "1")
			f.write(".claude/a", "1")
			f.write(".codex/a", "1")
			c.do(f)
			before := f.tree()
			if r := f.restore(1, Before, false); !slices.Equal(r.NotCovered, c.want) || r.Refused {
				t.Errorf("%+v, want %v", r, c.want)
			}
			f.wantTree("afterwards", before)
		})
	}
}

func TestRestore_MovedAttachment_IsBack(t *testing.T) {
	f := newFixture(t)
	f.write("inbox/9-1-a", "1")
	f.turn(1, func() { f.must(os.Rename(f.path("inbox/9-1-a"), f.path("a"))) })
	if f.restore(1, Before, false); f.read("inbox/9-1-a") != "1" {
		t.Error(f.read("inbox/9-1-a"))
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

func TestStore_Deleted_BeginsAgain(t *testing.T) {
	f := newFixture(t)
	f.turn(1, func() { f.write("a", "1") })
	f.must(os.RemoveAll(f.store.Root))
	f.restart()
	f.turn(2, func() { f.write("b", "1") })
	f.turn(3, func() { f.write("b", "2") })
	if r := f.restore(3, Before, false); r.Restored != 1 {
		t.Errorf("%+v", r)
	}
}
