package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// fetchMost is how long the files of one message may take; gated waits for as long.
	fetchMost = time.Minute
	// maxFetches bounds the messages whose files are on their way at once.
	maxFetches = 4
	// nameMost bounds what is kept of a file's own name, in bytes.
	nameMost = 80
	// mediaFolder is where files are, inside the data folder.
	mediaFolder = "media"
)

// Fetcher is a platform whose messages bring files that have to be fetched.
type Fetcher interface {
	// Fetch writes the file that an attachment's Ref names.
	Fetch(ctx context.Context, ref string, w io.Writer) error
}

// fetching downloads what messages bring; nil does nothing. What a crash leaves undone the next
// start finds in the rows.
type fetching struct {
	shell   *Shell
	fetcher Fetcher
	ended   chan int64
	calls   sync.WaitGroup
	busy    map[int64]bool // rows
}

func (s *Shell) fetching() *fetching {
	fetcher, ok := s.platform.(Fetcher)
	if !ok {
		return nil
	}
	return &fetching{shell: s, fetcher: fetcher, ended: make(chan int64, maxFetches), busy: map[int64]bool{}}
}

// done fires when a message's files are there.
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

// look begins with the messages that wait longest.
func (f *fetching) look(ctx context.Context) {
	if f == nil || len(f.busy) >= maxFetches {
		return
	}
	rows, err := f.shell.Store.PendingFiles(ctx, f.shell.Platform, 2*maxFetches)
	if err != nil {
		if ctx.Err() == nil {
			f.shell.Log.Error("cannot look for files to download; trying again", "err", err)
		}
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

// fetchAll fetches a message's files and records where they are. One that can't be fetched is
// recorded with the reason.
func (f *fetching) fetchAll(ctx context.Context, m *msg.Message) {
	fetching, cancel := context.WithTimeout(ctx, fetchMost)
	defer cancel()
	for i := range m.Attachments {
		a := &m.Attachments[i]
		if a.Ref == "" {
			continue
		}
		path, size, err := f.fetch(fetching, m, i)
		if ctx.Err() != nil {
			return // the next start does it
		}
		if err != nil {
			a.Error = f.shell.Redact(err.Error())
			f.shell.Log.Warn("file not downloaded", "chat", m.ChatJID, "row", m.ID, "file", a.Name, "err", a.Error)
		} else {
			a.Path, a.Size = path, size
		}
		a.Ref = ""
	}
	for {
		err := f.shell.Store.Write(context.WithoutCancel(ctx), func(tx *store.Tx) error { return tx.PutFiles(m.ID, m.Attachments) })
		if err == nil || errors.Is(err, store.ErrStale) || ctx.Err() != nil {
			return
		}
		f.shell.Log.Error("cannot record downloaded files; trying again", "row", m.ID, "err", err)
		pause(ctx, trouble)
	}
}

// fetch downloads one file beside its place and then puts it there, so that it is never seen in
// part. Its name begins with the row and the file's number: nothing else has it.
func (f *fetching) fetch(ctx context.Context, m *msg.Message, i int) (path string, size int64, err error) {
	a, limit := m.Attachments[i], f.shell.MediaMax
	if a.Size > limit {
		return "", 0, tooLarge(limit)
	}
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
		err = tooLarge(limit)
	}
	if err == nil {
		err = os.Rename(part.Name(), whole)
	}
	if err != nil {
		_ = os.Remove(part.Name()) // what is left of it is in nobody's way
		return "", 0, err
	}
	return filepath.ToSlash(path), bounded.written, nil
}

func (f *fetching) call(ctx context.Context, m *msg.Message, ref string, w io.Writer) (err error) {
	defer f.shell.survive("fetching it", &err, "chat", m.ChatJID, "row", m.ID)
	return f.fetcher.Fetch(ctx, ref, w)
}

func tooLarge(limit int64) error {
	return fmt.Errorf("larger than the %d MiB that are downloaded (MEDIA_MAX)", limit>>20)
}

// boundedWriter refuses what goes beyond limit.
type boundedWriter struct {
	w              io.Writer
	limit, written int64
}

func (b *boundedWriter) Write(p []byte) (int, error) {
	if b.written += int64(len(p)); b.written > b.limit {
		return 0, tooLarge(b.limit)
	}
	return b.w.Write(p)
}

// safeName keeps of a name what is harmless in paths, shells and prompts.
func safeName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	safe := strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, name)
	safe = strings.TrimLeft(safe, ".-")
	for len(safe) > nameMost { // its end tells what it is
		_, size := utf8.DecodeRuneInString(safe)
		safe = safe[size:]
	}
	if safe == "" {
		return "file"
	}
	return safe
}
