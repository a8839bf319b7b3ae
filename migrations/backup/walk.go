package backup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"arizuko/pkg/disk"
)

const (
	// maxDepth of folders: each is open while those in it are read.
	maxDepth = 200
	// listed is how many entries of a folder are read at once.
	listed = 512
	// readSize is how much of a file is read at once.
	readSize = 256 << 10
	// Up to minMostlyHoles, in bytes, a file may have any holes. A larger one is left out if it is more than
	// maxExpansion times as large as the space it takes on disk.
	minMostlyHoles, maxExpansion = 64 << 20, 16
)

// writer writes entries of an archive.
type writer struct {
	tar   *tar.Writer
	parts digests
	links map[inode]string // the first name of each file that has several
	buf   []byte
	*report
	files, bytes int64 // so far
}

type inode struct{ dev, ino uint64 }

func newWriter(w io.Writer, r *report) *writer {
	return &writer{tar: tar.NewWriter(w), parts: digests{}, links: map[inode]string{}, buf: make([]byte, readSize),
		report: r}
}

// header describes a file to the archive. Times are whole seconds, so that most entries need no extended header.
func header(name string, info fs.FileInfo) *tar.Header {
	st := info.Sys().(*syscall.Stat_t)
	return &tar.Header{Name: name, Mode: int64(st.Mode & 0o7777), Uid: int(st.Uid), Gid: int(st.Gid),
		ModTime: info.ModTime().Truncate(1e9)}
}

func inodeOf(info fs.FileInfo) inode {
	st := info.Sys().(*syscall.Stat_t)
	return inode{st.Dev, st.Ino}
}

// put writes an entry with its content of h.Size bytes.
func (w *writer) put(ctx context.Context, h *tar.Header, content io.Reader) error {
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	w.files++
	d := w.parts.of(h.Name)
	d.begin(h)
	to := io.MultiWriter(w.tar, d)
	for left := h.Size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(content, w.buf[:min(left, readSize)])
		if err != nil {
			return err
		}
		if _, err := to.Write(w.buf[:n]); err != nil {
			return err
		}
		left, w.bytes = left-int64(n), w.bytes+int64(n)
		w.progress("files: %d, %s so far", w.files, disk.Bytes(w.bytes))
	}
	return nil
}

// entry writes the file or folder with a base name; name is its path in the archive.
func (w *writer) entry(ctx context.Context, in *os.Root, base, name string, info fs.FileInfo, depth int) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return w.subfolder(ctx, in, base, name, info, depth)
	case mode.IsRegular():
		return w.file(ctx, in, base, name, info)
	case mode&fs.ModeSymlink != 0:
		target, err := in.Readlink(base)
		if err != nil {
			w.failed(name, err)
			return nil
		}
		h := header(name, info)
		h.Typeflag, h.Linkname = tar.TypeSymlink, target
		return w.put(ctx, h, nil)
	default:
		w.skipped(name, "it is neither a file, a folder nor a link")
		return nil
	}
}

// subfolder writes a folder and everything in it. A folder that was replaced since it was listed is not read.
func (w *writer) subfolder(ctx context.Context, in *os.Root, base, name string, info fs.FileInfo, depth int) error {
	if depth == maxDepth {
		w.skipped(name, fmt.Sprintf("deeper than %d folders", maxDepth))
		return nil
	}
	folder, err := in.OpenRoot(base)
	if err != nil {
		w.failed(name, err)
		return nil
	}
	defer folder.Close()
	list, err := folder.Open(".")
	if err != nil {
		w.failed(name, err)
		return nil
	}
	defer list.Close()
	if now, err := list.Stat(); err != nil || !os.SameFile(info, now) {
		w.failed(name, fs.ErrNotExist)
		return nil
	}
	h := header(name+"/", info)
	h.Typeflag = tar.TypeDir
	if err := w.put(ctx, h, nil); err != nil {
		return err
	}
	return w.entries(ctx, folder, list, name, depth)
}

func (w *writer) entries(ctx context.Context, folder *os.Root, list *os.File, name string, depth int) error {
	for {
		batch, err := list.ReadDir(listed)
		for _, e := range batch {
			child := name + "/" + e.Name()
			info, err := folder.Lstat(e.Name())
			if err != nil {
				w.failed(child, err)
				continue
			}
			if err := w.entry(ctx, folder, e.Name(), child, info, depth+1); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			w.failed(name, err)
			return nil
		}
	}
}

// file writes a regular file: its size is that of the moment when it is opened, whatever happens to it then.
func (w *writer) file(ctx context.Context, in *os.Root, base, name string, listed fs.FileInfo) error {
	f, err := in.OpenFile(base, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		w.failed(name, err)
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !os.SameFile(listed, info) {
		w.failed(name, fs.ErrNotExist)
		return nil
	}
	h := header(name, info)
	st := info.Sys().(*syscall.Stat_t)
	if st.Nlink > 1 {
		if first, ok := w.links[inodeOf(info)]; ok {
			h.Typeflag, h.Linkname = tar.TypeLink, first
			return w.put(ctx, h, nil)
		}
	}
	h.Typeflag = tar.TypeReg
	if isMostlyHoles(info) {
		w.skipped(name, "it is far larger than what it takes on disk")
		return nil
	}
	h.Size = info.Size()
	padded := &padder{r: io.NewSectionReader(f, 0, h.Size)}
	if err := w.put(ctx, h, padded); err != nil {
		return err
	}
	if st.Nlink > 1 && padded.err == nil {
		w.links[inodeOf(info)] = name
	}
	w.compare(name, f, info, padded)
	return nil
}

// isMostlyHoles reports whether a file is too large to store its holes, which become zeros in the archive. An agent can
// make them of 8 EiB.
func isMostlyHoles(info fs.FileInfo) bool {
	onDisk := info.Sys().(*syscall.Stat_t).Blocks * 512
	return info.Size() > minMostlyHoles && info.Size()/maxExpansion > onDisk
}

// compare notes a file that could not be read to its end, or was written while it was read.
func (w *writer) compare(name string, f *os.File, before fs.FileInfo, read *padder) {
	after, err := f.Stat()
	switch {
	case read.err != nil:
		w.failed(name, read.err)
	case err != nil, read.padded, after.Size() != before.Size(), !after.ModTime().Equal(before.ModTime()):
		w.note(&w.notes.Changed, name, "changed while it was read")
	}
}

// padder reads zeros where a file has become shorter, or cannot be read: the archive has said its size.
type padder struct {
	r      io.Reader
	padded bool
	err    error // of the file, other than its end
}

func (p *padder) Read(b []byte) (int, error) {
	if !p.padded {
		n, err := p.r.Read(b)
		if n > 0 || err == nil {
			return n, nil
		}
		p.padded = true
		if !errors.Is(err, io.EOF) {
			p.err = err
		}
	}
	clear(b)
	return len(b), nil
}
