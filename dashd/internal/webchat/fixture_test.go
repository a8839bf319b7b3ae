package webchat

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"arizuko/dashd/internal/live"
	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeout is how long a test waits for an answer before it fails: less than the time between two
// pings, which would hide a missing notification.
const timeout = 10 * time.Second

// fixture is the web chat over HTTP on a database file that others write too. The shell does not
// run: tests deliver outbound rows by themselves, in any order.
type fixture struct {
	chat *Chat
	hub  *live.Hub
	st   *store.Store
	db   *sql.DB // another process
	base string
	// config is that of the group of a request.
	config string
}

// options change the options of the shell.
func newFixture(t *testing.T, options ...func(*adapter.Options)) *fixture {
	t.Helper()
	path := filepath.Join(t.TempDir(), "arizuko.db")
	if err := storetest.Migrate(path); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_busy_timeout=10000&_synchronous=NORMAL")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	r := &fixture{st: storetest.OpenAt(t, path, nil), db: db, hub: live.NewHub(func(*http.Request) bool { return true }, slog.New(slog.DiscardHandler))}
	log := slog.New(slog.DiscardHandler)
	r.chat = newChat(r.st, r.hub, t.TempDir(), log, options...)
	server := httptest.NewServer(routes(r.chat, log, func() string { return r.config }))
	t.Cleanup(server.Close)
	t.Cleanup(r.hub.Close)
	r.base = server.URL
	return r
}

// newChat makes a chat whose shell does not run.
func newChat(st *store.Store, hub *live.Hub, data string, log *slog.Logger, options ...func(*adapter.Options)) *Chat {
	o := adapter.Options{
		Platform: msg.PlatformWeb, Daemon: "dashd", Store: st, Log: log, Metrics: prometheus.NewRegistry(), Now: time.Now,
		Heartbeat: daemon.NewHeartbeat("dashd", "", log, func(context.Context, rows.Daemon) error { return nil }),
		Data:      data, Settings: adapter.Settings{MediaMax: 1 << 20, MediaQuota: 1 << 30, MediaDaily: 1 << 30},
	}
	for _, change := range options {
		change(&o)
	}
	shell := adapter.New(Platform{}, o)
	return &Chat{
		Store: st, Hub: hub, Data: data, Assistant: "Robot", Shell: shell, Files: adapter.NewUploads(shell),
		Sender: func(*http.Request) (string, string) { return "web:operator", "operator" },
	}
}

// routes serves a chat as dashd does, without logins.
func routes(c *Chat, log *slog.Logger, config func() string) http.Handler {
	router := httpx.NewRouter(log, nil)
	of := func(serve func(http.ResponseWriter, *http.Request, *msg.Group) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			err := serve(w, r, &msg.Group{Folder: chi.URLParam(r, "folder"), Name: "The " + chi.URLParam(r, "folder"), Config: json.RawMessage(cmp.Or(config(), "{}"))})
			if err != nil {
				httpx.Error(w, err)
			}
		}
	}
	router.Post("/{folder}/messages", of(c.Post))
	router.Post("/{folder}/votes", of(c.Vote))
	router.Post("/{folder}/answers", of(c.Answer))
	router.Post("/{folder}/undo", of(c.Undo))
	router.Get("/{folder}/messages", of(c.History))
	router.Get("/{folder}/topics", of(c.Topics))
	router.Post("/{folder}/topics", of(c.EditTopic))
	router.Get("/{folder}/events", of(c.Events))
	router.Get("/{folder}/file", of(c.File))
	router.Get("/{folder}/progress", of(c.Progress))
	router.Get("/{folder}/search", of(c.Search))
	return router
}

// ask makes a request and returns the answer's status and body.
func (r *fixture) ask(t testing.TB, method, path, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, strings.TrimSpace(string(answer))
}

// get decodes the answer to a request, which must succeed.
func get[T any](t testing.TB, r *fixture, path string) (v T) {
	t.Helper()
	status, body := r.ask(t, "GET", path, "")
	if err := json.Unmarshal([]byte(body), &v); status != 200 || err != nil {
		t.Fatalf("GET %s: %d %.300s (%v)", path, status, body, err)
	}
	return v
}

// post sends a message to the group main and returns the id of its row.
func (r *fixture) post(t testing.TB, body map[string]string) int64 {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	status, answer := r.ask(t, "POST", "/main/messages", string(encoded))
	var stored struct{ ID int64 }
	if err := json.Unmarshal([]byte(answer), &stored); status != 202 || err != nil || stored.ID == 0 {
		t.Errorf("post %.100s: %d %.300s", encoded, status, answer)
	}
	return stored.ID
}

// row is what another process writes.
type row struct {
	folder, direction, topic, content string
	derived                           int64
	state                             msg.OutState // of outbound rows
}

func (r *fixture) put(t testing.TB, m row) (id int64) {
	t.Helper()
	var state, derived any
	if m.state != "" {
		state = m.state
	}
	if m.derived != 0 {
		derived = m.derived
	}
	res, err := r.db.Exec(`INSERT INTO messages (chat_jid, direction, sender, sender_name, content, topic, timestamp, received_at, source, derived_from, out_state)
		VALUES (?,?,'agent:main','main',?,?,5,6,'agent',?,?)`, "web:"+m.folder, m.direction, m.content, m.topic, derived, state)
	if err == nil {
		id, err = res.LastInsertId()
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (r *fixture) said(t testing.TB, topic, content string) int64 {
	t.Helper()
	return r.put(t, row{folder: "main", direction: "in", topic: topic, content: content})
}

func (r *fixture) answered(t testing.TB, content string, state msg.OutState) int64 {
	t.Helper()
	return r.put(t, row{folder: "main", direction: "out", content: content, state: state})
}

func (r *fixture) settle(t testing.TB, id int64, state msg.OutState) {
	t.Helper()
	r.sql(t, `UPDATE messages SET out_state = ? WHERE id = ?`, state, id)
}

func (r *fixture) sql(t testing.TB, statement string, args ...any) {
	t.Helper()
	if _, err := r.db.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

// shown is a row as the API shows it.
type shown struct {
	ID         int64
	Direction  string
	Topic      string
	Sender     string
	SenderName string `json:"sender_name"`
	Content    string
	HTML       *string
	Timestamp  int64
	TurnID     *int64 `json:"turn_id"`
}

// history is a page of the stored messages.
type history struct {
	Messages []shown
	More     bool
}

func (h history) ids() []int64 {
	ids := []int64{}
	for _, m := range h.Messages {
		ids = append(ids, m.ID)
	}
	return ids
}

// stream is an open event stream.
type stream struct {
	t      testing.TB
	lines  *bufio.Scanner
	cancel context.CancelFunc
	body   io.Closer
}

// event is one event of a stream.
type event struct {
	name string
	id   int64 // 0 for none
	data string
}

// follow opens the event stream of a chat; after is a query, seen a Last-Event-ID, "" for none.
func (r *fixture) follow(t testing.TB, folder, after, seen string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	req, err := http.NewRequestWithContext(ctx, "GET", r.base+"/"+folder+"/events"+after, nil)
	if err != nil {
		t.Fatal(err)
	}
	if seen != "" {
		req.Header.Set("Last-Event-ID", seen)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 {
		t.Fatalf("events: %s", res.Status)
	}
	return &stream{t: t, lines: bufio.NewScanner(res.Body), cancel: cancel, body: res.Body}
}

func (s *stream) close() {
	s.cancel()
	s.body.Close()
}

// next reads an event and skips a lone retry line.
func (s *stream) next() (e event) {
	s.t.Helper()
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "event":
			e.name = value
		case "id":
			e.id, _ = strconv.ParseInt(value, 10, 64)
		case "data":
			e.data = value
		case "":
			if e.name != "" {
				return e
			}
		}
	}
	s.t.Fatalf("the stream ended: %v", s.lines.Err())
	return e
}

// message reads up to the next message.
func (s *stream) message() (m shown) {
	s.t.Helper()
	e := s.next()
	for e.name != "message" {
		e = s.next()
	}
	if err := json.Unmarshal([]byte(e.data), &m); err != nil || m.ID != e.id {
		s.t.Fatalf("event %d is %s (%v)", e.id, e.data, err)
	}
	return m
}

// want reads the next event and compares it.
func (s *stream) want(name, data string) {
	s.t.Helper()
	if e := s.next(); e.name != name || e.data != data || e.id != 0 {
		s.t.Fatalf("event %s %d %s, want %s %s", e.name, e.id, e.data, name, data)
	}
}

func after(id int64) string { return fmt.Sprintf("?after=%d", id) }
