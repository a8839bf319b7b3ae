package backup

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// sparseRecord is the extended header of a file that is stored without its holes: its size, then offset and
	// length of each piece, as in 1048576,0+4096,65536+4096.
	sparseRecord = "ARIZUKO.sparse"
	// maxPieces bounds the pieces of one file. What is between the last and the end is stored with its holes.
	maxPieces = 4096
)

// piece is a part of a file that is not a hole.
type piece struct{ offset, length int64 }

// pieces are the parts of an open file of a size that are not holes.
func pieces(f *os.File, size int64) (all []piece, err error) {
	for at := int64(0); at < size; {
		start, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if err == unix.ENXIO || err == nil && start >= size {
			break // a hole to the end
		}
		if err != nil {
			return nil, err
		}
		end := size
		if len(all) < maxPieces-1 {
			if end, err = unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE); err != nil {
				return nil, err
			}
		}
		end = min(end, size)
		all = append(all, piece{start, end - start})
		at = end
	}
	return all, nil
}

// content is what a file's pieces hold, one after the other.
func content(f io.ReaderAt, all []piece) io.Reader {
	readers := make([]io.Reader, len(all))
	for i, p := range all {
		readers[i] = io.NewSectionReader(f, p.offset, p.length)
	}
	return io.MultiReader(readers...)
}

func formatPieces(size int64, all []piece) string {
	var b strings.Builder
	fmt.Fprint(&b, size)
	for _, p := range all {
		fmt.Fprintf(&b, ",%d+%d", p.offset, p.length)
	}
	return b.String()
}

// parsePieces reads a sparseRecord of which stored bytes follow.
func parsePieces(record string, stored int64) (size int64, all []piece, err error) {
	first, rest, _ := strings.Cut(record, ",")
	if size, err = strconv.ParseInt(first, 10, 64); err != nil || size < 0 {
		return 0, nil, fmt.Errorf("%w: invalid map of a sparse file", ErrInvalid)
	}
	end, sum := int64(0), int64(0)
	for field := range strings.SplitSeq(rest, ",") {
		if rest == "" {
			break
		}
		offset, length, _ := strings.Cut(field, "+")
		o, err1 := strconv.ParseInt(offset, 10, 64)
		l, err2 := strconv.ParseInt(length, 10, 64)
		if err1 != nil || err2 != nil || o < end || l < 1 || l > size-o || len(all) == maxPieces {
			return 0, nil, fmt.Errorf("%w: invalid map of a sparse file", ErrInvalid)
		}
		all = append(all, piece{o, l})
		end, sum = o+l, sum+l
	}
	if sum != stored {
		return 0, nil, fmt.Errorf("%w: invalid map of a sparse file", ErrInvalid)
	}
	return size, all, nil
}

// writePieces writes a file of a size from the content of its pieces.
func writePieces(f *os.File, size int64, all []piece, from io.Reader) error {
	for _, p := range all {
		if _, err := f.Seek(p.offset, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(f, from, p.length); err != nil {
			return err
		}
	}
	return f.Truncate(size)
}
