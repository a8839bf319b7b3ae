package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"
)

// A folder is measured once in usageEvery, and once in fullUsageEvery while it is full: 20,000 files take
// about 50 ms.
const (
	usageEvery     = 30 * time.Second
	fullUsageEvery = time.Second
)

// Usage is the space that the files below a folder take, bounded by a quota. It is safe for concurrent use.
type Usage struct {
	Folder string
	Quota  int64 // bytes
	Now    func() time.Time

	mu         sync.Mutex
	used       int64
	reserved   int64
	measuredAt time.Time
}

// Reserve takes room for a file of a size, in bytes. It returns false if the quota has none left. The
// caller gives the room back with Release, and says there how much it has used.
func (u *Usage) Reserve(size int64) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, interval := range []time.Duration{usageEvery, fullUsageEvery} {
		if err := u.measure(interval); err != nil {
			return false, err
		}
		if u.used+u.reserved+size <= u.Quota {
			u.reserved += size
			return true, nil
		}
	}
	return false, nil
}

// Used is about what the files take, in bytes.
func (u *Usage) Used() (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	err := u.measure(usageEvery)
	return u.used, err
}

// measure reads the folder unless it did within an interval. The caller has locked.
func (u *Usage) measure(interval time.Duration) error {
	now := u.Now()
	if !u.measuredAt.IsZero() && now.Sub(u.measuredAt).Abs() < interval {
		return nil
	}
	used, err := Used(u.Folder)
	if err == nil {
		u.used, u.measuredAt = used, now
	}
	return err
}

// Release ends a Reserve, with the number of bytes that were written.
func (u *Usage) Release(size, written int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reserved -= size
	u.used += written
}

// Used is the size of all files below a folder, in bytes; 0 if there is no such folder.
func Used(folder string) (total int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				total += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		return err
	})
	return total, err
}
