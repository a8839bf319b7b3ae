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
	"syscall"

	"golang.org/x/sys/unix"

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
		done, err := g.loadJournal(j)
		if err == nil && !done {
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

// journal is a restore that was begun.
type journal struct {
	op     int64
	steps  []change // none once all are made
	report Report
}

func (j *journal) code(c *coder) {
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

// journals returns the restores with a journal, the oldest first.
func (g *group) journals() (ops []int64, err error) {
	err = withFolder(g.own, ".", func(dir *os.File) error {
		names, err := dir.Readdirnames(-1)
		for _, name := range names {
			if digits, is := strings.CutPrefix(name, journalPrefix); is {
				if op, err := strconv.ParseInt(digits, 10, 64); err == nil {
					ops = append(ops, op)
				}
			}
		}
		return err
	})
	slices.Sort(ops)
	return ops, err
}

// finishRestores finishes what a crash has interrupted.
func (g *group) finishRestores() error {
	ops, err := g.journals()
	for _, op := range ops {
		j := &journal{op: op}
		_, e := g.loadJournal(j)
		switch {
		case errors.Is(e, errDamaged):
			g.Log.Error("the journal of an interrupted undo is damaged, its files are left", "folder", g.name, "op", op)
			e = g.own.Remove(journalName(op))
		case e == nil && len(j.steps) > 0:
			e = g.finish(j)
		}
		err = errors.Join(err, e)
	}
	return err
}

// restore plans a restore, writes the files beside and then the journal, and makes the steps.
func (g *group) restore(r Request, j *journal) error {
	g.restoring = r.Turn
	if err := g.look(g.Now().Add(maxCopying)); err != nil {
		return err
	}
	g.state.end(r.Turn)
	record, err := g.record(r.Turn)
	if err != nil {
		return err
	}
	now, compared := g.index, g.known
	switch t := g.state.find(r.Turn); {
	case t == nil:
		j.report = Report{Unknown: true}
		return nil
	case !compared:
		j.report = Report{NotCovered: []Uncovered{{".", tooMany}}}
		return nil
	case t.blind != "":
		j.report = Report{NotCovered: []Uncovered{{".", t.blind}}}
		return nil
	}
	for err = errDamaged; errors.Is(err, errDamaged); { // each time there is one object less
		g.plan(r, record, now, j)
		if j.report.Refused = len(j.report.Changed) > 0 && !r.Rest; j.report.Refused || len(j.steps) == 0 {
			return nil
		}
		if err = g.prepare(j); err == nil {
			g.at(failpoint.UndoStaged)
			err = g.saveJournal(j)
		}
		if err != nil {
			err = errors.Join(err, ignoreMissing(g.own.Remove(journalName(j.op))), g.dir.RemoveAll(stagingName(j.op)))
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
func (g *group) plan(r Request, record []change, now []item, j *journal) {
	*j = journal{op: j.op}
	for _, c := range record {
		if r.To == After {
			c.before, c.after = c.after, c.before
		}
		is, to := find(now, c.path), c.before
		why := cmp.Or(c.why, c.after.why, to.why)
		if why == "" && to.kind == file && !g.has(to.content, to.size) {
			why = damaged
		}
		switch named := !agentState(c.path); {
		case why == "" && is.same(to):
		case why == "" && is.same(c.after) && (to.kind == absent || j.hasFolder(now, c.path)):
			j.steps = append(j.steps, change{path: c.path, before: is, after: to})
		case why == "" && named:
			j.report.Changed = append(j.report.Changed, c.path)
		case named:
			j.report.NotCovered = append(j.report.NotCovered, Uncovered{c.path, why})
		}
	}
}

// hasFolder reports whether the folder of a path is one once the steps are made.
func (j *journal) hasFolder(now []item, name string) bool {
	parent := path.Dir(name)
	if s := j.step(parent); s != nil {
		return s.after.kind == folder
	}
	return parent == "." || find(now, parent).kind == folder
}

func (j *journal) step(path string) *change {
	at, ok := slices.BinarySearchFunc(j.steps, path, func(s change, path string) int {
		return comparePaths(s.path, path)
	})
	if !ok {
		return nil
	}
	return &j.steps[at]
}

func stagingName(op int64) string { return stagingPrefix + strconv.FormatInt(op, 10) }

// removeStaging removes what was written for restores that were not begun.
func (g *group) removeStaging(names []string) {
	for _, name := range names {
		if _, err := strconv.ParseInt(name[len(stagingPrefix):], 10, 64); err != nil {
			continue
		}
		if err := g.dir.RemoveAll(name); err != nil {
			g.Log.Warn("cannot remove the files of an interrupted undo", "folder", g.name, "file", name, "err", err)
		}
	}
}

// prepare checks that the steps are allowed, and writes what they need.
func (g *group) prepare(j *journal) error {
	err := g.dir.RemoveAll(stagingName(j.op))
	if err != nil {
		return err
	}
	staging, err := g.openStaging(j)
	if err != nil {
		return err
	}
	defer staging.Close()
	first := map[entry]string{} // of hard links to each other
	for n, s := range j.steps {
		err, name := g.mayChange(j, path.Dir(s.path)), strconv.Itoa(n)
		other, linked := first[s.after]
		switch {
		case err != nil, s.after.kind != file && s.after.kind != link:
		case linked:
			err = staging.Link(other, name)
		default:
			err = g.stage(staging, name, s.after)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		if s.after.kind == file && s.after.links > 1 {
			first[s.after] = name
		}
	}
	return syncDisk(g.dir)
}

// mayChange returns an error if gated cannot change a folder, unless the steps make it writable.
func (g *group) mayChange(j *journal, parent string) error {
	if j.step(parent) != nil {
		return nil
	}
	return withFolder(g.dir, parent, func(f *os.File) error {
		return unix.Faccessat(int(f.Fd()), ".", unix.W_OK|unix.X_OK, 0)
	})
}

// openStaging opens the folder for what a restore writes. It is not one that an agent has made, and could change.
func (g *group) openStaging(j *journal) (*os.Root, error) {
	for range 2 {
		staging, err := makeIn(g.dir, stagingName(j.op))
		if err != nil {
			return nil, err
		}
		info, err := staging.Stat(".")
		if err == nil && int(info.Sys().(*syscall.Stat_t).Uid) == os.Geteuid() {
			return staging, nil
		}
		if err = errors.Join(err, staging.Close(), g.dir.RemoveAll(stagingName(j.op))); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("an agent makes %s", stagingName(j.op))
}

// stage writes a file or link.
func (g *group) stage(staging *os.Root, name string, e entry) error {
	const part = "part"
	err := ignoreMissing(staging.Remove(part))
	if err == nil && e.kind == link {
		err = staging.Symlink(e.content, part)
	} else if err == nil {
		err = g.copyOut(staging, part, e)
	}
	if err != nil {
		return err
	}
	return withFolder(staging, ".", func(dir *os.File) error {
		if err := dress(dir, part, e); err != nil {
			return err
		}
		return staging.Rename(part, name)
	})
}

func syncDisk(root *os.Root) error {
	return withFolder(root, ".", func(f *os.File) error { return unix.Syncfs(int(f.Fd())) })
}

// dress gives what this process has made in a folder the owner, the mode and the time of an entry.
func dress(dir *os.File, name string, e entry) (err error) {
	if os.Geteuid() == 0 {
		err = unix.Fchownat(int(dir.Fd()), name, int(e.uid), int(e.gid), unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil && e.kind != link {
		err = unix.Fchmodat(int(dir.Fd()), name, uint32(e.mode), 0)
	}
	if err == nil {
		times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(e.mtime)}
		err = unix.UtimesNanoAt(int(dir.Fd()), name, times, unix.AT_SYMLINK_NOFOLLOW)
	}
	return err
}

// copyOut copies an object to a new file. A damaged object is deleted.
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
	content, err := copyFile(to, from, e.size)
	if err = errors.Join(err, to.Close()); errors.Is(err, errChanged) || err == nil && content != e.content {
		g.Log.Warn("a file that /undo kept is damaged", "folder", g.name, "object", objectName(e.content))
		return errors.Join(errDamaged, g.own.Remove(objectName(e.content)))
	}
	return err
}
