// Package events receives Slack's events over Socket Mode, or as posts of the Events API.
package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	slackgo "github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/slakd/internal/history"
	"arizuko/slakd/internal/inbound"
	"arizuko/slakd/internal/slackapi"
)

const (
	// probeInterval is how often Slack is asked whether the token is still valid.
	probeInterval = time.Minute
	probeTimeout  = adapter.ConnectTimeout
	// maxStoring is how long an event may take to be stored before Slack may give up those behind it.
	maxStoring = 30 * time.Second
)

// The kinds of requests that Slack sends.
const (
	eventRequest       = "events_api"
	commandRequest     = "slash_commands"
	interactionRequest = "interactive"
)

// Options of New.
type Options struct {
	adapter.Identity
	API   *slackapi.Client
	Store *store.Store
	// SigningSecret verifies posted events. Without it events come by Socket Mode.
	SigningSecret string
	// UserApps are the ids of apps whose posts with a user's own token are that user's.
	UserApps []string
	// RemoveStaleMarks is called with each probe.
	RemoveStaleMarks func(context.Context) error
	Now              func() time.Time
	// Network is that of Socket Mode.
	Network adapter.Network
	// Patience is how much longer than Slack allows an event may wait for calls before it is acknowledged: a fake of
	// Slack on a busy machine answers late, and waits.
	Patience time.Duration
}

// Listener implements adapter.Listener.
type Listener struct {
	Options
	names   *Names
	missed  *history.Reader
	joins   joins
	sockets sockets
	// rootless are the threads that were read and whose first post makes no row, as one that was deleted, with the
	// message for which each was read: if that comes again, it may not have been stored.
	rootless adapter.Memo[store.Lane, string]
	me       atomic.Pointer[inbound.Self] // nil until the first probe
}

// New makes a listener.
func New(o Options) *Listener {
	l := &Listener{Options: o, names: NewNames(o.API.Client, o.Now), joins: joins{store: o.Store, daemon: o.Daemon}}
	l.names.patience = o.Patience
	l.missed = &history.Reader{
		Bookmarks: history.NewBookmarks(o.Store, o.Daemon, o.Now), API: o.API, Store: o.Store, Platform: o.Platform,
		Self: func() inbound.Self { return *l.me.Load() }, Convert: l.convertMissed,
	}
	return l
}

// Mount implements adapter.Mounter.
func (l *Listener) Mount(r chi.Router, s *adapter.Shell) {
	if l.SigningSecret != "" {
		r.Method(http.MethodPost, "/slack/events", &postHandler{secret: l.SigningSecret,
			timeout: postTimeout + l.Patience, posted: l.missed.Posted, receive: l.receiver(s)})
	}
}

// Listen implements adapter.Listener.
func (l *Listener) Listen(ctx context.Context, s *adapter.Shell) error {
	if err := l.probe(ctx, s); err != nil {
		return err
	}
	if err := l.missed.Load(ctx, s); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	running.Go(func() { l.missed.Run(ctx, s) })
	if l.SigningSecret != "" {
		s.Connected()
		l.missed.Connected()
		return l.keepProbing(ctx, s, nil)
	}
	greeted, recount := make(chan struct{}, 1), make(chan struct{}, 1)
	running.Go(func() { cancel(l.keepProbing(ctx, s, greeted)) })
	running.Go(func() { l.recount(ctx, s, recount) })
	connected := func(open int) {
		if l.greeted(s, open) {
			signal(recount)
		}
		s.Connected()
		l.missed.Connected()
		signal(greeted)
	}
	skip := func(err error) { s.SkipUndecoded("socket frame", err) }
	err := listenSocket(ctx, l.API.Client, l.Network, socketHandler{
		connected: connected, receive: l.receiver(s), skip: skip, now: l.Now,
	})
	cancel(slackapi.ConnectionError(err, slackapi.AppToken))
	return context.Cause(ctx)
}

// signal wakes the reader of a channel with room for one value.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
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
		if l.SigningSecret != "" {
			l.missed.Look()
		}
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
	if me.UserID == "" {
		return errors.New("auth.test names no user: another server may have answered")
	}
	if date, err := http.ParseTime(me.Header.Get("Date")); err == nil {
		l.missed.SetSlackTime(date)
	}
	l.names.SetTeam(me.TeamID)
	l.me.Store(&inbound.Self{Platform: l.Platform, User: me.UserID, Bot: me.BotID, UserApps: l.UserApps})
	if err := l.RemoveStaleMarks(ctx); err != nil {
		s.Log.Warn("stale marks not removed; the next probe retries", "err", err)
	}
	return nil
}

// receiver returns the function that stores requests of Slack, by either way. It retries until ctx
// ends. The reply is the answer to Slack, nil for none.
func (l *Listener) receiver(s *adapter.Shell) func(ctx context.Context, kind string, payload []byte) (reply any,
	err error) {
	return func(ctx context.Context, kind string, payload []byte) (reply any, err error) {
		if l.me.Load() == nil {
			return nil, errors.New("not connected to Slack yet")
		}
		if kind == interactionRequest {
			return nil, l.receivePress(ctx, s, payload)
		}
		var in adapter.Inbound
		s.Decode(kind, func() (err error) { in, reply, err = l.convert(ctx, kind, payload); return err })
		began := l.Now()
		err = s.ReceiveAlways(ctx, in)
		if err != nil || l.Now().Sub(began) > maxStoring {
			l.missed.Missed()
		}
		return reply, err
	}
}

// receivePress stores the press of a button of a question. One that does not count is answered with a message that only
// its user sees.
func (l *Listener) receivePress(ctx context.Context, s *adapter.Shell, payload []byte) error {
	var in adapter.Inbound
	s.Decode(interactionRequest, func() (err error) {
		in, err = inbound.Press(payload, *l.me.Load(), l.names.For(ctx))
		return err
	})
	if len(in.Messages) == 0 {
		return nil
	}
	notice, err := s.ReceivePress(ctx, in)
	if err != nil || notice == "" {
		return err
	}
	m := in.Messages[0]
	_, channel := msg.SplitJID(m.ChatJID)
	_, user := msg.SplitJID(m.Sender)
	answering, cancel := context.WithTimeout(ctx, eventTimeout+l.Patience)
	defer cancel()
	_, err = l.API.PostEphemeralContext(answering, channel, user, slackgo.MsgOptionText(notice, true),
		slackgo.MsgOptionTS(m.ThreadID))
	if err != nil {
		s.Log.Warn("press stored but not answered", "row", m.ID, "chat", m.ChatJID, "err", err)
	}
	return nil
}

// convert makes rows of a request of Slack. Its error means that it cannot be decoded.
func (l *Listener) convert(ctx context.Context, kind string, payload []byte) (in adapter.Inbound, reply any,
	err error) {
	switch kind {
	case eventRequest:
		in, err = l.event(ctx, payload)
	case commandRequest:
		in, reply, err = l.command(ctx, payload)
	}
	if err != nil {
		return adapter.Inbound{}, nil, err
	}
	return in, reply, nil
}

func (l *Listener) event(ctx context.Context, payload []byte) (in adapter.Inbound, err error) {
	e, err := inbound.Decode(payload)
	if err != nil {
		return in, err
	}
	switch {
	case e.Renamed != nil:
		l.names.Forget(e.Renamed.ID)
	case e.User != nil:
		l.names.Forget(e.User.ID)
	}
	if m := e.Message; m != nil && m.IsPost() {
		l.missed.Await(ctx, m.Channel)
	}
	if m := e.Member; m != nil {
		l.joins.unify(ctx, m, *l.me.Load())
	}
	names := l.names.For(ctx)
	if in, err = inbound.Convert(e, *l.me.Load(), names); err != nil {
		return in, err
	}
	if e.Reaction != nil && len(in.Messages) == 1 && l.missed.Shows(ctx, in.Messages[0]) {
		return adapter.Inbound{}, nil
	}
	in = l.withThread(ctx, in, names, contextTimeout+l.Patience)
	if m := e.Message; m != nil && m.IsPost() {
		in.Cursor = l.missed.Move(m.Channel, m.TS)
	}
	return in, nil
}

// command converts a slash command. Where the bot is no member it could not answer, so that nothing is done
// and the reply says how to change that.
func (l *Listener) command(ctx context.Context, payload []byte) (in adapter.Inbound, reply any, err error) {
	var command slackgo.SlashCommand
	if err := json.Unmarshal(payload, &command); err != nil {
		return in, nil, err
	}
	me := *l.me.Load()
	// only its user sees it
	ephemeral := func(text string) any { return map[string]string{"response_type": "ephemeral", "text": text} }
	asking, cancel := context.WithTimeout(ctx, eventTimeout+l.Patience)
	defer cancel()
	member, err := l.API.IsMember(asking, command.ChannelID)
	if err == nil && !member {
		return in, ephemeral(fmt.Sprintf("Nothing was done: I am not in this conversation, so I could not answer. "+
			"In a channel write `/invite` <@%s>, then repeat the command.", me.User)), nil
	}
	if in, err = inbound.Command(&command, me, l.names.For(ctx)); err != nil {
		return in, nil, err
	}
	return in, ephemeral("Got it."), nil
}

// convertMissed converts an event made from the history, as if it came live.
func (l *Listener) convertMissed(ctx context.Context, e *inbound.Event) (adapter.Inbound, error) {
	me, names := *l.me.Load(), l.names.Patiently(ctx)
	if m := e.Message; m != nil {
		if join := m.Join(me); join != nil {
			l.joins.unify(ctx, join, me)
			e = &inbound.Event{Member: join}
		}
	}
	in, err := inbound.Convert(e, me, names)
	if err != nil {
		return in, err
	}
	return l.withThread(ctx, in, names, missedTimeout), nil
}
