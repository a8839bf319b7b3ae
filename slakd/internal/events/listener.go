package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	slackgo "github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/slakd/internal/inbound"
	"arizuko/slakd/internal/names"
	"arizuko/slakd/internal/slackapi"
	"arizuko/slakd/internal/socket"
)

const (
	// storeAgain is how long to wait when the database is in the way.
	storeAgain = time.Second
	// probeEvery is how often Slack is asked whether the token is still good, and probeMost how long
	// it may take to say.
	probeEvery = time.Minute
	probeMost  = 10 * time.Second
)

// listener reads Slack's events. Its fields are set once.
type listener struct {
	*slack
	names     *names.Book
	sockets   bool // events come by Socket Mode; else they are posted
	log       *slog.Logger
	bots      adapter.Bots
	undecoded prometheus.Counter
	now       func() time.Time
	me        atomic.Pointer[inbound.Self] // nil until Slack has said
}

// platform is what the shell runs: what sends, and what listens.
type platform struct {
	*slack
	*listener
}

// Listen implements adapter.Listener.
func (l *listener) Listen(ctx context.Context, s *adapter.Shell) error {
	if err := l.probe(ctx); err != nil {
		return err
	}
	if !l.sockets {
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
	err := socket.Listen(ctx, l.api.Client, socket.Handler{
		Connected: connected, Take: l.taking(s), Unreadable: l.passOver, Now: l.now,
	})
	cancel(slackapi.Broken(err, slackapi.AppToken))
	<-probing
	return context.Cause(ctx)
}

// keepProbing probes until that fails, or ctx ends: now and then, and at once when Slack has greeted
// us, since sockets hang on the app's token and not on the bot's.
func (l *listener) keepProbing(ctx context.Context, s *adapter.Shell, greeted <-chan struct{}) error {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		case <-greeted:
		}
		if err := l.probe(ctx); err != nil {
			return err
		}
		s.Connected()
	}
}

// probe asks who we are, and with that whether we may still be; and it takes away the marks that
// were left behind.
func (l *listener) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeMost)
	defer cancel()
	me, err := l.api.AuthTestContext(ctx)
	if err != nil {
		return slackapi.Broken(err, slackapi.BotToken)
	}
	l.me.Store(&inbound.Self{User: me.UserID, Bot: me.BotID})
	if err := l.signs().Sweep(ctx); err != nil {
		l.log.Warn("messages are still marked as worked on", "err", err)
	}
	return nil
}

// taking is what takes whatever Slack sends, however that comes: it stores that, until ctx ends.
func (l *listener) taking(s *adapter.Shell) func(context.Context, string, []byte) (any, error) {
	return func(ctx context.Context, kind string, payload []byte) (reply any, err error) {
		if l.me.Load() == nil {
			return nil, errors.New("Slack has not yet said who we are") //nolint:staticcheck // a name
		}
		in, reply := l.read(ctx, kind, payload)
		for {
			err := s.Receive(ctx, in)
			if err == nil || ctx.Err() != nil {
				return reply, ctx.Err()
			}
			l.log.Error("cannot store an event; trying again", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(storeAgain):
			}
		}
	}
}

// read turns what Slack sent into rows. What cannot be read is passed over. The reply is what
// Slack is to be answered, nil for nothing.
func (l *listener) read(ctx context.Context, kind string, payload []byte) (in adapter.Inbound, reply any) {
	var err error
	switch kind {
	case socket.Event:
		in, err = l.event(ctx, payload)
	case socket.Command:
		var command slackgo.SlashCommand
		if err = json.Unmarshal(payload, &command); err == nil {
			return l.command(ctx, &command)
		}
	}
	if err != nil {
		l.passOver(err)
		return adapter.Inbound{}, nil
	}
	return in, nil
}

func (l *listener) event(ctx context.Context, payload []byte) (adapter.Inbound, error) {
	e, err := inbound.Decode(payload)
	if err != nil {
		return adapter.Inbound{}, err
	}
	switch {
	case e.Renamed != nil:
		l.names.Forget(e.Renamed.ID)
	case e.User != nil:
		l.names.Forget(e.User.ID)
	}
	in, err := inbound.Convert(e, *l.me.Load(), l.names.For(ctx))
	in.Messages = slices.DeleteFunc(in.Messages, func(m *msg.Message) bool { return !l.bots.Hears(m) })
	return in, err
}

func (l *listener) command(ctx context.Context, command *slackgo.SlashCommand) (adapter.Inbound, any) {
	in, err := inbound.Command(command, l.names.For(ctx))
	if err != nil {
		l.passOver(err)
		return adapter.Inbound{}, nil
	}
	return in, map[string]string{"response_type": "ephemeral", "text": "Got it."} // for who gave it alone
}

func (l *listener) passOver(err error) {
	l.undecoded.Inc()
	l.log.Error("event passed over: it cannot be read", "err", err)
}
