package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"arizuko/deploy/stress/wire"
)

const (
	// askMost is how long the world lets the adapter wait for something to happen.
	askMost = time.Second
	// pageMost is how much it tells at once.
	pageMost = 20
)

// world is a chat platform that remembers everything: what people did, how far the adapter has
// confirmed it, and what was sent. It is safe for concurrent use.
type world struct {
	mu        sync.Mutex
	updates   []wire.Update
	confirmed int64
	sends     []wire.Send
	happened  chan struct{} // closed and replaced when something does
}

func newWorld() *world { return &world{happened: make(chan struct{})} }

// do adds something that somebody did, and returns its id.
func (w *world) do(u wire.Update) (id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u.ID = int64(len(w.updates)) + 1
	w.updates = append(w.updates, u)
	close(w.happened)
	w.happened = make(chan struct{})
	return u.ID
}

// quiet says whether the adapter has confirmed everything.
func (w *world) quiet() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.confirmed == int64(len(w.updates))
}

// sent is what arrived so far, in that order.
func (w *world) sent() []wire.Send {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sends[:len(w.sends):len(w.sends)]
}

// handler is the platform's interface.
func (w *world) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /updates", w.serveUpdates)
	mux.HandleFunc("POST /send", w.serveSend)
	return mux
}

func (w *world) serveUpdates(rw http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if err != nil || after < 0 {
		http.Error(rw, "after is no number", http.StatusBadRequest)
		return
	}
	page, happened := w.behind(after)
	if len(page) == 0 {
		timer := time.NewTimer(askMost)
		defer timer.Stop()
		select {
		case <-r.Context().Done():
		case <-timer.C:
		case <-happened:
		}
		page, _ = w.behind(after)
	}
	answer(rw, page)
}

// behind confirms what happened up to a point, and returns what comes behind it.
func (w *world) behind(after int64) (page []wire.Update, happened <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	after = min(after, int64(len(w.updates)))
	w.confirmed = max(w.confirmed, after)
	rest := w.updates[w.confirmed:] // what is confirmed is never told again
	return rest[:min(len(rest), pageMost)], w.happened
}

func (w *world) serveSend(rw http.ResponseWriter, r *http.Request) {
	var s wire.Send
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.sends = append(w.sends, s)
	id := len(w.sends)
	w.mu.Unlock()
	answer(rw, wire.SentAs{ID: "bot-" + strconv.Itoa(id)})
}

func answer(rw http.ResponseWriter, what any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(what) // nobody there: they ask again
}
