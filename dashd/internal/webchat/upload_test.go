package webchat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	picture "image/png"
	"io"
	"io/fs"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// png is the beginning of a picture.
const png = "\x89PNG\x0d\x0a\x1a\x0a" + "the rest"

// formPart is a part of a form: a file if it has a type or a file name.
type formPart struct{ field, name, kind, content string }

func text(field, content string) formPart { return formPart{field: field, content: content} }

func sent(name, content string) formPart {
	return formPart{"file", name, "application/octet-stream", content}
}

// encodeForm makes the body of a request, and its type.
func encodeForm(t testing.TB, parts ...formPart) (body []byte, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="%s"`, p.field)}}
		if p.kind != "" {
			h.Set("Content-Disposition", fmt.Sprintf(`form-data; name="%s"; filename="%s"`, p.field, p.name))
			h.Set("Content-Type", p.kind)
		}
		part, err := w.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(part, p.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), w.FormDataContentType()
}

// upload posts a form to the group main.
func (r *fixture) upload(t testing.TB, parts ...formPart) (status int, answer string) {
	t.Helper()
	body, kind := encodeForm(t, parts...)
	return r.uploadBody(t, bytes.NewReader(body), kind)
}

func (r *fixture) uploadBody(t testing.TB, body io.Reader, kind string) (status int, answer string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", r.base+"/main/messages", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(b)
}

// rows returns the messages of the group main.
func (r *fixture) rows(t testing.TB) (all []*msg.Message) {
	t.Helper()
	all, _, err := rows.WebHistory(t.Context(), r.st.Reader, JID("main"), nil, 1<<62, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// stored returns the paths of all files in the data folder, in order.
func (r *fixture) stored(t testing.TB) (paths []string) {
	t.Helper()
	root := os.DirFS(r.chat.Data)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// wantNothing fails unless there is neither a row nor a file.
func (r *fixture) wantNothing(t testing.TB) {
	t.Helper()
	if rows, files := r.rows(t), r.stored(t); len(rows)+len(files) != 0 {
		t.Errorf("%d rows, files %q", len(rows), files)
	}
}

// wantFiles fails unless the files are those that rows name, with their content.
func (r *fixture) wantFiles(t testing.TB, contents ...string) {
	t.Helper()
	var paths []string
	for _, m := range r.rows(t) {
		for _, a := range m.Attachments {
			b, err := os.ReadFile(filepath.Join(r.chat.Data, a.Path))
			if err != nil || len(paths) >= len(contents) || string(b) != contents[len(paths)] || int64(len(b)) != a.Size {
				t.Errorf("file %+v is %.50q, %v", a, b, err)
			}
			paths = append(paths, a.Path)
		}
	}
	slices.Sort(paths)
	if stored := r.stored(t); len(paths) != len(contents) || !slices.Equal(stored, paths) {
		t.Errorf("files %q, and rows name %q", stored, paths)
	}
}

func TestPost_Files_AreStoredWithTheRow(t *testing.T) {
	r := newFixture(t)
	status, answer := r.upload(t, text("text", "look"), text("topic", "#a"), text("client_id", "c1"),
		formPart{"file", "cat.png", "image/png", png}, formPart{"file", "notes.md", "text/markdown", "# notes"}, sent("empty", ""))
	if status != 202 || strings.TrimSpace(answer) != `{"id":1}` {
		t.Fatalf("%d %s", status, answer)
	}
	m := r.rows(t)[0]
	if m.Content != "look" || m.Topic != "#a" || m.PlatformID != "c:c1" || m.PendingFiles != 0 || m.Sender != "web:operator" || len(m.Attachments) != 3 {
		t.Fatalf("row: %+v", m)
	}
	for i, want := range []msg.Attachment{{Name: "cat.png", MIME: "image/png", Size: int64(len(png))}, {Name: "notes.md", MIME: "text/markdown", Size: 7}, {Name: "empty", MIME: "text/plain"}} {
		got := m.Attachments[i]
		if month := time.Now().UTC().Format("200601"); !strings.HasPrefix(got.Path, "media/"+month+"/up-") || !strings.HasSuffix(got.Path, fmt.Sprintf("-%d-%s", i, want.Name)) {
			t.Errorf("path %s", got.Path)
		}
		if got.Path = ""; got != want {
			t.Errorf("file %d: %+v, want %+v", i, got, want)
		}
	}
	r.wantFiles(t, png, "# notes", "")
	if status, answer := r.upload(t, sent("alone.txt", "x")); status != 202 {
		t.Errorf("without a text: %d %s", status, answer)
	}
	if m := r.rows(t); len(m) != 2 || m[1].Content != "" {
		t.Errorf("rows: %+v", m)
	}
	if status, answer := r.upload(t, text("text", "a form without files")); status != 202 {
		t.Errorf("without files: %d %s", status, answer)
	}
}

func TestPost_FileNames_LeadNowhereElse(t *testing.T) {
	for name, want := range map[string]string{
		"../../x": "x", "/etc/passwd": "passwd", `C:\\Users\\me\\a b.txt`: "a b.txt", "..": "file", "": "file",
		"cat\u202egpj.exe": "cat_gpj.exe", ".bashrc": "bashrc", "<img src=x onerror=alert(1)>.html": "<img src=x onerror=alert(1)>.html",
		strings.Repeat("n", 300) + ".txt": strings.Repeat("n", 116) + ".txt", "\xff\xfe.bin": "_.bin", "CON": "CON", "x.png/../../../y": "y",
		"media/../../../../../../../../tmp/evil": "evil", "$(touch x);`y`": "$(touch x);`y`",
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			if status, answer := r.upload(t, sent(name, "content")); status != 202 {
				t.Fatalf("%d %s", status, answer)
			}
			a := r.rows(t)[0].Attachments[0]
			if a.Name != want {
				t.Errorf("name %q, want %q", a.Name, want)
			}
			if base := filepath.Base(a.Path); len(base) > 150 || strings.ContainsAny(base, " $;`<>\\\x00") || filepath.Dir(filepath.Dir(a.Path)) != "media" {
				t.Errorf("path %q", a.Path)
			}
			r.wantFiles(t, "content")
		})
	}
}

// What was sent up comes down as a download, unless it is a picture.
func TestFile_Uploaded_CannotRun(t *testing.T) {
	html := "<html><script>alert(1)</script>"
	for _, tt := range []struct{ name, stated, content, kind, mime string }{
		{"a.png", "image/png", png, "image/png", "image/png"},
		{"a.txt", "text/plain", png, "image/png", "image/png"},
		{"page.html", "text/html", html, "application/octet-stream", "text/html"},
		{"page.png", "image/png", html, "application/octet-stream", "text/html"},
		{"a.svg", "image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "application/octet-stream", "image/svg+xml"},
		{"a.pdf", "application/pdf", "%PDF-1.7", "application/octet-stream", "application/pdf"},
		{"a.js", "text/javascript; charset=x", "alert(1)", "application/octet-stream", "text/javascript"},
		{"a.bin", "image/png\r\nX: y", "x", "application/octet-stream", "image/png"},
		{"a", strings.Repeat("a", 200) + "/b", "x", "application/octet-stream", "text/plain"},
		{"photo.heic", "image/heic", "heic", "application/octet-stream", "image/heic"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newFixture(t)
			stated, _, broken := strings.Cut(tt.stated, "\r\n")
			if broken {
				tt.mime = "text/plain"
			}
			if status, answer := r.upload(t, formPart{"file", tt.name, stated, tt.content}); status != 202 {
				t.Fatalf("%d %s", status, answer)
			}
			if got := r.rows(t)[0].Attachments[0].MIME; got != tt.mime {
				t.Errorf("stored as %q, want %q", got, tt.mime)
			}
			res, err := http.Get(r.base + "/main/file?message=1&n=1")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got, _ := io.ReadAll(res.Body)
			how := res.Header.Get("Content-Disposition")
			if string(got) != tt.content || res.Header.Get("Content-Type") != tt.kind || strings.HasPrefix(how, "inline") != (tt.kind == "image/png") ||
				!strings.Contains(res.Header.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("%q %v", got, res.Header)
			}
		})
	}
}

func TestPost_BadForms_LeaveNothing(t *testing.T) {
	many := slices.Repeat([]formPart{sent("a", "x")}, MaxFiles+1)
	for name, tt := range map[string]struct {
		parts  []formPart
		status int
		says   string
	}{
		"nothing":            {nil, 400, "text: is empty"},
		"an empty text":      {[]formPart{text("text", " ")}, 400, "text: is empty"},
		"too large":          {[]formPart{sent("small", "x"), sent("big.bin", strings.Repeat("x", 1<<20+1))}, 413, `\"big.bin\" is larger than 1 MiB, the limit for a file (MEDIA_MAX)`},
		"too many":           {many, 400, "at most 10 files"},
		"a name with NUL":    {[]formPart{sent("a\x00b", "x")}, 400, "malformed"},
		"unknown field":      {[]formPart{sent("a", "x"), text("sender", "web:other")}, 400, "unknown field"},
		"a field twice":      {[]formPart{text("text", "a"), sent("a", "x"), text("text", "b")}, 400, "there twice"},
		"bad topic":          {[]formPart{text("topic", "a b"), sent("a", "x")}, 400, "is none: write # and a name"},
		"bad topic at last":  {[]formPart{sent("a", "x"), text("topic", "a b")}, 400, "is none: write # and a name"},
		"bad client_id":      {[]formPart{text("client_id", "a\x00"), sent("a", "x")}, 400, "client_id: must be"},
		"a text too long":    {[]formPart{sent("a", "x"), text("text", strings.Repeat("x", maxText+1))}, 400, "text: has more"},
		"all much too large": {[]formPart{sent("big.bin", strings.Repeat("x", 12<<20))}, 413, `\"big.bin\" is larger than 1 MiB`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			if status, answer := r.upload(t, tt.parts...); status != tt.status || !strings.Contains(answer, tt.says) {
				t.Errorf("%d %s", status, answer)
			}
			r.wantNothing(t)
		})
	}
	for name, body := range map[string]string{"no boundary": "x", "cut off": "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nhalf of", "no part": "--b--", "": ""} {
		r := newFixture(t)
		if status, answer := r.uploadBody(t, strings.NewReader(body), "multipart/form-data; boundary=b"); status != 400 {
			t.Errorf("%s: %d %s", name, status, answer)
		}
		r.wantNothing(t)
	}
}

func TestPost_Limits_Refuse(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*adapter.Options)
		status int
	}{
		"MEDIA_DAILY": {func(o *adapter.Options) { o.MediaDaily = 1500 }, 409},
		"MEDIA_QUOTA": {func(o *adapter.Options) { o.MediaQuota = 1500 }, 503},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, tt.change)
			if status, answer := r.upload(t, sent("a", strings.Repeat("x", 800))); status != 202 {
				t.Fatalf("%d %s", status, answer)
			}
			for range 2 {
				if status, answer := r.upload(t, sent("b", strings.Repeat("x", 800))); status != tt.status || !strings.Contains(answer, name) {
					t.Errorf("%d %s", status, answer)
				}
			}
			if status, answer := r.upload(t, sent("c", "fits")); status != 202 {
				t.Errorf("%d %s", status, answer)
			}
			r.wantFiles(t, strings.Repeat("x", 800), "fits")
		})
	}
}

func TestPost_Repeated_IsOneRowWithOneCopy(t *testing.T) {
	r := newFixture(t)
	first := []formPart{text("client_id", "c1"), text("text", "look"), sent("a", "one"), sent("b", "two")}
	last := []formPart{sent("a", "one"), sent("b", "two"), text("client_id", "c1"), text("text", "look")}
	for range 2 {
		for _, parts := range [][]formPart{first, last} {
			if status, answer := r.upload(t, parts...); status != 202 || strings.TrimSpace(answer) != `{"id":1}` {
				t.Errorf("%d %s", status, answer)
			}
		}
	}
	if id := r.post(t, map[string]string{"text": "look", "client_id": "c1"}); id != 1 {
		t.Errorf("the same without files is row %d", id)
	}
	var together sync.WaitGroup
	for range 8 {
		together.Go(func() { r.upload(t, text("client_id", "c2"), sent("a", "three")) })
	}
	together.Wait()
	r.wantFiles(t, "one", "two", "three")
}

func TestPost_DatabaseRefuses_LeavesNothing(t *testing.T) {
	r := newFixture(t)
	r.sql(t, `CREATE TRIGGER refuse BEFORE INSERT ON messages BEGIN SELECT raise(ABORT, 'no'); END`)
	if status, answer := r.upload(t, sent("a", "x")); status != 503 || !strings.Contains(answer, "send it again") {
		t.Errorf("%d %s", status, answer)
	}
	r.wantNothing(t)
}

// A file in place of a folder is an error of the disk as any other.
func TestPost_DiskFails_LeavesNothing(t *testing.T) {
	r := newFixture(t)
	if err := os.WriteFile(filepath.Join(r.chat.Data, "media"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, answer := r.upload(t, sent("a", "x")); status != 500 || strings.Contains(answer, r.chat.Data) {
		t.Errorf("%d %s", status, answer)
	}
	if rows := r.rows(t); len(rows) != 0 {
		t.Errorf("%d rows", len(rows))
	}
}

// A link in place of a folder leads nowhere: the data folder's media/<month> may be another's.
func TestPost_LinkOutOfTheDataFolder_IsNotFollowed(t *testing.T) {
	r, outside := newFixture(t), t.TempDir()
	media := filepath.Join(r.chat.Data, "media")
	if err := os.Mkdir(media, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(media, time.Now().UTC().Format("200601"))); err != nil {
		t.Fatal(err)
	}
	if status, answer := r.upload(t, sent("a", "x")); status != 500 {
		t.Errorf("%d %s", status, answer)
	}
	if all, err := os.ReadDir(outside); len(all) != 0 || err != nil {
		t.Errorf("written outside: %v, %v", all, err)
	}
	if rows := r.rows(t); len(rows) != 0 {
		t.Errorf("%d rows", len(rows))
	}
}

// broken fails a read, which makes a client close its connection.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestPost_ConnectionBreaks_LeavesNothing(t *testing.T) {
	r := newFixture(t)
	body, kind := encodeForm(t, text("client_id", "c1"), sent("a", strings.Repeat("a", 1000)), sent("b", strings.Repeat("b", 200_000)))
	server := httptest.NewServer(routes(r.chat, slog.New(slog.DiscardHandler), func() string { return r.config }))
	for _, end := range []int{1, 100, 300, 2000, len(body) / 2, len(body) - 1} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/main/messages", io.MultiReader(bytes.NewReader(body[:end]), broken{}))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = int64(len(body))
		req.Header.Set("Content-Type", kind)
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			t.Errorf("cut off at %d: %s", end, res.Status)
		}
	}
	server.Close() // after the last request, which clients have not waited for
	r.wantNothing(t)
	if status, answer := r.uploadBody(t, bytes.NewReader(body), kind); status != 202 {
		t.Errorf("the next one: %d %s", status, answer)
	}
}

func TestPost_Files_AreInTheHistory(t *testing.T) {
	r := newFixture(t)
	r.upload(t, sent("<b>.png", png), sent("a.txt", "x"))
	page := get[struct {
		Messages []struct{ Files json.RawMessage }
	}](t, r, "/main/messages")
	want := `[{"name":"\u003cb\u003e.png","mime":"image/png","size":16,"url":"/chat/main/file?message=1\u0026n=1","image":true},` +
		`{"name":"a.txt","mime":"text/plain","size":1,"url":"/chat/main/file?message=1\u0026n=2"}]`
	if got := string(page.Messages[0].Files); got != want {
		t.Errorf("%s", got)
	}
}

func TestHistory_Pictures_HaveTheirSize(t *testing.T) {
	r := newFixture(t)
	var encoded bytes.Buffer
	if err := picture.Encode(&encoded, image.NewGray(image.Rect(0, 0, 640, 480))); err != nil {
		t.Fatal(err)
	}
	r.upload(t, sent("a.png", encoded.String()), sent("cut.png", png))
	page := get[struct{ Messages []message }](t, r, "/main/messages")
	if files := page.Messages[0].Files; files[0].Width != 640 || files[0].Height != 480 || files[1].Width != 0 {
		t.Errorf("%+v", files)
	}
}
