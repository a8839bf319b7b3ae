package snapshots

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/failpoint"
)

const (
	maxEntries = 200_000
	maxDepth   = 100 // each level holds a descriptor
)

// raceDelay is how long before a look a file must have changed last. The kernel's clock for files ticks every 4 to
// 10 ms: a younger file can change again and look the same.
const raceDelay = 20 * time.Millisecond

// stagingPrefix and a number are the name of a folder, in a group's, where files are written before they are restored.
const stagingPrefix = ".arizuko-undo-"

var errTooMany = errors.New("too many files")

// walk is a walk through a group's folder.
type walk struct {
	system uint64
	max    int
	items  []item
	closed []string // folders whose content it could not look at
	staged []string // names of staging folders
}

// folder looks at all that is in a folder, without opening a file or following a link. It leaves out other file
// systems, caches, and what is neither a file nor a folder nor a link.
func (w *walk) folder(dir *os.File, at string, depth int) error {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if at == "" && strings.HasPrefix(name, stagingPrefix) {
			w.staged = append(w.staged, name)
			continue
		}
		e, system, err := statAt(int(dir.Fd()), name)
		switch {
		case errors.Is(err, fs.ErrNotExist), leavesOut(at + name):
			continue
		case err != nil:
			return err
		case system != w.system || e.kind == other:
			continue
		case len(w.items) == w.max:
			return errTooMany
		}
		w.items = append(w.items, item{at + name, e})
		if e.kind == folder {
			if err := w.enter(dir, name, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// leavesOut reports whether a path is a cache, or a session of Claude Code, which goes back by itself.
func leavesOut(path string) bool {
	return path == ".cache" || path == ".npm" || path == ".claude/arizuko" ||
		strings.HasPrefix(path, ".claude/projects/") && strings.HasSuffix(path, ".jsonl")
}

// enter looks into the folder that is the last item.
func (w *walk) enter(dir *os.File, name string, depth int) error {
	this := len(w.items) - 1
	at, why := w.items[this].path, tooDeep
	if depth < maxDepth {
		fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			inside := os.NewFile(uintptr(fd), at)
			err = errors.Join(w.folder(inside, at+"/", depth), inside.Close())
		}
		switch {
		case err == nil, errors.Is(err, errTooMany):
			return err
		case errors.Is(err, fs.ErrNotExist): // gone meanwhile
			w.items = w.items[:this]
			return nil
		}
		w.items, why = w.items[:this+1], unreadable
	}
	w.items[this].why = why
	w.closed = append(w.closed, at)
	return nil
}

// takeOver completes the items of a walk with what was known of them. It returns all items, those of closed folders
// included, and the indices of those whose content must be looked at.
func (w *walk) takeOver(old []item) (now []item, changed []int) {
	now = w.items
	for _, was := range old {
		if slices.ContainsFunc(w.closed, func(folder string) bool { return strings.HasPrefix(was.path, folder+"/") }) {
			now = append(now, was)
		}
	}
	if len(w.closed) > 0 {
		sortByPath(now)
	}
	for n := range now {
		is := &now[n]
		for len(old) > 0 && old[0].path != is.path && comparePaths(old[0].path, is.path) < 0 {
			old = old[1:]
		}
		if len(old) > 0 && old[0].path == is.path && is.kind != folder && is.untouched(old[0].entry) {
			is.entry = old[0].entry
		}
		if is.kind != folder && (is.content == "" || is.why != "") {
			changed = append(changed, n)
		}
	}
	return now, changed
}

// look compares the folder with the index, adds the difference to what is known of the running turns, and keeps the new
// contents until the deadline.
func (g *group) look(deadline time.Time) error {
	err := g.tryLook(deadline)
	if err != nil { // what changes from here on cannot be compared
		why := notCompared
		if errors.Is(err, errTooMany) {
			g.Log.Warn("the folder has too many files for /undo", "folder", g.name, "max", maxEntries)
			why, err = tooMany, nil
		}
		g.state.blind(why)
		err = errors.Join(err, g.dropIndex())
	}
	return err
}

func (g *group) tryLook(deadline time.Time) error {
	start := time.Now() // not Now: it is compared with times of files
	old, known := g.index, g.known
	w := &walk{max: cmp.Or(g.max, maxEntries), items: make([]item, 0, len(old)+16)}
	err := withFolder(g.dir, ".", func(top *os.File) (err error) {
		if _, w.system, err = statAt(int(top.Fd()), ""); err != nil {
			return err
		}
		return w.folder(top, "", 0)
	})
	if err != nil {
		return err
	}
	g.removeStaging(w.staged...)
	now, changed := w.takeOver(old)
	if len(changed) > 0 {
		k := &keeper{group: g, old: old, now: now, deadline: deadline, racy: start.Add(-raceDelay).UnixNano()}
		k.keep(changed)
	}
	g.at(failpoint.UndoScanned)
	switch {
	case !known:
		g.state.blind(notCompared)
		err = g.saveIndex(now)
	case !slices.Equal(old, now):
		if err = g.attribute(differences(old, now)); err == nil {
			err = g.saveIndex(now)
		}
	}
	if n := len(g.state.known) - maxTurns; err == nil && n > 0 {
		err = g.forget(slices.Clone(g.state.known[:n+forgetTurns]))
	}
	return err
}

// loadIndex reads the items of the last look. There are none if there was none, or its file is damaged.
func (g *group) loadIndex() {
	var err error
	g.index = nil
	if g.known, err = load(g.own, "index", func(c *coder) { list(c, &g.index, c.item) }); err != nil {
		g.Log.Warn("cannot read the index of /undo, starting again", "folder", g.name, "err", err)
		g.index, g.known = nil, false
	}
}

func (g *group) saveIndex(items []item) error {
	g.index, g.known = items, true
	return save(g.own, "index", false, func(c *coder) { list(c, &items, c.item) })
}

func (g *group) dropIndex() error {
	g.index, g.known = nil, false
	return ignoreMissing(g.own.Remove("index"))
}

func differences(old, now []item) (all []change) {
	was := byPath(old)
	for _, i := range now {
		if c := (change{path: i.path, before: was[i.path], after: i.entry}); !c.before.same(c.after) {
			all = append(all, c)
		}
		delete(was, i.path)
	}
	for path, e := range was {
		all = append(all, change{path: path, before: e})
	}
	return all
}

// attribute adds changes to what is known of the running turns. Of several, none can have them restored.
func (g *group) attribute(changes []change) error {
	if len(g.state.running) > 1 {
		for i, c := range changes {
			changes[i] = change{path: c.path, why: overlap}
		}
	}
	for _, id := range g.state.running {
		if len(changes) == 0 || g.state.find(id) == nil {
			continue // a turn that is forgotten would have only a part
		}
		record, err := g.record(id)
		if err == nil {
			err = g.saveRecord(id, merge(record, changes))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// merge adds later changes to a record. A change that ends where it began is none.
func merge(record, later []change) (merged []change) {
	all := make(map[string]change, len(record)+len(later))
	for _, c := range slices.Concat(record, later) {
		if first, ok := all[c.path]; ok {
			c = first.then(c)
		}
		all[c.path] = c
	}
	for _, c := range all {
		if c.why != "" || !c.before.same(c.after) {
			merged = append(merged, c)
		}
	}
	slices.SortFunc(merged, func(a, b change) int { return comparePaths(a.path, b.path) })
	return merged
}

// then returns a change together with a later one, which includes it if a crash came between record and index.
func (c change) then(later change) change {
	switch {
	case c.why != "":
		return c
	case later.why != "":
		return later
	case later.before.same(c.after) || later.before.same(c.before):
		return change{path: c.path, before: c.before, after: later.after}
	}
	return change{path: c.path, why: gap}
}

func recordName(turn int64) string { return "turn-" + strconv.FormatInt(turn, 10) }

// record returns what a turn changed.
func (g *group) record(turn int64) (changes []change, err error) {
	_, err = load(g.own, recordName(turn), func(c *coder) { list(c, &changes, c.change) })
	if errors.Is(err, errDamaged) {
		g.Log.Warn("what a turn changed is damaged, /undo leaves its files", "folder", g.name, "turn", turn, "err", err)
		if t := g.state.find(turn); t != nil {
			t.blind = damaged
		}
		return nil, nil
	}
	return changes, err
}

func (g *group) saveRecord(turn int64, changes []change) error {
	if len(changes) == 0 {
		return ignoreMissing(g.own.Remove(recordName(turn)))
	}
	return save(g.own, recordName(turn), false, func(c *coder) { list(c, &changes, c.change) })
}

// forget forgets turns. The state comes first: a known turn without a record is one that changed nothing.
func (g *group) forget(turns []turn) error {
	g.state.known = slices.DeleteFunc(g.state.known, func(t turn) bool { return slices.Contains(turns, t) })
	err := g.saveState()
	for _, t := range turns {
		g.state.end(t.id)
		if err == nil {
			err = g.saveRecord(t.id, nil)
		}
	}
	return err
}
