// Package live keeps pages up to date: a hub that is notified whenever rows may have changed, and
// event streams that then read the news.
package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
)

const (
	// pingEvery lets a page notice a dead connection, and keeps proxies from closing an idle one.
	pingEvery = 5 * time.Second
	// writeTimeout is how long a browser may leave an event unread: a closed laptop does not
	// answer, and its stream would stay open for ever.
	writeTimeout = 10 * time.Second
	// maxStreams bounds the memory that open pages take.
	maxStreams = 500
)

// Hub notifies the event streams. It is safe for concurrent use.
type Hub struct {
	mu      sync.Mutex
	streams map[chan struct{}]struct{} // each holds a value while there may be news
	closed  chan struct{}
	valid   func(*http.Request) bool
	log     *slog.Logger
}

// NewHub makes a hub. valid reports whether the login of a request that opened a stream is still
// valid; streams check it with each ping, and after each Notify.
func NewHub(valid func(*http.Request) bool, log *slog.Logger) *Hub {
	return &Hub{streams: map[chan struct{}]struct{}{}, closed: make(chan struct{}), valid: valid, log: log}
}

// Notify makes every stream read the news: rows may have changed, or a login has ended.
func (h *Hub) Notify() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for changed := range h.streams {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}

// Close ends all streams, and those to come. It may be called once.
func (h *Hub) Close() { close(h.closed) }

// Streams is the number of open streams.
func (h *Hub) Streams() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams)
}

func (h *Hub) subscribe() (chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// Half of the connections at most: an open stream is not closed for a new connection.
	if limit := min(maxStreams, httpx.MaxConns()/2); len(h.streams) >= limit {
		return nil, apierr.New(apierr.Unavailable, "too many pages are open (%d): close some", limit)
	}
	changed := make(chan struct{}, 1)
	h.streams[changed] = struct{}{}
	return changed, nil
}

func (h *Hub) unsubscribe(changed chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, changed)
}

// Serve answers with an event stream. update is called at once, after each Notify, though not more often than every so
// long, and with each ping. It writes the news; its first error ends the stream. The last event is stopping, if the hub
// closes. Clients reconnect by themselves.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, every time.Duration, update func(*Stream) error) {
	wake, err := h.subscribe()
	if err != nil {
		httpx.Error(w, err)
		return
	}
	defer h.unsubscribe(wake)
	h.log.Debug("event stream opened", "path", r.URL.Path)
	defer h.log.Debug("event stream closed", "path", r.URL.Path)

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("Connection", "close") // the last deadline would break the answer to another request
	s := &Stream{w: w, control: http.NewResponseController(w)}
	defer func() { _ = s.extend() }() // for the end of the stream
	if s.write([]byte("retry: 1000\n\n")) != nil {
		return
	}
	if err := h.follow(s, r, wake, every, update); err != nil && r.Context().Err() == nil {
		h.log.Warn("event stream failed", "path", r.URL.Path, "err", err)
	}
}

// follow updates a stream until it ends. Its error is that of an update.
func (h *Hub) follow(s *Stream, r *http.Request, wake <-chan struct{}, every time.Duration,
	update func(*Stream) error) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for h.valid(r) {
		if err := update(s); err != nil {
			return err
		}
		changed, pause := (<-chan struct{})(nil), time.After(every)
		for again := false; !again; {
			select {
			case <-changed:
				again = true
			case <-pause:
				changed = wake
			case <-ping.C:
				if !h.valid(r) || s.Event("ping", 0, struct{}{}) != nil {
					return nil
				}
				again = true
			case <-r.Context().Done():
				return nil
			case <-h.closed:
				_ = s.Event("stopping", 0, struct{}{}) // a client that is gone misses nothing
				return nil
			}
		}
	}
	return nil
}

// Stream is one open page.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// Event sends an event with data as JSON. A page that reconnects continues after the last id above 0.
func (s *Stream) Event(name string, id int64, data any) error {
	var event bytes.Buffer
	fmt.Fprintf(&event, "event: %s\n", name)
	if id > 0 {
		fmt.Fprintf(&event, "id: %d\n", id)
	}
	event.WriteString("data: ")
	if err := json.NewEncoder(&event).Encode(data); err != nil { // on one line: JSON escapes line ends
		return err
	}
	event.WriteByte('\n')
	return s.write(event.Bytes())
}

func (s *Stream) write(text []byte) error {
	if err := s.extend(); err != nil {
		return err
	}
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.control.Flush()
}

// extend gives the browser time to read the next write.
func (s *Stream) extend() error {
	return s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
}
