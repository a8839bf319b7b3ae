package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"

	"arizuko/pkg/adapter"
)

const (
	// openTimeout bounds the start of a session. Its steps up to Discord's greeting are bounded by
	// adapter.ConnectTimeout; the first event of a session may take longer.
	openTimeout = 30 * time.Second
	// readTimeout bounds the silence of the gateway, which answers a heartbeat every 41 seconds. The
	// library would notice only after five heartbeats without an answer.
	readTimeout = time.Minute
	// identifyInterval is the shortest time between the starts of two sessions that Discord allows.
	identifyInterval = 5 * time.Second
	// maxStarts is how many frames that begin or resume a session a connection may send in identifyInterval:
	// the library answers a refusal with the next one at once, and without a bound a thousand refusals,
	// with which Discord revokes the token, take a minute. One is of an attempt to resume.
	maxStarts = 2
	// maxHeartbeat is longer than any frame with a heartbeat, encrypted, and shorter than those that begin a
	// session, which contain the token. In bytes.
	maxHeartbeat = 128
	// closingDelay is the pause before the library, which closes a connection by itself, is asked again to
	// open one.
	closingDelay = 100 * time.Millisecond
	// helloOp is the kind of the gateway's first frame, and maxGreeting bounds that, in bytes.
	helloOp     = 10
	maxGreeting = 4 << 10
	// maxQueued bounds the events that wait for the database; then the connection waits.
	maxQueued = 1000
)

// Gateway keeps a session of Discord's gateway. The library implements the protocol; Gateway adds
// cancellation by ctx, a timeout for dead connections, a bound of the sessions that begin, and
// a queue of events that outlives a connection. Only the queue and starts are safe for concurrent use.
type Gateway struct {
	token   string
	network adapter.Network
	timeout time.Duration // openTimeout
	events  chan *discordgo.Event
	address string // where sessions begin

	session    *discordgo.Session // nil if there is none to resume
	refused    atomic.Bool        // the last connection sent more than maxStarts
	starts     atomic.Int64       // frames that began or resumed a session
	identified time.Time          // when the last attempt to begin a session ended
	hangUp     context.CancelFunc
}

// NewGateway makes a gateway for a bot's token. It is not connected.
func NewGateway(token string) *Gateway {
	return &Gateway{token: token, timeout: openTimeout, events: make(chan *discordgo.Event, maxQueued),
		hangUp: func() {}}
}

// queue returns the events in order. Those that came before a connection broke stay in it, since
// Discord does not send them again.
func (g *Gateway) queue() <-chan *discordgo.Event { return g.events }

// resumes reports whether open resumes a session, instead of beginning one with READY. One that Discord refused to
// begin is forgotten.
func (g *Gateway) resumes() bool {
	if g.refused.Swap(false) {
		g.session, g.identified = nil, time.Now()
	}
	return g.session != nil
}

// open connects. The channel is closed when the connection breaks and all its events are in the
// queue. ctx, the same in each call, ends the session. Without intents it only resumes one. If Discord refuses, the
// error is a *ClosedError.
func (g *Gateway) open(ctx context.Context, intents discordgo.Intent) (broken <-chan struct{}, err error) {
	if !g.resumes() {
		if intents == 0 { // it has ended since the caller asked
			return nil, errors.New("the session cannot be resumed")
		}
		adapter.Pause(ctx, identifyInterval-time.Since(g.identified))
		if g.session, err = g.begin(ctx, intents); err != nil {
			return nil, err
		}
	}
	defer func() { g.identified = time.Now() }()
	ctx, g.hangUp = context.WithCancel(ctx)
	gone := make(chan struct{})
	g.session.Dialer = g.dialer(ctx, gone)
	g.session.Client = &http.Client{Transport: addressAnswer(g.address)}
	if err = g.openSession(ctx); err == nil {
		return gone, nil
	}
	if errors.Is(err, websocket.ErrBadHandshake) {
		err = g.badHandshake(ctx)
	}
	g.hangUp()
	return nil, g.openError(err)
}

// openSession waits until the library has opened the session, which it may do without limit.
func (g *Gateway) openSession(ctx context.Context) error {
	opened := make(chan error, 1)
	go func(s *discordgo.Session) {
		err := s.Open()
		// it has not noticed yet that its connection has ended
		for errors.Is(err, discordgo.ErrWSAlreadyOpen) && ctx.Err() == nil {
			adapter.Pause(ctx, closingDelay)
			err = s.Open()
		}
		opened <- err
	}(g.session)
	late := time.NewTimer(g.timeout)
	defer late.Stop()
	select {
	case err := <-opened:
		if err != nil && ctx.Err() != nil { // the end of ctx closed its connection
			return ctx.Err()
		}
		return err
	case <-late.C:
		return &ClosedError{Text: "timeout while a session began"}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// openError is the error of a session that was not resumed, or not begun. A session that Discord has
// closed cannot be resumed.
func (g *Gateway) openError(err error) error {
	const minDiscordCode = 4000 // lower codes come from the network
	var frame *websocket.CloseError
	if errors.As(err, &frame) && frame.Code >= minDiscordCode {
		err = &ClosedError{Code: frame.Code, Text: frame.Text}
	}
	if closed := new(ClosedError); errors.As(err, &closed) {
		g.session = nil
		return err
	}
	return fmt.Errorf("gateway %s: %w", g.address, err)
}

// badHandshake is the error of a handshake that was refused. The library does not say how, so it is made
// once more.
func (g *Gateway) badHandshake(ctx context.Context) error {
	ws, err := g.handshake(ctx, g.address)
	if err == nil {
		_ = ws.Close()
		return websocket.ErrBadHandshake
	}
	return err
}

// handshake makes a websocket that ends with ctx.
func (g *Gateway) handshake(ctx context.Context, address string) (*websocket.Conn, error) {
	ws, res, err := g.dialer(ctx, make(chan struct{})).DialContext(ctx, address, nil)
	if err != nil {
		return nil, adapter.HandshakeError("it", res, err)
	}
	return ws, nil
}

// Greeted returns an error unless the server at an address greets as the gateway does. It begins no session.
func (g *Gateway) Greeted(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, adapter.ConnectTimeout)
	defer cancel()
	err := g.greeted(ctx, strings.TrimSuffix(address, "/")+"/?encoding=json&v="+discordgo.APIVersion)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = fmt.Errorf("nothing came for %s", adapter.ConnectTimeout)
	}
	return fmt.Errorf("gateway %s: %w", address, err)
}

func (g *Gateway) greeted(ctx context.Context, address string) error {
	ws, err := g.handshake(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = ws.Close() }()
	ws.SetReadLimit(maxGreeting)
	var frame struct {
		Op int `json:"op"`
	}
	if err := ws.ReadJSON(&frame); err != nil {
		return err
	}
	if frame.Op != helloOp {
		return fmt.Errorf("it greets with op %d in place of %d", frame.Op, helloOp)
	}
	return nil
}

// close disconnects.
func (g *Gateway) close() { g.hangUp() }

// begin makes a session that neither logs nor caches, and does not reconnect by itself.
func (g *Gateway) begin(ctx context.Context, intents discordgo.Intent) (*discordgo.Session, error) {
	s, err := discordgo.New("Bot " + g.token)
	if err != nil {
		return nil, err
	}
	s.LogLevel = -1 // below errors, which Open returns
	s.StateEnabled = false
	s.SyncEvents = true
	s.ShouldReconnectOnError = false
	s.ShouldRetryOnRateLimit, s.MaxRestRetries = false, 0
	s.Identify.Intents = intents
	s.AddHandler(func(_ *discordgo.Session, e *discordgo.Event) {
		select {
		case g.events <- e:
		case <-ctx.Done():
		}
	})
	return s, nil
}

// addressAnswer answers the library's question where the gateway is, the only call that it makes.
type addressAnswer string

// RoundTrip implements http.RoundTripper.
func (a addressAnswer) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := json.Marshal(map[string]string{"url": string(a)})
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(answer)), Request: req}, nil
}

// dialer makes connections that end with ctx, and then close gone.
func (g *Gateway) dialer(ctx context.Context, gone chan struct{}) *websocket.Dialer {
	return &websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, HandshakeTimeout: adapter.ConnectTimeout, TLSClientConfig: g.network.TLS,
		NetDialContext: func(_ context.Context, network, addr string) (net.Conn, error) {
			conn, err := g.network.DialListener(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			l := &boundedConn{Conn: conn, gone: gone, refused: &g.refused, begun: &g.starts}
			context.AfterFunc(ctx, func() { _ = l.Close() })
			return l, nil
		},
	}
}

// boundedConn is a connection with a read timeout, and with a bound of the sessions that begin on it.
type boundedConn struct {
	net.Conn
	gone    chan struct{}
	once    sync.Once
	refused *atomic.Bool
	begun   *atomic.Int64 // counts starts
	// upgraded means that the websocket is made.
	upgraded atomic.Bool
	greeted  bool        // by Discord; only the goroutine that reads uses it
	starts   []time.Time // of sessions; the library writes one frame at a time
}

// SetDeadline is called by the websocket library: with a time before the handshake, and without one
// after it.
func (l *boundedConn) SetDeadline(t time.Time) error {
	l.upgraded.Store(t.IsZero())
	return l.Conn.SetDeadline(t)
}

func (l *boundedConn) Read(p []byte) (n int, err error) {
	if !l.upgraded.Load() {
		return l.Conn.Read(p)
	}
	timeout := readTimeout
	if !l.greeted {
		timeout = adapter.ConnectTimeout
	}
	if err := l.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return 0, err
	}
	n, err = l.Conn.Read(p)
	l.greeted = l.greeted || n > 0
	return n, err
}

// Write sends a frame. The one that would begin a session too often ends the connection instead.
func (l *boundedConn) Write(p []byte) (n int, err error) {
	if l.upgraded.Load() && len(p) > maxHeartbeat {
		now := time.Now()
		l.starts = slices.DeleteFunc(l.starts, func(at time.Time) bool { return now.Sub(at) > identifyInterval })
		if len(l.starts) == maxStarts {
			l.refused.Store(true)
			_ = l.Close()
			return 0, errors.New("Discord refuses each session that begins")
		}
		l.starts = append(l.starts, now)
		l.begun.Add(1)
	}
	return l.Conn.Write(p)
}

// Close is called by the library after it has delivered all events.
func (l *boundedConn) Close() error {
	l.once.Do(func() { close(l.gone) })
	return l.Conn.Close()
}
