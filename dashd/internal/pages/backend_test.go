package pages_test

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"arizuko/dashd/internal/pages"
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
}

type post struct {
	Text     string `json:"text"`
	Topic    string `json:"topic"`
	ClientID string `json:"client_id"`
}

// backend is the chat of the group "acme/eng" in memory, with the endpoints that a page uses.
type backend struct {
	url     string
	handler http.Handler
	pages   *pages.Pages

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	rows    []row
	clients map[string]int64 // row of each client_id
	typing  []string
	facts   string        // what the overview or the requests show
	posts   []post        // as they came, repeats included
	after   []int64       // where each stream began
	down    bool          // every connection breaks
	deaf    int           // this many streams, the oldest ones, stay open and say nothing
	deny    int           // status that posts are refused with
	out     bool          // the login has ended
	forget  bool          // posts are stored, but their answers get lost
	hold    chan struct{} // posts are answered when it closes
	later   func()        // what happens once a stream is open
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	p, err := pages.New()
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{pages: p, changed: make(chan struct{}), clients: map[string]int64{}}
	mux := http.NewServeMux()
	mux.Handle("/assets/", p.Assets())
	mux.HandleFunc("GET /{$}", b.overview)
	mux.HandleFunc("GET /overview/events", b.fragmentEvents("overview"))
	mux.HandleFunc("GET /approvals", func(w http.ResponseWriter, _ *http.Request) { b.pages.Approvals(w, 200, pages.ApprovalsPage{}) })
	mux.HandleFunc("GET /approvals/events", b.fragmentEvents("approvals"))
	mux.HandleFunc("GET /chat/acme/eng", b.page)
	mux.HandleFunc("GET /chat/acme/eng/messages", b.api(b.messages))
	mux.HandleFunc("GET /chat/acme/eng/topics", b.api(b.topics))
	mux.HandleFunc("POST /chat/acme/eng/messages", b.api(b.post))
	mux.HandleFunc("GET /chat/acme/eng/events", b.api(b.events))
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
	b.pages.Chat(w, pages.ChatPage{Folder: "acme/eng", Name: "Engineering", Assistant: "Ada", LastID: last})
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

func (b *backend) topics(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	type topic struct {
		Topic  string `json:"topic"`
		LastID int64  `json:"last_id"`
		LastAt int64  `json:"last_at"`
	}
	found := []topic{}
	for _, m := range slices.Backward(b.rows) {
		if !slices.ContainsFunc(found, func(t topic) bool { return t.Topic == m.Topic }) {
			found = append(found, topic{m.Topic, m.ID, m.Timestamp})
		}
	}
	answer(w, http.StatusOK, map[string]any{"topics": found})
}

func (b *backend) post(w http.ResponseWriter, r *http.Request) {
	var p post
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil || p.Text == "" || p.ClientID == "" {
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
			id = b.add(row{Direction: "in", Topic: p.Topic, Sender: "web:operator", SenderName: "Operator", Content: p.Text})
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

func (b *backend) events(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		refuse(w, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	var stream int
	b.set(func() {
		b.after = append(b.after, after)
		stream = len(b.after)
		if b.later != nil {
			b.later()
		}
	})
	shown := ""
	for {
		b.mu.Lock()
		changed, down, typing, rows := b.changed, b.down, slices.Clone(b.typing), b.rows
		deaf, out := stream <= b.deaf, b.out
		b.mu.Unlock()
		if down || out {
			panic(http.ErrAbortHandler)
		}
		for ; !deaf && after < int64(len(rows)); after++ {
			fmt.Fprintf(w, "id: %d\nevent: message\ndata: %s\n\n", after+1, encode(rows[after]))
		}
		if state := encode(map[string][]string{"topics": append([]string{}, typing...)}); !deaf && state != shown {
			fmt.Fprintf(w, "event: typing\ndata: %s\n\n", state)
			shown = state
		}
		_ = http.NewResponseController(w).Flush() // the peer is gone: the context says so
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (b *backend) overview(w http.ResponseWriter, _ *http.Request) {
	b.pages.Overview(w, pages.OverviewPage{Fragment: template.HTML(get(b, func() string { return b.facts }))})
}

// fragmentEvents sends what the page shows under the name of an event.
func (b *backend) fragmentEvents(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			b.mu.Lock()
			changed, facts := b.changed, b.facts
			b.mu.Unlock()
			if facts != "" {
				fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, encode(map[string]string{"html": facts}))
			}
			_ = http.NewResponseController(w).Flush() // the peer is gone: the context says so
			select {
			case <-changed:
			case <-r.Context().Done():
				return
			}
		}
	}
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
