package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
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
	// maxQueued bounds the events that wait for the database; then the connection waits.
	maxQueued = 1000
)

// ClosedError is returned when Discord has closed the gateway.
type ClosedError struct {
	Code int
	Text string
}

func (c *ClosedError) Error() string {
	return fmt.Sprintf("%s (%d %s)", cmp.Or(c.advice(), "Discord closed the gateway"), c.Code, c.Text)
}

// Close codes that need an operator.
const (
	authenticationFailed = 4004
	shardingRequired     = 4011
	invalidVersion       = 4012
	invalidIntents       = 4013
	disallowedIntents    = 4014
)

// ContentOff is the problem of a bot that does not receive the content of messages.
const ContentOff = "the Message Content Intent is off: the developer portal, Bot, Privileged Gateway Intents has its switch"

// advice says what an operator can do, "" if reconnecting is enough.
func (c *ClosedError) advice() string {
	switch c.Code {
	case authenticationFailed:
		return "Discord does not accept DISCORD_BOT_TOKEN: the developer portal, Bot, Reset Token shows another one"
	case disallowedIntents:
		return ContentOff
	case invalidIntents, invalidVersion:
		return "Discord no longer supports this version of discd: upgrade it"
	case shardingRequired:
		return "the bot is in more guilds than one connection serves: remove it from some, or use another bot"
	}
	return ""
}

// Gateway keeps a session of Discord's gateway. The library implements the protocol; Gateway adds
// cancellation by ctx, a timeout for dead connections, and a queue of events that outlives a
// connection. Only the queue is safe for concurrent use.
type Gateway struct {
	token   string
	session *discordgo.Session // nil if there is none to resume
	events  chan *discordgo.Event
	hangUp  context.CancelFunc
	// identified is when the last attempt to begin a session ended.
	identified time.Time
}

// NewGateway makes a gateway for a bot's token. It is not connected.
func NewGateway(token string) *Gateway {
	return &Gateway{token: token, events: make(chan *discordgo.Event, maxQueued), hangUp: func() {}}
}

// queue returns the events in order. Those that came before a connection broke stay in it, since
// Discord does not send them again.
func (g *Gateway) queue() <-chan *discordgo.Event { return g.events }

// resumes reports whether open resumes a session, instead of beginning one with READY.
func (g *Gateway) resumes() bool { return g.session != nil }

// open connects. The channel is closed when the connection breaks and all its events are in the
// queue. ctx, the same in each call, ends the session. If Discord refuses, the error is a
// *ClosedError.
func (g *Gateway) open(ctx context.Context, intents discordgo.Intent) (broken <-chan struct{}, err error) {
	if g.session == nil {
		adapter.Pause(ctx, identifyInterval-time.Since(g.identified))
		defer func() { g.identified = time.Now() }()
		if g.session, err = g.begin(ctx, intents); err != nil {
			return nil, err
		}
	}
	ctx, g.hangUp = context.WithCancel(ctx)
	gone := make(chan struct{})
	g.session.Dialer = dialer(ctx, gone)
	opened := make(chan error, 1)
	go func(s *discordgo.Session) { opened <- s.Open() }(g.session)
	late := time.NewTimer(openTimeout)
	defer late.Stop()
	select {
	case err = <-opened:
	case <-late.C: // the library may wait without limit
		err = &ClosedError{Text: "timeout while a session began"}
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		return gone, nil
	}
	g.hangUp()
	return nil, g.openError(err)
}

// openError is the error of a session that was not resumed, or not begun. A session that Discord has
// closed cannot be resumed.
func (g *Gateway) openError(err error) error {
	const minDiscordCode = 4000 // lower codes come from the network
	var frame *websocket.CloseError
	if errors.As(err, &frame) && frame.Code >= minDiscordCode {
		err = &ClosedError{Code: frame.Code, Text: frame.Text}
	}
	var closed *ClosedError
	if errors.As(err, &closed) {
		g.session = nil
	}
	return err
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
	s.Client = adapter.NewListenClient()
	s.Identify.Intents = intents
	s.AddHandler(func(_ *discordgo.Session, e *discordgo.Event) {
		select {
		case g.events <- e:
		case <-ctx.Done():
		}
	})
	return s, nil
}

// dialer makes connections that end with ctx, and then close gone.
func dialer(ctx context.Context, gone chan struct{}) *websocket.Dialer {
	return &websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, HandshakeTimeout: adapter.ConnectTimeout,
		NetDialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := adapter.DialListener(ctx, network, address)
			if err != nil {
				return nil, err
			}
			l := &line{Conn: conn, gone: gone}
			context.AfterFunc(ctx, func() { _ = l.Close() })
			return l, nil
		},
	}
}

// line is a connection with a read timeout.
type line struct {
	net.Conn
	gone chan struct{}
	once sync.Once
	// The websocket is made, and Discord has greeted it. Only the goroutine that reads uses them.
	upgraded, greeted bool
}

// SetDeadline is called by the websocket library: with a time before the handshake, and without one
// after it.
func (l *line) SetDeadline(t time.Time) error {
	l.upgraded = t.IsZero()
	return l.Conn.SetDeadline(t)
}

func (l *line) Read(p []byte) (n int, err error) {
	if !l.upgraded {
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

// Close is called by the library after it has delivered all events.
func (l *line) Close() error {
	l.once.Do(func() { close(l.gone) })
	return l.Conn.Close()
}
