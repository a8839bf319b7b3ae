package agentuser

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"arizuko/gated/internal/running/runtime"
)

// maxLogged is how many files of a folder are named in the log.
const maxLogged = 10

// give gives a folder and its content to a user. The folder itself comes last, so
// that the next gated begins again if this one is killed.
//
// Traps that agents of a former gated that was root may have put there stay as they are:
// device files, files with further names outside, other file systems. So do files of a
// third user. The kernel takes setuid bits away.
func (u *Users) give(top *os.File, ours func(uid int) bool, from, to runtime.User) error {
	links := map[uint64]uint64{} // names inside, by inode, of files with several
	err := walk(top, "", func(e entry) error {
		if e.Mode&unix.S_IFMT == unix.S_IFREG && e.Nlink > 1 {
			links[e.Ino]++
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look through %s: %w", top.Name(), err)
	}
	left := 0
	err = walk(top, "", func(e entry) error {
		owner := int(e.Uid)
		if owner != 0 && owner != from.UID && !ours(owner) {
			return nil
		}
		if why := e.trap(links); why != "" {
			if left++; left <= maxLogged {
				u.log.Warn("file keeps its owner", "file", path.Join(top.Name(), e.path), "reason", why)
			}
			return nil
		}
		return unix.Fchownat(e.fd, "", to.UID, to.GID, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW)
	})
	if left > maxLogged {
		u.log.Warn("further files keep their owner", "file", top.Name(), "count", left-maxLogged)
	}
	if err == nil {
		err = top.Chmod(0o700)
	}
	if err == nil {
		err = top.Chown(to.UID, to.GID)
	}
	if err != nil {
		return fmt.Errorf("give %s to user %s: %w", top.Name(), to, err)
	}
	return nil
}

// entry is a file, folder or link inside a group's folder.
type entry struct {
	unix.Stat_t
	path string // below the folder
	fd   int    // O_PATH for all but folders
}

func (e entry) trap(links map[uint64]uint64) string {
	switch e.Mode & unix.S_IFMT {
	case unix.S_IFCHR, unix.S_IFBLK:
		return "device file"
	case unix.S_IFREG:
		names := uint64(e.Nlink) //nolint:unconvert // it has 32 bits on arm64
		if names > 1 && names != links[e.Ino] {
			return "hard link to a file outside of the folder"
		}
	}
	return ""
}

// walk visits the content of a folder, each folder after its own content. It follows no link
// and does not leave the file system.
func walk(dir *os.File, at string, visit func(entry) error) error {
	if _, err := dir.Seek(0, 0); err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := walkEntry(dir, path.Join(at, name), name, visit)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // gone since
			return fmt.Errorf("%s: %w", path.Join(at, name), err)
		}
	}
	return nil
}

func walkEntry(dir *os.File, at, name string, visit func(entry) error) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	e := entry{path: at, fd: fd}
	if err := unix.Fstat(fd, &e.Stat_t); err != nil {
		return err
	}
	mounted, err := isMount(fd)
	if err != nil || mounted {
		return err
	}
	if e.Mode&unix.S_IFMT == unix.S_IFDIR {
		inside, err := openDir(fd, ".", at)
		if err != nil {
			return err
		}
		defer inside.Close()
		if err := walk(inside, at, visit); err != nil {
			return err
		}
	}
	return visit(e)
}

// isMount reports whether something else is mounted there.
func isMount(fd int) (bool, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, &st); err != nil {
		return false, err
	}
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// openDir opens a folder, which is called by its path in errors.
func openDir(at int, name, path string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

func ownerOf(f *os.File) (runtime.User, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &st)
	return runtime.User{UID: int(st.Uid), GID: int(st.Gid)}, err
}
