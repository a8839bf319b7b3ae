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
	left    map[int]bool  // folders that stay because there is more in them
}

// finish makes the steps that are not made yet. It goes through all four times: folders become writable, what must go
// goes, what must come comes, and folders get their attributes.
func (g *group) finish(j *journal) error {
	staging, err := g.openStaging(j)
	if err == nil {
		defer staging.Close()
	}
	m := &mover{g, j, staging, map[int]error{}, map[int]bool{}}
	for _, pass := range []func() error{
		func() error { return m.each(false, m.unlock) },
		func() error { return m.each(true, m.remove) },
		func() error { return m.each(false, m.place) },
		func() error { return m.each(true, m.dress) },
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
	if err := g.dir.RemoveAll(stagingName(j.op)); err != nil {
		g.Log.Warn("cannot remove the files of an undo", "folder", g.name, "op", j.op, "err", err)
	}
	return nil
}

// each does a part of each step. Errors of the machine end it. After any other error the path is left as it is.
func (m *mover) each(backwards bool, do func(n int, s change) error) error {
	for n := range m.steps {
		if backwards {
			n = len(m.steps) - 1 - n
		}
		if m.not[n] != nil {
			continue
		}
		err := do(n, m.steps[n])
		if isTrouble(err) {
			return fmt.Errorf("%s: %w", m.steps[n].path, err)
		}
		if err != nil {
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
func (m *mover) remove(n int, s change) error {
	now := m.lstat(s.path)
	replaced := s.after.kind != absent && (s.before.kind == folder) == (s.after.kind == folder)
	if replaced || now.kind == absent || m.isMade(s, now) {
		return nil
	}
	m.at(failpoint.UndoMoving)
	switch {
	case s.before.kind == folder && now.kind == folder:
		err := m.unlink(s.path, unix.AT_REMOVEDIR)
		m.left[n] = s.after.kind == absent && (errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST))
		if m.left[n] {
			return nil
		}
		return err
	case s.before.kind != folder && m.is(s.path, now, s.before):
		return m.unlink(s.path, 0)
	}
	return errConflict
}

// place makes a folder, or moves what is staged to its path.
func (m *mover) place(n int, s change) error {
	now := m.lstat(s.path)
	if s.after.kind == absent || m.isMade(s, now) {
		return nil
	}
	m.at(failpoint.UndoMoving)
	if s.after.kind == folder {
		return m.dir.Mkdir(s.path, 0o700)
	}
	if s.before.kind == folder {
		s.before = entry{} // it is removed
	}
	if !m.is(s.path, now, s.before) {
		return errConflict
	}
	if _, err := m.staging.Lstat(strconv.Itoa(n)); err != nil { // an agent has moved the folder away
		if err := m.stage(m.staging, strconv.Itoa(n), s.after); err != nil {
			return err
		}
	}
	return m.dir.Rename(stagingName(m.op)+"/"+strconv.Itoa(n), s.path)
}

func (m *mover) isMade(s change, now entry) bool {
	return m.is(s.path, now, s.after) || now.kind == folder && s.after.kind == folder
}

// dress gives folders their attributes, once no more is added to them.
func (m *mover) dress(n int, s change) error {
	as := s.after
	if m.left[n] {
		as = s.before
	}
	if as.kind != folder {
		return nil
	}
	return m.inFolder(s.path, func(f *os.File) error {
		if s.before.kind == folder {
			return unix.Fchmod(int(f.Fd()), uint32(as.mode))
		}
		return dress(f, ".", as)
	})
}

// inFolder opens a folder, which must not be a link.
func (g *group) inFolder(name string, do func(*os.File) error) error {
	return g.inParent(name, func(dir int, base string) error {
		fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), name)
		return errors.Join(do(f), f.Close())
	})
}

func (g *group) inParent(name string, do func(dir int, base string) error) error {
	return withFolder(g.dir, path.Dir(name), func(dir *os.File) error { return do(int(dir.Fd()), path.Base(name)) })
}

func (g *group) unlink(name string, flags int) error {
	return g.inParent(name, func(dir int, base string) error { return unix.Unlinkat(dir, base, flags) })
}

// lstat returns the entry of a path, without its content. What cannot be looked at is something other.
func (g *group) lstat(name string) (e entry) {
	err := g.inParent(name, func(dir int, base string) (err error) {
		e, _, err = statAt(dir, base)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		return entry{kind: other}
	}
	return e
}

// is reports whether a path, which is now as lstat says, is as an entry says.
func (g *group) is(name string, now, as entry) bool {
	switch {
	case now.kind != as.kind || now.kind == other || now.mode != as.mode:
		return false
	case now.kind == link:
		target, err := g.dir.Readlink(name)
		return err == nil && target == as.content
	case now.kind == file && !now.untouched(as):
		f, err := g.openSeen(item{name, now})
		if err != nil {
			return false
		}
		defer f.Close()
		content, err := hash(f, now.size)
		return err == nil && content == as.content
	}
	return true
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
		case agentState(s.path) || m.left[n]:
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
func (m *mover) updated(old []item) (now []item) {
	var made []item
	for n, s := range m.steps {
		is := m.lstat(s.path)
		if m.not[n] == nil && is.kind == s.after.kind && is.mode == s.after.mode && is.size == s.after.size {
			is.content, is.ctime = s.after.content, 0
			made = append(made, item{s.path, is})
		}
	}
	pair(old, made, pathOfItem, func(was, is *item) {
		if is = cmp.Or(is, was); is.kind != absent {
			now = append(now, *is)
		}
	})
	return now
}
