package groupdir

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/failpoint"
)

// write makes files, each with its first path as content.
func write(t *testing.T, root string, files ...string) {
	t.Helper()
	for _, file := range files {
		path := filepath.Join(root, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(file), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// tree has the content of each file below root but the marker, by path, and "" for
// each empty folder.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil || rel == marker || rel == ".":
			return err
		case entry.IsDir():
			below, err := os.ReadDir(path)
			if len(below) == 0 {
				all[rel+"/"] = ""
			}
			return err
		case entry.Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			all[rel] = "-> " + to
			return err
		}
		content, err := os.ReadFile(path)
		all[rel] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func wantTree(t *testing.T, root string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, tree(t, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func known(folders ...string) func() ([]string, error) {
	return func() ([]string, error) { return folders, nil }
}

func flatten(t *testing.T, root string, folders ...string) *Dirs {
	t.Helper()
	d := New(root)
	if err := d.Flatten(known(folders...), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	return d
}

// nestedGroups are folders as earlier versions made them, and the groups: acme and
// main with groups inside, right below and further down, one of them with an empty
// folder; lost is above one only; gone was never run.
var nestedFiles = []string{
	"acme/a.txt", "acme/eng/e.txt", "acme/eng/.claude/projects/p/1.jsonl", "acme/eng/oncall/deep/o.txt", "acme/own/file",
	"main/m.txt", "main/x/y/y.txt", "main/x/x.txt", "lost/below/b.txt", "other/o.txt",
}

func nestedGroups() []string {
	return []string{"acme", "acme/eng", "acme/eng/oncall", "acme/empty", "acme/gone", "main", "main/x/y", "lost/below", "other", "Bad/../Name"}
}

func flatFiles() map[string]string {
	return map[string]string{
		"acme/a.txt": "acme/a.txt", "acme/own/file": "acme/own/file", "acme+empty/": "",
		"acme+eng/e.txt": "acme/eng/e.txt", "acme+eng/.claude/projects/p/1.jsonl": "acme/eng/.claude/projects/p/1.jsonl",
		"acme+eng+oncall/deep/o.txt": "acme/eng/oncall/deep/o.txt",
		"main/m.txt":                 "main/m.txt", "main+x+y/y.txt": "main/x/y/y.txt", "main/x/x.txt": "main/x/x.txt",
		"lost/": "", "lost+below/b.txt": "lost/below/b.txt", "other/o.txt": "other/o.txt",
	}
}

func makeNested(t *testing.T) (root string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "groups")
	write(t, root, nestedFiles...)
	if err := os.Mkdir(filepath.Join(root, "acme/empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestFlatten_NestedFolders_MovedOnce(t *testing.T) {
	t.Parallel()
	root := makeNested(t)
	flatten(t, root, nestedGroups()...)
	wantTree(t, root, flatFiles())

	// From now on what lies in a folder is its group's, whatever is registered.
	write(t, root, "acme/eng/mine.txt", "acme/new/mine.txt")
	if err := New(root).Flatten(func() ([]string, error) { return nil, errors.New("asked") }, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("the second time: %v", err)
	}
	want := flatFiles()
	maps.Copy(want, map[string]string{"acme/eng/mine.txt": "acme/eng/mine.txt", "acme/new/mine.txt": "acme/new/mine.txt"})
	wantTree(t, root, want)
	if dir, err := New(root).Make("acme/new"); err != nil || dir != filepath.Join(root, "acme+new") {
		t.Errorf("Make: %s, %v", dir, err)
	}
}

func TestFlatten_NewInstance_OnlyMarks(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "groups")
	flatten(t, root)
	wantTree(t, root, map[string]string{})
	if _, err := os.Stat(filepath.Join(root, marker)); err != nil {
		t.Error(err)
	}
}

func TestFlatten_GroupsUnknown_NothingMovesNoMarker(t *testing.T) {
	t.Parallel()
	root := makeNested(t)
	before := tree(t, root)
	failed := errors.New("no database")
	if err := New(root).Flatten(func() ([]string, error) { return nil, failed }, slog.New(slog.DiscardHandler)); !errors.Is(err, failed) {
		t.Error(err)
	}
	wantTree(t, root, before)
	flatten(t, root, nestedGroups()...)
	wantTree(t, root, flatFiles())
}

// killed is what a failpoint panics with.
type killed struct{}

// flattenKilled flattens until the nth failpoint, as if killed there, and reports
// whether it got there.
func flattenKilled(t *testing.T, root string, nth int) (died bool) {
	t.Helper()
	defer func() { died = recover() == killed{} }()
	d := New(root)
	d.at = func(failpoint.Point) {
		if nth--; nth == 0 {
			panic(killed{})
		}
	}
	if err := d.Flatten(known(nestedGroups()...), slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	return false
}

func TestFlatten_KilledAnywhere_NextStartFinishes(t *testing.T) {
	t.Parallel()
	n := 1
	for ; ; n++ {
		root := makeNested(t)
		if !flattenKilled(t, root, n) {
			break
		}
		var content []string
		for _, file := range slices.Sorted(maps.Values(tree(t, root))) {
			if file != "" {
				content = append(content, file)
			}
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(nestedFiles)), content); diff != "" {
			t.Errorf("killed at %d: lost files (-want +got):\n%s", n, diff)
		}
		flatten(t, root, nestedGroups()...)
		wantTree(t, root, flatFiles())
	}
	if n < 12 {
		t.Errorf("killed at %d points only", n-1)
	}
	root := makeNested(t)
	for n := 1; flattenKilled(t, root, min(n, 2)); n++ { // each start is killed after one step more
		if n > 50 {
			t.Fatal("never finishes")
		}
	}
	wantTree(t, root, flatFiles())
}

func wantSetupError(t *testing.T, d *Dirs, folder string, words ...string) {
	t.Helper()
	_, err := d.Make(folder)
	if !errors.As(err, new(*runtime.SetupError)) {
		t.Errorf("%s: %v, want a setup error", folder, err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want %q in it", folder, err, word)
		}
	}
}

func wantMade(t *testing.T, d *Dirs, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		if _, err := d.Make(folder); err != nil {
			t.Errorf("%s: %v", folder, err)
		}
	}
}

func TestFlatten_BothExist_KeepsBothAndFailsThatGroup(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "groups")
	write(t, root, "acme/a.txt", "acme/eng/old.txt", "acme+eng/new.txt", "acme/ops/o.txt")
	all := []string{"acme", "acme/eng", "acme/ops"}
	for range 2 {
		d := flatten(t, root, all...)
		wantTree(t, root, map[string]string{
			"acme/a.txt": "acme/a.txt", "acme+eng/new.txt": "acme+eng/new.txt", "acme+eng.nested/old.txt": "acme/eng/old.txt", "acme+ops/o.txt": "acme/ops/o.txt",
		})
		wantSetupError(t, d, "acme/eng", filepath.Join(root, "acme+eng")+" ", filepath.Join(root, "acme+eng.nested"), "remove or rename the second")
		wantMade(t, d, "acme", "acme/ops")
	}
	d := flatten(t, root)
	if err := os.RemoveAll(filepath.Join(root, "acme+eng.nested")); err != nil {
		t.Fatal(err)
	}
	wantMade(t, d, "acme/eng") // without another start
}

// An empty folder is none: an earlier version made one for each registered group.
func TestFlatten_OneOfBothIsEmpty_OtherStays(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "groups")
	write(t, root, "acme/eng/old.txt", "acme+ops/new.txt")
	for _, dir := range []string{"acme+eng", "acme/ops"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d := flatten(t, root, "acme/eng", "acme/ops")
	wantTree(t, root, map[string]string{"acme+eng/old.txt": "acme/eng/old.txt", "acme+ops/new.txt": "acme+ops/new.txt", "acme/ops/": ""})
	wantMade(t, d, "acme/eng", "acme/ops")
}

// An agent of the group above may have put a link in the place of a group's folder, or
// of one above it.
func TestFlatten_Link_IsNotFollowed(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"acme/a", "acme/a/b"} {
		root := filepath.Join(t.TempDir(), "groups")
		write(t, root, "acme/a.txt", "victim/b/v.txt", "victim/v.txt", "other/sub/s.txt")
		link := filepath.Join(root, place)
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(filepath.Join(root, "victim"), link)); err != nil {
			t.Fatal(err)
		}
		before := tree(t, root)
		before["other+sub/s.txt"] = before["other/sub/s.txt"]
		delete(before, "other/sub/s.txt")
		before["other/"] = ""
		d := flatten(t, root, "acme", "acme/a/b", "victim", "other/sub")
		wantTree(t, root, before)
		wantSetupError(t, d, "acme/a/b", filepath.Join(root, "acme/a/b"), filepath.Join(root, "acme+a+b"), place+" is a link", "by hand")
		wantMade(t, d, "acme", "victim", "other/sub", "acme/a")
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		wantMade(t, d, "acme/a/b")
		wantMade(t, flatten(t, root, "ignored"), "acme/a/b")
		if nested, done, err := markerOf(t, root); len(nested) > 0 || !done || err != nil {
			t.Errorf("the marker names %v, %t, %v", nested, done, err)
		}
	}
}

func TestFlatten_ReadOnlyFolders_AreMovedAndStaySo(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "groups")
	write(t, root, "acme/a.txt", "acme/eng/e.txt")
	change := func(mode fs.FileMode, dirs ...string) {
		for _, dir := range dirs {
			if err := os.Chmod(filepath.Join(root, dir), mode); err != nil {
				t.Error(err)
			}
		}
	}
	change(0o500, "acme/eng", "acme")
	flatten(t, root, "acme", "acme/eng")
	for _, dir := range []string{"acme", "acme+eng"} {
		if info, err := os.Stat(filepath.Join(root, dir)); err != nil || info.Mode().Perm() != 0o500 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
	change(0o700, "acme", "acme+eng")
	wantTree(t, root, map[string]string{"acme/a.txt": "acme/a.txt", "acme+eng/e.txt": "acme/eng/e.txt"})
}

func markerOf(t *testing.T, root string) (nested []string, done bool, err error) {
	t.Helper()
	r, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return readMarker(r)
}

// A folder that cannot be moved stays where it is, with those around it, until the
// next start. The runs of the groups above would reach it.
func TestFlatten_MoveFails_FailsThatGroupAndThoseAbove(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "groups")
	write(t, root, "acme/eng/oncall/o.txt", "acme/eng/e.txt", "acme/ops/p.txt", "acme+eng+oncall/n.txt", "acme+eng+oncall.nested/x.txt")
	d := flatten(t, root, "acme", "acme/eng", "acme/eng/oncall", "acme/ops")
	want := map[string]string{
		"acme/eng/oncall/o.txt": "acme/eng/oncall/o.txt", "acme/eng/e.txt": "acme/eng/e.txt", "acme+ops/p.txt": "acme/ops/p.txt",
		"acme+eng+oncall/n.txt": "acme+eng+oncall/n.txt", "acme+eng+oncall.nested/x.txt": "acme+eng+oncall.nested/x.txt",
	}
	wantTree(t, root, want)
	wantSetupError(t, d, "acme/eng/oncall")
	wantSetupError(t, d, "acme/eng", "by hand")
	wantSetupError(t, d, "acme", "by hand")
	wantMade(t, d, "acme/ops")
	if nested, done, err := markerOf(t, root); !slices.Equal(nested, []string{"acme/eng", "acme/eng/oncall"}) || !done || err != nil {
		t.Errorf("the marker names %v, %t, %v", nested, done, err)
	}

	write(t, root, "acme/ops/mine.txt") // not named by the marker
	if err := os.RemoveAll(filepath.Join(root, "acme+eng+oncall.nested")); err != nil {
		t.Fatal(err)
	}
	d = flatten(t, root, "ignored")
	wantTree(t, root, map[string]string{
		"acme/ops/mine.txt": "acme/ops/mine.txt", "acme+eng/e.txt": "acme/eng/e.txt", "acme+ops/p.txt": "acme/ops/p.txt",
		"acme+eng+oncall/n.txt": "acme+eng+oncall/n.txt", "acme+eng+oncall.nested/o.txt": "acme/eng/oncall/o.txt",
	})
	wantMade(t, d, "acme", "acme/eng", "acme/ops")
	wantSetupError(t, d, "acme/eng/oncall", "remove or rename the second")
}

func TestMake_InvalidOrNoFolder_IsRefused(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "groups")
	d := New(root)
	for _, folder := range []string{"", "../x", "a+b", ".flat"} {
		if dir, err := d.Make(folder); err == nil {
			t.Errorf("%q: %s", folder, dir)
		}
	}
	write(t, root, "acme+eng")
	wantSetupError(t, d, "acme/eng", "is not a directory")
}
