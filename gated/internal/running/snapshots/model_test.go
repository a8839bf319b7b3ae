package snapshots

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"arizuko/pkg/failpoint"
)

// model says what a store must know: the folder on both sides of each turn, and which side it is on.
type model struct {
	*fixture
	t      *rapid.T
	turns  []modelTurn
	undone int // of the last turns
	edited map[string]bool
}

type modelTurn struct {
	id            int64
	before, after map[string]string
	touched       map[string]bool // by a user since
}

// names are such that files, folders and links take each other's place.
var names = []string{"a", "b", "d", "d/a", "d/e", "d/e/a", "d.x", "l"}

// change makes a random change to the folder.
func (m *model) change() {
	name := rapid.SampledFrom(names).Draw(m.t, "name")
	path := m.path(name)
	content := fmt.Sprint(rapid.IntRange(0, 3).Draw(m.t, "content"))
	switch rapid.SampledFrom([]string{"write", "write", "replace", "remove", "mkdir", "link", "chmod", "rename", "hardlink"}).Draw(m.t, "change") {
	case "write":
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() || os.IsNotExist(err) {
			os.WriteFile(path, []byte(content), 0o644)
		}
	case "replace":
		os.WriteFile(path+"~", []byte(content), 0o644)
		if os.Rename(path+"~", path) != nil {
			os.Remove(path + "~")
		}
	case "remove":
		os.RemoveAll(path)
	case "mkdir":
		os.MkdirAll(path, 0o755)
	case "link":
		os.Remove(path)
		os.Symlink(content, path)
	case "chmod":
		if info, err := os.Lstat(path); err == nil && info.Mode().Type()&os.ModeSymlink == 0 {
			os.Chmod(path, 0o700|os.FileMode(len(content)%2*0o44))
		}
	case "rename":
		os.Rename(path, m.path(rapid.SampledFrom(names).Draw(m.t, "to")))
	case "hardlink":
		os.Link(path, m.path(rapid.SampledFrom(names).Draw(m.t, "to")))
	}
}

func (m *model) changes() {
	for range rapid.IntRange(0, 5).Draw(m.t, "changes") {
		m.change()
	}
}

var undoPoints = []failpoint.Point{
	failpoint.UndoScanned, failpoint.UndoStaged, failpoint.UndoBegun, failpoint.UndoMoving, failpoint.UndoMoved,
}

// mayCrash calls do until it is not interrupted. It reports whether it was: then no turn is running any more.
func (m *model) mayCrash(do func()) (crashed bool) {
	for rapid.IntRange(0, 3).Draw(m.t, "crash") == 0 {
		point := rapid.SampledFrom(undoPoints).Draw(m.t, "point")
		if !m.crashing(point, rapid.IntRange(0, 4).Draw(m.t, "times"), do) {
			return crashed
		}
		crashed = true
		m.must(m.store.EndFormer(testFolder, math.MaxInt64))
	}
	do()
	return crashed
}

func (m *model) runTurn() {
	m.turns = m.turns[:len(m.turns)-m.undone]
	m.undone = 0
	turn := modelTurn{id: m.op + 1000, before: m.tree(), touched: map[string]bool{}}
	m.op++
	for range rapid.IntRange(1, 3).Draw(m.t, "attempts") {
		m.mayCrash(func() { m.begin(turn.id) })
		m.changes()
	}
	m.mayCrash(func() { m.end(turn.id) })
	turn.after = m.tree()
	m.turns = append(m.turns, turn)
}

// restore takes the last turn back, or restores the last that was taken back.
func (m *model) undo(to Side) {
	at := len(m.turns) - 1 - m.undone
	if to == After {
		at++
	}
	if at < 0 || at == len(m.turns) {
		return
	}
	turn := m.turns[at]
	from, want := turn.after, turn.before
	if to == After {
		from, want = want, from
	}
	now := m.tree()
	m.op++
	r := Request{testFolder, m.op, turn.id, to, false}
	var report Report
	m.mayCrash(func() {
		var err error
		report, err = m.store.Restore(r)
		m.must(err)
	})
	got := m.tree()
	if len(report.NotCovered) > 0 || report.Unknown {
		m.t.Fatalf("%+v", report)
	}
	if report.Refused || len(report.Changed) > 0 {
		m.wantEdited(report, from, want, now, got)
		m.op++
		m.must(m.store.Forget(testFolder, r.Op))
		r.Op, r.Rest = m.op, true
		m.mayCrash(func() {
			var err error
			report, err = m.store.Restore(r)
			m.must(err)
		})
		got = m.tree()
	}
	m.must(m.store.Forget(testFolder, r.Op))
	m.compare(report, from, want, now, got)
	if to == Before {
		m.undone++
	} else {
		m.undone--
	}
	if len(m.edited) > 0 || len(report.Changed) > 0 { // the other turns' sides are not what they were
		m.turns, m.undone = nil, 0
		m.edited = map[string]bool{}
	}
}

// wantEdited checks that a refused restore changed nothing, and that the user did change something.
func (m *model) wantEdited(r Report, from, want, now, got map[string]string) {
	if r.Refused && !maps.Equal(now, got) {
		m.t.Fatalf("refused, but %v became %v", now, got)
	}
	if len(m.edited) == 0 {
		m.t.Fatalf("%+v, but there was no edit; from %v to %v, now %v", r, from, want, now)
	}
}

// compare checks each path: one that the turn changed, and only the turn, is as it was; others are as they are.
func (m *model) compare(r Report, from, want, now, got map[string]string) {
	paths := slices.Sorted(maps.Keys(now))
	for _, all := range []map[string]string{from, want, got} {
		paths = append(paths, slices.Collect(maps.Keys(all))...)
	}
	for _, path := range paths {
		as := now[path]
		isFolder := strings.HasPrefix(now[path], "d") && strings.HasPrefix(from[path], "d")
		switch {
		case from[path] == want[path], slices.Contains(r.Changed, path):
		case now[path] == from[path]:
			as = want[path]
		}
		if got[path] == as || isFolder && want[path] == "" && m.hasMore(path) {
			continue
		}
		m.t.Fatalf("%s is %q, not %q; report %+v\nfrom %v\nto %v\nwas %v\nis %v", path, got[path], as, r, from, want, now, got)
	}
}

func (m *model) hasMore(folder string) bool {
	entries, _ := os.ReadDir(filepath.Join(m.dir, folder))
	return len(entries) > 0
}

func TestStore_AnySequence_IsAsTheModelSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{fixture: newFixture(t), t: rt, edited: map[string]bool{}}
		m.begin(1)
		m.end(1)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"turn", "turn", "undo", "undo", "redo", "edit"}).Draw(rt, "step") {
			case "turn":
				if len(m.edited) > 0 {
					m.turns, m.undone, m.edited = nil, 0, map[string]bool{}
				}
				m.runTurn()
			case "undo":
				m.undo(Before)
			case "redo":
				m.undo(After)
			case "edit":
				before := m.tree()
				m.changes()
				for path, is := range m.tree() {
					if before[path] != is {
						m.edited[path] = true
					}
					delete(before, path)
				}
				for path := range before {
					m.edited[path] = true
				}
			}
		}
	})
}

// timeline is what a folder was at each boundary, and which turns were running until the next. A restore is one boundary
// to another, too.
type timeline struct {
	trees    []map[string]string
	running  [][]int64
	restored map[int]bool // by the boundary after a restore
}

// TestStore_OverlappingTurns_OnlyTheirOwnIsRestored runs turns beside each other, and users' changes at any time. Each
// path that a restore changes was changed by that turn while no other was running, and has not been changed since.
func TestStore_OverlappingTurns_OnlyTheirOwnIsRestored(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{fixture: newFixture(t), t: rt}
		m.begin(1)
		m.end(1)
		line := timeline{restored: map[int]bool{}}
		var running []int64
		began, ended := map[int64]int{}, map[int64]int{}
		boundary := func(now []int64) {
			line.trees = append(line.trees, m.tree())
			line.running = append(line.running, now)
		}
		for turn := int64(2); turn < 8; {
			// at marks a boundary, after which some turns are running.
			at := func(now ...int64) {
				boundary(now)
				for _, id := range running {
					if !slices.Contains(now, id) {
						ended[id] = len(line.trees) - 1
					}
				}
				running = now
			}
			others := func(crashed bool, but int64) []int64 {
				return slices.DeleteFunc(slices.Clone(running), func(id int64) bool { return crashed || id == but })
			}
			if step := rapid.SampledFrom([]string{"begin", "end", "change", "change", "undo"}).Draw(rt, "step"); step == "begin" {
				at(append(others(m.mayCrash(func() { m.begin(turn) }), 0), turn)...)
				began[turn] = len(line.trees) - 1
				turn++
			} else if step == "end" && len(running) > 0 {
				at(others(m.mayCrash(func() { m.end(running[0]) }), running[0])...)
			} else if step == "change" {
				m.changes()
			} else if id := rapid.Int64Range(2, 7).Draw(rt, "turn"); step == "undo" && ended[id] > 0 {
				at(running...)
				now := m.tree()
				m.op++
				r := Request{testFolder, m.op, id, Before, true}
				crashed := m.mayCrash(func() {
					_, err := m.store.Restore(r)
					m.must(err)
				})
				line.check(rt, id, began[id], ended[id], now, m.tree())
				at(others(crashed, 0)...)
				line.restored[len(line.trees)-1] = true
				delete(ended, id)
			}
		}
	})
}

func (l *timeline) check(t *rapid.T, turn int64, began, ended int, now, got map[string]string) {
	paths := slices.Concat(slices.Collect(maps.Keys(now)), slices.Collect(maps.Keys(got)))
	for _, path := range paths {
		if now[path] == got[path] {
			continue
		}
		began := began
		for i := began + 1; i <= ended; i++ {
			if l.restored[i] && l.trees[i-1][path] != l.trees[i][path] {
				began = i
			}
		}
		if got[path] != l.trees[began][path] || now[path] != l.trees[ended][path] {
			t.Fatalf("turn %d: %s was %q, is %q; when it began %q, when it ended %q", turn, path, now[path], got[path],
				l.trees[began][path], l.trees[ended][path])
		}
		for i := began; i < ended; i++ {
			if l.trees[i][path] != l.trees[i+1][path] && !slices.Equal(l.running[i], []int64{turn}) {
				t.Fatalf("turn %d: %s is restored, and %v were running", turn, path, l.running[i])
			}
		}
	}
}
