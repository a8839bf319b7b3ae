package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	adapterrows "arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// fetchTimeout bounds the downloads of one message; gated waits for as long.
	fetchTimeout = time.Minute
	// maxFetches bounds the messages whose files are downloaded at once, and the files of each.
	maxFetches = 4
	// maxFileName bounds a file's own name, in bytes. Longer ones lose their beginning.
	maxFileName = 80
	// mediaFolder holds the files, inside the data folder.
	mediaFolder = "media"
)

// fetchDelays are the waits before a download is retried.
func fetchDelays() []time.Duration {
	return []time.Duration{time.Second, 3 * time.Second, 9 * time.Second}
}

// Fetcher is a platform whose messages come with files to download.
type Fetcher interface {
	// Fetch writes the file of a message that an attachment's Ref names. It is retried, also from the beginning of a
	// file that was cut off or is not the one promised, unless its error is a *Failure of class Permanent.
	Fetch(ctx context.Context, m *msg.Message, ref string, w io.Writer) error
}

// fetching downloads the files that gated wants; nil does nothing. After a crash the next start finds the
// unfinished ones in the rows.
type fetching struct {
	shell   *Shell
	fetcher Fetcher
	limits  *mediaLimits
	ended   chan int64
	calls   sync.WaitGroup
	busy    map[int64]bool // rows
}

func (s *Shell) fetching() *fetching {
	fetcher, ok := s.platform.(Fetcher)
	if !ok {
		return nil
	}
	return &fetching{shell: s, fetcher: fetcher, limits: newMediaLimits(s), ended: make(chan int64, maxFetches),
		busy: map[int64]bool{}}
}

// done receives the row of a message whose downloads have ended.
func (f *fetching) done() <-chan int64 {
	if f == nil {
		return nil
	}
	return f.ended
}

func (f *fetching) wait() {
	if f != nil {
		f.calls.Wait()
	}
}

// look starts downloads, those of the oldest messages first.
func (f *fetching) look(ctx context.Context) {
	if f == nil || len(f.busy) >= maxFetches {
		return
	}
	rows, err := adapterrows.WantedFiles(ctx, f.shell.Store.Reader, f.shell.Platform, 2*maxFetches)
	if f.shell.reads.Note(ctx, err) != nil {
		return
	}
	for _, m := range rows {
		if !f.busy[m.ID] && len(f.busy) < maxFetches {
			f.busy[m.ID] = true
			f.calls.Go(func() {
				f.fetchAll(ctx, m)
				f.ended <- m.ID
			})
		}
	}
}

// fetchAll downloads a message's files and records their paths, or why a download failed.
func (f *fetching) fetchAll(ctx context.Context, m *msg.Message) {
	var calls errgroup.Group
	calls.SetLimit(maxFetches)
	before := slices.Clone(m.Attachments)
	defer func() { // once their rows count
		for i, a := range m.Attachments {
			if before[i].Ref != "" && a.Path != "" {
				f.limits.release(m.ChatJID, a.Size, a.Size)
			}
		}
	}()
	fetching, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	for i := range m.Attachments {
		if m.Attachments[i].Ref != "" {
			calls.Go(func() error {
				f.fetchOne(fetching, m, i)
				return nil
			})
		}
	}
	_ = calls.Wait() // it has no errors
	if ctx.Err() != nil {
		return // the next start retries
	}
	// Without an error of the database's there is nothing left to do; else the next start retries.
	_ = f.shell.writeAlways(ctx, m, func(tx *store.Tx) error {
		return adapterrows.FetchedFiles(tx, m.ID, before, m.Attachments)
	})
}

// fetchOne downloads one of a message's files, unless ctx ends, and retries failures that may pass.
func (f *fetching) fetchOne(ctx context.Context, m *msg.Message, i int) {
	a := &m.Attachments[i]
	var cause error
	for _, wait := range append(fetchDelays(), 0) {
		path, size, err := f.fetch(ctx, m, i)
		if err == nil {
			a.Path, a.Size, a.Ref = path, size, ""
			f.shell.counters.fetched(size, nil)
			return
		}
		if cause == nil || ctx.Err() == nil { // the reason before the timeout says more
			cause = err
		}
		failure := &Failure{}
		errors.As(err, &failure)
		if errors.As(err, new(tooLargeError)) || failure.Class == msg.Permanent || wait == 0 || ctx.Err() != nil {
			break
		}
		Pause(ctx, max(wait, failure.After))
	}
	if failure := new(Failure); errors.As(cause, &failure) {
		cause = failure.Err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		cause = fmt.Errorf("not downloaded within %v: %w", fetchTimeout, cause)
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		a.Ref, a.Error = "", f.shell.Redact(cause.Error())
		f.shell.counters.fetched(0, cause)
		f.shell.Log.Warn("download failed", "row", m.ID, "chat", m.ChatJID, "file", a.Name, "err", a.Error)
	}
}

// fetch downloads one file if there is room for it. The caller gives the room back.
func (f *fetching) fetch(ctx context.Context, m *msg.Message, i int) (path string, size int64, err error) {
	a, limit := m.Attachments[i], f.shell.MediaMax
	if a.Size > limit {
		return "", 0, tooLargeError{limit}
	}
	reserved := a.Size
	if reserved <= 0 {
		reserved = limit // the platform does not say
	}
	if err := f.limits.reserve(ctx, m.ChatJID, reserved); err != nil {
		return "", 0, err
	}
	path, size, err = f.download(ctx, m, i)
	f.limits.release(m.ChatJID, reserved-size, 0) // for the other files
	return path, size, err
}

// download writes one file under a temporary name and renames it, so that no reader sees half of
// it. Its name begins with the row and the file's number, which makes it unique.
func (f *fetching) download(ctx context.Context, m *msg.Message, i int) (path string, size int64, err error) {
	a, limit := m.Attachments[i], f.shell.MediaMax
	month := time.UnixMilli(m.ReceivedAt).UTC().Format("200601")
	path = filepath.Join(mediaFolder, month, fmt.Sprintf("%d-%d-%s", m.ID, i, safeName(a.Name)))
	whole := filepath.Join(f.shell.Data, path)
	if err := os.MkdirAll(filepath.Dir(whole), 0o700); err != nil {
		return "", 0, err
	}
	part, err := os.OpenFile(whole+".part", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return "", 0, err
	}
	bounded := &boundedWriter{w: part, limit: limit}
	err = errors.Join(f.call(ctx, m, a.Ref, bounded), part.Close())
	if bounded.written > limit {
		err = tooLargeError{limit}
	}
	if err == nil {
		err = checkBody(&a, bounded)
	}
	if err == nil {
		err = os.Rename(part.Name(), whole)
	}
	if err != nil {
		_ = os.Remove(part.Name()) // a rest does no harm
		return "", 0, err
	}
	return filepath.ToSlash(path), bounded.written, nil
}

func (f *fetching) call(ctx context.Context, m *msg.Message, ref string, w io.Writer) (err error) {
	defer f.shell.recoverPanic("downloading", &err, "chat", m.ChatJID, "row", m.ID)
	return f.fetcher.Fetch(ctx, m, ref, w)
}

// tooLargeError is the error for a file larger than a limit, in bytes.
type tooLargeError struct{ limit int64 }

func (e tooLargeError) Error() string {
	return fmt.Sprintf("larger than %d MiB (MEDIA_MAX)", e.limit>>20)
}

// checkBody returns an error if the body is not the file that the platform promised: the connection ended early, or a
// proxy or a firewall answered with a page of its own.
func checkBody(a *msg.Attachment, came *boundedWriter) error {
	kind, _, _ := strings.Cut(a.MIME, "/")
	media := kind == "audio" || kind == "image" || kind == "video"
	switch {
	case came.written == 0:
		return errors.New("an empty body came in place of the file")
	case media && strings.HasPrefix(http.DetectContentType(came.head), "text/html"):
		return errors.New("a web page came in place of the file")
	case a.Size > 0 && came.written != a.Size:
		return fmt.Errorf("%d bytes came, the file has %d", came.written, a.Size)
	}
	return nil
}

// maxHead is how much of a file tells its type, in bytes.
const maxHead = 512

// boundedWriter fails a write beyond limit bytes, and keeps the first maxHead.
type boundedWriter struct {
	w              io.Writer
	limit, written int64
	head           []byte
}

func (b *boundedWriter) Write(p []byte) (int, error) {
	b.head = append(b.head, p[:min(len(p), maxHead-len(b.head))]...)
	if b.written += int64(len(p)); b.written > b.limit {
		return 0, tooLargeError{b.limit}
	}
	return b.w.Write(p)
}

// safeName keeps the characters of a name that are safe in paths, shells and prompts.
func safeName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	safe := strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, name)
	safe = strings.TrimLeft(safe, ".-")
	for len(safe) > maxFileName { // keep the extension
		_, size := utf8.DecodeRuneInString(safe)
		safe = safe[size:]
	}
	if safe == "" {
		return "file"
	}
	return safe
}
