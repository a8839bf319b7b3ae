package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/failpoint"
)

// tree is what a folder contains: mode, owner and content by path.
func (f *fixture) tree() map[string]string {
	f.Helper()
	all := map[string]string{}
	f.must(filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(f.dir, path)
		if err != nil || name == "." || strings.HasPrefix(name, ".cache") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		all[name] = fmt.Sprintf("%s %d:%d", info.Mode(), st.Uid, st.Gid)
		switch info.Mode().Type() {
		case 0:
			content, _ := os.ReadFile(path)
			all[name] += " " + string(content)
			if name == "timed" {
				all[name] += info.ModTime().String()
			}
		case fs.ModeSymlink:
			target, _ := os.Readlink(path)
			all[name] += " -> " + target
		}
		return nil
	}))
	return all
}

func (f *fixture) wantTree(what string, want map[string]string) {
	f.Helper()
	got := f.tree()
	for path := range maps.Keys(want) {
		if got[path] != want[path] {
			f.Errorf("%s: %s is %q, want %q", what, path, got[path], want[path])
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			f.Errorf("%s: %s is there: %q", what, path, got[path])
		}
	}
}

func (f *fixture) git(args ...string) {
	f.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	cmd.Dir = f.path("repo")
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.Fatalf("git %v: %v %s", args, err, out)
	}
}

func TestRestore_EachKindOfChange_ThereAndBack(t *testing.T) {
	for name, c := range map[string]struct{ before, turn func(f *fixture) }{
		"content": {
			func(f *fixture) { f.write("a", "old") },
			func(f *fixture) { f.write("a", "newer") },
		},
		"same size and time": {
			func(f *fixture) { f.write("a", "old") },
			func(f *fixture) {
				info, err := os.Stat(f.path("a"))
				f.must(err)
				f.write("a", "new")
				f.must(os.Chtimes(f.path("a"), info.ModTime(), info.ModTime()))
			},
		},
		"mode": {
			func(f *fixture) { f.write("a", "same"); f.write("d/b", "same") },
			func(f *fixture) { f.must(os.Chmod(f.path("a"), 0o755)); f.must(os.Chmod(f.path("d"), 0o500)) },
		},
		"read-only folder made": {
			func(f *fixture) {},
			func(f *fixture) { f.write("d/e/b", "new"); f.must(os.Chmod(f.path("d/e"), 0o500)) },
		},
		"read-only folder removed": {
			func(f *fixture) { f.write("d/e/b", "new"); f.must(os.Chmod(f.path("d/e"), 0o500)) },
			func(f *fixture) { f.must(os.Chmod(f.path("d/e"), 0o700)); f.must(os.RemoveAll(f.path("d"))) },
		},
		"time of a removed file": {
			func(f *fixture) {
				f.write("timed", "old")
				f.must(os.Chtimes(f.path("timed"), time.Unix(1, 0), time.Unix(1_000_000, 5)))
			},
			func(f *fixture) { f.must(os.Remove(f.path("timed"))) },
		},
		"owner": {
			func(f *fixture) {
				f.write("d/a", "old")
				if os.Getuid() == 0 {
					f.must(os.Chown(f.path("d/a"), 1234, 5678))
					f.must(os.Chown(f.path("d"), 1234, 5678))
				}
			},
			func(f *fixture) { f.must(os.RemoveAll(f.path("d"))) },
		},
		"links": {
			func(f *fixture) {
				f.must(os.Symlink("/nowhere", f.path("l")))
				f.must(os.Symlink("other", f.path("m")))
				f.write("n", "file")
			},
			func(f *fixture) {
				f.must(os.Remove(f.path("l")))
				f.must(os.Remove(f.path("m")))
				f.must(os.Symlink("another", f.path("m")))
				f.must(os.Remove(f.path("n")))
				f.must(os.Symlink("m", f.path("n")))
			},
		},
		"folder becomes file": {
			func(f *fixture) { f.write("x/y/z", "deep") },
			func(f *fixture) { f.must(os.RemoveAll(f.path("x"))); f.write("x", "flat") },
		},
		"folders made and moved": {
			func(f *fixture) { f.write("a/b/c", "1"); f.write("a/d", "2"); f.must(os.Mkdir(f.path("empty"), 0o700)) },
			func(f *fixture) {
				f.must(os.Rename(f.path("a"), f.path("q")))
				f.must(os.Remove(f.path("empty")))
				f.must(os.MkdirAll(f.path("p/r/s"), 0o711))
			},
		},
		"names": {
			func(f *fixture) { f.write("a", "1"); f.write("a.b/c", "2"); f.write("-\n\xff", "3") },
			func(f *fixture) { f.must(os.RemoveAll(f.path("a.b"))); f.write("-\n\xff", "4"); f.write("a!", "5") },
		},
		"repository": {
			func(f *fixture) {
				f.must(os.Mkdir(f.path("repo"), 0o755))
				f.git("init", "-q")
				f.write("repo/a", "1")
				f.git("add", ".")
				f.git("commit", "-qm", "one")
			},
			func(f *fixture) {
				f.write("repo/a", "2")
				f.git("checkout", "-qb", "topic")
				f.git("commit", "-qam", "two")
				f.git("gc", "-q")
			},
		},
		"hidden files": {
			func(f *fixture) { f.write(".env", "1"); f.write(".claude/x", "1") },
			func(f *fixture) { f.write(".env", "2"); f.write(".claude/x", "2"); f.write(".claude/y", "2") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c.before(f)
			before := f.tree()
			f.turn(1, func() { c.turn(f) })
			after := f.tree()
			f.begin(2)
			for range 2 {
				if r := f.restore(1, Before, false); r.Refused || r.Unknown || len(r.Changed)+len(r.NotCovered) > 0 {
					t.Errorf("undo: %+v", r)
				}
				f.wantTree("undone", before)
				if r := f.restore(1, After, false); r.Refused || r.Unknown || len(r.Changed)+len(r.NotCovered) > 0 {
					t.Errorf("redo: %+v", r)
				}
				f.wantTree("redone", after)
			}
			f.end(2)
			if r := f.restore(2, Before, false); r.Restored > 0 || len(r.NotCovered) > 0 {
				t.Errorf("the restores count as changes of a turn: %+v", r)
			}
		})
	}
}

func TestRestore_HardLinks_AreLinksAgain(t *testing.T) {
	f := newFixture(t)
	f.write("a", "shared")
	f.must(os.Link(f.path("a"), f.path("b")))
	f.turn(1, func() {
		f.must(os.Remove(f.path("a")))
		f.must(os.Remove(f.path("b")))
	})
	f.restore(1, Before, false)
	a, err := os.Stat(f.path("a"))
	f.must(err)
	b, err := os.Stat(f.path("b"))
	f.must(err)
	if !os.SameFile(a, b) {
		t.Error("a and b are two files")
	}
}

func TestRestore_ChangedSince_IsRefusedOrLeft(t *testing.T) {
	for name, since := range map[string]func(f *fixture){
		"content":           func(f *fixture) { f.write("d/a", "mine") },
		"mode":              func(f *fixture) { f.must(os.Chmod(f.path("d/a"), 0o600)) },
		"removed":           func(f *fixture) { f.must(os.Remove(f.path("d/a"))) },
		"a link instead":    func(f *fixture) { f.must(os.Remove(f.path("d/a"))); f.must(os.Symlink("b", f.path("d/a"))) },
		"a folder instead":  func(f *fixture) { f.must(os.Remove(f.path("d/a"))); f.must(os.Mkdir(f.path("d/a"), 0o700)) },
		"by a later turn":   func(f *fixture) { f.turn(2, func() { f.write("d/a", "later") }) },
		"by a running turn": func(f *fixture) { f.begin(2); f.write("d/a", "later") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write("d/a", "old")
			f.write("b", "old")
			f.turn(1, func() { f.write("d/a", "new"); f.write("b", "new") })
			since(f)
			before := f.tree()
			r := f.restore(1, Before, false)
			if !r.Refused || !slices.Equal(r.Changed, []string{"d/a"}) || r.Restored > 0 {
				t.Errorf("%+v", r)
			}
			f.wantTree("refused", before)
			r = f.restore(1, Before, true)
			if r.Refused || !slices.Equal(r.Changed, []string{"d/a"}) || !slices.Equal(r.Paths, []string{"b"}) {
				t.Errorf("%+v", r)
			}
			if f.read("b") != "old" {
				t.Errorf("b is %q", f.read("b"))
			}
			delete(before, "b")
			after := f.tree()
			delete(after, "b")
			if !maps.Equal(before, after) {
				t.Errorf("%v became %v", before, after)
			}
		})
	}
}

func TestRestore_MoreInAFolderOfTheTurn_Stays(t *testing.T) {
	f := newFixture(t)
	f.turn(1, func() { f.write("d/a", "of the turn") })
	f.write("d/b", "of a user")
	r := f.restore(1, Before, false)
	if !slices.Equal(r.Paths, []string{"d/a"}) || len(r.Changed) > 0 || f.read("d/b") != "of a user" {
		t.Errorf("%+v, %s", r, f.read("d/b"))
	}
}

// A folder cannot make way for the file that was there before if more is in it.
func TestRestore_MoreInAFolderInPlaceOfAFile_IsRefused(t *testing.T) {
	for _, name := range []string{"of a user", "left out by walks", "in a folder below"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write("x", "file")
			f.write("y", "1")
			f.turn(1, func() {
				f.must(os.Remove(f.path("x")))
				f.write("x/d/a", "2")
				f.write("y", "2")
				if name == "left out by walks" {
					f.must(unix.Mkfifo(f.path("x/pipe"), 0o600))
				}
			})
			switch name {
			case "of a user":
				f.write("x/b", "mine")
			case "in a folder below":
				f.write("x/d/b", "mine")
			}
			before := f.tree()
			if r := f.restore(1, Before, false); !r.Refused || !slices.Equal(r.Changed, []string{"x"}) {
				t.Errorf("%+v", r)
			}
			f.wantTree("refused", before)
			if r := f.restore(1, Before, true); !slices.Equal(r.Changed, []string{"x"}) || f.read("y") != "1" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A write to mapped memory changes no time while its page is not on the disk.
func TestRestore_WrittenInMappedMemory_IsRefused(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0000")
	var memory []byte
	f.turn(1, func() {
		file, err := os.OpenFile(f.path("a"), os.O_RDWR, 0)
		f.must(err)
		defer file.Close()
		memory, err = unix.Mmap(int(file.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		f.must(err)
		copy(memory, "1111")
	})
	for racy := true; racy; { // until a look trusts its time
		f.turn(2, func() {})
		f.must(f.store.with(testFolder, func(g *group) error {
			racy = byPath(g.index)["a"].ctime == 0
			return nil
		}))
	}
	copy(memory, "mine")
	if r := f.restore(1, Before, false); !r.Refused {
		t.Errorf("%+v, a is %s", r, f.read("a"))
	}
	f.must(unix.Munmap(memory))
}

// An agent with gated's own user can put a link in place of a file that is being staged.
func TestRestore_LinkWhileItIsStaged_IsNotFollowed(t *testing.T) {
	f := newFixture(t)
	f.store.Quota = 100 << 20
	outside := filepath.Join(t.TempDir(), "outside")
	f.must(os.WriteFile(outside, nil, 0o600))
	f.write("a", strings.Repeat("x", 5<<20))
	f.must(os.Chmod(f.path("a"), 0o777))
	f.turn(1, func() { f.write("a", "2") })
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for part := f.path(stagingName(1) + "/" + stagingPart); ; {
			select {
			case <-stop:
				return
			default:
			}
			if info, err := os.Lstat(part); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
				os.Symlink(outside, f.path("link"))
				os.Rename(f.path("link"), part)
			}
		}
	}()
	_, _ = f.store.Restore(Request{testFolder, 1, 1, Before, false})
	close(stop)
	<-done
	if info, err := os.Stat(outside); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// Root changes nothing in an operator's folder that an agent, another user, has put in the place of its own.
func TestRestore_FolderOfRootInAnAgents_IsLeft(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root has other users")
	}
	for name, turn := range map[string]func(f *fixture){
		"removed": func(f *fixture) { f.must(os.RemoveAll(f.path("d"))) },
		"changed": func(f *fixture) { f.write("d/a", "2"); f.write("d/b", "2"); f.must(os.Chmod(f.path("d"), 0o700)) },
		"made":    func(f *fixture) { f.write("d/c", "2") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for _, file := range []string{"a", "b", "c"} {
				f.write("private/"+file, "2")
			}
			f.must(os.Chmod(f.path("private"), 0o700))
			f.write("d/a", "1")
			f.write("d/b", "1")
			f.must(os.Chmod(f.path("d"), 0o777))
			before := f.tree()
			f.must(os.Chown(f.dir, 1234, 1234))
			f.must(os.Chown(f.path("d"), 1234, 1234))
			f.turn(1, func() { turn(f) })
			swapped := false
			f.store.reached = func(p failpoint.Point) {
				if _, err := os.Lstat(f.path("d")); err == nil && !swapped && p == failpoint.UndoMoving {
					swapped = true
					f.must(os.Rename(f.path("d"), f.path("was")))
					f.must(os.Rename(f.path("private"), f.path("d")))
				}
			}
			r := f.restore(1, Before, false)
			if !swapped || len(r.Changed) == 0 {
				t.Errorf("%+v", r)
			}
			after := f.tree()
			for _, path := range []string{"", "/a", "/b", "/c"} {
				if is, want := after["d"+path], before["private"+path]; is != want {
					t.Errorf("private%s is %q, want %q", path, is, want)
				}
			}
		})
	}
}

func TestRestore_FolderGoneSince_IsRefused(t *testing.T) {
	f := newFixture(t)
	f.write("d/a", "1")
	f.turn(1, func() { f.must(os.Remove(f.path("d/a"))) })
	f.must(os.Remove(f.path("d")))
	if r := f.restore(1, Before, false); !r.Refused || !slices.Equal(r.Changed, []string{"d/a"}) {
		t.Errorf("%+v", r)
	}
}

func TestRestore_AgentState_IsRestoredOrSilentlyLeft(t *testing.T) {
	f := newFixture(t)
	f.write(".claude/a", "1")
	f.write(".claude/b", "1")
	f.turn(1, func() { f.write(".claude/a", "2"); f.write(".claude/b", "2"); f.write("c", "2") })
	f.write(".claude/a", "3")
	r := f.restore(1, Before, false)
	if r.Restored != 1 || !slices.Equal(r.Paths, []string{"c"}) || len(r.Changed) > 0 {
		t.Errorf("%+v", r)
	}
	if f.read(".claude/a") != "3" || f.read(".claude/b") != "1" {
		t.Error(f.read(".claude/a"), f.read(".claude/b"))
	}
}

func TestRestore_NotCovered_IsNamedAndLeft(t *testing.T) {
	big := strings.Repeat("x", 900_000) // more than the baseline may have
	for name, c := range map[string]struct {
		do   func(f *fixture)
		want []Uncovered
	}{
		"made, too big":    {func(f *fixture) { f.turn(1, func() { f.write("a", big) }) }, []Uncovered{{"a", tooBig}}},
		"removed, too big": {func(f *fixture) { f.write("a", big); f.turn(1, func() { f.must(os.Remove(f.path("a"))) }) }, []Uncovered{{"a", tooBig}}},
		"changed, too big": {func(f *fixture) { f.write("a", big); f.turn(1, func() { f.write("a", big+"x") }) }, []Uncovered{{"a", tooBig}}},
		"touched, too big": {func(f *fixture) { f.write("a", big); f.turn(1, func() {}) }, nil},
		"two turns": {func(f *fixture) {
			f.begin(1)
			f.begin(2)
			f.write("a", "1")
			f.end(2)
			f.end(1)
		}, []Uncovered{{"a", overlap}}},
		"after an overlap": {func(f *fixture) {
			f.begin(1)
			f.begin(2)
			f.write("a", "1")
			f.end(2)
			f.write("a", "2")
			f.end(1)
		}, []Uncovered{{"a", overlap}}},
		"a user between attempts": {func(f *fixture) {
			f.turn(1, func() { f.write("a", "1") })
			f.write("a", "2")
			f.turn(1, func() { f.write("a", "3") })
		}, []Uncovered{{"a", gap}}},
		"a user between attempts that do the same": {func(f *fixture) {
			f.write("a", "0")
			f.turn(1, func() { f.write("a", "1") })
			f.write("a", "2")
			f.turn(1, func() { f.write("a", "1") })
		}, []Uncovered{{"a", gap}}},
		"lost content": {func(f *fixture) {
			f.write("a", "1")
			f.turn(1, func() { f.write("a", "2") })
			f.must(os.RemoveAll(filepath.Join(f.store.Root, "acme+eng/objects")))
		}, []Uncovered{{"a", gone}}},
		"damaged content": {func(f *fixture) {
			f.write("a", "1")
			f.turn(1, func() { f.write("a", "2") })
			objects, err := filepath.Glob(filepath.Join(f.store.Root, "acme+eng/objects/*"))
			f.must(err)
			for _, o := range objects {
				f.must(os.WriteFile(o, []byte("3"), 0o600))
			}
		}, []Uncovered{{"a", gone}}},
		"lost index": {func(f *fixture) {
			f.write("b", "1")
			f.begin(1)
			f.write("a", "1")
			f.must(os.WriteFile(filepath.Join(f.store.Root, "acme+eng/index"), []byte(header+"garbage"), 0o600))
			f.restart()
			f.must(f.store.EndFormer(testFolder, 1))
		}, []Uncovered{{".", notCompared}}},
		"killed after a lost index": {func(f *fixture) {
			f.begin(1)
			f.write("a", "1")
			f.must(os.Remove(filepath.Join(f.store.Root, "acme+eng/index")))
			f.restart()
			func() {
				defer func() { _ = recover() }()
				f.store.with(testFolder, func(g *group) error {
					f.must(g.look(1, time.Now().Add(time.Minute)))
					panic("killed")
				})
			}()
			f.restart()
			f.must(f.store.EndFormer(testFolder, 1))
		}, []Uncovered{{".", notCompared}}},
		"a long record": {func(f *fixture) {
			f.store.Quota = 8_000
			f.turn(1, func() {
				for n := range 100 {
					f.must(os.Symlink("a", f.path(fmt.Sprint(n))))
				}
			})
		}, []Uncovered{{".", overQuota}}},
		"long paths": {func(f *fixture) {
			f.turn(1, func() {
				at := f.path("d")
				f.must(os.Mkdir(at, 0o700))
				dir, err := os.OpenRoot(at)
				f.must(err)
				defer func() { f.must(dir.Close()) }()
				for range 90 {
					name := strings.Repeat("d", 255)
					f.must(dir.Mkdir(name, 0o700))
					next, err := dir.OpenRoot(name)
					f.must(errors.Join(err, dir.Close()))
					dir = next
				}
				for n := range maxPathBytes / (90 * 256) {
					f.must(dir.WriteFile(fmt.Sprint(n), nil, 0o600))
				}
			})
			f.must(os.RemoveAll(f.path("d")))
		}, []Uncovered{{".", tooMany}}},
		"damaged record": {func(f *fixture) {
			f.turn(1, func() { f.write("a", "1") })
			f.must(os.WriteFile(filepath.Join(f.store.Root, "acme+eng/turn-1"), nil, 0o600))
		}, []Uncovered{{".", damaged}}},
		"no time to copy": {func(f *fixture) {
			f.write("a", "1")
			f.write("b", "1")
			at := time.Now()
			f.store.Now = func() time.Time { at = at.Add(1500 * time.Millisecond); return at }
			f.turn(1, func() { f.write("a", "2"); f.write("b", "2") })
		}, []Uncovered{{"b", notYet}}},
		"too deep": {func(f *fixture) {
			deep := strings.Repeat("d/", maxDepth)
			f.turn(1, func() { f.write(deep+"a", "1") })
		}, []Uncovered{{strings.Repeat("d/", maxDepth-1) + "d", tooDeep}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c.do(f)
			before := f.tree()
			r := f.restore(1, Before, false)
			if r.Refused || !slices.Equal(r.NotCovered, c.want) {
				t.Errorf("%+v, want %v", r, c.want)
			}
			if name != "no time to copy" && name != "too deep" {
				f.wantTree("afterwards", before)
			}
		})
	}
}

func TestRestore_RetryOfATurn_IsOneTurn(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	f.turn(1, func() { f.write("a", "2"); f.write("b", "2"); f.write("c", "2") })
	f.turn(1, func() { f.write("a", "3"); f.must(os.Remove(f.path("b"))) })
	r := f.restore(1, Before, false)
	if !slices.Equal(r.Paths, []string{"a", "c"}) || f.read("a") != "1" {
		t.Errorf("%+v, %s", r, f.read("a"))
	}
}

func TestStore_Unknown(t *testing.T) {
	f := newFixture(t)
	if r := f.restore(1, Before, false); !r.Unknown {
		t.Errorf("never begun: %+v", r)
	}
	f.turn(1, func() { f.write("a", "1") })
	f.must(f.store.with(testFolder, func(g *group) error {
		for id := range int64(maxTurns) - 2 {
			g.state.known = append(g.state.known, turn{id: id + 10})
		}
		return nil
	}))
	f.turn(2, func() { f.write("a", "2") })
	if r := f.restore(1, Before, true); r.Unknown {
		t.Errorf("the oldest: %+v", r)
	}
	f.turn(3, func() {})
	if r := f.restore(1, Before, false); !r.Unknown {
		t.Errorf("forgotten: %+v", r)
	}
	if r := f.restore(2, Before, false); r.Restored != 1 {
		t.Errorf("the last: %+v", r)
	}
	f.store.Quota = 0
	f.begin(500)
	f.end(500)
	if r := f.restore(500, Before, false); !r.Unknown {
		t.Errorf("switched off: %+v", r)
	}
}

func TestBegin_SpecialFiles_AreLeftOut(t *testing.T) {
	f := newFixture(t)
	f.write(".cache/a", "1")
	f.write("d/a", "1")
	f.must(unix.Mkfifo(f.path("d/pipe"), 0o600))
	f.turn(1, func() {
		f.write(".cache/a", "2")
		f.must(os.Remove(f.path("d/a")))
		f.must(unix.Mkfifo(f.path("d/a"), 0o600))
		f.must(unix.Mkfifo(f.path("d/other"), 0o600))
	})
	if r := f.restore(1, Before, false); !slices.Equal(r.Changed, []string{"d/a"}) || r.Restored != 0 {
		t.Errorf("%+v", r)
	}
}

func TestQuota_OldestTurnsGo(t *testing.T) {
	f := newFixture(t)
	f.store.Quota = 100_000
	content := func(n int64) string { return strings.Repeat(fmt.Sprintf("%09d\n", n), 1000) } // 10 kB
	f.write("a", content(0))
	for n := range int64(30) {
		f.turn(n+1, func() { f.write("a", content(n+1)) })
		objects, err := os.ReadDir(filepath.Join(f.store.Root, "acme+eng/objects"))
		f.must(err)
		if len(objects) > 10 {
			t.Fatalf("%d objects", len(objects))
		}
	}
	if r := f.restore(1, Before, true); !slices.Equal(r.NotCovered, []Uncovered{{"a", gone}}) {
		t.Errorf("the first: %+v", r)
	}
	for n := int64(30); n > 24; n-- {
		if r := f.restore(n, Before, false); r.Restored != 1 || f.read("a") != content(n-1) {
			t.Errorf("turn %d: %+v", n, r)
		}
	}
	for n := int64(25); n <= 30; n++ {
		if r := f.restore(n, After, false); r.Restored != 1 || f.read("a") != content(n) {
			t.Errorf("turn %d: %+v", n, r)
		}
	}
}

func TestQuota_UnkeptFile_IsKeptOnceThereIsRoom(t *testing.T) {
	f := newFixture(t)
	f.store.Quota = 100_000
	f.write("a", strings.Repeat("a", 50_000))
	f.write("b", strings.Repeat("b", 60_000))
	f.turn(1, func() { f.must(os.Remove(f.path("a"))) })
	f.turn(2, func() { f.must(os.Remove(f.path("b"))) })
	if r := f.restore(2, Before, false); r.Restored != 1 {
		t.Errorf("%+v", r)
	}
}

// Small files take blocks, too.
func TestQuota_SmallFiles_DiskIsBounded(t *testing.T) {
	f := newFixture(t)
	for id := range int64(5) {
		f.turn(id+1, func() {
			for n := range 150 {
				f.write(fmt.Sprint("f", n), fmt.Sprint(id, " ", n))
			}
		})
	}
	objects, err := os.ReadDir(filepath.Join(f.store.Root, "acme+eng/objects"))
	if f.must(err); int64(len(objects)) > f.store.Quota/block {
		t.Errorf("%d objects", len(objects))
	}
}

func TestBegin_UnreadableFolder_KeepsWhatWasKnown(t *testing.T) {
	if os.Getuid() == 0 {
		asUser(t)
		return
	}
	f := newFixture(t)
	f.write("d/a", "1")
	f.write("e", "1")
	f.turn(1, func() { f.must(os.Chmod(f.path("d"), 0)); f.must(os.Chmod(f.path("e"), 0)) })
	f.turn(2, func() { f.must(os.Chmod(f.path("d"), 0o755)); f.write("d/a", "2") })
	if r := f.restore(2, Before, true); len(r.NotCovered) != 1 || f.read("d/a") != "1" {
		t.Errorf("%+v, %s", r, f.read("d/a"))
	}
	f.must(os.Chmod(f.path("e"), 0o600))
}

func TestRestore_FolderNotWritable_ChangesNothing(t *testing.T) {
	if os.Getuid() == 0 {
		asUser(t)
		return
	}
	f := newFixture(t)
	f.write("a", "1")
	f.write("d/a", "1")
	f.turn(1, func() { f.write("a", "2"); f.write("d/a", "2") })
	f.must(os.Chmod(f.path("d"), 0o555))
	before := f.tree()
	_, err := f.store.Restore(Request{testFolder, 1, 1, Before, true})
	if !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrUnfinished) {
		t.Error(err)
	}
	f.wantTree("refused", before)
	f.must(os.Chmod(f.path("d"), 0o755))
}

// asUser runs a test that means nothing for root as another user.
func asUser(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chown(dir, 1234, 1234)); err != nil {
		t.Fatal(err)
	}
	cmd.Env = []string{"TMPDIR=" + dir}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1234, Gid: 1234}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) {
		t.Skip("another user cannot run this test: ", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as another user: %v\n%s", err, out)
	}
}

func TestRestore_FullDisk_ChangesNothing(t *testing.T) {
	f := newFixture(t)
	if err := unix.Mount("tmpfs", f.dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	t.Cleanup(func() { f.must(unix.Unmount(f.dir, unix.MNT_DETACH)) })
	f.write("a", "1")
	f.write("b", strings.Repeat("b", 30_000))
	f.turn(1, func() { f.write("a", "2"); f.must(os.Remove(f.path("b"))) })
	f.write("c", strings.Repeat("c", 40_000))
	before := f.tree()
	_, err := f.store.Restore(Request{testFolder, 1, 1, Before, false})
	if !errors.Is(err, unix.ENOSPC) || errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), "make room") {
		t.Error(err)
	}
	f.wantTree("full", before)
	if _, ok, err := f.store.Pending(testFolder); ok || err != nil {
		t.Error("a restore is pending", err)
	}
	f.must(os.Remove(f.path("c")))
	if r := f.restore(1, Before, false); r.Restored != 2 || len(f.read("b")) != 30_000 {
		t.Errorf("%+v", r)
	}
}

func TestStore_OtherFileSystem_IsLeftOut(t *testing.T) {
	f := newFixture(t)
	f.write("mounted/a", "1")
	if err := unix.Mount("tmpfs", f.path("mounted"), "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("cannot mount a file system: ", err)
	}
	t.Cleanup(func() { f.must(unix.Unmount(f.path("mounted"), unix.MNT_DETACH)) })
	f.turn(1, func() { f.write("mounted/b", "1"); f.write("c", "1") })
	if r := f.restore(1, Before, false); !slices.Equal(r.Paths, []string{"c"}) {
		t.Errorf("%+v", r)
	}
}

// crash is what a store panics with at a failpoint, in place of a kill.
type crash failpoint.Point

// crashing runs do with a store that crashes when it reaches a point for the nth time. It reports whether it did.
func (f *fixture) crashing(at failpoint.Point, n int, do func()) (crashed bool) {
	f.store.reached = func(p failpoint.Point) {
		if n--; p != at {
			n++
		}
		if n < 0 && p == at {
			panic(crash(p))
		}
	}
	defer func() {
		f.store.reached = nil
		if r := recover(); r != nil {
			f.restart()
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			crashed = true
		}
	}()
	do()
	return false
}

func TestRestore_Crash_IsFinishedOrNotBegun(t *testing.T) {
	points := []failpoint.Point{
		failpoint.UndoScanned, failpoint.UndoStaged, failpoint.UndoBegun, failpoint.UndoMoving, failpoint.UndoMoved,
	}
	for _, p := range points {
		for n := range 12 {
			f := newFixture(t)
			f.write("a", "1")
			f.write("d/b", "1")
			f.write("e", "1")
			f.must(os.Symlink("a", f.path("l")))
			before := f.tree()
			f.turn(1, func() {
				f.write("a", "2")
				f.must(os.RemoveAll(f.path("d")))
				f.write("d", "file")
				f.must(os.Remove(f.path("e")))
				f.write("e/f", "2")
				f.must(os.Remove(f.path("l")))
				f.write("m", "2")
			})
			after := f.tree()
			r := Request{testFolder, 7, 1, Before, false}
			crashed := f.crashing(p, n, func() {
				_, err := f.store.Restore(r)
				f.must(err)
			})
			if n == 0 && !crashed {
				t.Errorf("%s is not reached", p)
			}
			if begun := p != failpoint.UndoScanned && p != failpoint.UndoStaged; crashed && !begun {
				f.must(f.store.Forget(testFolder, 99)) // anything
				f.turn(3, func() {})
				f.wantTree("not begun", after)
			} else if n%2 == 0 {
				f.turn(2, func() {}) // it is finished first
				f.wantTree(string(p), before)
			}
			report, err := f.store.Restore(r)
			f.must(err)
			want := []string{"a", "d", "d/b", "e", "e/f", "l", "m"}
			if !slices.Equal(report.Paths, want) || report.Restored != len(want) || len(report.Changed) > 0 {
				t.Errorf("%s %d: %+v", p, n, report)
			}
			f.wantTree(fmt.Sprint(p, n), before)
			if op, ok, err := f.store.Pending(testFolder); op != 7 || !ok || err != nil {
				t.Errorf("pending: %d %t %v", op, ok, err)
			}
			f.must(f.store.Forget(testFolder, 7))
			if _, ok, err := f.store.Pending(testFolder); ok || err != nil {
				t.Errorf("pending: %t %v", ok, err)
			}
			f.restore(1, After, false)
			f.wantTree("redone", after)
			if !crashed {
				break
			}
		}
	}
}

func TestRestore_StagingGone_IsWrittenAgain(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	f.turn(1, func() { f.write("a", "2") })
	r := Request{testFolder, 7, 1, Before, false}
	f.crashing(failpoint.UndoBegun, 0, func() { f.store.Restore(r) })
	f.must(os.RemoveAll(f.path(stagingName(7))))
	report, err := f.store.Restore(r)
	f.must(err)
	if report.Restored != 1 || f.read("a") != "1" {
		t.Errorf("%+v, %s", report, f.read("a"))
	}
}

func TestRestore_ChangedWhileItMoves_IsLeft(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "b"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, meanwhile := range map[string]func(f *fixture){
		"content": func(f *fixture) { f.write("d/b", "mine") },
		"folder becomes a link out": func(f *fixture) {
			f.must(os.Rename(f.path("d"), f.path("was")))
			f.must(os.Symlink(outside, f.path("d")))
		},
		"folder becomes a link inside": func(f *fixture) {
			f.must(os.Rename(f.path("d"), f.path("was")))
			f.must(os.Symlink("was", f.path("d")))
		},
		"file becomes a link out": func(f *fixture) {
			f.must(os.Remove(f.path("d/b")))
			f.must(os.Symlink(filepath.Join(outside, "b"), f.path("d/b")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write("a", "1")
			f.write("d/b", "1")
			f.turn(1, func() { f.write("a", "2"); f.write("d/b", "2") })
			f.store.reached = func(p failpoint.Point) {
				if p == failpoint.UndoBegun {
					meanwhile(f)
				}
			}
			r := f.restore(1, Before, false)
			if !slices.Equal(r.Changed, []string{"d/b"}) || !slices.Equal(r.Paths, []string{"a"}) {
				t.Errorf("%+v", r)
			}
			if content, err := os.ReadFile(filepath.Join(outside, "b")); string(content) != "2" {
				t.Errorf("outside: %q, %v", content, err)
			}
			if f.read("a") != "1" {
				t.Error(f.read("a"))
			}
		})
	}
}

func TestRestore_StagingOfAnAgent_IsNotUsed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root has other users")
	}
	f := newFixture(t)
	f.write("a", "1")
	f.turn(1, func() { f.write("a", "2") })
	r := Request{testFolder, 7, 1, Before, false}
	f.crashing(failpoint.UndoBegun, 0, func() { f.store.Restore(r) })
	f.must(os.RemoveAll(f.path(stagingName(7))))
	f.must(os.Mkdir(f.path(stagingName(7)), 0o777))
	f.must(os.Chown(f.path(stagingName(7)), 1234, 1234))
	report, err := f.store.Restore(r)
	f.must(err)
	if _, err := os.Stat(f.path(stagingName(7))); err == nil || report.Restored != 1 || f.read("a") != "1" {
		t.Errorf("%+v, %s, %v", report, f.read("a"), err)
	}
}

func TestStaging_OfOthers_Stays(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"2026/report", "2027/1", "2027/report", "notes/1", "3/1/a"} {
		f.write(stagingPrefix+name, "mine")
	}
	want := f.tree()
	f.write(stagingName(4)+"/0", "of an interrupted restore")
	f.write(stagingName(4)+"/"+stagingPart, "of an interrupted restore")
	f.begin(1)
	f.wantTree("after a look", want)
	f.write("a", "1")
	f.end(1)
	f.op = 2025
	r := f.restore(1, Before, false)
	aside, err := filepath.Glob(f.path(stagingName(2026) + "-*/report"))
	if len(aside) != 1 || err != nil || r.Restored != 1 {
		t.Errorf("%+v, moved aside: %v, %v", r, aside, err)
	}
}

func TestRestore_ObjectLostAfterACrash_LeavesItsFile(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	f.write("b", "1b")
	f.turn(1, func() { f.write("a", "2"); f.write("b", "2") })
	r := Request{testFolder, 7, 1, Before, false}
	f.crashing(failpoint.UndoBegun, 0, func() { f.store.Restore(r) })
	f.must(os.Remove(f.path(stagingName(7) + "/0")))
	f.must(os.RemoveAll(filepath.Join(f.store.Root, "acme+eng/objects")))
	report, err := f.store.Restore(r)
	f.must(err)
	if !slices.Equal(report.Paths, []string{"b"}) || !slices.Equal(report.Changed, []string{"a"}) {
		t.Errorf("%+v", report)
	}
}

func TestStore_SeveralTurnsAtATime(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0")
	var wait sync.WaitGroup
	for n := range int64(4) {
		wait.Go(func() {
			s := f.store
			for i := range int64(5) {
				turn := n*5 + i
				if err := s.Begin(testFolder, turn); err != nil {
					t.Error(err)
				}
				name := f.path(fmt.Sprint("d", n))
				if err := os.WriteFile(name, fmt.Append(nil, i), 0o600); err != nil {
					t.Error(err)
				}
				if err := s.End(testFolder, turn); err != nil {
					t.Error(err)
				}
				r := Request{testFolder, turn, turn, Before, true}
				if _, err := s.Restore(r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	f.op = 1000
	f.turn(100, func() { f.write("a", "1") })
	if r := f.restore(100, Before, false); r.Restored != 1 || f.read("a") != "0" {
		t.Errorf("%+v, %s", r, f.read("a"))
	}
}

func TestBegin_TooManyFiles_CoversNothing(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	f.store.max = 5
	f.turn(1, func() { f.write("a", "2") })
	f.turn(2, func() {
		for n := range 5 {
			f.write(fmt.Sprint("b", n), "2")
		}
	})
	if r := f.restore(2, Before, false); !slices.Equal(r.NotCovered, []Uncovered{{".", tooMany}}) {
		t.Errorf("%+v", r)
	}
	f.turn(4, func() {})
	if r := f.restore(1, Before, false); !slices.Equal(r.NotCovered, []Uncovered{{".", tooMany}}) {
		t.Errorf("%+v", r)
	}
	f.must(os.Remove(f.path("b1")))
	f.turn(3, func() { f.write("a", "3") })
	if r := f.restore(3, Before, false); r.Restored != 1 || f.read("a") != "2" {
		t.Errorf("%+v", r)
	}
}

func TestRestore_ManyFiles(t *testing.T) {
	files := 100_000
	if testing.Short() || os.Getenv("UNDO_MANY") == "" {
		files = 3_000
	}
	f := newFixture(t)
	f.store.Quota = 100 << 20
	for n := range files {
		f.write(fmt.Sprintf("d%d/f%d", n/1000, n), fmt.Sprint(n))
	}
	at := time.Now()
	took := func(what string) { t.Log(what, time.Since(at)); at = time.Now() }
	f.store.Now = func() time.Time { return time.Time{} } // no deadline is reached
	f.begin(1)
	took("first look")
	f.must(os.RemoveAll(f.dir))
	f.must(os.Mkdir(f.dir, 0o700))
	at = time.Now()
	f.end(1)
	took("all removed")
	r := f.restore(1, Before, false)
	took("all restored")
	if want := files + (files+999)/1000; r.Restored != want || len(r.Paths) != maxPaths {
		t.Errorf("%d restored, want %d", r.Restored, want)
	}
	if got := f.read("d2/f2999"); got != "2999" {
		t.Error(got)
	}
}

func TestKeep_SwappedAfterTheWalk_IsNotRead(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, swap := range map[string]func(f *fixture){
		"link":         func(f *fixture) { f.must(os.Symlink(outside, f.path("d/a"))) },
		"hard link":    func(f *fixture) { f.must(os.Link(outside, f.path("d/a"))) },
		"pipe":         func(f *fixture) { f.must(unix.Mkfifo(f.path("d/a"), 0o600)) },
		"folder":       func(f *fixture) { f.must(os.Mkdir(f.path("d/a"), 0o700)) },
		"gone":         func(f *fixture) {},
		"another file": func(f *fixture) { f.write("d/a", "secret") },
		"link as folder": func(f *fixture) {
			f.must(os.Remove(f.path("d")))
			f.must(os.Symlink(filepath.Dir(outside), f.path("d")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write("d/a", "public")
			f.must(f.store.with(testFolder, func(g *group) error {
				w := &walk{max: 10}
				f.must(withFolder(g.dir, ".", func(top *os.File) (err error) {
					_, w.system, err = statAt(int(top.Fd()), "")
					return errors.Join(err, w.folder(top, "", 0))
				}))
				f.must(os.Remove(f.path("d/a")))
				swap(f)
				k := &keeper{group: g, now: w.items, deadline: time.Now().Add(time.Hour)}
				k.keep([]int{1})
				if a := w.items[1]; a.content != "" || a.why != beingWritten && a.why != unreadable {
					t.Errorf("%+v", a)
				}
				return nil
			}))
		})
	}
}

// Pending returns a restore that was begun and is not forgotten.
func (s *Store) Pending(folder string) (op int64, ok bool, err error) {
	err = s.with(folder, func(g *group) error {
		names, err := namesIn(g.own)
		for _, name := range names {
			if n, _ := fmt.Sscanf(name, journalPrefix+"%d", &op); n > 0 {
				ok = true
			}
		}
		return err
	})
	return op, ok, err
}
