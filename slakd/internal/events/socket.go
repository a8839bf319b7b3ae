package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"arizuko/pkg/adapter"
)

// minConnection is the shortest life of a connection that Slack replaces regularly, every few hours.
// Two shorter ones in a row are an error.
const minConnection = 10 * time.Second

// socketHandler is called for the events of a connection, in order.
type socketHandler struct {
	// connected is called when Slack has greeted the connection, with how many the app has as Slack counts them.
	connected func(open int)
	// receive stores a request. The request is acknowledged, with the reply unless that is nil, after
	// receive has returned. Its error ends the connection.
	receive func(ctx context.Context, kind string, payload []byte) (reply any, err error)
	// skip is called for frames that cannot be decoded.
	skip func(error)
	now  func() time.Time
}

// listenSocket keeps a Socket Mode connection until that fails, or ctx ends. It reconnects at once when
// Slack asks for it; a connection that was greeted and then breaks is replaced once before that is an
// error. Errors are those of slack.Client.
func listenSocket(ctx context.Context, api *slack.Client, n adapter.Network, h socketHandler) error {
	err := keepSocket(ctx, api, n, h)
	if errors.Is(err, websocket.ErrBadHandshake) {
		return handshakeProblem(ctx, api, n)
	}
	return err
}

func keepSocket(ctx context.Context, api *slack.Client, n adapter.Network, h socketHandler) error {
	ctx, cancel := context.WithCancel(ctx)
	client := socketmode.New(api, socketmode.OptionDialer(dialer(ctx, n)))
	over := make(chan struct{})
	var end error
	go func() {
		defer close(over)
		end = client.RunContext(ctx)
	}()
	defer func() {
		cancel()
		<-over
	}()
	l := &link{client: client, handler: h}
	for {
		select {
		case <-over:
			return end
		case <-l.helloTimeout:
			return errors.New("Slack does not greet the connection")
		case e := <-client.Events:
			if err := l.on(ctx, e); err != nil {
				return err
			}
		}
	}
}

// dialer makes websockets that end with ctx. Slack ignores messages of more than one frame, hence the
// buffer of the library's own dialer, which holds the largest reply.
func dialer(ctx context.Context, n adapter.Network) *websocket.Dialer {
	return &websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, HandshakeTimeout: adapter.ConnectTimeout, WriteBufferSize: 32 << 10,
		TLSClientConfig: n.TLS,
		NetDialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := n.DialListener(ctx, network, address)
			if err != nil {
				return nil, err
			}
			context.AfterFunc(ctx, func() { _ = conn.Close() })
			return conn, nil
		},
	}
}

// link is the state shared by the connections of a client.
type link struct {
	client  *socketmode.Client
	handler socketHandler
	since   time.Time // when the last connection began
	short   int       // how many in a row were shorter than minConnection
	// helloTimeout fires when Slack has not greeted a connection in time.
	helloTimeout <-chan time.Time
}

func (l *link) on(ctx context.Context, e socketmode.Event) error {
	switch data := e.Data.(type) {
	case *slack.ConnectingEvent:
		if data.ConnectionCount > 0 && data.Attempt == 1 {
			return l.ended()
		}
	case *slack.ConnectionErrorEvent:
		return data.ErrorObj
	case *slack.IncomingEventError:
		if bad := new(json.SyntaxError); errors.As(data.ErrorObj, &bad) {
			l.handler.skip(data.ErrorObj)
		}
	case *socketmode.ErrorBadMessage: // of a type that the library does not know
		var req socketmode.Request
		if json.Unmarshal(data.Message, &req) == nil && req.EnvelopeID != "" {
			return l.receive(ctx, &req)
		}
		l.handler.skip(data.Cause)
	}
	switch e.Type {
	case socketmode.EventTypeConnected:
		l.helloTimeout = time.After(adapter.ConnectTimeout)
	case socketmode.EventTypeHello:
		l.since, l.helloTimeout = l.handler.now(), nil
		l.handler.connected(e.Request.NumConnections)
	case socketmode.EventTypeEventsAPI, socketmode.EventTypeSlashCommand, socketmode.EventTypeInteractive:
		return l.receive(ctx, e.Request)
	}
	return nil
}

// ended returns an error if the library must not reconnect by itself.
func (l *link) ended() error {
	if l.handler.now().Sub(l.since) > minConnection {
		l.short = 0
		return nil
	}
	if l.short++; l.short > 1 {
		return errors.New("Slack ends each connection at once")
	}
	return nil
}

func (l *link) receive(ctx context.Context, req *socketmode.Request) error {
	reply, err := l.handler.receive(ctx, req.Type, req.Payload)
	if err != nil {
		return err
	}
	// Events that are not acknowledged come again on the next connection.
	acking, cancel := context.WithTimeout(ctx, adapter.ConnectTimeout)
	defer cancel()
	if err := l.client.AckCtx(acking, req.EnvelopeID, reply); err != nil {
		return fmt.Errorf("requests cannot be acknowledged: there is no connection: %w", err)
	}
	return nil
}
