// Package disk reads how much space a file system has left, and holds the limits from which that is too little.
package disk

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits of free space; docs/operations.md, Disk growth, says what happens at each. They are for small disks:
// logs take 8 MiB a run at most, an attachment 20 MB, and the write-ahead log is cut back to 64 MiB.
const (
	// Low is when an operator is to make room: this many bytes, or a tenth.
	Low = 2 << 30
	// Full is the space that a migration and the daemons need to go on, in bytes.
	Full = 256 << 20
	// lowShare and lowFiles are shares of the whole.
	lowShare = 0.1
	lowFiles = 0.02
)

// Space is that of a file system, in bytes and inodes. Free is the space that users other than root may still use.
type Space struct {
	Free, Size       int64
	FreeFiles, Files uint64 // both 0 where inodes are not limited
}

// Of returns the space of the file system of a folder.
func Of(folder string) (Space, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(folder, &fs); err != nil {
		return Space{}, fmt.Errorf("free space of %s: %w", folder, err)
	}
	// Blocks are counted in fragments: Bsize is the best size of a write, and larger on some network file systems.
	return Space{Free: int64(fs.Bavail) * fs.Frsize, Size: int64(fs.Blocks) * fs.Frsize, FreeFiles: fs.Ffree,
		Files: fs.Files}, nil
}

// Share is the free part of the whole, from 0 to 1.
func (s Space) Share() float64 { return float64(s.Free) / float64(max(s.Size, 1)) }

// IsLow reports whether an operator is to make room.
func (s Space) IsLow() bool { return s.Free < Low || s.Share() < lowShare }

// IsFull reports whether there is no space to go on.
func (s Space) IsFull() bool { return s.Free < Full }

// FilesLow reports whether soon no file can be made.
func (s Space) FilesLow() bool { return float64(s.FreeFiles) < lowFiles*float64(s.Files) }

// Bytes words a number of bytes.
func Bytes(n int64) string {
	unit, size := "KiB", float64(n)/(1<<10)
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n >= 1<<30:
		unit, size = "GiB", float64(n)/(1<<30)
	case n >= 1<<20:
		unit, size = "MiB", float64(n)/(1<<20)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", size), ".0") + " " + unit
}
