package backup

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"arizuko/migrations/backup/rows"
	"arizuko/pkg/disk"
)

// entryFunc gets an entry that checkEntry has passed. The content that it leaves is skipped.
type entryFunc func(h *tar.Header, content io.Reader) error

// read reads a whole archive, whose entries e may extract, and compares each part with its checksum. The error is an
// ErrInvalid if the archive is not whole.
func read(ctx context.Context, from io.Reader, e *extractor, entry entryFunc) (s Summary, err error) {
	file := bufio.NewReaderSize(from, readSize)
	packed, err := gzip.NewReader(file)
	if err != nil {
		return s, invalid(err)
	}
	packed.Multistream(false) // a backup is one
	archive := &reader{tar: tar.NewReader(unpacked{ctx, packed}), parts: digests{}, report: e.report}
	if err := archive.entries(&s, e.begin, entry); err != nil {
		return s, err
	}
	if _, err := io.Copy(io.Discard, packed); err != nil { // to the checksum of the compression
		return s, invalid(err)
	}
	switch _, err := file.ReadByte(); {
	case err == nil:
		return s, fmt.Errorf("%w: the file goes on after its end", ErrInvalid)
	case !errors.Is(err, io.EOF):
		return s, invalid(err)
	}
	return s, nil
}

// unpacked is an archive without its compression. Reading it fails when ctx ends, and with an ErrInvalid where it is
// damaged.
type unpacked struct {
	ctx context.Context //nolint:containedctx // it lives for one call of read
	r   io.Reader
}

func (u unpacked) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := u.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = invalid(err)
	}
	return n, err
}

func invalid(err error) error {
	if errors.Is(err, ErrInvalid) || errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends too early", ErrInvalid)
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}

// reader reads the entries of an archive.
type reader struct {
	tar   *tar.Reader
	parts digests
	*report
	files, bytes int64
}

// next returns the next header, and the content that goes into the part's digest while it is read.
func (a *reader) next() (*tar.Header, io.Reader, error) {
	h, err := a.tar.Next()
	if err != nil {
		return nil, nil, invalid(err)
	}
	if err := checkEntry(h); err != nil {
		return nil, nil, err
	}
	a.files, a.bytes = a.files+1, a.bytes+h.Size
	a.progress("files: %d, %s so far", a.files, disk.Bytes(a.bytes))
	if h.Name == manifestName {
		return h, a.tar, nil
	}
	d := a.parts.of(h.Name)
	d.begin(h)
	return h, io.TeeReader(a.tar, d), nil
}

// entries reads from the head to the manifest, and compares.
func (a *reader) entries(s *Summary, begin func(Head) error, entry entryFunc) error {
	for first := true; ; first = false {
		h, content, err := a.next()
		switch {
		case err != nil:
			return err
		case first && h.Name != headName:
			return fmt.Errorf("%w: it begins with %q, not %s", ErrInvalid, h.Name, headName)
		case first:
			if err = readJSON(h, content, maxHead, &s.Head); err == nil {
				err = begin(s.Head)
			}
		case h.Name == headName:
			return fmt.Errorf("%w: it has %s twice", ErrInvalid, headName)
		case h.Name == manifestName:
			if err := readJSON(h, content, maxManifest, &s.Manifest); err != nil {
				return err
			}
			return a.compare(s.Parts)
		default:
			err = entry(h, content)
		}
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return invalid(err)
		}
	}
}

func (a *reader) compare(want map[string]Part) error {
	got := a.parts.parts()
	for name := range got {
		if _, ok := want[name]; !ok {
			return fmt.Errorf("%w: it has %s, which its manifest does not name", ErrInvalid, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			return fmt.Errorf("%w: %q does not have the checksum that it was written with", ErrInvalid, name)
		}
	}
	if _, ok := want[databaseName]; !ok {
		return fmt.Errorf("%w: it has no database", ErrInvalid)
	}
	return nil
}

func readJSON(h *tar.Header, content io.Reader, limit int64, into any) error {
	if h.Size > limit {
		return fmt.Errorf("%w: %s is too large", ErrInvalid, h.Name)
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return invalid(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, h.Name, err)
	}
	return nil
}

// open opens an archive; Stdout means in.
func open(source string, in io.Reader) (io.ReadCloser, error) {
	if source == Stdout {
		return io.NopCloser(in), nil
	}
	return os.Open(source)
}

// Verify reads a backup to its end, compares all checksums, and checks the database in it, of which it writes a
// temporary copy to the system's folder for temporary files.
func Verify(ctx context.Context, source string, in io.Reader, log io.Writer) (s Summary, err error) {
	from, err := open(source, in)
	if err != nil {
		return s, err
	}
	defer from.Close()
	folder, err := os.MkdirTemp("", "arizuko-verify-*")
	if err != nil {
		return s, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	root, err := os.OpenRoot(folder)
	if err != nil {
		return s, err
	}
	defer root.Close()
	e := &extractor{path: folder, root: root, known: math.MaxInt, report: newReport(log)}
	s, err = read(ctx, from, e, func(h *tar.Header, content io.Reader) error {
		if h.Name != databaseName {
			return nil
		}
		return e.file(h, content)
	})
	if err != nil {
		return s, err
	}
	e.progress("database: checking")
	err = checkDatabase(ctx, filepath.Join(folder, databaseName), &s)
	return s, err
}

// checkDatabase checks a database, and completes the summary in the archive by it.
func checkDatabase(ctx context.Context, path string, s *Summary) error {
	info, err := rows.InspectCopy(ctx, path, true)
	if err != nil {
		return err
	}
	if info.Version != s.Schema || info.Floor != s.Floor {
		return fmt.Errorf("%w: the database is not the one that %s describes", ErrInvalid, headName)
	}
	s.Messages = info.Messages
	return nil
}
