// Package gateway keeps a session of Discord's gateway. The library speaks the protocol; here is
// what it lacks: an end, by ctx, of whatever it waits for, an eye on lines that went dead, and
// the events in one queue that outlives a connection.
package gateway

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
)

const (
	// openMost is how long it may take until a session has begun.
	openMost = 30 * time.Second
	// quietMost is how long the gateway may say nothing: it answers a heartbeat every 41 seconds.
	// The library notices after five that were not answered.
	quietMost = 100 * time.Second
	// queued is how many events wait for the database before the gateway has to.
	queued = 1000
)

// Closed is the end of a connection for a reason of Discord's.
type Closed struct {
	Code int
	Text string
}

func (c *Closed) Error() string {
	return fmt.Sprintf("%s (%d %s)", cmp.Or(c.Advice(), "Discord closes the gateway"), c.Code, c.Text)
}

// The codes that somebody has to do something about.
const (
	AuthenticationFailed = 4004
	ShardingRequired     = 4011
	InvalidVersion       = 4012
	InvalidIntents       = 4013
	DisallowedIntents    = 4014
)

// ContentOff is what keeps a bot from being told what people write.
const ContentOff = "the Message Content Intent is off: the developer portal, Bot, Privileged Gateway Intents has its switch"

// Advice is what to do about it, "" where connecting again is enough.
func (c *Closed) Advice() string {
	switch c.Code {
	case AuthenticationFailed:
		return "Discord does not accept DISCORD_BOT_TOKEN: the developer portal, Bot, Reset Token shows another one"
	case DisallowedIntents:
		return ContentOff
	case InvalidIntents, InvalidVersion:
		return "Discord has changed, and speaks with a newer discd only"
	case ShardingRequired:
		return "the bot is in more guilds than one connection serves: remove it from some, or use another bot"
	}
	return ""
}

// Gateway keeps a session. Only its queue of events is safe for concurrent use.
type Gateway struct {
	token   string
	session *discordgo.Session // nil where there is none to take up again
	events  chan *discordgo.Event
	hangUp  context.CancelFunc
}

// New makes one that is not connected, for a bot's token.
func New(token string) *Gateway {
	return &Gateway{token: token, events: make(chan *discordgo.Event, queued), hangUp: func() {}}
}

// Events are what happens, in order. What came before a connection broke stays in the queue, for
// Discord does not tell it again.
func (g *Gateway) Events() <-chan *discordgo.Event { return g.events }

// Resumes reports whether Open takes up a session, instead of beginning one with READY.
func (g *Gateway) Resumes() bool { return g.session != nil }

// Open connects. The channel is closed when the connection breaks, all its events being in the
// queue. ctx, the same in each call, ends everything. An error of Discord's is a *Closed.
func (g *Gateway) Open(ctx context.Context, intents discordgo.Intent) (broken <-chan struct{}, err error) {
	if g.session == nil {
		if g.session, err = g.begin(ctx, intents); err != nil {
			return nil, err
		}
	}
	ctx, g.hangUp = context.WithCancel(ctx)
	gone := make(chan struct{})
	g.session.Dialer = dialer(ctx, gone)
	opened := make(chan error, 1)
	go func(s *discordgo.Session) { opened <- s.Open() }(g.session)
	late := time.NewTimer(openMost)
	defer late.Stop()
	select {
	case err = <-opened:
	case <-late.C: // which the library may wait for without end
		err = &Closed{Text: "no session has begun in time"}
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		return gone, nil
	}
	g.hangUp()
	return nil, g.judge(err)
}

// judge says why no session was taken up, or begun. One that Discord has closed is over.
func (g *Gateway) judge(err error) error {
	const ofDiscord = 4000 // what is below is the network's doing
	var frame *websocket.CloseError
	if errors.As(err, &frame) && frame.Code >= ofDiscord {
		err = &Closed{Code: frame.Code, Text: frame.Text}
	}
	var closed *Closed
	if errors.As(err, &closed) {
		g.session = nil
	}
	return err
}

// Close hangs up.
func (g *Gateway) Close() { g.hangUp() }

// begin makes a session that says and keeps nothing but what it is asked for.
func (g *Gateway) begin(ctx context.Context, intents discordgo.Intent) (*discordgo.Session, error) {
	s, err := discordgo.New("Bot " + g.token)
	if err != nil {
		return nil, err
	}
	s.LogLevel = -1 // below its errors, which come back from Open
	s.StateEnabled = false
	s.SyncEvents = true
	s.ShouldReconnectOnError = false
	s.ShouldRetryOnRateLimit, s.MaxRestRetries = false, 0
	s.Client = &http.Client{Timeout: openMost}
	s.Identify.Intents = intents
	s.AddHandler(func(_ *discordgo.Session, e *discordgo.Event) {
		select {
		case g.events <- e:
		case <-ctx.Done():
		}
	})
	return s, nil
}

// dialer makes lines that end with ctx, and then close gone.
func dialer(ctx context.Context, gone chan struct{}) *websocket.Dialer {
	return &websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, HandshakeTimeout: openMost,
		NetDialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			l := &line{Conn: conn, gone: gone}
			context.AfterFunc(ctx, func() { _ = l.Close() })
			return l, nil
		},
	}
}

// line is a connection that is not read from in silence for long.
type line struct {
	net.Conn
	gone chan struct{}
	once sync.Once
}

func (l *line) Read(p []byte) (int, error) {
	if err := l.SetReadDeadline(time.Now().Add(quietMost)); err != nil {
		return 0, err
	}
	return l.Conn.Read(p)
}

// Close is called by the library when it has handed over all that it has read.
func (l *line) Close() error {
	l.once.Do(func() { close(l.gone) })
	return l.Conn.Close()
}
