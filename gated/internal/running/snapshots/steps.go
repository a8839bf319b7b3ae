package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"arizuko/pkg/failpoint"
)

// errConflict is an error of a path that is neither as it was when the steps were planned, nor restored.
var errConflict = errors.New("changed since")

// mover makes the steps of a journal.
type mover struct {
	*group
	*journal
	staging *os.Root
	not     map[int]error // why steps were not made
}

// finish makes the steps that are not made yet. It goes through all four times: folders become writable, what must go
// goes, what must come comes, and folders get their modes.
func (g *group) finish(j *journal) error {
	staging, err := g.openStaging(j)
	if err == nil {
		defer staging.Close()
	}
	m := &mover{g, j, staging, map[int]error{}}
	for _, pass := range []func() error{
		func() error { return m.each(false, m.unlock) },
		func() error { return m.each(true, m.remove) },
		func() error { return m.each(false, m.place) },
		func() error { return m.each(true, m.lock) },
		func() error { return syncDisk(g.dir) },
		m.conclude,
	} {
		if err == nil {
			err = pass()
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	g.removeStaging(stagingName(j.op))
	return nil
}

// each does a part of each step. Errors of the machine end it. After any other error the path is left as it is.
func (m *mover) each(backwards bool, do func(n int, s change) error) error {
	for n := range m.steps {
		if backwards {
			n = len(m.steps) - 1 - n
		}
		err := do(n, m.steps[n])
		if isTrouble(err) {
			return fmt.Errorf("%s: %w", m.steps[n].path, err)
		}
		if err != nil && m.not[n] == nil {
			m.not[n] = err
		}
	}
	return nil
}

func isTrouble(err error) bool {
	return slices.ContainsFunc([]unix.Errno{
		unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EROFS, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ESTALE,
		unix.ETIMEDOUT,
	}, func(trouble unix.Errno) bool { return errors.Is(err, trouble) })
}

func (m *mover) unlock(_ int, s change) error {
	if s.before.kind == folder && s.before.mode&0o700 != 0o700 {
		_ = m.inFolder(s.path, func(f *os.File) error { return f.Chmod(fs.FileMode(s.before.mode&0o777 | 0o700)) })
	}
	return nil // what cannot be changed now is found later
}

// remove removes what is in the way. Files and links are replaced later, in one step.
func (m *mover) remove(_ int, s change) error {
	if s.after.kind != absent && !s.mixes() {
		return nil
	}
	now := m.read(s.path)
	if now.kind == absent || s.isMade(now) {
		return nil
	}
	m.at(failpoint.UndoMoving)
	flags, isFolder := 0, s.before.kind == folder
	if isFolder {
		flags = unix.AT_REMOVEDIR
	}
	if isFolder != (now.kind == folder) || !isFolder && !now.same(s.before) {
		return errConflict
	}
	return m.inParent(s.path, func(dir int, base string) error { return unix.Unlinkat(dir, base, flags) })
}

// mixes reports whether a folder takes another thing's place, or the reverse.
func (c change) mixes() bool { return (c.before.kind == folder) != (c.after.kind == folder) }

func (c change) isMade(now entry) bool {
	return now.same(c.after) || now.kind == folder && c.after.kind == folder
}

// place moves what is staged to its path.
func (m *mover) place(n int, s change) error {
	if _, failed := m.not[n]; failed || s.after.kind == absent {
		return nil
	}
	now := m.read(s.path)
	if s.isMade(now) {
		return nil
	}
	m.at(failpoint.UndoMoving)
	if s.mixes() {
		s.before = entry{} // it is removed
	}
	if !now.same(s.before) {
		return errConflict
	}
	name := strconv.Itoa(n)
	if _, err := m.staging.Lstat(name); err != nil { // an agent has moved it away
		if err := m.stage(m.staging, name, s.after); err != nil {
			return err
		}
	}
	return withFolder(m.staging, ".", func(from *os.File) error {
		return m.inParent(s.path, func(dir int, base string) error {
			return unix.Renameat(int(from.Fd()), name, dir, base)
		})
	})
}

// lock gives folders their modes, once no more is added to them.
func (m *mover) lock(n int, s change) error {
	as := s.after
	if m.not[n] != nil {
		as = s.before
	}
	if as.kind != folder {
		return nil
	}
	return m.inFolder(s.path, func(f *os.File) error { return unix.Fchmod(int(f.Fd()), uint32(as.mode)) })
}

// inFolder opens a folder and calls do. No part of its path may be a link or a mount. If gated is root, all must belong
// to the group's user: an agent may have put an operator's folder in the place of its own.
func (g *group) inFolder(name string, do func(*os.File) error) error {
	f, err := g.dir.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	top, system, err := statAt(int(f.Fd()), "")
	if err != nil {
		return err
	}
	for part := range strings.SplitSeq(name, "/") {
		fd, err := unix.Openat(int(f.Fd()), part, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_ = f.Close()
		f = os.NewFile(uintptr(fd), name)
		in, on, err := statAt(fd, "")
		if err != nil {
			return err
		}
		if on != system || in.uid != top.uid && top.uid != 0 && os.Geteuid() == 0 {
			return errConflict
		}
	}
	return do(f)
}

func (g *group) inParent(name string, do func(dir int, base string) error) error {
	return g.inFolder(path.Dir(name), func(dir *os.File) error { return do(int(dir.Fd()), path.Base(name)) })
}

// read returns the entry of a path, with its content. What cannot be read is something other.
func (g *group) read(name string) (e entry) {
	err := g.inParent(name, func(dir int, base string) (err error) {
		if e, _, err = statAt(dir, base); err != nil {
			return err
		}
		switch e.kind {
		case link:
			e.content, err = g.dir.Readlink(name)
		case file:
			var f *os.File
			if f, err = g.openSeen(item{name, e}); err == nil {
				defer f.Close()
				e.content, err = hash(f, e.size)
			}
		}
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return entry{}
	case err != nil:
		return entry{kind: other}
	}
	return e
}

// conclude stores that the steps are made: first in the index, so that they are no change of a turn.
func (m *mover) conclude() error {
	m.at(failpoint.UndoMoved)
	if m.known {
		if err := m.saveIndex(m.updated(m.index)); err != nil {
			return err
		}
	}
	r := &m.report
	for n, s := range m.steps {
		switch why := m.not[n]; {
		case agentState(s.path):
		case s.after.kind == absent && errors.Is(why, unix.ENOTEMPTY): // there is more in the folder
		case why != nil:
			m.Log.Info("a file was not restored", "folder", m.name, "file", s.path, "err", why)
			r.Changed = append(r.Changed, s.path)
		default:
			if r.Restored++; len(r.Paths) < maxPaths {
				r.Paths = append(r.Paths, s.path)
			}
		}
	}
	slices.SortFunc(r.Changed, comparePaths)
	m.steps = nil
	return m.saveJournal(m.journal)
}

// updated returns the items of an index with the steps that are made.
func (m *mover) updated(index []item) (items []item) {
	now := byPath(index)
	for n, s := range m.steps {
		is := m.read(s.path)
		switch {
		case m.not[n] != nil || !is.same(s.after):
		case is.kind == absent:
			delete(now, s.path)
		default:
			is.ctime = 0
			now[s.path] = is
		}
	}
	for path, e := range now {
		items = append(items, item{path, e})
	}
	sortByPath(items)
	return items
}
