// Package lockfile makes sure that only one process does something: a flock on a file that names
// its holder. The kernel releases the lock when the process ends, so a crash leaves nothing to
// clean up. The files are never removed: a process that waits on a removed file and one that made
// a new one would both hold a lock.
package lockfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld matches every *HeldError.
var ErrHeld = errors.New("lock held")

// HeldError names the holder of a lock. PID is 0 if the holder has not written it yet.
type HeldError struct {
	Path  string
	PID   int
	Since time.Time
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	return fmt.Sprintf("%s is locked by process %d since %s", e.Path, e.PID, e.Since.Format(time.RFC3339))
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Lock is a held lock.
type Lock struct{ file *os.File }

// TryLock takes the lock at path without waiting and creates the file if there is none. If
// another process, or another part of this one, holds the lock, the error is a *HeldError. The
// file is opened as by Open; for root, a symbolic link in place of its folder is an error too, unless
// root owns the folder above.
func TryLock(path string) (*Lock, error) {
	folder, err := openFolder(filepath.Dir(path), true)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	defer folder.Close()
	file, err := openIn(folder, path)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := flock(file); err != nil {
		defer file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, heldBy(file)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// Truncated first: from here on no process reads the name of a former holder.
	err = file.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintf(file, "%d %s\n", os.Getpid(), time.Now().Format(time.RFC3339))
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock: %w", err)
	}
	return &Lock{file}, nil
}

// Open opens a file to lock and makes it if there is none. One that root has made belongs to the
// owner of its folder, whose daemons have to open it. A symbolic link at path is an error.
func Open(path string) (*os.File, error) {
	folder, err := openFolder(filepath.Dir(path), false)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return openIn(folder, path)
}

func openIn(folder *os.File, path string) (*os.File, error) {
	fd, err := unix.Openat(int(folder.Fd()), filepath.Base(path),
		unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	if err := give(file, folder); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func openFolder(path string, wary bool) (*os.File, error) {
	flags := unix.O_DIRECTORY
	if wary && os.Geteuid() == 0 {
		var above unix.Stat_t
		if err := unix.Stat(filepath.Dir(path), &above); err != nil {
			return nil, &os.PathError{Op: "stat", Path: filepath.Dir(path), Err: err}
		}
		if above.Uid != 0 {
			flags |= unix.O_NOFOLLOW
		}
	}
	return os.OpenFile(path, os.O_RDONLY|flags, 0)
}

// give gives a file of root to the owner of its folder.
func give(file, in *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var made, folder unix.Stat_t
	if err := errors.Join(unix.Fstat(int(file.Fd()), &made), unix.Fstat(int(in.Fd()), &folder)); err != nil {
		return err
	}
	// With a second name it may be any file of root.
	if made.Uid != 0 || folder.Uid == 0 || made.Nlink != 1 {
		return nil
	}
	return file.Chown(int(folder.Uid), int(folder.Gid))
}

// pollInterval is how often WaitLock tries.
const pollInterval = 10 * time.Millisecond

// WaitLock is TryLock, except that it waits up to a time for the holder. A process that was just
// killed may hold its locks for a moment: a child that it was starting has them until it executes its
// program.
func WaitLock(path string, wait time.Duration) (*Lock, error) {
	poll, deadline := time.NewTicker(pollInterval), time.After(wait)
	defer poll.Stop()
	for {
		lock, err := TryLock(path)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		select {
		case <-poll.C:
		case <-deadline:
			return nil, err
		}
	}
}

// Note adds a line to the file for anyone who finds it locked.
func (l *Lock) Note(line string) error {
	_, err := fmt.Fprintln(l.file, line)
	return err
}

// Close releases the lock. Closing twice is an error without effect.
func (l *Lock) Close() error {
	if err := l.file.Truncate(0); err != nil {
		return errors.Join(err, l.file.Close())
	}
	return l.file.Close()
}

func flock(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR {
			return err
		}
	}
}

func heldBy(file *os.File) *HeldError {
	held := &HeldError{Path: file.Name()}
	// Invalid content counts as none.
	content := io.LimitReader(file, 100)
	var pid int
	var since string
	if _, err := fmt.Fscanf(content, "%d %s\n", &pid, &since); err != nil || pid <= 0 {
		return held
	}
	if at, err := time.Parse(time.RFC3339, since); err == nil {
		held.PID, held.Since = pid, at
	}
	return held
}
