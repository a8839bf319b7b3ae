// Package gobuild builds programs that tests start. All test binaries share the programs: each is linked once
// for a set of flags, and after that only when its code has changed.
package gobuild

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"arizuko/pkg/lockfile"
)

// Options say how programs are built.
type Options struct {
	Tags   string // build tags, separated by commas
	Race   bool   // with the race detector
	Static bool   // without cgo, for images that have no libraries
	// Overlay is a JSON file that names files to take the place of others, as in go build -overlay.
	Overlay string
}

// Programs compiles packages, given by import path, into the folder bin, which it makes if there is none. Each program
// has the name of its package's folder. It stays what it is when another test binary builds it again from changed code.
func Programs(bin string, o Options, packages ...string) error {
	if len(packages) == 0 {
		return nil
	}
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return err
	}
	if o.Overlay != "" { // no other test has such programs
		return o.compile(bin, packages)
	}
	shared, err := o.sharedFolder()
	if err != nil {
		return err
	}
	lock, err := lockfile.Open(filepath.Join(shared, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close() // unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if err := o.compile(shared, packages); err != nil {
		return err
	}
	for _, pkg := range packages {
		if err := link(filepath.Join(shared, path.Base(pkg)), filepath.Join(bin, path.Base(pkg))); err != nil {
			return err
		}
	}
	return nil
}

// flags are those of go build: without version control, since a commit alone changes no program, and without debug
// information, which takes half of the time.
func (o Options) flags() []string {
	flags := []string{"-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-tags=" + o.Tags}
	if o.Race {
		flags = append(flags, "-race")
	}
	if o.Overlay != "" {
		flags = append(flags, "-overlay="+o.Overlay)
	}
	return flags
}

// compile builds programs in a folder. Those that are there and up to date are not linked again; others are renamed
// into place, so that links to a former one keep it.
func (o Options) compile(folder string, packages []string) error {
	cmd := exec.Command("go", slices.Concat([]string{"build", "-o", folder + "/"}, o.flags(), packages)...)
	cmd.Env = append(os.Environ(), "GOTMPDIR="+folder)
	if o.Static {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// Program builds one program for a test and returns its path.
func Program(t testing.TB, o Options, pkg string) string {
	t.Helper()
	bin := t.TempDir()
	if err := Programs(bin, o, pkg); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(bin, path.Base(pkg))
}

// sharedFolder is the folder of all programs that are built this way, in the user's cache.
func (o Options) sharedFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	key := fmt.Sprint(o.flags(), o.Static, os.Getenv("GOFLAGS"))
	folder := filepath.Join(cache, "arizuko", "test-programs", fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:16])
	return folder, os.MkdirAll(folder, 0o700)
}

// link gives a program a second name, or copies it to another file system.
func link(from, to string) error {
	err := os.Link(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
