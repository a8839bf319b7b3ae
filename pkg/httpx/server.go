package httpx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	headerTimeout = 5 * time.Second
	// Longer than the client keeps a connection, so that the server never closes one that the
	// client is about to use.
	serverIdle = 2 * clientIdle
	maxHeader  = 64 << 10
	// answerTimeout is from the end of a request's header to the end of its answer.
	answerTimeout = time.Minute
)

// Server is an HTTP server whose address is bound before it serves.
type Server struct {
	http     *http.Server
	listener net.Listener
	name     string // of the address, "" for the listener's own
}

// Listen binds addr, "host:port" with port 0 for a free one. Until Serve, connections are accepted
// but not answered. A body must arrive within 30 s, and an answer must be read within a minute after
// the request's header; handlers that stream set write deadlines of their own by
// http.ResponseController. At most MaxConns connections are open; at the limit a new one replaces
// the one that has waited longest for its client.
func Listen(addr string, handler http.Handler, log *slog.Logger) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return NewServer(listener, handler, log), nil
}

// NewServer serves on a listener, which it closes with itself.
func NewServer(listener net.Listener, handler http.Handler, log *slog.Logger) *Server {
	return newServer(listener, handler, log, limits{body: bodyTimeout, answer: answerTimeout, conns: MaxConns})
}

// limits of a server.
type limits struct {
	body, answer time.Duration
	conns        func() int
}

func newServer(listener net.Listener, handler http.Handler, log *slog.Logger, limits limits) *Server {
	return &Server{
		listener: &conns{Listener: listener, log: log, max: limits.conns, open: map[*conn]time.Time{}},
		http: &http.Server{
			Handler:           timed(handler, limits.body),
			ReadHeaderTimeout: headerTimeout,
			WriteTimeout:      limits.answer,
			IdleTimeout:       serverIdle,
			MaxHeaderBytes:    maxHeader,
			ConnState:         stateChanged,
			ConnContext:       withConn,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
	}
}

// Addr is the bound address: "host:port", or the socket.
func (s *Server) Addr() string { return cmp.Or(s.name, s.listener.Addr().String()) }

// Serve answers until Close; then it returns nil.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.Addr(), err)
	}
	return nil
}

// Close accepts nothing more and waits for the requests under way; when ctx ends it cuts
// them off and returns ctx's error. It may be called before Serve and more than once.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close()
	}
	_ = s.listener.Close() // Shutdown knows the listener only once Serve ran
	return err
}
