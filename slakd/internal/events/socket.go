// Package socket is Socket Mode: a connection on which Slack sends what happens, and hears of
// each thing that it has been taken.
package socket

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

// The kinds of what Slack sends.
const (
	Event   = socketmode.RequestTypeEventsAPI
	Command = socketmode.RequestTypeSlashCommands
)

// brief is how long a connection lasts at least that Slack replaces by a new one, which happens
// every few hours. After two that did not, something else is wrong.
const brief = 10 * time.Second

// Handler is told what happens on a connection, one thing after the other.
type Handler struct {
	// Connected is called when Slack has greeted us.
	Connected func()
	// Take takes what Slack has sent; it is acknowledged, with the reply if that is not nil, once
	// Take has returned. Its error ends the connection.
	Take func(ctx context.Context, kind string, payload []byte) (reply any, err error)
	// Unreadable is told of what is passed over.
	Unreadable func(error)
	Now        func() time.Time
}

// Listen keeps connected until that fails, or ctx ends. When Slack asks to connect anew it does so
// at once; a connection that was greeted and then breaks is tried once more before that is an
// error. Errors are those of slack.Client.
func Listen(ctx context.Context, api *slack.Client, h Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	client := socketmode.New(api)
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
		case e := <-client.Events:
			if err := l.on(ctx, e); err != nil {
				return err
			}
		}
	}
}

// link is what a client's connections have in common.
type link struct {
	client  *socketmode.Client
	handler Handler
	since   time.Time // when the last one began
	brief   int       // how many in a row have been brief
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
			l.handler.Unreadable(data.ErrorObj)
		}
	case *socketmode.ErrorBadMessage: // of a kind that the library does not know
		var req socketmode.Request
		if json.Unmarshal(data.Message, &req) == nil && req.EnvelopeID != "" {
			return l.take(ctx, &req)
		}
		l.handler.Unreadable(data.Cause)
	}
	switch e.Type {
	case socketmode.EventTypeHello:
		l.since = l.handler.Now()
		l.handler.Connected()
	case socketmode.EventTypeEventsAPI, socketmode.EventTypeSlashCommand, socketmode.EventTypeInteractive:
		return l.take(ctx, e.Request)
	}
	return nil
}

// ended says whether the library is to connect again by itself.
func (l *link) ended() error {
	if l.handler.Now().Sub(l.since) > brief {
		l.brief = 0
		return nil
	}
	if l.brief++; l.brief > 1 {
		return errors.New("Slack ends each connection at once") //nolint:staticcheck // a name
	}
	return nil
}

func (l *link) take(ctx context.Context, req *socketmode.Request) error {
	reply, err := l.handler.Take(ctx, req.Type, req.Payload)
	if err != nil {
		return err
	}
	return l.client.AckCtx(ctx, req.EnvelopeID, reply)
}
