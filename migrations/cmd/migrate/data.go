package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"arizuko/pkg/lockfile"
)

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

// lock keeps other calls of migrate from the data folder.
func (p program) lock() (*lockfile.Lock, error) {
	lock, err := lockfile.WaitLock(p.cfg.lockPath(), p.lockWait)
	if errors.Is(err, lockfile.ErrHeld) {
		err = fmt.Errorf("another migrate is running: %w", err)
	}
	return lock, err
}
