package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/prometheus/client_golang/prometheus"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/gateway"
	"arizuko/discd/internal/history"
	"arizuko/discd/internal/inbound"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// storeAgain is how long to wait when the database is in the way, or Discord does not answer.
	storeAgain = time.Second
	// gapTries is how often Discord is asked for what was missed in a channel.
	gapTries = 5
	// probeEvery is how often a quiet connection is told to work: one that does not is hung up.
	probeEvery = 30 * time.Second
	// sessionsKept is how many of the thousand sessions that a bot may begin in a day are not used
	// up: with the last one Discord would take the token away.
	sessionsKept = 50
	// switchPause is how long a setting in the developer portal is waited for.
	switchPause = 5 * time.Minute
	// answerMost is how long Discord waits for the answer to a command.
	answerMost = 3 * time.Second
)

// intents are what we are told of; what members do as well, if the portal allows it.
const intents = discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentGuildMessageReactions |
	discordgo.IntentDirectMessages | discordgo.IntentDirectMessageReactions | discordgo.IntentMessageContent

// listener reads Discord's events. The fields below the line are Listen's own.
type listener struct {
	*discord
	log       *slog.Logger
	bots      adapter.Bots
	undecoded prometheus.Counter
	gateway   *gateway.Gateway
	known     *inbound.Guilds

	session string // of the gateway, in which its events are numbered
	me      inbound.Self
	read    *history.Bookmarks
}

// platform is what the shell runs: what sends, and what listens.
type platform struct {
	*discord
	*listener
}

// Listen implements adapter.Listener.
func (l *listener) Listen(ctx context.Context, s *adapter.Shell) error {
	wanted, err := l.prepare(ctx)
	if err != nil {
		return broken(err)
	}
	gone, err := l.gateway.Open(ctx, wanted)
	if err != nil {
		return broken(err)
	}
	defer l.gateway.Close()
	probe := time.NewTicker(probeEvery)
	defer probe.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-probe.C:
			s.Connected()
		case e := <-l.gateway.Events():
			err = l.take(ctx, s, e)
		case <-gone:
			if len(l.gateway.Events()) == 0 { // what came before is taken first
				return errors.New("the connection to Discord's gateway has ended")
			}
		}
		if err != nil {
			return err
		}
	}
}

// prepare looks, before a session begins, whether it may, what it can be asked for, and which
// commands are on offer.
func (l *listener) prepare(ctx context.Context) (discordgo.Intent, error) {
	if l.gateway.Resumes() {
		return 0, nil
	}
	left, until, err := l.api.SessionsLeft(ctx)
	if err != nil {
		return 0, err
	}
	if left < sessionsKept {
		return 0, &adapter.Failure{Class: msg.Rate, After: until, Err: fmt.Errorf("Discord lets the bot connect only %d times more today", left)} //nolint:staticcheck // a name
	}
	app, err := l.api.Application(ctx)
	if err != nil {
		return 0, err
	}
	if err := l.api.Offer(ctx, app.ID, inbound.Commands()); err != nil {
		l.log.Warn("the commands are not on offer; the next session tries again", "err", err)
	}
	if app.HearsMembers() {
		return intents | discordgo.IntentGuildMembers, nil
	}
	return intents, nil
}

// take stores one event, however long that takes. One that cannot be read is passed over.
func (l *listener) take(ctx context.Context, s *adapter.Shell, e *discordgo.Event) error {
	u, err := discordapi.ParseUpdate(e.Type, l.session, e.Sequence, e.RawData)
	var in adapter.Inbound
	if err == nil {
		if err := l.begin(ctx, s, u); err != nil {
			return err
		}
		if err := l.lookUp(ctx, u); err != nil {
			return err
		}
		in, err = inbound.Convert(u, l.me, l.known)
	}
	if err != nil {
		l.undecoded.Inc()
		l.log.Error("event passed over: it cannot be read", "event", e.Type, "number", e.Sequence, "err", err)
		return nil
	}
	in.Messages = slices.DeleteFunc(in.Messages, func(m *msg.Message) bool { return !l.bots.Hears(m) })
	if m := u.Message; m != nil { // our own is no reason either to read it again
		key, value := l.read.Move(m.ChannelID, m.ID, l.known.Private(m.GuildID, m.ChannelID))
		in.Cursor = &adapter.Cursor{Key: key, Value: value}
	}
	if err := l.keep(ctx, s, in); err != nil {
		return err
	}
	l.known.Learn(u, l.me)
	if len(in.Messages) > 0 && u.Interaction != nil {
		l.answer(ctx, u.Interaction)
	}
	return l.catchUp(ctx, s, u)
}

// begin takes note that a session has begun, or was taken up again.
func (l *listener) begin(ctx context.Context, s *adapter.Shell, u *discordapi.Update) error {
	if u.Type == "RESUMED" {
		s.Connected()
	}
	if u.Ready == nil {
		return nil
	}
	s.Connected()
	l.session, l.me = u.Ready.SessionID, inbound.Self{ID: u.Ready.User.ID}
	return l.insist(ctx, "read what was read", func() error {
		kept, err := l.store.DaemonCursors(ctx, s.Daemon, history.Prefix)
		l.read = history.New(kept)
		return err
	})
}

// keep stores what came in.
func (l *listener) keep(ctx context.Context, s *adapter.Shell, in adapter.Inbound) error {
	if len(in.Messages)+len(in.Threads) == 0 && in.Cursor == nil {
		return nil
	}
	return l.insist(ctx, "store an event", func() error { return s.Receive(ctx, in) })
}

// insist does something that has to be done before the next event, however long that takes. The
// error is ctx's.
func (l *listener) insist(ctx context.Context, what string, do func() error) error {
	for {
		err := do()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		l.log.Error("cannot "+what+"; trying again", "err", err)
		pause(ctx, storeAgain)
	}
}

// lookUp asks for the channel of an event, if nobody has told of it, until it is told. One that is
// not shown to us is taken for no thread. The error is ctx's.
func (l *listener) lookUp(ctx context.Context, u *discordapi.Update) error {
	id := l.known.Lacks(u)
	if id == "" {
		return nil
	}
	c := discordapi.Channel{}
	err := l.insist(ctx, "look a channel up", func() error {
		err := l.api.Call(ctx, http.MethodGet, "channels/"+id, nil, &c)
		if err != nil && failure(err).Class == msg.Permanent {
			l.log.Warn("a channel is not shown to us: if it is a thread, its messages stand beside its channel's", "channel", id, "err", err)
			return nil
		}
		return err
	})
	c.ID = id
	c.GuildID, _ = u.Place()
	l.known.Add(c)
	return err
}

// answer tells who gave a command that it is stored; what comes of it is a message of its own.
func (l *listener) answer(ctx context.Context, i *discordapi.Interaction) {
	ctx, cancel := context.WithTimeout(ctx, answerMost)
	defer cancel()
	if err := l.api.Answer(ctx, i, "/"+i.Data.Name+": on its way"); err != nil {
		l.log.Warn("a command is stored, and Discord tells its user that we did not answer", "command", i.Data.Name, "err", err)
	}
}

// catchUp stores what was said while nobody listened: in private chats when a session begins, in
// a guild when it is told. The events that come behind it in the queue wait. What cannot be had is
// left to the next session: other chats must not wait for it.
func (l *listener) catchUp(ctx context.Context, s *adapter.Shell, u *discordapi.Update) error {
	var gaps []history.Gap
	switch {
	case u.Ready != nil:
		gaps = l.read.Private()
	case u.Guild != nil:
		all := slices.Concat(u.Guild.Channels, u.Guild.Threads)
		if err := l.mark(ctx, s, all...); err != nil {
			return err
		}
		gaps = l.read.Missed(all...)
	case u.Made():
		return l.mark(ctx, s, *u.Channel)
	}
	for _, g := range gaps {
		for raw, err := range history.Behind(g, l.said(ctx)) {
			if err != nil {
				l.log.Warn("what was said while nobody listened cannot be read", "channel", g.Channel, "err", err)
				l.read.Hold(g)
				break
			}
			if err := l.take(ctx, s, &discordgo.Event{Type: "MESSAGE_CREATE", RawData: raw}); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// said asks for what was said, more than once if what is in the way may pass.
func (l *listener) said(ctx context.Context) func(channel, after string) ([]json.RawMessage, error) {
	return func(channel, after string) (page []json.RawMessage, err error) {
		for try := range gapTries {
			if page, err = l.api.Said(ctx, channel, after); err == nil || failure(err).Class == msg.Permanent {
				break
			}
			pause(ctx, max(failure(err).After, storeAgain<<try))
		}
		return page, err
	}
}

// mark keeps where channels begin to be read.
func (l *listener) mark(ctx context.Context, s *adapter.Shell, channels ...discordapi.Channel) error {
	fresh := l.read.Begin(channels...)
	if len(fresh) == 0 {
		return nil
	}
	return l.insist(ctx, "keep what is read", func() error {
		return l.store.Write(ctx, func(tx *store.Tx) error {
			for key, value := range fresh {
				if err := tx.PutCursor(s.Daemon, key, value); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// broken says why the connection broke, in words that tell an operator what to do.
func broken(err error) error {
	var refused *discordapi.Error
	if errors.As(err, &refused) && refused.Status == http.StatusUnauthorized {
		err = &gateway.Closed{Code: gateway.AuthenticationFailed, Text: refused.Message}
	}
	var closed *gateway.Closed
	switch {
	case errors.As(err, &closed) && closed.Code == gateway.AuthenticationFailed:
		return &adapter.Failure{Class: msg.Auth, Err: err}
	case errors.As(err, &closed) && closed.Code == gateway.DisallowedIntents:
		return &adapter.Failure{Class: msg.Auth, After: switchPause, Err: err}
	case errors.As(err, &closed) && closed.Advice() != "":
		return &adapter.Failure{Class: msg.Permanent, After: switchPause, Err: err}
	case refused != nil:
		return &adapter.Failure{Class: msg.Transient, After: refused.RetryAfter, Err: err}
	}
	return err
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
