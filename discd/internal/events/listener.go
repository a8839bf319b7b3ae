// Package events receives Discord's events over the gateway, and reads the messages that were missed
// while discd was not connected.
package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/inbound"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// probeInterval is how often a quiet connection is reported as working; a dead one is closed.
	probeInterval = 30 * time.Second
	// reservedSessions are left of the thousand sessions that a bot may begin in a day: Discord revokes
	// the token with the last one.
	reservedSessions = 50
	// settingDelay is the pause before reconnecting while a setting in the developer portal is wrong.
	settingDelay = 5 * time.Minute
	// answerTimeout is how long Discord waits for the answer to a command.
	answerTimeout = 3 * time.Second
)

// intents are the events that are received, besides joins and leaves if the portal allows those.
const intents = discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentGuildMessageReactions |
	discordgo.IntentDirectMessages | discordgo.IntentDirectMessageReactions | discordgo.IntentMessageContent |
	discordgo.IntentGuildMessagePolls | discordgo.IntentDirectMessagePolls

// Listener implements adapter.Listener.
type Listener struct {
	api     *discordapi.Client
	store   *store.Store
	gateway *Gateway
	guilds  *inbound.Guilds
	ballots *adapter.Ballots
	convert func(*discordapi.Update, inbound.Self, *inbound.Guilds) (adapter.Inbound, error)

	// Set by Listen.
	session string // of the gateway, in which its events are numbered
	me      inbound.Self
	read    *bookmarks
	heard   map[heardVote]bool // from the session's start until the voters of polls are read, nil otherwise
	hidden  map[int64]bool     // polls whose voters Discord does not show
}

// NewListener makes a listener for a bot's token.
func NewListener(api *discordapi.Client, st *store.Store, token string) *Listener {
	return &Listener{
		api: api, store: st, gateway: NewGateway(token), guilds: inbound.NewGuilds(), convert: inbound.Convert, read: newBookmarks(nil),
		hidden: map[int64]bool{}, ballots: ballots(st),
	}
}

// Listen implements adapter.Listener.
func (l *Listener) Listen(ctx context.Context, s *adapter.Shell) error {
	wanted, err := l.prepare(ctx, s)
	if err != nil {
		return ConnectionError(err)
	}
	if err := l.ballots.Load(ctx, s); err != nil {
		return err
	}
	broken, err := l.gateway.open(ctx, wanted)
	if err != nil {
		return ConnectionError(err)
	}
	defer l.gateway.close()
	probe := time.NewTicker(probeInterval)
	defer probe.Stop()
	reading, stop := context.WithCancel(ctx)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer stop()
	var voters chan pollVoters // nil while none are read

	for {
		again, err := l.ballots.Retry(ctx, s)
		if err != nil {
			return err
		}
		missed := voters
		if len(l.gateway.queue()) > 0 { // live events first
			missed = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again:
		case <-probe.C:
			s.Connected()
		case e := <-l.gateway.queue():
			err = l.receive(ctx, s, e)
			if err == nil && l.lacksVotes(e.Type) {
				fresh := make(chan pollVoters)
				voters = fresh
				reader.Go(func() { l.readVoters(reading, s, fresh) })
			}
		case v, more := <-missed:
			if !more {
				voters, l.heard = nil, nil
				continue
			}
			err = l.storeMissed(ctx, s, v)
		case <-broken:
			if len(l.gateway.queue()) == 0 { // earlier events are received first
				return errors.New("the connection to Discord's gateway has ended")
			}
		}
		if err != nil {
			return err
		}
	}
}

// prepare checks, before a session begins, that it may begin, registers the commands, and returns the
// intents that are allowed.
func (l *Listener) prepare(ctx context.Context, s *adapter.Shell) (discordgo.Intent, error) {
	if l.gateway.resumes() {
		return 0, nil
	}
	left, until, err := l.api.SessionsLeft(ctx)
	if err != nil {
		return 0, err
	}
	if left < reservedSessions {
		return 0, &adapter.Failure{Class: msg.Rate, After: until, Err: fmt.Errorf("Discord lets the bot connect only %d times more today", left)} //nolint:staticcheck // a name
	}
	app, err := l.api.Application(ctx)
	if err != nil {
		return 0, err
	}
	if err := l.api.RegisterCommands(ctx, app.ID, inbound.Commands()); err != nil {
		s.Log.Warn("registering commands failed; the next session retries", "err", err)
	}
	if app.HearsMembers() {
		return intents | discordgo.IntentGuildMembers, nil
	}
	return intents, nil
}

// receive stores one event; it retries until ctx ends. An event that cannot be decoded is skipped.
func (l *Listener) receive(ctx context.Context, s *adapter.Shell, e *discordgo.Event) error {
	event := fmt.Sprint(e.Type, " ", e.Sequence)
	u, in, lacks := (*discordapi.Update)(nil), adapter.Inbound{}, ""
	if !s.Decode(event, func() (err error) {
		if u, err = discordapi.ParseUpdate(e.Type, l.session, e.Sequence, e.RawData); err == nil {
			lacks = l.guilds.Lacks(u)
		}
		return err
	}) {
		return nil
	}
	if err := l.beginSession(ctx, s, u); err != nil {
		return err
	}
	if err := l.lookUpChannel(ctx, s, u, lacks); err != nil {
		return err
	}
	if !s.Decode(event, func() (err error) { in, err = l.convert(u, l.me, l.guilds); return err }) {
		return nil
	}

	l.hear(u)
	if err := l.receiveBallot(ctx, s, &in); err != nil {
		return err
	}
	if m := u.Message; m != nil { // the bot's own messages move the bookmark too
		key, value := l.read.move(m.ChannelID, m.ID, l.guilds.Private(m.GuildID, m.ChannelID))
		in.Cursor = &adapter.Cursor{Key: key, Value: value}
	}
	if len(in.Messages)+len(in.Threads) > 0 || in.Cursor != nil {
		if err := s.ReceiveAlways(ctx, in); err != nil {
			return err
		}
	}
	s.Decode(event, func() error { l.guilds.Learn(u, l.me); return nil })
	if len(in.Messages) > 0 && u.Interaction != nil {
		l.answer(ctx, s, u.Interaction)
	}
	return l.backfill(ctx, s, u)
}

// receiveBallot drops votes in polls of others, and the ends of those. A vote in a poll that is being sent
// waits for its id.
func (l *Listener) receiveBallot(ctx context.Context, s *adapter.Shell, in *adapter.Inbound) error {
	if len(in.Messages) != 1 || in.Messages[0].Verb != msg.VerbVote && in.Messages[0].Verb != msg.VerbPollEnd {
		return nil
	}
	event, err := json.Marshal(in)
	if err != nil {
		s.SkipUndecoded("vote", err)
		in.Messages = nil
		return nil
	}
	m := in.Messages[0]
	*in, err = l.ballots.Receive(ctx, s, adapter.Ballot{ChatJID: m.ChatJID, Ref: m.ChatJID + " " + m.TargetID, Event: event}, nil)
	return err
}

// ballots finds the polls of votes by their messages.
func ballots(st *store.Store) *adapter.Ballots {
	return &adapter.Ballots{
		Find: func(ctx context.Context, b *adapter.Ballot) (*msg.Message, error) {
			chat, id, _ := strings.Cut(b.Ref, " ")
			return st.MessageByPlatformID(ctx, chat, id)
		},
		Make: func(b *adapter.Ballot, _ *msg.Message) (in adapter.Inbound, err error) {
			err = json.Unmarshal(b.Event, &in)
			return in, err
		},
	}
}

// beginSession handles the events that begin or resume a session.
func (l *Listener) beginSession(ctx context.Context, s *adapter.Shell, u *discordapi.Update) error {
	if u.Type == "RESUMED" {
		s.Connected()
	}
	if u.Ready == nil {
		return nil
	}
	s.Connected()
	l.session, l.me = u.Ready.SessionID, inbound.Self{ID: u.Ready.User.ID}
	return s.Retry(ctx, "reading bookmarks failed; retrying", func() error {
		stored, err := l.store.DaemonCursors(ctx, s.Daemon, bookmarkPrefix)
		l.read = newBookmarks(stored)
		return err
	})
}

// lookUpChannel asks for the channel that an event lacks, "" for none, until Discord answers. A channel
// that the bot may not see counts as no thread. The error is ctx's.
func (l *Listener) lookUpChannel(ctx context.Context, s *adapter.Shell, u *discordapi.Update, id string) error {
	if id == "" {
		return nil
	}
	c := discordapi.Channel{}
	err := s.Retry(ctx, "looking up channel failed; retrying", func() error {
		err := l.api.Call(ctx, http.MethodGet, "channels/"+id, nil, &c)
		if err != nil && discordapi.Failure(err).Class == msg.Permanent {
			s.Log.Warn("channel not visible; if it is a thread, its messages are stored in no thread", "channel", id, "err", err)
			return nil
		}
		return err
	})
	c.ID = id
	c.GuildID, _ = u.Place()
	l.guilds.Add(c)
	return err
}

// answer confirms to the user of a command that it is stored. The reply is a message of its own.
func (l *Listener) answer(ctx context.Context, s *adapter.Shell, i *discordapi.Interaction) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := l.api.Answer(ctx, i, "/"+i.Data.Name+": on its way"); err != nil {
		s.Log.Warn("command stored but not confirmed; Discord shows its user an error", "command", i.Data.Name, "err", err)
	}
}

// ConnectionError says why a connection ended, and what an operator can do about it.
func ConnectionError(err error) error {
	var refused *discordapi.Error
	if discordapi.TokenRefused(err) && errors.As(err, &refused) {
		err = &ClosedError{Code: authenticationFailed, Text: refused.Message}
	}
	var closed *ClosedError
	switch {
	case errors.As(err, &closed) && closed.Code == authenticationFailed:
		return &adapter.Failure{Class: msg.Auth, Err: err}
	case errors.As(err, &closed) && closed.Code == disallowedIntents:
		return &adapter.Failure{Class: msg.Auth, After: settingDelay, Err: err}
	case errors.As(err, &closed) && closed.advice() != "":
		return &adapter.Failure{Class: msg.Permanent, After: settingDelay, Err: err}
	case errors.As(err, &refused):
		return &adapter.Failure{Class: msg.Transient, After: refused.RetryAfter, Err: err}
	}
	return err
}
