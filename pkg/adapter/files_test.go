package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// library is a platform that keeps files: each is its own name, unless how says otherwise.
type library struct {
	*fake
	data string
	how  map[string]func(context.Context, io.Writer) error
	refs []string // what was fetched
}

func (l *library) Fetch(ctx context.Context, _ *msg.Message, ref string, w io.Writer) error {
	l.mu.Lock()
	l.refs = append(l.refs, ref)
	how := l.how[ref]
	l.mu.Unlock()
	if how != nil {
		return how(ctx, w)
	}
	_, err := io.WriteString(w, ref)
	return err
}

func (l *library) fetched() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.refs)
}

const (
	mediaMax   = 2 << 20
	mediaQuota = 1 << 30
	mediaDaily = 1 << 30
)

func (r *fixture) library() *library {
	l := &library{fake: r.platform, data: r.t.TempDir(), how: map[string]func(context.Context, io.Writer) error{}}
	r.as = l
	return l
}

// fetches starts a shell that downloads below the library's folder.
func (r *fixture) fetches(l *library, set ...func(*Options)) (stop func()) {
	return r.start(append([]func(*Options){redacting, func(o *Options) {
		o.Data, o.MediaMax, o.MediaQuota, o.MediaDaily = l.data, mediaMax, mediaQuota, mediaDaily
	}}, set...)...)
}

// brings stores a message with wanted files, each known by its name.
func (r *fixture) brings(names ...string) int64 {
	r.t.Helper()
	var files []msg.Attachment
	for _, name := range names {
		files = append(files, msg.Attachment{Name: name, MIME: "text/plain", Ref: name})
	}
	return r.bringsFiles(files...)
}

func (r *fixture) bringsFiles(files ...msg.Attachment) int64 {
	r.t.Helper()
	m := post("", "look at this")
	m.Direction, m.ReceivedAt, m.Attachments, m.PendingFiles, m.FilesWanted = msg.In, time.Now().UnixMilli(), files, len(files), true
	r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
	return m.ID
}

// expectFiles compares what is recorded of a message's files, and what is on the disk.
func (r *fixture) expectFiles(l *library, id int64, want ...msg.Attachment) {
	r.t.Helper()
	m := r.row(id)
	if diff := cmp.Diff(want, m.Attachments); diff != "" || m.PendingFiles != 0 {
		r.t.Errorf("row %d, %d files pending (-want +got):\n%s", id, m.PendingFiles, diff)
	}
	for _, a := range m.Attachments {
		info, err := os.Stat(filepath.Join(l.data, a.Path))
		if a.Path != "" && (err != nil || info.Size() != a.Size || info.Mode() != 0o600) {
			r.t.Errorf("%s: %v, %v", a.Path, info, err)
		}
	}
}

// onDisk lists the files below the library's folder.
func (l *library) onDisk(t testing.TB) (names []string) {
	t.Helper()
	err := filepath.WalkDir(l.data, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			path, err = filepath.Rel(l.data, path)
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return names
}

func TestFetch_DownloadsAndPokes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		pokes := make(chan string, 10)
		r.store = storetest.OpenAt(t, r.path, func(daemon string) { pokes <- daemon })
		l := r.library()
		l.how["cat.jpg"] = func(_ context.Context, w io.Writer) error {
			if got := l.onDisk(t); !slices.Contains(got, "media/200001/2-0-cat.jpg.part") {
				t.Errorf("while it is fetched: %q", got)
			}
			_, err := io.WriteString(w, "meow")
			return err
		}
		r.fetches(l)
		unwanted := post("0", "a file that no turn needs")
		unwanted.Attachments, unwanted.PendingFiles = []msg.Attachment{{Name: "c", Ref: "c"}}, 1
		m := post("1", "two files, and one that is there")
		m.Attachments = []msg.Attachment{
			{Name: "cat.jpg", MIME: "image/jpeg", Size: 4, Ref: "cat.jpg"}, {Path: "media/x", Name: "x"}, {Name: "b", Ref: "bb"},
		}
		m.PendingFiles = 2
		if err := r.running.Receive(t.Context(), Inbound{Messages: []*msg.Message{unwanted, m}}); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		if got := l.onDisk(t); len(got) > 0 || <-pokes != "gated" || len(pokes) > 0 {
			t.Errorf("before they are wanted: %q", got)
		}
		r.write(func(tx *store.Tx) error { return gatedtest.WantFiles(tx, m.ID) })
		r.look()
		row := r.row(m.ID)
		want := []msg.Attachment{
			{Path: "media/200001/2-0-cat.jpg", Name: "cat.jpg", MIME: "image/jpeg", Size: 4}, {Path: "media/x", Name: "x"},
			{Path: "media/200001/2-2-b", Name: "b", Size: 2},
		}
		if diff := cmp.Diff(want, row.Attachments); diff != "" || row.PendingFiles != 0 {
			t.Errorf("%d pending (-want +got):\n%s", row.PendingFiles, diff)
		}
		if diff := cmp.Diff([]string{"media/200001/2-0-cat.jpg", "media/200001/2-2-b"}, l.onDisk(t)); diff != "" {
			t.Errorf("on disk (-want +got):\n%s", diff)
		}
		if poked := <-pokes; poked != "gated" || len(pokes) > 0 {
			t.Errorf("poked %s", poked)
		}
	})
}

func TestFetch_Fails_RecordsReason(t *testing.T) {
	const (
		tooLarge = "larger than 2 MiB (MEDIA_MAX)"
		retries  = (1 + 3 + 9) * time.Second
	)
	endless := func(_ context.Context, w io.Writer) error {
		page := make([]byte, 64<<10)
		for {
			if _, err := w.Write(page); err != nil {
				return err
			}
		}
	}
	tests := []struct {
		name string
		size int64 // announced
		how  func(context.Context, io.Writer) error
		took time.Duration
		want string
		try  int // how often
	}{
		{"larger, as announced", mediaMax + 1, func(context.Context, io.Writer) error { panic("it is not wanted") }, 0, tooLarge, 0},
		{"larger than announced", 7, endless, 0, tooLarge, 1},
		{"larger, and no word of it", 0, func(ctx context.Context, w io.Writer) error { _ = endless(ctx, w); return nil }, 0, tooLarge, 1},
		{"refusal", 0, fails(&Failure{Class: msg.Permanent, Err: errors.New("404 for " + secret)}).fetch, 0, "404 for [redacted]", 1},
		{"failure", 0, fails(&Failure{Class: msg.Transient, Err: errors.New("502 for " + secret)}).fetch, retries, "502 for [redacted]", 4},
		{"rate limit", 0, fails(&Failure{Class: msg.Rate, After: 5 * time.Second, Err: errors.New("429")}).fetch, 19 * time.Second, "429", 4},
		{"failure in the middle", 0, func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, "half")
			return errors.Join(err, io.ErrUnexpectedEOF)
		}, retries, "unexpected EOF", 4},
		{"nothing comes", 0, sends(""), retries, "an empty body came in place of the file", 4},
		{"nothing comes of what has a size", 12345, sends(""), retries, "an empty body came in place of the file", 4},
		{"less than announced", 5, sends("half"), retries, "4 bytes came, the file has 5", 4},
		{"more than announced", 3, sends("more"), retries, "4 bytes came, the file has 3", 4},
		{"a web page of the size", 20, sends("<html>blocked</html>"), retries, "a web page came in place of the file", 4},
		{"a web page", 0, sends("\n<!DOCTYPE html><p>Please log in"), retries, "a web page came in place of the file", 4},
		{"panic", 0, func(context.Context, io.Writer) error { panic("no hands, " + secret) }, retries, "panic while downloading: no hands, [redacted]", 4},
		{"never ends", 0, func(ctx context.Context, _ io.Writer) error { <-ctx.Done(); return ctx.Err() }, fetchTimeout,
			"not downloaded within 1m0s: context deadline exceeded", 1},
	}
	for _, tt := range tests {
		runInBubble(t, tt.name, func(t *testing.T, r *fixture) {
			l := r.library()
			l.how["bad"] = tt.how
			good := msg.Attachment{Name: "good", Ref: "good"}
			id := r.bringsFiles(good, msg.Attachment{Name: "bad", MIME: "audio/ogg", Size: tt.size, Ref: "bad"})
			next := r.brings("next")
			r.fetches(l)
			pass(tt.took)
			r.expectFiles(l, id, msg.Attachment{Path: "media/200001/1-0-good", Name: "good", Size: 4},
				msg.Attachment{Name: "bad", MIME: "audio/ogg", Size: tt.size, Error: tt.want})
			r.expectFiles(l, next, msg.Attachment{Path: "media/200001/2-0-next", Name: "next", MIME: "text/plain", Size: 4})
			if got := l.onDisk(t); len(got) != 2 {
				t.Errorf("on disk: %q", got)
			}
			if got := len(l.fetched()) - 2; got != tt.try {
				t.Errorf("tried %d times, want %d", got, tt.try)
			}
		})
	}
}

// sends is a download that ends without an error.
func sends(body string) func(context.Context, io.Writer) error {
	return func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, body)
		return err
	}
}

// A page is no error where it is the file, or may be.
func TestFetch_WebPage_IsAFile(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		const page = "<!DOCTYPE html><p>a page"
		l := r.library()
		l.how["page"] = sends(page)
		kinds := []string{"text/html", "application/octet-stream", ""}
		var files, want []msg.Attachment
		for i, kind := range kinds {
			files = append(files, msg.Attachment{Name: "page", MIME: kind, Ref: "page"})
			want = append(want, msg.Attachment{Path: fmt.Sprintf("media/200001/1-%d-page", i), Name: "page", MIME: kind, Size: int64(len(page))})
		}
		id := r.bringsFiles(files...)
		r.fetches(l)
		pass(time.Second)
		r.expectFiles(l, id, want...)
	})
}

func TestFetch_OtherEnds(t *testing.T) {
	hangs := func(ctx context.Context, _ io.Writer) error { <-ctx.Done(); return ctx.Err() }
	there := func(i int, name string, size int64) msg.Attachment {
		return msg.Attachment{Path: fmt.Sprintf("media/200001/1-%d-%s", i, name), Name: name, MIME: "text/plain", Size: size}
	}
	tries := 0
	for name, tt := range map[string]struct {
		how  func(context.Context, io.Writer) error // of the first file
		took time.Duration
		want []msg.Attachment
	}{
		"fails twice": {func(_ context.Context, w io.Writer) error {
			if tries++; tries < 3 {
				_, _ = io.WriteString(w, "half of it, which is dropped")
				return io.ErrUnexpectedEOF
			}
			_, err := io.WriteString(w, "all")
			return err
		}, 4 * time.Second, []msg.Attachment{there(0, "a", 3), there(1, "b", 1)}},
		"hangs": {hangs, fetchTimeout, []msg.Attachment{ // and leaves the others their time
			{Name: "a", MIME: "text/plain", Error: "not downloaded within 1m0s: context deadline exceeded"}, there(1, "b", 1)}},
		"is of exactly the limit": {func(_ context.Context, w io.Writer) error {
			_, err := w.Write(make([]byte, mediaMax))
			return err
		}, 0, []msg.Attachment{there(0, "a", mediaMax), there(1, "b", 1)}},
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			l := r.library()
			l.how["a"] = tt.how
			id := r.brings("a", "b")
			r.fetches(l)
			pass(tt.took)
			r.expectFiles(l, id, tt.want...)
		})
	}
}

// fetch is a download that ends so: a file of one byte, or an error.
func (o outcome) fetch(ctx context.Context, w io.Writer) error {
	if err := o(ctx); err != nil {
		return err
	}
	_, err := io.WriteString(w, "x")
	return err
}

func TestFetch_FileNames_AreSafe(t *testing.T) {
	tests := []struct{ name, want string }{
		{"report.pdf", "report.pdf"},
		{"Übersicht 2026 (final).pdf", "Übersicht_2026__final_.pdf"},
		{"../../x", "x"},
		{`..\..\x.exe`, "x.exe"},
		{"/etc/passwd", "passwd"},
		{"a/..", "file"},
		{"", "file"},
		{".", "file"},
		{"...", "file"},
		{"/", "file"},
		{".bashrc", "bashrc"},
		{"-rf", "rf"},
		{"a\x00b\nc\x1b[2J", "a_b_c__2J"},
		{"$(reboot); `x` <y> \"z\" 'w' | & *?", "__reboot____x___y___z___w________"},
		{"\xff\xfe", "__"},
		{"e\u0301.txt", "e_.txt"},
		{"\u202egpj.exe", "_gpj.exe"},
		{strings.Repeat("é", 150), strings.Repeat("é", 40)},
		{strings.Repeat("x", 300) + ".tar.gz", strings.Repeat("x", maxFileName-7) + ".tar.gz"},
		{strings.Repeat("世", 100) + ".md", strings.Repeat("世", 25) + ".md"},
		{"x.part", "x.part"},
	}
	for _, tt := range tests {
		if got := safeName(tt.name); got != tt.want || len(got) > maxFileName || !utf8.ValidString(got) {
			t.Errorf("%q: %q, want %q", tt.name, got, tt.want)
		}
	}
	inBubble(t, func(t *testing.T, r *fixture) {
		l := r.library()
		want := map[string]bool{}
		for i, tt := range tests {
			id := r.bringsFiles(msg.Attachment{Name: tt.name, Ref: fmt.Sprint(i)})
			stored := strings.ReplaceAll(strings.ToValidUTF8(tt.name, "\ufffd"), "\x00", "")
			want[fmt.Sprintf("media/200001/%d-0-%s", id, safeName(stored))] = true
		}
		r.fetches(l)
		synctest.Wait()
		got := l.onDisk(t)
		for _, path := range got {
			if !want[path] {
				t.Errorf("unexpected file %q", path)
			}
		}
		if len(got) != len(tests) {
			t.Errorf("%d files of %d", len(got), len(tests))
		}
	})
}

// TestFetch_ShellEnds_NextRetries ends a shell while a file is under way: the next one fetches the message's
// files again.
func TestFetch_ShellEnds_NextRetries(t *testing.T) {
	for name, end := range map[string]func(*fixture, func()){
		"crash": (*fixture).crash,
		"stop":  func(_ *fixture, stop func()) { stop() },
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			l := r.library()
			l.how["b"] = func(ctx context.Context, w io.Writer) error {
				_, _ = io.WriteString(w, "half")
				<-ctx.Done()
				return ctx.Err()
			}
			id := r.brings("a", "b")
			stop := r.fetches(l)
			pass(time.Second)
			end(r, stop)
			if m := r.row(id); m.PendingFiles != 2 || m.Attachments[0].Ref != "a" {
				t.Errorf("left: %+v", m)
			}
			delete(l.how, "b")
			r.fetches(l)
			synctest.Wait()
			r.expectFiles(l, id, msg.Attachment{Path: "media/200001/1-0-a", Name: "a", MIME: "text/plain", Size: 1},
				msg.Attachment{Path: "media/200001/1-1-b", Name: "b", MIME: "text/plain", Size: 1})
			if got := l.onDisk(t); len(got) != 2 {
				t.Errorf("on disk: %q", got)
			}
		})
	}
}

func TestFetch_PartialFileOfCrash_IsReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		l := r.library()
		id := r.brings("a")
		folder := filepath.Join(l.data, "media", "200001")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "1-0-a.part"), []byte("longer than the file is"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.fetches(l)
		synctest.Wait()
		r.expectFiles(l, id, msg.Attachment{Path: "media/200001/1-0-a", Name: "a", MIME: "text/plain", Size: 1})
		if got := l.onDisk(t); len(got) != 1 {
			t.Errorf("on disk: %q", got)
		}
	})
}

// TestFetch_ManyMessages_OldestFirst come a few messages at a time, the oldest first; other platforms' are
// left alone.
func TestFetch_ManyMessages_OldestFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		l := r.library()
		var want []string
		for i := range 3*maxFetches + 1 {
			ref := fmt.Sprint(i)
			l.how[ref] = takes(time.Second).fetch
			want = append(want, ref)
			r.brings(ref)
		}
		foreign := &msg.Message{ChatJID: "ircs:x", Direction: msg.In, PendingFiles: 1, FilesWanted: true, Attachments: []msg.Attachment{{Ref: "foreign"}}}
		r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(foreign); return err })
		r.fetches(l)
		for n := maxFetches; n <= 3*maxFetches; n += maxFetches {
			synctest.Wait()
			if got := len(l.fetched()); got != n {
				t.Errorf("%d fetched, want %d", got, n)
			}
			pass(time.Second)
		}
		pass(time.Second)
		got := l.fetched()
		slices.SortFunc(got, func(a, b string) int { return slices.Index(want, a) - slices.Index(want, b) })
		if !slices.Equal(got, want) {
			t.Errorf("fetched %q", got)
		}
		if m := r.row(foreign.ID); m.PendingFiles != 1 {
			t.Errorf("another platform's row: %+v", m)
		}
	})
}

func TestFetch_DiskFails_RecordsReason(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		l := r.library()
		id := r.brings("a")
		if err := os.WriteFile(filepath.Join(l.data, "media"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r.fetches(l)
		pass(13 * time.Second)
		if m := r.row(id); m.PendingFiles != 0 || !strings.Contains(m.Attachments[0].Error, "not a directory") {
			t.Errorf("row %+v", m)
		}
	})
}

func TestFetch_WritesFail_DownloadsOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		l := r.library()
		id := r.brings("a")
		r.exec(`CREATE TRIGGER no BEFORE UPDATE OF pending_files ON messages BEGIN SELECT raise(ABORT, 'refused'); END`)
		r.fetches(l)
		pass(time.Minute)
		r.exec(`DROP TRIGGER no`)
		pass(retryDelay)
		r.expectFiles(l, id, msg.Attachment{Path: "media/200001/1-0-a", Name: "a", MIME: "text/plain", Size: 1})
		if got := l.fetched(); len(got) != 1 {
			t.Errorf("fetched %q", got)
		}
	})
}

// A foreign adapter may write such a row.
func TestFetch_PendingRowWithoutFiles_DoesNotBlock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		l := r.library()
		id := r.bringsFiles()
		r.exec(`UPDATE messages SET pending_files = 3, attachments = '{"no":"list"}'`)
		r.fetches(l)
		synctest.Wait()
		r.expectFiles(l, id)
	})
}
