package snapshots

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/dataowner"
	"arizuko/pkg/failpoint"
)

// Side is a side of a turn.
type Side int

// Restoring the state before a turn takes it back, the one after it brings it back.
const (
	Before Side = iota
	After
)

// Request asks for the files of a turn, as they were on one side of it.
type Request struct {
	Folder string
	Op     int64 // identifies this restore within its folder
	Turn   int64
	To     Side
	Rest   bool // leaves out the files that have changed since
}

// Report says what was restored and what was not. Paths are below the group's folder, in order, and may be any bytes.
// The agents' own state is restored if it is unchanged since, and is never in here.
type Report struct {
	Restored   int
	Paths      []string    // the first of those that were restored
	Changed    []string    // changed since by another topic or a user, and left as they are
	NotCovered []Uncovered // changed by the turn, but not kept, and left as they are
	Refused    bool        // nothing was restored, because of Changed
	Unknown    bool        // nothing is known about the turn's files: it is too old
}

// Uncovered is a path that cannot be restored. "." stands for all.
type Uncovered struct{ Path, Reason string }

const maxPaths = 20

// ErrUnfinished is an error of a restore that stopped halfway. It goes on with the next call for the folder. After any
// other error nothing is changed.
var ErrUnfinished = errors.New("some files are restored, the others follow with the next attempt")

// Restore restores the files of a turn, and returns once they are on the disk. The same request returns the same report
// until Forget. If a crash has interrupted it, it finishes first.
func (s *Store) Restore(r Request) (report Report, err error) {
	report.Unknown = s.Quota <= 0
	err = s.with(r.Folder, func(g *group) error {
		j := &journal{op: r.Op}
		_, err := g.loadJournal(j)
		if err == nil && j.asked != r.asked() { // there is none, or one of a database that has been replaced
			err = g.restore(r, j)
		}
		report = j.report
		return err
	})
	return report, err
}

// Forget forgets a restore: from then on, Restore with its Op would restore again.
func (s *Store) Forget(folder string, op int64) error {
	return s.with(folder, func(g *group) error { return ignoreMissing(g.own.Remove(journalName(op))) })
}

func (r Request) asked() string { return fmt.Sprint(r.Turn, r.To, r.Rest) }

// journal is a restore that was begun.
type journal struct {
	op     int64
	asked  string   // for what
	steps  []change // none once all are made
	report Report
}

func (j *journal) code(c *coder) {
	c.text(&j.asked)
	list(c, &j.steps, c.change)
	restored := int64(j.report.Restored)
	c.number(&restored)
	j.report.Restored = int(restored)
	list(c, &j.report.Paths, c.text)
	list(c, &j.report.Changed, c.text)
	list(c, &j.report.NotCovered, func(u *Uncovered) {
		c.text(&u.Path)
		c.text(&u.Reason)
	})
}

const journalPrefix = "undo-"

func journalName(op int64) string { return journalPrefix + strconv.FormatInt(op, 10) }

func (g *group) loadJournal(j *journal) (bool, error) { return load(g.own, journalName(j.op), j.code) }

func (g *group) saveJournal(j *journal) error { return save(g.own, journalName(j.op), true, j.code) }

// finishRestores finishes what a crash has interrupted.
func (g *group) finishRestores() error {
	names, err := namesIn(g.own)
	for _, name := range names {
		j := &journal{}
		if n, _ := fmt.Sscanf(name, journalPrefix+"%d", &j.op); n == 0 {
			continue
		}
		_, e := g.loadJournal(j)
		switch {
		case errors.Is(e, errDamaged):
			g.Log.Error("the journal of an interrupted undo is damaged, its files are left", "folder", g.name,
				"op", j.op)
			e = g.own.Remove(name)
		case e == nil && len(j.steps) > 0:
			e = g.finish(j)
		}
		err = errors.Join(err, e)
	}
	return err
}

func namesIn(folder *os.Root) (names []string, err error) {
	err = withFolder(folder, ".", func(f *os.File) (err error) {
		names, err = f.Readdirnames(-1)
		return err
	})
	return names, err
}

// restore plans a restore, writes the files beside and then the journal, and makes the steps.
func (g *group) restore(r Request, j *journal) error {
	if err := g.look(r.Turn, g.Now().Add(maxCopying)); err != nil {
		return err
	}
	record, err := g.record(r.Turn)
	if err != nil {
		return err
	}
	t := g.state.find(r.Turn)
	if j.report.Unknown = t == nil; t == nil {
		return nil
	}
	if t.blind != "" || !g.known {
		j.report.NotCovered = []Uncovered{{".", cmp.Or(t.blind, tooMany)}}
		return nil
	}
	for err = errDamaged; errors.Is(err, errDamaged); { // each time there is one object less
		g.plan(r, record, j)
		if j.report.Refused = len(j.report.Changed) > 0 && !r.Rest; j.report.Refused || len(j.steps) == 0 {
			return nil
		}
		if err = g.prepare(j); err == nil {
			g.at(failpoint.UndoStaged)
			err = g.saveJournal(j)
		}
		if err != nil {
			err = errors.Join(err, ignoreMissing(g.own.Remove(journalName(j.op))))
			g.removeStaging(stagingName(j.op))
		}
	}
	if err != nil {
		return advise(err)
	}
	g.at(failpoint.UndoBegun)
	return g.finish(j)
}

func advise(err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("no file was restored: the disk is full, make room and try again: %w", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no file was restored: gated may not write there: %w", err)
	}
	return fmt.Errorf("no file was restored: %w", err)
}

// plan sets the steps that restore a record, and what the report says about the other changes.
func (g *group) plan(r Request, record []change, j *journal) {
	*j = journal{op: j.op, asked: r.asked()}
	then := byPath(g.index) // what is there once the steps are made
	for _, c := range record {
		if r.To == After {
			c.before, c.after = c.after, c.before
		}
		is, to, parent := then[c.path], c.before, path.Dir(c.path)
		why := cmp.Or(c.why, c.after.why, to.why)
		if why == "" && to.kind == file && !g.has(to.content, to.size) {
			why = gone
		}
		possible := why == "" && is.same(c.after) && (to.kind == absent || parent == "." || then[parent].kind == folder)
		switch {
		case why == "" && is.same(to):
		case possible && g.read(c.path).same(c.after): // a write to mapped memory may change no time
			j.steps = append(j.steps, change{path: c.path, before: c.after, after: to})
			then[c.path] = to
		default:
			j.report.leave(c.path, why)
		}
	}
	for n, s := range slices.Backward(j.steps) {
		if s.before.kind != folder || s.after.kind == folder || !g.holdsMore(s.path, then) {
			continue
		}
		delete(then, s.path) // it stays
		if s.after.kind != absent {
			j.steps = slices.Delete(j.steps, n, n+1)
			j.report.leave(s.path, "")
		}
	}
	slices.SortFunc(j.report.Changed, comparePaths)
}

// leave says that a path is left as it is: why it is not covered, or "" if it has changed since.
func (r *Report) leave(path, why string) {
	switch {
	case agentState(path):
	case why == "":
		r.Changed = append(r.Changed, path)
	default:
		r.NotCovered = append(r.NotCovered, Uncovered{path, why})
	}
}

// holdsMore reports whether something stays in a folder, such as a pipe, which walks leave out.
func (g *group) holdsMore(folder string, then map[string]entry) bool {
	err := g.inFolder(folder, func(f *os.File) error {
		names, err := f.Readdirnames(-1)
		for _, name := range names {
			if e, known := then[folder+"/"+name]; !known || e.kind != absent {
				return errConflict
			}
		}
		return err
	})
	return err != nil
}

// prepare checks that the steps are allowed, and writes what they need.
func (g *group) prepare(j *journal) error {
	g.removeStaging(stagingName(j.op))
	staging, err := g.openStaging(j)
	if err != nil {
		return err
	}
	defer staging.Close()
	steps := map[string]bool{}
	first := map[entry]string{} // of hard links to each other
	for n, s := range j.steps {
		parent, name := path.Dir(s.path), strconv.Itoa(n)
		if !steps[parent] { // steps make their folders writable
			err = g.inFolder(parent, func(f *os.File) error {
				return unix.Faccessat(int(f.Fd()), ".", unix.W_OK|unix.X_OK, 0)
			})
		}
		other, linked := first[s.after]
		switch {
		case err != nil, s.after.kind == absent, s.before.kind == folder && s.after.kind == folder:
		case linked:
			err = staging.Link(other, name)
		default:
			err = g.stage(staging, name, s.after)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		steps[s.path] = true
		if s.after.kind == file && s.after.links > 1 {
			first[s.after] = name
		}
	}
	return syncDisk(g.dir)
}

const stagingPart = "part"

func stagingName(op int64) string { return stagingPrefix + strconv.FormatInt(op, 10) }

var errForeign = errors.New("made by others")

// ownStaging opens a folder where a restore has written, and returns the names in it. Whatever else has its name is an
// error.
func (g *group) ownStaging(name string) (staging *os.Root, names []string, err error) {
	if staging, err = dataowner.OpenFolder(g.dir, name); err != nil {
		return nil, nil, err
	}
	info, err := staging.Stat(".")
	if err == nil {
		names, err = namesIn(staging)
	}
	other := func(n string) bool { return strings.Trim(n, "0123456789") != "" && n != stagingPart }
	if err == nil && (dataowner.Of(info).UID != os.Geteuid() ||
		slices.ContainsFunc(append(names, name[len(stagingPrefix):]), other)) {
		err = errForeign
	}
	if err != nil {
		_ = staging.Close()
	}
	return staging, names, err
}

// openStaging opens the folder where a restore writes. What others have made there is moved aside.
func (g *group) openStaging(j *journal) (staging *os.Root, err error) {
	name := stagingName(j.op)
	for range 3 {
		if err = g.dir.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if staging, _, err = g.ownStaging(name); err == nil {
			return staging, nil
		}
		err = errors.Join(err, g.dir.Rename(name, fmt.Sprint(name, "-", time.Now().UnixNano())))
	}
	return nil, err
}

// removeStaging removes folders where restores have written. Whatever else has such a name stays.
func (g *group) removeStaging(names ...string) {
	for _, name := range names {
		staging, written, err := g.ownStaging(name)
		if err != nil {
			continue
		}
		for _, n := range written {
			err = errors.Join(err, staging.Remove(n))
		}
		if err = errors.Join(err, staging.Close(), g.dir.Remove(name)); err != nil {
			g.Log.Warn("cannot remove the files of an undo", "folder", g.name, "file", name, "err", err)
		}
	}
}

// stage makes what is later moved to a path, with its owner. A folder gets its mode once it is full.
func (g *group) stage(staging *os.Root, name string, e entry) error {
	err := ignoreMissing(staging.Remove(stagingPart))
	switch {
	case err != nil:
		return err
	case e.kind == folder:
		err = staging.Mkdir(stagingPart, 0o700)
	case e.kind == link:
		err = staging.Symlink(e.content, stagingPart)
	default:
		err = g.copyOut(staging, stagingPart, e)
	}
	if err == nil && os.Geteuid() == 0 {
		err = staging.Lchown(stagingPart, int(e.uid), int(e.gid))
	}
	if err == nil {
		err = staging.Rename(stagingPart, name)
	}
	return err
}

func syncDisk(root *os.Root) error {
	return withFolder(root, ".", func(f *os.File) error { return unix.Syncfs(int(f.Fd())) })
}

// copyOut copies an object to a new file with the mode and time of an entry. A damaged object is deleted.
func (g *group) copyOut(staging *os.Root, name string, e entry) error {
	from, err := g.own.Open(objectName(e.content))
	if errors.Is(err, fs.ErrNotExist) {
		return errDamaged
	}
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := staging.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer to.Close()
	content, err := copyFile(to, from, e.size)
	if errors.Is(err, errChanged) || err == nil && content != e.content {
		g.Log.Warn("a file that /undo kept is damaged", "folder", g.name, "object", objectName(e.content))
		return errors.Join(errDamaged, g.own.Remove(objectName(e.content)))
	}
	if err == nil { // by the open file: the agent may have put a link in its place, if it runs as gated's user
		err = to.Chmod(fs.FileMode(e.mode))
	}
	if err == nil {
		err = staging.Chtimes(name, time.Time{}, time.Unix(0, e.mtime))
	}
	return err
}
