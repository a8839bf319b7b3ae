package enter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links may lead to a path, as in the kernel.
const maxLinks = 40

// reach makes the order's paths reachable for its user. Folders that the user cannot
// enter, such as /root and the data folder, are covered by empty ones that hold
// nothing but these paths, in a mount namespace of its own. There the user has an
// account, too.
func (o Order) reach() error {
	all, err := o.things()
	if err != nil {
		return err
	}
	closed := "" // the first folder that keeps the user from one of them
	for i := 0; i < len(all) && err == nil && closed == ""; i++ {
		closed, err = all[i].closed(o.User)
	}
	if err != nil || closed == "" {
		return err
	}
	if err := ownMounts(); err != nil {
		return fmt.Errorf("agents run as user %s and cannot enter %s, and gated must not mount anything (%w): "+
			"let others enter that folder (chmod o+x), or run gated as a user other than root", o.User, closed, err)
	}
	defer unix.Umask(unix.Umask(0o022)) // for the files and folders made below
	if err := o.User.showAccounts(o.Dir, o.Dir); err != nil {
		return fmt.Errorf("name user %s to the agent: %w", o.User, err)
	}
	if all, err = openAll(all); err != nil {
		return err
	}
	for _, t := range all {
		if err := t.show(o.User); err != nil {
			return fmt.Errorf("show %s to the agent: %w", t.at, err)
		}
	}
	return nil
}

// ownMounts gives the thread a mount namespace of its own, from which no mount leaves.
func ownMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
}

// thing is a file, folder or link that a user must be able to reach. All folders of its path are real ones.
type thing struct {
	at     string
	target string // of a symbolic link
	opened bool   // a folder whose entries are shown, since it is closed itself
	entry  bool   // of such a folder; left out if it is removed meanwhile
	info   fs.FileInfo
	file   *os.File // O_PATH; nil for links
}

// things returns the parts of the paths, a folder before its content.
func (o Order) things() (all []thing, err error) {
	for _, path := range append([]string{o.Dir}, o.Paths...) {
		real, links, err := trace(path)
		if err != nil {
			return nil, err
		}
		all = append(append(all, links...), thing{at: real})
	}
	for _, path := range o.Readable {
		found, err := readable(path, o.User)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b thing) int { return strings.Compare(a.at, b.at) })
	return slices.CompactFunc(all, func(a, b thing) bool { return a.at == b.at }), nil
}

func readable(path string, u User) ([]thing, error) {
	real, all, err := trace(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() || u.MayEnter(info) {
		return append(all, thing{at: real}), nil
	}
	all = append(all, thing{at: real, opened: true})
	entries, err := os.ReadDir(real)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		t := thing{at: filepath.Join(real, entry.Name()), entry: true}
		if entry.Type()&fs.ModeSymlink != 0 {
			t.target, err = os.Readlink(t.at)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		all = append(all, t)
	}
	return all, nil
}

// trace resolves a path and returns the symbolic links on the way.
func trace(path string) (real string, links []thing, err error) {
	real = "/"
	for rest := split(path); len(rest) > 0; {
		next := filepath.Join(real, rest[0])
		info, err := os.Lstat(next)
		if err != nil {
			return "", nil, err
		}
		rest = rest[1:]
		if info.Mode()&fs.ModeSymlink == 0 {
			real = next
			continue
		}
		target, err := os.Readlink(next)
		if err == nil && len(links) == maxLinks {
			err = &os.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
		}
		if err != nil {
			return "", nil, err
		}
		if filepath.IsAbs(target) {
			real = "/"
		}
		links, rest = append(links, thing{at: next, target: target}), append(split(target), rest...)
	}
	return real, links, nil
}

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// closed returns the highest folder above the thing, or the folder itself if it is to
// be opened, that exists and the user cannot enter.
func (t thing) closed(u User) (string, error) {
	at := "/"
	parts := split(t.at)
	if !t.opened {
		parts = parts[:max(0, len(parts)-1)]
	}
	for i := -1; i < len(parts); i++ {
		if i >= 0 {
			at = filepath.Join(at, parts[i])
		}
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", nil // it will be made
		case err != nil:
			return "", err
		case !u.MayEnter(info):
			return at, nil
		}
	}
	return "", nil
}

// MayEnter reports whether the user can enter a folder. It goes by the mode alone: a folder that an access list opens
// is covered, which does no harm.
func (u User) MayEnter(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	search := fs.FileMode(0o001)
	switch {
	case int(st.Uid) == u.UID:
		search = 0o100
	case int(st.Gid) == u.GID:
		search = 0o010
	}
	return info.Mode()&search != 0
}

// openAll opens the things and returns those that are there.
func openAll(all []thing) (there []thing, err error) {
	for _, t := range all {
		err := t.open()
		if t.entry && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		there = append(there, t)
	}
	return there, nil
}

// open keeps the thing at hand: later mounts may cover it.
func (t *thing) open() (err error) {
	if t.info, err = os.Lstat(t.at); err != nil || t.target != "" {
		return err
	}
	t.file, err = os.OpenFile(t.at, unix.O_PATH|unix.O_NOFOLLOW, 0)
	return err
}

// show covers the folder that is closed, if there is one, and puts the thing into what
// covers it.
func (t thing) show(u User) error {
	closed, err := t.closed(u)
	if err != nil {
		return err
	}
	if closed != "" {
		if err := unix.Mount("tmpfs", closed, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
			return fmt.Errorf("cover %s: %w", closed, err)
		}
	}
	if there, err := os.Lstat(t.at); t.opened || err == nil && os.SameFile(there, t.info) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(t.at), 0o755); err != nil {
		return err
	}
	if t.target != "" {
		return os.Symlink(t.target, t.at)
	}
	if err := t.mountPoint(); err != nil {
		return err
	}
	defer goruntime.KeepAlive(t.file) // the path below names its descriptor
	return unix.Mount("/proc/thread-self/fd/"+strconv.Itoa(int(t.file.Fd())), t.at, "", unix.MS_BIND|unix.MS_REC, "")
}

func (t thing) mountPoint() error {
	if t.info.IsDir() {
		if err := os.Mkdir(t.at, 0o755); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	f, err := os.OpenFile(t.at, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
