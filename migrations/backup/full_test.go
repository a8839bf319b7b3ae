package backup

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"arizuko/pkg/disk"
	"arizuko/pkg/testkit/need"
)

const (
	testDisk = 256 << 20
	// bigFile is the size of a file that the disk gets full during.
	bigFile = 48 << 20
	// written is how much of it is on the disk by then: less than is written between two looks at the disk.
	written = 8 << 20
)

// filling is a context that fills a disk as soon as a file on it has `written` bytes: a backup and a restore look
// at their context before each piece of a file.
type filling struct {
	context.Context //nolint:containedctx // it is one
	t               *testing.T
	disk            string
	file            string
	leave           int64 // bytes that stay free
}

func (f *filling) filler() string { return filepath.Join(f.disk, "filler") }

func (f *filling) Err() error {
	if info, err := os.Stat(f.file); err == nil && info.Size() >= written {
		f.fill()
	}
	return f.Context.Err()
}

func (f *filling) fill() {
	filler, err := os.OpenFile(f.filler(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return
	}
	space, err2 := disk.Of(f.disk)
	if err := errors.Join(err, err2); err != nil {
		f.t.Error(err)
		return
	}
	defer filler.Close()
	if err := unix.Fallocate(int(filler.Fd()), 0, 0, space.Free-f.leave); err != nil {
		f.t.Error(err)
	}
}

// fullDisk is how much is left of a disk that gets full, and the error for it.
type fullDisk struct {
	leave int64
	err   error
}

func fullDisks() map[string]fullDisk {
	return map[string]fullDisk{"nearly full": {minFree / 2, ErrSpace}, "full": {0, syscall.ENOSPC}}
}

func newBigInstance(t *testing.T) *instance {
	i := newInstance(t)
	big := make([]byte, bigFile) // which cannot be compressed
	_, _ = rand.NewChaCha8([32]byte{}).Read(big)
	i.write("groups/main/big", string(big))
	return i
}

func (i *instance) wantFiles(folder string, want ...string) {
	i.t.Helper()
	entries, err := os.ReadDir(folder)
	i.ok(err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
		i.t.Errorf("%s has %q, want %q", folder, got, want)
	}
}

func TestBackup_DiskGetsFull_LeavesNothingAndRepeatWorks(t *testing.T) {
	t.Parallel()
	for name, tt := range fullDisks() {
		t.Run(name, func(t *testing.T) {
			disk := need.Disk(t, testDisk)
			i := newBigInstance(t)
			c := i.creation(filepath.Join(disk, "b.tgz"))
			f := &filling{t.Context(), t, disk, c.Target + ".partial", tt.leave}
			if _, err := c.Run(f); !errors.Is(err, tt.err) {
				t.Errorf("got %v, want %v", err, tt.err)
			}
			i.wantFiles(disk, "filler")
			i.ok(os.Remove(f.filler()))
			i.say("the instance goes on")
			_, err := c.Run(t.Context())
			i.ok(err)
			i.wantFiles(disk, "b.tgz")
			_, err = Verify(t.Context(), c.Target, nil, &i.log)
			i.ok(err)
		})
	}
}

func TestRestore_DiskGetsFull_LeavesFolderAsItWasAndRepeatWorks(t *testing.T) {
	t.Parallel()
	for name, tt := range fullDisks() {
		t.Run(name, func(t *testing.T) {
			disk := need.Disk(t, testDisk)
			i := newBigInstance(t)
			r := restoration(filepath.Join(disk, "data"), i.backup())
			f := &filling{t.Context(), t, disk, filepath.Join(r.Data, restoringName, newName, "groups/main/big"), tt.leave}
			if _, err := r.Run(f); !errors.Is(err, tt.err) {
				t.Errorf("got %v, want %v", err, tt.err)
			}
			i.wantFiles(r.Data, "run")
			i.ok(os.Remove(f.filler()))
			_, err := r.Run(t.Context())
			i.ok(err)
			if info, err := os.Stat(filepath.Join(r.Data, "groups/main/big")); err != nil || info.Size() != bigFile {
				t.Errorf("the file is %v, %v", info, err)
			}
		})
	}
}
