// Package dataowner protects a process of root from traps that the owner of a data folder may have put there: a link in
// place of a folder, a database or a lock. A program that needs no right of root becomes the owner. One that needs them
// does what it can as the owner, and opens the rest beneath a descriptor of the data folder, following no link.
package dataowner

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// User is a user of the machine with a group, as numbers.
type User struct{ UID, GID int }

func (u User) String() string { return fmt.Sprintf("%d:%d", u.UID, u.GID) }

// Of is the owner of a file.
func Of(info fs.FileInfo) User {
	st := info.Sys().(*syscall.Stat_t)
	return User{int(st.Uid), int(st.Gid)}
}

// Other returns the owner of a data folder if that is not this process's user, root. It is false if this process is not
// root's, the folder is root's, or there is none.
func Other(data string) (owner User, other bool, err error) {
	if os.Geteuid() != 0 {
		return User{}, false, nil
	}
	info, err := os.Stat(data)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return User{}, false, nil
	}
	if err != nil {
		return User{}, false, fmt.Errorf("ARIZUKO_DATA: %w", err)
	}
	if owner = Of(info); owner.UID == 0 {
		return User{}, false, nil
	}
	return User{owner.UID, groupOf(owner.UID, owner.GID)}, true, nil
}

// groupOf is the group of a user: that of its account, or of its folder if the machine does not know the user. It is
// never root's, which a folder may have that only its user was changed of.
func groupOf(uid, folder int) int {
	if account, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		if gid, err := strconv.Atoi(account.Gid); err == nil {
			folder = gid
		}
	}
	if folder == 0 {
		return uid
	}
	return folder
}

// Become makes a process of root one of the data folder's owner, for good. It does nothing if [Other] is false.
func Become(data string) error {
	owner, other, err := Other(data)
	if err != nil || !other {
		return err
	}
	err = errors.Join(syscall.Setgroups([]int{owner.GID}), syscall.Setresgid(owner.GID, owner.GID, owner.GID),
		syscall.Setresuid(owner.UID, owner.UID, owner.UID))
	if err != nil {
		return fmt.Errorf("become user %s, who owns %s: %w", owner, data, err)
	}
	if err := open(data); err != nil {
		return fmt.Errorf("this program of root runs as user %s, who owns %s and cannot open it: %w", owner, data, err)
	}
	return nil
}

// Do runs f as the data folder's owner: the whole process has that user meanwhile, so nothing else may run. An owner
// who cannot even open the folder, such as one in root's home, cannot change it: f runs as root then, unless a link is
// in it. It is f alone if [Other] is false.
func Do(data string, f func() error) (err error) {
	owner, other, err := Other(data)
	switch {
	case err != nil:
		return err
	case !other:
		return f()
	}
	if owner.reach(data) != nil {
		if err := RefuseLinks(data); err != nil {
			return err
		}
		return f()
	}
	leave, err := owner.enter()
	defer func() { err = errors.Join(err, leave()) }()
	if err != nil {
		return fmt.Errorf("become user %s, who owns %s: %w", owner, data, err)
	}
	return f()
}

// reach returns an error if the user cannot open a folder. Only the thread of this call has that user meanwhile.
func (u User) reach(folder string) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		_, gidErr := unix.SetfsgidRetGid(u.GID)
		_, uidErr := unix.SetfsuidRetUid(u.UID)
		result <- errors.Join(gidErr, uidErr, open(folder))
	}()
	return <-result
}

// enter makes the user the effective one of this process. leave makes it root's again, also after an error.
func (u User) enter() (leave func() error, err error) {
	groups, err := syscall.Getgroups()
	if err != nil {
		return func() error { return nil }, err
	}
	gid := os.Getegid()
	leave = func() error {
		return errors.Join(syscall.Setresuid(-1, 0, -1), syscall.Setresgid(-1, gid, -1), syscall.Setgroups(groups))
	}
	return leave, errors.Join(syscall.Setgroups([]int{u.GID}), syscall.Setresgid(-1, u.GID, -1),
		syscall.Setresuid(-1, u.UID, -1))
}

func open(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = folder.Stat()
	return errors.Join(err, folder.Close())
}

// ErrLink is an error of a link that another user has made.
var ErrLink = errors.New("a link of another user")

// RefuseLinks returns an ErrLink with a line for each link in the data folder that this process of root would follow,
// and that root has not made. It returns nil if [Other] is false.
func RefuseLinks(data string) error {
	_, other, err := Other(data)
	if err != nil || !other {
		return err
	}
	entries, err := os.ReadDir(data)
	if err != nil {
		return err
	}
	var all []error
	for _, e := range entries {
		if e.Type() != fs.ModeSymlink || !ours(e.Name()) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || Of(info).UID != 0 {
			path := filepath.Join(data, e.Name())
			all = append(all, errors.Join(fmt.Errorf("%s is %w, which root does not follow: "+
				"mount the folder there instead, or run this as the owner of %s",
				path, ErrLink, data), err))
		}
	}
	return errors.Join(all...)
}

// ours reports whether a name in the data folder is one that programs open.
func ours(name string) bool {
	all := []string{"run", "groups", "media", "logs", "secret", "restoring", "secrets", "egress", "hooks", "undo"}
	return slices.Contains(all, name) ||
		strings.HasPrefix(name, "arizuko.db")
}

// Open opens a folder of the data folder. Links are followed as by os.OpenRoot, but none if [Other] is true.
func Open(data, path string) (*os.Root, error) {
	_, other, err := Other(data)
	if err != nil {
		return nil, err
	}
	if !other {
		return os.OpenRoot(filepath.Join(data, path))
	}
	root, err := os.OpenRoot(data)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return OpenFolder(root, path)
}

// Make makes a folder of the data folder, unless it exists, and opens it as [Open] does. One that root has made belongs
// to the data folder's owner.
func Make(data, path string) (*os.Root, error) {
	owner, other, err := Other(data)
	if err != nil {
		return nil, err
	}
	if !other {
		if err := os.MkdirAll(filepath.Join(data, path), 0o700); err != nil {
			return nil, err
		}
		return os.OpenRoot(filepath.Join(data, path))
	}
	in, err := os.OpenRoot(data)
	for name := range strings.SplitSeq(filepath.ToSlash(filepath.Clean(path)), "/") {
		if err != nil {
			return nil, err
		}
		above := in
		err = above.Mkdir(name, 0o700)
		switch {
		case err == nil:
			err = above.Lchown(name, owner.UID, owner.GID)
		case errors.Is(err, fs.ErrExist):
			err = nil
		}
		if err == nil {
			in, err = OpenFolder(above, name)
		}
		above.Close()
	}
	return in, err
}

// Write writes a file of mode 0600 to the disk, in a folder that [Make] has opened. In one step it takes the place of
// what has that name, be it a link. A file that root has made belongs to the data folder's owner.
func Write(data string, folder *os.Root, name string, content []byte) error {
	owner, other, err := Other(data)
	if err != nil {
		return err
	}
	part := "." + rand.Text()
	f, err := folder.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if other {
		err = f.Chown(owner.UID, owner.GID)
	}
	if err == nil {
		_, err = f.Write(content)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = folder.Rename(part, name)
	}
	if err != nil {
		return errors.Join(err, folder.Remove(part))
	}
	return nil
}

// Read reads a regular file of a folder, at most a number of bytes. A link is an error.
func Read(folder *os.Root, name string, limit int64) ([]byte, error) {
	f, err := folder.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	listed, err := folder.Lstat(name)
	if opened, e := f.Stat(); err != nil || e != nil || !opened.Mode().IsRegular() || !os.SameFile(listed, opened) {
		return nil, errors.New("its file is no regular file")
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// OpenFolder opens a folder in another one. No part of the path may be a link: not even one that stays inside.
func OpenFolder(in *os.Root, path string) (*os.Root, error) {
	at, err := in.OpenRoot(".")
	for name := range strings.SplitSeq(filepath.ToSlash(filepath.Clean(path)), "/") {
		if err != nil {
			return nil, err
		}
		above := at
		at, err = openReal(above, name)
		above.Close()
	}
	return at, err
}

// openReal opens a folder, unless it is a link or has just taken the place of another one.
func openReal(in *os.Root, name string) (*os.Root, error) {
	path := filepath.Join(in.Name(), name)
	listed, err := in.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case listed.Mode().Type() == fs.ModeSymlink:
		return nil, fmt.Errorf("%s is %w", path, ErrLink)
	case !listed.IsDir():
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	folder, err := in.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := folder.Stat("."); err != nil || !os.SameFile(listed, opened) {
		return nil, errors.Join(fmt.Errorf("%s was replaced while it was opened", path), err, folder.Close())
	}
	return folder, nil
}
