// Package events receives Slack's events over Socket Mode, or as posts of the Events API.
package events

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	slackgo "github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/slakd/internal/inbound"
	"arizuko/slakd/internal/slackapi"
)

const (
	// probeInterval is how often Slack is asked whether the token is still valid.
	probeInterval = time.Minute
	probeTimeout  = adapter.ConnectTimeout
)

// The kinds of requests that Slack sends.
const (
	eventRequest   = "events_api"
	commandRequest = "slash_commands"
)

// Listener implements adapter.Listener. Its exported fields are set once.
type Listener struct {
	API   *slackapi.Client
	Names *Names
	// SigningSecret verifies posted events. Without it events come by Socket Mode.
	SigningSecret string
	// RemoveStaleMarks is called with each probe.
	RemoveStaleMarks func(context.Context) error
	Now              func() time.Time

	me atomic.Pointer[inbound.Self] // nil until the first probe
}

// Mount implements adapter.Mounter.
func (l *Listener) Mount(r chi.Router, s *adapter.Shell) {
	if l.SigningSecret != "" {
		r.Method(http.MethodPost, "/slack/events", &postHandler{secret: l.SigningSecret, receive: l.receiver(s)})
	}
}

// Listen implements adapter.Listener.
func (l *Listener) Listen(ctx context.Context, s *adapter.Shell) error {
	if err := l.probe(ctx, s); err != nil {
		return err
	}
	if l.SigningSecret != "" {
		s.Connected()
		return l.keepProbing(ctx, s, nil)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	probing, greeted := make(chan struct{}), make(chan struct{}, 1)
	go func() {
		defer close(probing)
		cancel(l.keepProbing(ctx, s, greeted))
	}()
	connected := func() {
		s.Connected()
		select {
		case greeted <- struct{}{}:
		default:
		}
	}
	skip := func(err error) { s.SkipUndecoded("socket frame", err) }
	err := listenSocket(ctx, l.API.Client, socketHandler{connected: connected, receive: l.receiver(s), skip: skip, now: l.Now})
	cancel(slackapi.ConnectionError(err, slackapi.AppToken))
	<-probing
	return context.Cause(ctx)
}

// keepProbing probes until a probe fails or ctx ends: at intervals, and when Slack has greeted a
// socket, because sockets depend on the app's token and not on the bot's.
func (l *Listener) keepProbing(ctx context.Context, s *adapter.Shell, greeted <-chan struct{}) error {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		case <-greeted:
		}
		if err := l.probe(ctx, s); err != nil {
			return err
		}
		s.Connected()
	}
}

// probe asks Slack for the bot's own ids, which shows that the token is valid, and removes stale marks.
func (l *Listener) probe(ctx context.Context, s *adapter.Shell) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	me, err := l.API.AuthTestContext(ctx)
	if err != nil {
		return slackapi.ConnectionError(err, slackapi.BotToken)
	}
	l.me.Store(&inbound.Self{User: me.UserID, Bot: me.BotID})
	if err := l.RemoveStaleMarks(ctx); err != nil {
		s.Log.Warn("stale marks not removed; the next probe retries", "err", err)
	}
	return nil
}

// receiver returns the function that stores what Slack sends, by either way. It retries until ctx
// ends. The reply is the answer to Slack, nil for none.
func (l *Listener) receiver(s *adapter.Shell) func(ctx context.Context, kind string, payload []byte) (reply any, err error) {
	return func(ctx context.Context, kind string, payload []byte) (reply any, err error) {
		if l.me.Load() == nil {
			return nil, errors.New("not connected to Slack yet")
		}
		var in adapter.Inbound
		s.Decode(kind, func() (err error) { in, reply, err = l.convert(ctx, kind, payload); return err })
		return reply, s.ReceiveAlways(ctx, in)
	}
}

// convert makes rows of what Slack sent. Its error means that this cannot be decoded.
func (l *Listener) convert(ctx context.Context, kind string, payload []byte) (in adapter.Inbound, reply any, err error) {
	switch kind {
	case eventRequest:
		in, err = l.event(ctx, payload)
	case commandRequest:
		var command slackgo.SlashCommand
		if err = json.Unmarshal(payload, &command); err == nil {
			in, err = inbound.Command(&command, l.Names.For(ctx))
		}
		if err == nil { // only the user of the command sees it
			reply = map[string]string{"response_type": "ephemeral", "text": "Got it."}
		}
	}
	if err != nil {
		return adapter.Inbound{}, nil, err
	}
	return in, reply, nil
}

func (l *Listener) event(ctx context.Context, payload []byte) (adapter.Inbound, error) {
	e, err := inbound.Decode(payload)
	if err != nil {
		return adapter.Inbound{}, err
	}
	switch {
	case e.Renamed != nil:
		l.Names.Forget(e.Renamed.ID)
	case e.User != nil:
		l.Names.Forget(e.User.ID)
	}
	return inbound.Convert(e, *l.me.Load(), l.Names.For(ctx))
}
