// Package live keeps pages up to date: a hub that is stirred whenever rows may have changed,
// and event streams that look for themselves what is new.
package live

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
)

const (
	// pingEvery lets a page notice a dead connection, and proxies keep a quiet one.
	pingEvery = 15 * time.Second
	// writeTimeout is how long a browser may leave an event unread: a closed laptop does not
	// answer, and its stream would stay for good.
	writeTimeout = 10 * time.Second
	// maxStreams bounds the memory that open pages take.
	maxStreams = 500
)

// Hub stirs the event streams. It is safe for concurrent use.
type Hub struct {
	mu      sync.Mutex
	streams map[chan struct{}]struct{}
	closed  chan struct{}
	valid   func(*http.Request) bool
}

// NewHub makes a hub. valid says whether a request that has opened a stream would still be let
// in; streams ask now and then.
func NewHub(valid func(*http.Request) bool) *Hub {
	return &Hub{streams: map[chan struct{}]struct{}{}, closed: make(chan struct{}), valid: valid}
}

// Stir has every stream look for what is new.
func (h *Hub) Stir() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for stirred := range h.streams {
		select {
		case stirred <- struct{}{}:
		default:
		}
	}
}

// Close ends all streams, and those to come. It may be called once.
func (h *Hub) Close() { close(h.closed) }

func (h *Hub) join() (chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= maxStreams {
		return nil, apierr.New(apierr.Unavailable, "%d pages are open already", maxStreams)
	}
	stirred := make(chan struct{}, 1)
	h.streams[stirred] = struct{}{}
	return stirred, nil
}

func (h *Hub) leave(stirred chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, stirred)
}

// Serve answers with an event stream. look is called at once and each time the hub is stirred,
// and writes what is new; its first error ends the stream. A browser that was cut off comes
// back by itself.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, look func(*Stream) error) {
	stirred, err := h.join()
	if err != nil {
		httpx.Error(w, err)
		return
	}
	defer h.leave(stirred)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("Connection", "close") // the last deadline would break off the answer to another request
	s := &Stream{w: w, control: http.NewResponseController(w)}
	defer func() { _ = s.extend() }() // for the end of the stream
	if s.write("retry: 1000\n\n") != nil {
		return
	}
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for look(s) == nil {
		select {
		case <-stirred:
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

// Event sends an event with data as JSON. An id above 0 is where the page goes on when it
// comes back.
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

// extend gives the browser time to read what is written next.
func (s *Stream) extend() error {
	return s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
}
