// Package live keeps pages up to date: a hub that is notified whenever rows may have changed, and
// event streams that then read what is new.
package live

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
)

const (
	// pingEvery lets a page notice a dead connection, and keeps proxies from closing an idle one.
	pingEvery = 15 * time.Second
	// writeTimeout is how long a browser may leave an event unread: a closed laptop does not
	// answer, and its stream would stay open for ever.
	writeTimeout = 10 * time.Second
	// maxStreams bounds the memory that open pages take.
	maxStreams = 500
)

// Hub notifies the event streams. It is safe for concurrent use.
type Hub struct {
	mu      sync.Mutex
	streams map[chan struct{}]struct{}
	closed  chan struct{}
	valid   func(*http.Request) bool
	log     *slog.Logger
}

// NewHub makes a hub. valid reports whether the login of a request that opened a stream is still
// valid; streams check it with each ping.
func NewHub(valid func(*http.Request) bool, log *slog.Logger) *Hub {
	return &Hub{streams: map[chan struct{}]struct{}{}, closed: make(chan struct{}), valid: valid, log: log}
}

// Notify makes every stream read what is new.
func (h *Hub) Notify() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for notified := range h.streams {
		select {
		case notified <- struct{}{}:
		default:
		}
	}
}

// Close ends all streams, and those to come. It may be called once.
func (h *Hub) Close() { close(h.closed) }

func (h *Hub) subscribe() (chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= maxStreams {
		return nil, apierr.New(apierr.Unavailable, "%d pages are open already", maxStreams)
	}
	notified := make(chan struct{}, 1)
	h.streams[notified] = struct{}{}
	return notified, nil
}

func (h *Hub) unsubscribe(notified chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, notified)
}

// Serve answers with an event stream. update is called at once and after each Notify, and writes what
// is new; its first error ends the stream. Browsers reconnect by themselves.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, update func(*Stream) error) {
	notified, err := h.subscribe()
	if err != nil {
		httpx.Error(w, err)
		return
	}
	defer h.unsubscribe(notified)
	h.log.Debug("event stream opened", "path", r.URL.Path)
	defer h.log.Debug("event stream closed", "path", r.URL.Path)

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("Connection", "close") // the last deadline would break the answer to another request
	s := &Stream{w: w, control: http.NewResponseController(w)}
	defer func() { _ = s.extend() }() // for the end of the stream
	if s.write("retry: 1000\n\n") != nil {
		return
	}
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for update(s) == nil {
		select {
		case <-notified:
		case <-ping.C:
			if !h.valid(r) || s.Event("ping", 0, struct{}{}) != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-h.closed:
			return
		}
	}
}

// Stream is one open page.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// Event sends an event with data as JSON. A page that reconnects continues after the last id above 0.
func (s *Stream) Event(name string, id int64, data any) error {
	line, err := json.Marshal(data) // on one line: JSON escapes line ends
	if err != nil {
		return err
	}
	event := "event: " + name + "\n"
	if id > 0 {
		event += "id: " + strconv.FormatInt(id, 10) + "\n"
	}
	return s.write(event + "data: " + string(line) + "\n\n")
}

func (s *Stream) write(text string) error {
	if err := s.extend(); err != nil {
		return err
	}
	if _, err := fmt.Fprint(s.w, text); err != nil {
		return err
	}
	return s.control.Flush()
}

// extend gives the browser time to read the next write.
func (s *Stream) extend() error {
	return s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
}
