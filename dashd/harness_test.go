package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/apierr"
	"arizuko/pkg/config"
	"arizuko/pkg/config/configtest"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store/storetest"
)

func TestMain(m *testing.M) {
	configtest.Isolate(Config{})
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // they mostly wait
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const (
	secret   = "0123456789abcdef-shared"
	password = "open-sesame-8083"
	// timeout is how long a test waits for an answer before it fails: less than the time between two
	// pings, which would hide a missing notification.
	timeout = 10 * time.Second
)

// dataFolder is a migrated data folder with a short path, because socket paths are limited, and
// with a group main.
func dataFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dashd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := storetest.Migrate(filepath.Join(dir, "arizuko.db")); err != nil {
		t.Fatal(err)
	}
	shell(t, dir, `INSERT INTO registered_groups (folder, name, created_at) VALUES ('main', 'Main', 0)`)
	return dir
}

// shell changes the database as another process would.
func shell(t testing.TB, data, query string, args ...any) (id int64) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(data, "arizuko.db")+"?_txlock=immediate&_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	res, err := db.Exec(query, args...)
	if err == nil {
		id, err = res.LastInsertId()
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// queued writes an answer as gated does, into the chat with the group main.
func queued(t testing.TB, data, content string) (id int64) {
	t.Helper()
	return shell(t, data, `INSERT INTO messages (chat_jid, direction, sender, sender_name, content, timestamp, received_at, source, out_state)
		VALUES ('web:main', 'out', 'agent:main', 'main', ?, 5, 5, 'agent', 'queued')`, content)
}

// journal is a log that is read while it is written.
type journal struct {
	mu    sync.Mutex
	text  strings.Builder
	ready chan struct{} // closed when the process logs that it is ready
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if strings.Contains(string(p), "msg=ready") {
		close(j.ready)
	}
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// process is a dashd that runs in this process.
type process struct {
	*dashd
	t     testing.TB
	data  string
	log   *journal
	first string // the address to log in at that it printed
	stop  func() // waits until it has stopped
}

// peer is a server in the place of another daemon: it answers no client without the secret, and signs its answers.
func peer(daemon string, handler http.HandlerFunc) *httptest.Server {
	return httptest.NewServer(httpx.Verify(daemon, func() string { return secret })(handler))
}

// fake stands in for a daemon: it notes each call, and answers as a test sets.
type fake struct {
	*httptest.Server
	mu      sync.Mutex
	calls   []string       // by whom, method, address and body
	answer  any            // to what answers does not have
	answers map[string]any // by address; an error is a refusal
}

func newFake(t testing.TB, daemon string) *fake {
	t.Helper()
	f := &fake{answer: map[string]any{}}
	f.Server = peer(daemon, func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		f.calls = append(f.calls, strings.TrimRight(httpx.By(r)+" "+r.Method+" "+r.URL.String()+" "+string(body), " \n"))
		answer, ok := f.answers[r.URL.String()]
		if !ok {
			answer = f.answer
		}
		if err, refused := answer.(error); refused {
			httpx.Error(w, err)
			return
		}
		httpx.JSON(w, http.StatusOK, answer)
	})
	t.Cleanup(f.Close)
	return f
}

// refuse makes it refuse what is asked.
func (f *fake) refuse(kind apierr.Kind, message string) { f.answer = apierr.New(kind, "%s", message) }

// asked are the calls with a method.
func (f *fake) asked(method string) (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, call := range f.calls {
		if strings.Contains(call, " "+method+" ") {
			all = append(all, call)
		}
	}
	return all
}

// peers are servers in the place of all daemons that dashd calls, as variables of the environment.
func peers(t testing.TB, handler http.HandlerFunc) (environ []string) {
	t.Helper()
	for _, daemon := range []string{"gated", "routd", "onbod"} {
		server := peer(daemon, handler)
		t.Cleanup(server.Close)
		environ = append(environ, strings.ToUpper(daemon)+"_URL="+server.URL)
	}
	return environ
}

// serve starts dashd on a data folder, with further environment. When it stops, its log must not
// have a secret in it.
func serve(t testing.TB, data string, env ...string) *process {
	t.Helper()
	cfg, err := config.Load[Config](append([]string{
		"ARIZUKO_DATA=" + data, "DASHD_ADDR=127.0.0.1:0", "POLL_INTERVAL=10ms", "LOG_LEVEL=debug",
	}, env...))
	if err != nil {
		t.Fatal(err)
	}
	log := &journal{ready: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	d, err := start(ctx, cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	done := make(chan error, 1)
	go func() { done <- d.run(ctx, &printed) }()
	select {
	case <-log.ready:
	case err := <-done:
		t.Fatalf("it ended: %v", err)
	}
	p := &process{dashd: d, t: t, data: data, log: log}
	p.first = strings.TrimSpace(strings.TrimPrefix(printed.String(), "log in: "))
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_, token, _ := strings.Cut(p.first, "token=")
		for _, hidden := range []string{secret, password, token} {
			if hidden != "" && strings.Contains(log.String(), hidden) {
				t.Errorf("%s is in the log:\n%s", hidden, log)
			}
		}
	})
	t.Cleanup(p.stop)
	return p
}

// browser requests pages as a browser does, with cookies.
type browser struct {
	t    testing.TB
	base string
	http http.Client
}

// browser returns one that is not logged in.
func (p *process) browser() *browser {
	jar, _ := cookiejar.New(nil) // without options it cannot fail
	b := &browser{t: p.t, base: "http://" + p.Addr}
	b.http = http.Client{
		Jar: jar, Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return b
}

// operator is a browser that has logged in with the first link.
func (p *process) operator() *browser {
	p.t.Helper()
	b := p.browser()
	if a := b.get(p.first); a.status != http.StatusSeeOther {
		p.t.Fatalf("log in: %d %s", a.status, a.body)
	}
	return b
}

// program returns a client that sends the bearer secret.
func (p *process) program() *browser {
	b := p.browser()
	b.http.Transport = bearer{b.http.Transport}
	return b
}

type bearer struct{ http.RoundTripper }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Accept", "application/json")
	return b.RoundTripper.RoundTrip(r)
}

// answer is the answer to a request.
type answer struct {
	status int
	http.Header
	body string
}

// kind returns the kind of error in an answer, "" if it has none.
func (a answer) kind() string {
	var body struct {
		Error struct{ Kind, Message string }
	}
	if json.Unmarshal([]byte(a.body), &body) != nil || body.Error.Message == "" {
		return ""
	}
	return body.Error.Kind
}

// do sends a request with headers as name: value. Of a URL, such as a link, the path counts.
func (b *browser) do(method, path, body string, headers ...string) answer {
	b.t.Helper()
	res := b.send(method, path, body, headers...)
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(content)}
}

func (b *browser) send(method, path, body string, headers ...string) *http.Response {
	b.t.Helper()
	if link, err := url.Parse(path); err == nil && link.Host != "" {
		path = link.RequestURI()
	}
	req, err := http.NewRequest(method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if req.Header.Set(name, value); name == "Host" {
			req.Host = value
		}
	}
	res, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

func (b *browser) get(path string, headers ...string) answer {
	b.t.Helper()
	return b.do(http.MethodGet, path, "", headers...)
}

// form posts fields as a page's form does.
func (b *browser) form(path string, fields url.Values) answer {
	b.t.Helper()
	return b.do(http.MethodPost, path, fields.Encode(), "Content-Type: application/x-www-form-urlencoded", "Origin: "+b.base)
}

// submit posts a form and follows to the page that says what became of it.
func (b *browser) submit(path string, fields url.Values) answer {
	b.t.Helper()
	a := b.form(path, fields)
	if a.status != http.StatusSeeOther {
		b.t.Fatalf("POST %s: %d, want a redirect\n%.500s", path, a.status, a.body)
	}
	return b.must(http.StatusOK, http.MethodGet, a.Get("Location"), "")
}

// must makes a request and fails the test unless it is answered with status.
func (b *browser) must(status int, method, path, body string, headers ...string) answer {
	b.t.Helper()
	a := b.do(method, path, body, headers...)
	if a.status != status {
		b.t.Fatalf("%s %s %.100s: %d, want %d\n%.500s", method, path, body, a.status, status, a.body)
	}
	return a
}

// events opens an event stream. The function it returns reads the data of the next event of a name,
// "" at the end of the stream.
func (b *browser) events(path string) (next func(name string) string) {
	b.t.Helper()
	res := b.send(http.MethodGet, path, "")
	b.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %s", path, res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return func(name string) string {
		b.t.Helper()
		for lines.Scan() {
			if lines.Text() == "event: "+name {
				for lines.Scan() {
					if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
						return data
					}
				}
			}
		}
		if err := lines.Err(); err != nil {
			b.t.Fatalf("the stream was broken off: %v", err)
		}
		return ""
	}
}
