package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a waiting migrate retries; flock has no timeout.
const lockPoll = 20 * time.Millisecond

var errLocked = errors.New("another migrate is running")

func makeFolders(data string) error {
	for _, name := range []string{"run", "groups", "media", "logs"} {
		if err := os.MkdirAll(filepath.Join(data, name), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// makeSecret writes 32 random bytes in hex, unless there is a secret. The file gets its name only
// once it is complete, and never replaces one.
func makeSecret(path string) error {
	switch info, err := os.Stat(path); {
	case err == nil && info.Size() == 0:
		return refuse("%s is empty: remove it, and run migrate again", path)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".secret-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	if _, err := fmt.Fprintln(temp, hex.EncodeToString(random)); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// lock takes the flock at path, or returns errLocked after the given time. unlock leaves the
// file: if it were removed, two processes could hold locks on different files.
func lock(path string, wait time.Duration) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(wait); ; <-time.After(lockPoll) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return func() { file.Close() }, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		case time.Now().After(deadline):
			file.Close()
			return nil, fmt.Errorf("%w (%s is locked)", errLocked, path)
		}
	}
}
