package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestUsage_Reserve_EndsAtTheQuota(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), time.UnixMilli(0)
	u := &Usage{Folder: filepath.Join(dir, "media"), Quota: 100, Now: func() time.Time { return clock }}
	reserve := func(size int64, want bool) {
		t.Helper()
		if ok, err := u.Reserve(size); ok != want || err != nil {
			t.Errorf("%d bytes: %t, %v", size, ok, err)
		}
	}
	reserve(101, false) // there is no folder yet
	reserve(60, true)
	reserve(41, false)
	u.Release(60, 0)
	reserve(100, true)
	u.Release(100, 70)
	reserve(31, false)

	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "media", "202611"), 0o700), os.WriteFile(filepath.Join(dir, "media", "202611", "a"), make([]byte, 20), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, jump := range []time.Duration{usageEvery, -time.Hour} { // the others were removed; the clock is set back
		clock = clock.Add(jump)
		reserve(81, false)
		reserve(80, true)
		u.Release(80, 0)
	}
}
