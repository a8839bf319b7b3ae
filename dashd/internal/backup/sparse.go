package backup

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Sparse files are stored in GNU tar's format 0.1: their pieces one after the other, and a map of these in the extended
// header. archive/tar writes no sparse files, and when it reads one it returns zeros for the holes, of which an agent
// can make 8 EiB.

const (
	// Records of the extended header. The map has offset and length of each piece, as in 0,4096,65536,4096.
	sparseSize, sparseCount, sparseMap = "GNU.sparse.size", "GNU.sparse.numblocks", "GNU.sparse.map"
	// formerSparse is the record of format 1: the size and the pieces, as in 1048576,0+4096,65536+4096.
	formerSparse = "ARIZUKO.sparse"

	// blockSize is that of tar: each piece but the last one is whole blocks.
	blockSize = 512
	// maxPieces bounds the pieces of one file: archive/tar reads maps of up to 1 MiB.
	maxPieces = 4096
	// maxStored bounds the holes that are stored, of a file that has too many for a map: it is so many times what the
	// file takes on disk.
	maxStored = 16
)

// errTooSparse is a file whose holes can be neither left out nor stored.
var errTooSparse = fmt.Errorf("it is far larger than what it takes on disk, and has more than %d holes", maxPieces)

// piece is a part of a file that is not a hole.
type piece struct{ offset, length int64 }

// pieces are the parts of an open file of a size that are not holes. Where the file system does not tell, or the map
// has no more room, the last one goes to the file's end.
func pieces(f *os.File, size, onDisk int64) (all []piece, err error) {
	for at := int64(0); at < size; {
		start, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if err == unix.ENXIO || err == nil && start >= size {
			break // a hole to the end
		}
		end, err2 := unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE)
		if err != nil || err2 != nil || len(all) == maxPieces-1 {
			if (size-at)/maxStored > onDisk {
				return nil, errTooSparse
			}
			start, end = at, size
		}
		start -= start % blockSize
		end = min(end, size)
		end += min(-end&(blockSize-1), size-end)
		all = append(all, piece{start, end - start})
		at = end
	}
	return all, nil
}

func sum(all []piece) (bytes int64) {
	for _, p := range all {
		bytes += p.length
	}
	return bytes
}

// content is what a file's pieces hold, one after the other.
func content(f io.ReaderAt, all []piece) io.Reader {
	readers := make([]io.Reader, len(all))
	for i, p := range all {
		readers[i] = io.NewSectionReader(f, p.offset, p.length)
	}
	return io.MultiReader(readers...)
}

// sparseRecords describe a file of a size. The last piece is empty: GNU tar makes the file so long.
func sparseRecords(size int64, all []piece) map[string]string {
	var b strings.Builder
	for _, p := range all {
		fmt.Fprintf(&b, "%d,%d,", p.offset, p.length)
	}
	fmt.Fprintf(&b, "%d,0", size)
	return map[string]string{sparseSize: strconv.FormatInt(size, 10), sparseCount: strconv.Itoa(len(all) + 1),
		sparseMap: b.String()}
}

// writeHeader writes an entry's header, and returns where its content goes. archive/tar leaves out the records of
// sparse files: they get other names of the same length, and their own in the bytes that it made. It sorts records, so
// these are the first ones, and in GNU tar's order: the number of pieces before the map.
func (w *writer) writeHeader(h *tar.Header) (io.Writer, error) {
	var names []string
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(h.PAXRecords))) {
		if strings.HasPrefix(name, "GNU.") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return w.tar, w.tar.WriteHeader(h)
	}
	renamed := *h
	renamed.PAXRecords = map[string]string{}
	for i, name := range names {
		renamed.PAXRecords[strconv.Itoa(i)+name[1:]] = h.PAXRecords[name]
	}
	var made bytes.Buffer
	if err := errors.Join(w.tar.Flush(), tar.NewWriter(&made).WriteHeader(&renamed)); err != nil {
		return nil, err
	}
	records := made.Bytes()[blockSize:]
	for i, name := range names {
		records[bytes.Index(records, []byte(strconv.Itoa(i)+name[1:]))] = name[0]
	}
	_, err := w.out.Write(made.Bytes())
	return w.out, err
}

// isSparse reports whether an entry has a map of either format.
func isSparse(h *tar.Header) bool { return mapOf(h) != "" }

func mapOf(h *tar.Header) string { return h.PAXRecords[sparseMap] + h.PAXRecords[formerSparse] }

// parsePieces reads the map of a sparse file.
func parsePieces(h *tar.Header) (size int64, all []piece, err error) {
	first, rest := h.PAXRecords[sparseSize], h.PAXRecords[sparseMap]
	if former, ok := h.PAXRecords[formerSparse]; ok {
		first, rest, _ = strings.Cut(strings.ReplaceAll(former, "+", ","), ",")
	}
	invalid := fmt.Errorf("%w: invalid map of a sparse file", ErrInvalid)
	if size, err = strconv.ParseInt(first, 10, 64); err != nil || size < 0 {
		return 0, nil, invalid
	}
	for end := int64(0); rest != ""; {
		var offset, length string
		offset, rest, _ = strings.Cut(rest, ",")
		length, rest, _ = strings.Cut(rest, ",")
		o, err1 := strconv.ParseInt(offset, 10, 64)
		l, err2 := strconv.ParseInt(length, 10, 64)
		if err1 != nil || err2 != nil || o < end || l < 0 || l > size-o {
			return 0, nil, invalid
		}
		all = append(all, piece{o, l})
		end = o + l
	}
	return size, all, nil
}

// tape is an archive as tar.Reader gets it. What was read past that, it gets as zeros, to skip them.
type tape struct {
	archive io.Reader
	read    int64 // past tar.Reader
}

func (t *tape) Read(p []byte) (int, error) {
	if t.read == 0 {
		return t.archive.Read(p)
	}
	n := int(min(int64(len(p)), t.read))
	clear(p[:n])
	t.read -= int64(n)
	return n, nil
}

// stored is the content of a sparse file without its holes, read past tar.Reader.
type stored struct{ *tape }

func (s stored) Read(p []byte) (int, error) {
	n, err := s.archive.Read(p)
	s.read += int64(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
