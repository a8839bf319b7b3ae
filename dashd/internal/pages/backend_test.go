package pages_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"image"
	"image/png"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/httpx"
)

// row is a message as the endpoints of the chat send it.
type row struct {
	ID         int64  `json:"id"`
	Direction  string `json:"direction"`
	Topic      string `json:"topic"`
	Sender     string `json:"sender"`
	SenderName string `json:"sender_name"`
	Content    string `json:"content"`
	HTML       string `json:"html,omitempty"`
	Timestamp  int64  `json:"timestamp"`
	TurnID     *int64 `json:"turn_id"`
	Source     string `json:"source,omitempty"`
	Deleted    bool   `json:"deleted,omitempty"`
	Undone     bool   `json:"undone,omitempty"`
	UndoMS     int64  `json:"undo_ms,omitempty"`
	Change     int64  `json:"change,omitempty"`
	Files      []file `json:"files,omitempty"`
	MovedTo    string `json:"moved_to,omitempty"`
	MovedFrom  int64  `json:"moved_from,omitempty"`
}

// file is a file of a message. content is what a page has sent.
type file struct {
	Name    string `json:"name"`
	MIME    string `json:"mime"`
	Size    int64  `json:"size"`
	URL     string `json:"url,omitempty"`
	Image   bool   `json:"image,omitempty"`
	Width   int    `json:"width,omitempty"`
	Height  int    `json:"height,omitempty"`
	Error   string `json:"error,omitempty"`
	content string
}

// work is the work of an agent on a turn.
type work struct {
	TurnID    int64  `json:"turn_id"`
	Topic     string `json:"topic"`
	State     string `json:"state"`
	HTML      string `json:"html"`
	Tools     []tool `json:"tools"`
	Plan      []step `json:"plan"`
	RunningMS int64  `json:"running_ms"`
	UpdatedAt int64  `json:"updated_at"`
}

type tool struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"`
}

type step struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

type post struct {
	Text     string `json:"text"`
	Topic    string `json:"topic"`
	ClientID string `json:"client_id"`
	files    []file
}

const operator = "web:operator"

// backend is the chat of the group "acme/eng" in memory, with the endpoints that a page uses.
type backend struct {
	url     string
	handler http.Handler
	pages   *pages.Pages

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	rows    []row
	name    string           // of the group, "" for the usual one
	clients map[string]int64 // row of each client_id
	typing  []string
	waits   map[string]rows.WebWait // of topics
	stopped bool                    // gated does not run
	work    []work                  // what agents say of their work
	shows   string                  // how much of it the chat shows
	undone  []int64                 // turns that were to be taken back
	undoes  bool                    // such a turn is taken back at once
	refusal string                  // what else gated answers in the chat, as HTML
	edited  map[string]rows.WebTopic
	others  int64         // the newest row of the chat of acme/ops
	facts   string        // what the page at / shows
	posts   []post        // as they came, repeats included
	fetched []int64       // after which row pages asked for what is new
	looks   int           // requests for work
	fetches int           // requests of open pages for operators
	streams int           // that were opened
	open    int           // streams that are open
	worker  string        // address of the worker that streams name
	login   string        // of streams
	down    bool          // every connection breaks
	cuts    int           // how often all streams were cut
	deaf    int           // this many streams, the oldest ones, stay open and say nothing
	mute    bool          // streams that are opened say nothing at all
	full    bool          // no stream is opened
	stop    bool          // streams end as those of a server that stops
	broken  bool          // an open page for operators is refused
	fail    func() bool   // whether a request for what is new fails
	deny    int           // status that posts are refused with
	out     bool          // the login has ended
	forget  bool          // posts are stored, but their answers get lost
	hold    chan struct{} // posts are answered when it closes
	stall   chan struct{} // the files of posts are read when it closes
	demo    bool
	late    chan struct{} // /late.png is answered when it closes
	later   func()        // what happens once a stream is open
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	p, err := pages.New()
	if err != nil {
		t.Fatal(err)
	}
	worker, err := p.Asset("worker.js")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{pages: p, changed: make(chan struct{}), clients: map[string]int64{}, worker: worker, login: operator}
	mux := http.NewServeMux()
	mux.Handle("/assets/", p.Assets())
	// The same files under the address of another version.
	current := strings.Split(worker, "/")[2]
	mux.HandleFunc("/assets/next/", func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.Replace(r.URL.Path, "next", current, 1)
		p.Assets().ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /{$}", b.overview)
	mux.HandleFunc("GET /events", b.api(b.events))
	mux.HandleFunc("GET /chat/acme/eng", b.page)
	mux.HandleFunc("GET /late.png", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-b.late:
			_ = png.Encode(w, image.NewGray(image.Rect(0, 0, 200, 250))) // fails only once the client is gone
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("GET /chat/acme/eng/messages", b.api(b.messages))
	mux.HandleFunc("GET /chat/acme/eng/search", b.api(b.search))
	mux.HandleFunc("GET /chat/acme/eng/topics", b.api(b.topics))
	mux.HandleFunc("POST /chat/acme/eng/topics", b.api(b.editTopic))
	mux.HandleFunc("GET /chat/acme/eng/progress", b.api(b.progress))
	mux.HandleFunc("POST /chat/acme/eng/undo", b.api(b.takeBack))
	mux.HandleFunc("POST /chat/acme/eng/messages", b.api(b.post))
	b.handler = mux
	server := httptest.NewServer(pages.Secure(mux))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	b.url = server.URL
	return b
}

// set changes the backend and notifies the streams.
func (b *backend) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	close(b.changed)
	b.changed = make(chan struct{})
}

func get[T any](b *backend, read func() T) T {
	b.mu.Lock()
	defer b.mu.Unlock()
	return read()
}

// say stores an answer of the agent.
func (b *backend) say(topic, html string) {
	b.set(func() {
		b.add(row{Direction: "out", Topic: topic, Sender: "agent:acme/eng", SenderName: "Ada", Content: html, HTML: html})
	})
}

func (b *backend) posted() int { return get(b, func() int { return len(b.posts) }) }

func (b *backend) stored() int { return get(b, func() int { return len(b.rows) }) }

func (b *backend) add(r row) int64 {
	r.ID = int64(len(b.rows) + 1)
	if r.Timestamp == 0 {
		r.Timestamp = time.Now().UnixMilli()
	}
	b.rows = append(b.rows, r)
	return r.ID
}

func (b *backend) page(w http.ResponseWriter, _ *http.Request) {
	last := get(b, func() int64 { return int64(len(b.rows)) })
	b.pages.Chat(w, pages.ChatPage{Folder: "acme/eng", Name: cmp.Or(b.name, "Engineering"), Assistant: "Ada", LastID: last, Demo: b.demo, MaxFile: 1 << 20, MaxFiles: 10, Login: operator,
		Chats: []rows.WebChat{{Folder: "acme/eng", Name: "Engineering", LastID: last}, {Folder: "acme/ops", Name: "Operations", LastID: 5}, {Folder: "acme/new"}}})
}

// search finds messages that have a text, the newest first.
func (b *backend) search(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := []map[string]any{}
	for _, m := range slices.Backward(b.rows) {
		if text := r.URL.Query().Get("text"); strings.Contains(strings.ToLower(m.Content), strings.ToLower(text)) {
			found = append(found, map[string]any{"id": m.ID, "topic": m.Topic, "sender_name": m.SenderName, "content": m.Content, "timestamp": m.Timestamp})
		}
	}
	answer(w, http.StatusOK, map[string]any{"messages": found, "more": false})
}

func (b *backend) api(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		down, out := get(b, func() bool { return b.down }), get(b, func() bool { return b.out })
		switch {
		case down:
			panic(http.ErrAbortHandler) // closes the connection
		case out:
			refuse(w, http.StatusUnauthorized)
		default:
			next(w, r)
		}
	}
}

func refuse(w http.ResponseWriter, status int) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"kind":"refused","message":"refused with %d"}}`, status)
}

func (b *backend) messages(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := r.URL.Query()
	if q.Has("after") {
		b.newRows(w, q)
		return
	}
	before, limit := int64(1<<62), 50
	if n, err := strconv.ParseInt(q.Get("before"), 10, 64); err == nil {
		before = n
	}
	if n, err := strconv.Atoi(q.Get("limit")); err == nil {
		limit = n
	}
	found := []row{}
	for _, m := range b.rows {
		if m.ID < before && (!q.Has("topic") || m.Topic == q.Get("topic")) {
			found = append(found, m)
		}
	}
	cut := max(0, len(found)-limit)
	answer(w, http.StatusOK, map[string]any{"messages": found[cut:], "more": cut > 0})
}

func (b *backend) progress(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looks++
	turns := []work{}
	for _, each := range b.work {
		each.Tools, each.Plan = append([]tool{}, each.Tools...), append([]step{}, each.Plan...)
		turns = append(turns, each)
	}
	answer(w, http.StatusOK, map[string]any{"shows": cmp.Or(b.shows, "live"), "turns": turns})
}

func (b *backend) takeBack(w http.ResponseWriter, r *http.Request) {
	var pressed struct {
		TurnID int64 `json:"turn_id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&pressed); err != nil {
		refuse(w, http.StatusBadRequest)
		return
	}
	b.set(func() {
		b.undone = append(b.undone, pressed.TurnID)
		if b.refusal != "" {
			b.add(row{Direction: "out", SenderName: "arizuko", Source: "notice", HTML: b.refusal})
		}
		for i := range b.rows {
			b.rows[i].Undone = b.rows[i].Undone || b.undoes && b.rows[i].Direction == "in" && b.rows[i].TurnID != nil && *b.rows[i].TurnID == pressed.TurnID
		}
	})
	if deny := get(b, func() int { return b.deny }); deny != 0 {
		refuse(w, deny)
		return
	}
	answer(w, http.StatusAccepted, map[string]int64{"id": 1})
}

func (b *backend) topics(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := []rows.WebTopic{}
	for _, m := range slices.Backward(b.rows) {
		if !slices.ContainsFunc(found, func(t rows.WebTopic) bool { return t.Topic == m.Topic }) {
			t := rows.WebTopic{Topic: m.Topic, LastID: m.ID, LastAt: m.Timestamp}
			if edited := b.edited[t.Topic]; edited.Topic == t.Topic {
				t.Title, t.Archived = edited.Title, edited.Archived
			}
			found = append(found, t)
		}
	}
	answer(w, http.StatusOK, map[string]any{"topics": found})
}

func (b *backend) editTopic(w http.ResponseWriter, r *http.Request) {
	t, err := httpx.Decode[rows.WebTopic](r)
	if err != nil {
		httpx.Error(w, err)
		return
	}
	b.set(func() {
		if b.edited == nil {
			b.edited = map[string]rows.WebTopic{}
		}
		b.edited[t.Topic] = t
	})
	answer(w, http.StatusOK, map[string]string{"title": t.Title})
}

func (b *backend) post(w http.ResponseWriter, r *http.Request) {
	p, err := b.readPost(r)
	if err != nil || p.Text == "" && len(p.files) == 0 || p.ClientID == "" {
		refuse(w, http.StatusBadRequest)
		return
	}
	hold := get(b, func() chan struct{} { return b.hold })
	var id int64
	var deny int
	var forget bool
	b.set(func() {
		b.posts = append(b.posts, p)
		if deny, forget = b.deny, b.forget; deny != 0 {
			return
		}
		if id = b.clients[p.ClientID]; id == 0 {
			id = b.add(row{Direction: "in", Topic: p.Topic, Sender: "web:operator", SenderName: "Operator", Content: p.Text, Files: p.files})
			b.clients[p.ClientID] = id
		}
	})
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}
	switch {
	case forget:
		panic(http.ErrAbortHandler)
	case deny != 0:
		refuse(w, deny)
	default:
		answer(w, http.StatusAccepted, map[string]int64{"id": id})
	}
}

// readPost reads a message, as JSON or as a form with files.
func (b *backend) readPost(r *http.Request) (p post, err error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return p, json.NewDecoder(r.Body).Decode(&p)
	}
	stall := get(b, func() chan struct{} { return b.stall })
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		if part.FormName() == "file" && stall != nil {
			select {
			case <-stall:
			case <-r.Context().Done():
			}
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return p, err
		}
		switch part.FormName() {
		case "text":
			p.Text = string(content)
		case "topic":
			p.Topic = string(content)
		case "client_id":
			p.ClientID = string(content)
		case "file":
			p.files = append(p.files, file{Name: part.FileName(), Size: int64(len(content)), URL: "/file", content: string(content)})
		}
	}
}

// newRows answers with at most two rows, so that pages have to ask again.
func (b *backend) newRows(w http.ResponseWriter, q url.Values) {
	after, err := strconv.ParseInt(q.Get("after"), 10, 64)
	if err == nil && after > int64(len(b.rows)) {
		refuse(w, http.StatusConflict)
		return
	}
	if err != nil || after < 0 || q.Has("topic") || q.Has("before") {
		refuse(w, http.StatusBadRequest)
		return
	}
	b.fetched = append(b.fetched, after)
	if b.fail != nil && b.fail() {
		refuse(w, http.StatusInternalServerError)
		return
	}
	found := append([]row{}, b.rows[min(int(after), len(b.rows)):]...)
	more := len(found) > 2
	found = found[:min(2, len(found))]
	answer(w, http.StatusOK, map[string]any{"messages": found, "next": after + int64(len(found)), "more": more})
}

func (b *backend) events(w http.ResponseWriter, r *http.Request) {
	if get(b, func() bool { return b.full }) {
		tooManyStreams(w)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	var stream, cuts int
	b.set(func() {
		b.streams++
		b.open++
		stream, cuts = b.streams, b.cuts
		if b.later != nil {
			b.later()
		}
	})
	defer b.set(func() { b.open-- })
	send := func(name string, data any) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, encode(data)) }
	if get(b, func() bool { return b.mute }) {
		_ = http.NewResponseController(w).Flush() // the peer is gone: the context says so
		<-r.Context().Done()
		return
	}
	send("hello", get(b, func() map[string]string { return map[string]string{"worker": b.worker, "login": b.login} }))
	shown, shownWork := "no state", "no state"
	for {
		b.mu.Lock()
		changed, down, typing, last := b.changed, b.down, slices.Clone(b.typing), len(b.rows)
		running := map[int64]int64{}
		for _, w := range b.work {
			running[w.TurnID] = w.UpdatedAt
		}
		deaf, out, stop, cut := stream <= b.deaf, b.out, b.stop, cuts != b.cuts
		b.mu.Unlock()
		if down || out || cut {
			panic(http.ErrAbortHandler)
		}
		if !deaf {
			send("changed", map[string]any{"chats": map[string]int64{"acme/eng": int64(last), "acme/ops": get(b, func() int64 { return b.others })}})
		}
		typed := map[string]any{"chats": map[string][]string{"acme/eng": append([]string{}, typing...)}, "stopped": get(b, func() bool { return b.stopped }),
			"waits": get(b, func() any { return map[string]any{"acme/eng": maps.Clone(b.waits)} })}
		if state := encode(typed); !deaf && state != shown {
			send("typing", typed)
			shown = state
		}
		if state := encode(running); !deaf && state != shownWork {
			send("progress", map[string]any{"chats": map[string]any{"acme/eng": running}})
			shownWork = state
		}
		if stop {
			send("stopping", struct{}{})
			return
		}
		_ = http.NewResponseController(w).Flush() // the peer is gone: the context says so
		if !awaitChange(r.Context(), changed, func() { b.ping(w, stream) }) {
			return
		}
	}
}

// pingInterval is that of the server: a page takes a stream for dead that is silent for 11 s.
const pingInterval = 5 * time.Second

// ping says that a stream is alive, unless it says nothing.
func (b *backend) ping(w http.ResponseWriter, stream int) {
	if !get(b, func() bool { return stream <= b.deaf }) {
		fmt.Fprint(w, "event: ping\ndata: {}\n\n")
		_ = http.NewResponseController(w).Flush() // the peer is gone: the context says so
	}
}

func tooManyStreams(w http.ResponseWriter) {
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprint(w, `{"error":{"kind":"unavailable","message":"too many pages are open (500): close some"}}`)
}

// awaitChange waits until changed is closed, and calls ping now and then. It returns false if ctx ends first.
func awaitChange(ctx context.Context, changed <-chan struct{}, ping func()) bool {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-changed:
			return true
		case <-ticker.C:
			ping()
		case <-ctx.Done():
			return false
		}
	}
}

// overview is a page for operators.
func (b *backend) overview(w http.ResponseWriter, r *http.Request) {
	facts := get(b, func() string { return b.facts })
	tag := fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256([]byte(facts))))
	if r.Header.Get("Accept") != "application/json" {
		b.pages.View(w, 200, pages.View{Title: "Overview", Section: "/", Tag: tag, Login: operator, Fragment: template.HTML(facts)})
		return
	}
	b.api(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.fetches++
		broken := b.broken
		b.mu.Unlock()
		if broken {
			refuse(w, http.StatusNotFound)
			return
		}
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", tag)
		answer(w, http.StatusOK, map[string]string{"html": facts})
	})(w, r)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprint(w, encode(v))
}

func encode(v any) string {
	b, _ := json.Marshal(v) // plain structs: cannot fail
	return string(b)
}
