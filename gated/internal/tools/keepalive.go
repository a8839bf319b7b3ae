package tools

import (
	"maps"
	"net/http"
	"sync"
	"time"
)

// keepAliveInterval is how often an answer that takes long is kept alive: clients and proxies take a connection for
// dead after one to five minutes of silence, and the server after a minute.
const keepAliveInterval = 20 * time.Second

// keepAlive writes white space, which JSON may begin with, while the answer to a POST is not there yet.
func keepAlive(interval time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		a := &awaited{w: w, control: http.NewResponseController(w), header: http.Header{}}
		ticker, done := time.NewTicker(interval), make(chan struct{})
		var writing sync.WaitGroup
		writing.Go(func() {
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
					a.keep()
				case <-done:
					return
				}
			}
		})
		defer writing.Wait()
		defer close(done)
		next.ServeHTTP(a, r)
	})
}

// awaited is an answer that may be kept alive before it is written.
type awaited struct {
	w       http.ResponseWriter
	control *http.ResponseController
	header  http.Header // of the handler, until it is written

	mu       sync.Mutex
	begun    bool // the status is written
	answered bool // by the handler
}

// writeAnswerTimeout is how long the write of a part of an answer may take.
const writeAnswerTimeout = time.Minute

// keep writes white space, unless the handler has begun to answer.
func (a *awaited) keep() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered {
		return
	}
	if !a.begun {
		a.begun = true
		a.w.Header().Set("Content-Type", "application/json")
		a.w.WriteHeader(http.StatusOK)
	}
	_ = a.control.SetWriteDeadline(time.Now().Add(writeAnswerTimeout)) // a test's recorder has none
	// a client that is gone ends the request's context
	_, _ = a.w.Write([]byte("\n"))
	_ = a.control.Flush()
}

// Header implements http.ResponseWriter.
func (a *awaited) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. Once the answer was kept alive, its status stays 200: errors of MCP are
// in the body.
func (a *awaited) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writeHeader(status)
}

func (a *awaited) writeHeader(status int) {
	if a.answered {
		return
	}
	a.answered = true
	if a.begun {
		_ = a.control.SetWriteDeadline(time.Now().Add(writeAnswerTimeout))
		return
	}
	a.begun = true
	maps.Copy(a.w.Header(), a.header)
	a.w.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *awaited) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writeHeader(http.StatusOK)
	return a.w.Write(b)
}

// Flush implements http.Flusher.
func (a *awaited) Flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered {
		_ = a.control.Flush()
	}
}
