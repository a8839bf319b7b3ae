package backup

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"arizuko/pkg/disk"
)

const (
	// minFree stays free on a disk, in bytes: writing a backup stops before an instance on the disk does.
	minFree = 128 << 20
	// checkEvery is how many bytes are written between two looks at the disk.
	checkEvery = 16 << 20
)

// ErrSpace is a disk that is too full.
var ErrSpace = errors.New("not enough space")

// requireSpace returns an ErrSpace unless a folder's disk has room for so many bytes.
func requireSpace(folder string, bytes int64) error {
	space, err := disk.Of(folder)
	if err == nil && space.Free < bytes+minFree {
		err = fmt.Errorf("%w: %s needs up to %s, and %s are free: make room, or choose another disk",
			ErrSpace, filepath.Clean(folder), disk.Bytes(bytes+minFree), disk.Bytes(space.Free))
	}
	return err
}

// guard is a writer to a folder's disk that fails before that is full.
type guard struct {
	w       io.Writer
	folder  string // "" for another target
	written int64  // bytes
	next    int64  // how many are written at the next look
}

func (g *guard) Write(p []byte) (int, error) {
	if g.folder != "" && g.written >= g.next {
		g.next = g.written + checkEvery
		if err := requireSpace(g.folder, 0); err != nil {
			return 0, err
		}
	}
	n, err := g.w.Write(p)
	g.written += int64(n)
	return n, err
}
