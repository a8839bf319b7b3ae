package snapshots

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/failpoint"
)

const (
	maxEntries   = 200_000
	maxPathBytes = 32 << 20 // of all paths and targets of links, which are in memory
	maxDepth     = 100      // each level holds a descriptor
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
	bytes  int64 // of paths and targets of links
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
	for names := range slices.Chunk(names, maxStats) {
		if err := w.visit(dir, names, at, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) visit(dir *os.File, names []string, at string, depth int) error {
	for i, s := range statAll(int(dir.Fd()), names) {
		name, e, system, err := names[i], s.entry, s.system, s.err
		if at == "" && strings.HasPrefix(name, stagingPrefix) {
			w.staged = append(w.staged, name)
			continue
		}
		switch {
		case errors.Is(err, fs.ErrNotExist), leavesOut(at + name):
			continue
		case err != nil:
			return err
		case system != w.system || e.kind == other:
			continue
		}
		if w.bytes += int64(len(at + name)); e.kind == link {
			w.bytes += e.size
		}
		if len(w.items) == w.max || w.bytes > maxPathBytes {
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

const (
	maxStats = 1024 // names of a folder that statAll is given
	statStep = 32   // names that one of its goroutines looks at
)

// stat is what statAt returns.
type stat struct {
	entry

	system uint64
	err    error
}

// statAll looks at many names at once: nearly all the time of a walk goes into system calls.
func statAll(dir int, names []string) []stat {
	all := make([]stat, len(names))
	look := func(first int) {
		for i := first; i < min(first+statStep, len(names)); i++ {
			s := &all[i]
			s.entry, s.system, s.err = statAt(dir, names[i])
		}
	}
	var others sync.WaitGroup
	for first := statStep; first < len(names); first += statStep {
		others.Go(func() { look(first) })
	}
	look(0)
	others.Wait()
	return all
}

// logins are files with which agents log in. An old one may be worthless, and must not lie about in copies.
var logins = regexp.MustCompile(`(^|[/._-])(auth|creds|credentials|tokens?)\.json$`)

// leavesOut reports whether a path is a cache, a login, or a session of Claude Code, which goes back by itself.
func leavesOut(path string) bool {
	return path == ".cache" || path == ".npm" || path == ".claude/arizuko" ||
		strings.HasPrefix(path, ".claude/projects/") && strings.HasSuffix(path, ".jsonl") ||
		agentState(path) && logins.MatchString(path)
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

// look compares the folder with the index before or after a turn. Turns whose former call has failed, or that run
// although this process has not begun them, end here: some of the changes are not their own.
func (g *group) look(turn int64, deadline time.Time) error {
	for _, id := range append(slices.Clone(g.state.running), turn) {
		live, begun := g.live.Load(id)
		if t := g.state.find(id); t != nil && (live == false || !begun && slices.Contains(g.state.running, id)) {
			t.blind = cmp.Or(t.blind, notCompared)
		}
	}
	err := g.compare(deadline)
	g.state.running = slices.DeleteFunc(g.state.running, func(id int64) bool {
		live, _ := g.live.Load(id)
		return live != true
	})
	return err
}

// compare compares the folder with the index, adds the difference to what is known of the running turns, and keeps the
// new contents until the deadline.
func (g *group) compare(deadline time.Time) error {
	err := g.tryCompare(deadline)
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

func (g *group) tryCompare(deadline time.Time) error {
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
	if known && slices.Equal(old, now) {
		return nil
	}
	if !known {
		g.state.blind(notCompared)
	} else if err = g.attribute(differences(old, now)); err != nil {
		return err
	}
	return g.saveIndex(now)
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

// saveIndex stores the items of a look, and first the state, which says whose changes are not known.
func (g *group) saveIndex(items []item) error {
	g.index, g.known = items, true
	if err := g.saveState(); err != nil {
		return err
	}
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

// attached are the attachments that gated puts into a group's inbox, and the files in which it writes them.
var attached = regexp.MustCompile(`^inbox(/\d+-\d+-[^/]*)?$`)

// attribute adds changes to what is known of the running turns. Of several, none can have them restored. Attachments
// that gated adds meanwhile are of none.
func (g *group) attribute(changes []change) error {
	changes = slices.DeleteFunc(changes, func(c change) bool {
		return attached.MatchString(c.path) && (c.before.kind == absent || strings.HasSuffix(c.path, ".part"))
	})
	if len(g.state.running) > 1 {
		for i, c := range changes {
			changes[i] = change{path: c.path, why: overlap}
		}
	}
	for _, id := range g.state.running {
		t := g.state.find(id)
		if len(changes) == 0 || t == nil {
			continue // a turn that is forgotten would have only a part
		}
		record, err := g.record(id)
		if err == nil {
			err = g.saveRecord(t, merge(record, changes))
		}
		if err != nil {
			return err
		}
	}
	return g.trimRecords()
}

// trimRecords deletes the oldest records while all of them take more than a quarter of the quota.
func (g *group) trimRecords() (err error) {
	total := int64(0)
	for _, t := range g.state.known {
		total += t.size
	}
	for i := 0; err == nil && total > g.Quota/4; i++ {
		t := &g.state.known[i]
		t.blind = cmp.Or(t.blind, overQuota)
		if total -= t.size; t.size > 0 {
			if err = g.saveState(); err == nil { // first: without a record it has changed nothing
				err = g.saveRecord(t, nil)
			}
		}
	}
	return err
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

func (g *group) saveRecord(t *turn, changes []change) error {
	if t.size = 0; len(changes) == 0 {
		return ignoreMissing(g.own.Remove(recordName(t.id)))
	}
	c := newCoder(body)
	list(c, &changes, c.change)
	t.size = int64(len(c.data))
	return write(g.own, recordName(t.id), false, c)
}
