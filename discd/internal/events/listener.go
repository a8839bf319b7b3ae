// Package events receives Discord's events over the gateway, and reads the messages that were missed
// while discd was not connected.
package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// answerTimeout is how long Discord waits for the answer to a command, or to the press of a button.
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

	application string // whose commands are to be registered, "" once they are

	// Of a session.
	session string // of the gateway, in which its events are numbered
	me      inbound.Self
	read    *bookmarks
	heard   map[heardVote]bool           // from the session's start until the voters of polls are read, nil otherwise
	missed  map[heardVote]msg.VoteChange // votes that were stored because their voters were read
	hidden  map[int64]bool               // polls whose voters Discord does not show

	// Of a connection, but for what waits.
	waiting
	calls    sync.WaitGroup // that run beside the receive loop
	pages    chan page
	found    chan foundChannel
	voters   chan pollVoters // nil while none are read
	reads    int             // calls for pages that run
	forgot   string          // the session in which old threads were forgotten
	nextRead time.Time
	// nextPaste is when the next text that came as a file may be downloaded.
	nextPaste time.Time
}

// NewListener makes a listener for a bot's token, whose gateway is on a network.
func NewListener(api *discordapi.Client, st *store.Store, token string, n adapter.Network) *Listener {
	gateway := NewGateway(token)
	gateway.network = n
	return &Listener{
		api: api, store: st, gateway: gateway, guilds: inbound.NewGuilds(), convert: inbound.Convert,
		read:   newBookmarks(nil),
		hidden: map[int64]bool{}, ballots: ballots(st), waiting: newWaiting(),
		pages: make(chan page, maxReads), found: make(chan foundChannel),
	}
}

// Listen implements adapter.Listener.
func (l *Listener) Listen(ctx context.Context, s *adapter.Shell) error {
	wanted, err := l.prepare(ctx)
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
	beside, stop := context.WithCancel(ctx)
	defer l.calls.Wait()
	defer stop()
	if err := l.resumeCalls(ctx, beside, s); err != nil {
		return err
	}
	l.calls.Go(func() { l.watchStarts(beside, s) })
	if l.application != "" {
		l.calls.Go(func() { l.registerCommands(beside, s) })
	}
	return l.loop(ctx, beside, s, broken)
}

// resumeCalls makes what waits for calls of the connection before wait for those of this one.
func (l *Listener) resumeCalls(ctx, beside context.Context, s *adapter.Shell) error {
	l.pages, l.reads, l.voters, l.beside = make(chan page, maxReads), 0, nil, beside
	for _, g := range l.read.gaps {
		g.reading = false
	}
	clear(l.lookups)
	return l.releaseAll(ctx, s)
}

// loop receives events until the connection is broken. What calls beside it have read is stored between them.
func (l *Listener) loop(ctx, beside context.Context, s *adapter.Shell, broken <-chan struct{}) error {
	probe := time.NewTicker(probeInterval)
	defer probe.Stop()
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		again, err := l.ballots.Retry(ctx, s)
		if err != nil {
			return err
		}
		l.readMissed(beside, s)
		wake.Reset(l.wakeAfter(s.Now()))
		queue, voters := l.gateway.queue(), l.voters
		if len(queue) > 0 { // live events first
			voters = nil
		}
		if l.full() {
			queue = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again:
		case <-wake.C:
			err = l.releaseDue(ctx, s)
		case <-probe.C:
			s.Connected()
			err = l.forgetThreads(ctx, s)
		case e := <-queue:
			err = l.receive(ctx, s, e)
		case p := <-l.pages:
			err = l.storePage(ctx, s, p)
		case f := <-l.found:
			err = l.addFound(ctx, s, f)
		case v, more := <-voters:
			err = l.storeVoters(ctx, s, v, more)
		case <-broken:
			if len(queue) == 0 { // earlier events are received first
				return errors.New("the connection to Discord's gateway has ended")
			}
		}
		if err != nil {
			return err
		}
	}
}

// storeVoters stores the votes in a poll that were missed; there are no more if more is false.
func (l *Listener) storeVoters(ctx context.Context, s *adapter.Shell, v pollVoters, more bool) error {
	if !more {
		l.voters, l.heard = nil, nil
		return nil
	}
	return l.storeMissed(ctx, s, v)
}

// prepare checks, before a session begins, that it may begin, and returns the intents that are allowed.
func (l *Listener) prepare(ctx context.Context) (discordgo.Intent, error) {
	if l.gateway.resumes() {
		return 0, nil
	}
	gateway, err := l.api.Gateway(ctx)
	if err != nil {
		return 0, err
	}
	if gateway.Left < reservedSessions {
		err := fmt.Errorf("Discord lets the bot connect only %d times more today", gateway.Left) //nolint:staticcheck // a name
		return 0, &adapter.Failure{Class: msg.Rate, After: gateway.Till, Err: err}
	}
	l.gateway.address = gateway.URL
	app, err := l.api.Application(ctx)
	if err != nil {
		return 0, err
	}
	l.application = app.ID
	if app.HearsMembers() {
		return intents | discordgo.IntentGuildMembers, nil
	}
	return intents, nil
}

// receive stores one event, or lets it wait for something that comes before it.
func (l *Listener) receive(ctx context.Context, s *adapter.Shell, e *discordgo.Event) error {
	var u *discordapi.Update
	if !s.Decode(eventName(e), func() (err error) {
		u, err = discordapi.ParseUpdate(e.Type, l.session, e.Sequence, e.RawData)
		return err
	}) {
		return nil
	}
	if l.waits(s, u) {
		l.hold(s, u, e)
		return nil
	}
	return l.handle(ctx, s, u, e)
}

// handle stores one event; it retries until ctx ends. An event that cannot be decoded is skipped.
func (l *Listener) handle(ctx context.Context, s *adapter.Shell, u *discordapi.Update, e *discordgo.Event) error {
	if err := l.beginSession(ctx, s, u); err != nil {
		return err
	}
	l.readPastes(ctx, s, u.Message)
	var in adapter.Inbound
	var err error
	if !s.Decode(eventName(e), func() (err error) { in, err = l.convert(u, l.me, l.guilds); return err }) {
		return nil
	}
	if l.hear(u) {
		in.Messages = nil
	}
	if err := l.receiveBallot(ctx, s, &in); err != nil {
		return err
	}
	if m := u.Message; m != nil { // the bot's own messages move the bookmark too
		private := l.guilds.Private(m.GuildID, m.ChannelID)
		key, value := l.read.move(m.ChannelID, m.ID, private)
		in.Cursor = &adapter.Cursor{Key: key, Value: value}
		// it has no permissions that may change: the next session asks again
		if private && l.read.hidden[m.ChannelID] != "" {
			delete(l.read.hidden, m.ChannelID)
			if err := l.storeCursors(ctx, s, map[string]string{hiddenPrefix + m.ChannelID: ""}); err != nil {
				return err
			}
		}
	}
	switch {
	case len(in.Messages) > 0 && u.Interaction != nil:
		err = l.receiveInteraction(ctx, s, u.Interaction, in)
	case len(in.Messages)+len(in.Threads) > 0 || in.Cursor != nil:
		err = s.ReceiveAlways(ctx, in)
	}
	if err != nil {
		return err
	}
	l.readVotes(s, u.Type)
	return l.learnAndCatchUp(ctx, s, u)
}

// decode makes rows of a message that was missed, or reports that it is skipped. Texts that came as files are given by
// the URLs of these.
func (l *Listener) decode(s *adapter.Shell, e *discordgo.Event, pasted map[string]string) (u *discordapi.Update,
	in adapter.Inbound, ok bool) {
	ok = s.Decode(eventName(e), func() (err error) {
		if u, err = discordapi.ParseUpdate(e.Type, l.session, e.Sequence, e.RawData); err != nil {
			return err
		}
		for _, of := range inbound.Pastes(u.Message) {
			of.Pasted = pasted[of.Attachments[0].URL]
		}
		in, err = l.convert(u, l.me, l.guilds)
		return err
	})
	return u, in, ok
}

// learn caches what an event contains about guilds.
func (l *Listener) learn(s *adapter.Shell, u *discordapi.Update) {
	s.Decode(u.Type, func() error { l.guilds.Learn(u, l.me); return nil })
}

func eventName(e *discordgo.Event) string { return fmt.Sprint(e.Type, " ", e.Sequence) }

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
	*in, err = l.ballots.Receive(ctx, s, adapter.Ballot{ChatJID: m.ChatJID, Ref: m.ChatJID + " " + m.TargetID,
		Event: event}, nil)
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
	for _, g := range l.read.gaps { // the new session reads them again
		g.held = s.Now()
	}
	if err := l.releaseAll(ctx, s); err != nil {
		return err
	}
	l.session, l.me = u.Ready.SessionID, inbound.Self{Platform: s.Platform, ID: u.Ready.User.ID}
	return s.Retry(ctx, "reading bookmarks failed; retrying", func() error {
		stored, err := l.store.DaemonCursors(ctx, s.Daemon, "")
		l.read = newBookmarks(stored)
		return err
	})
}

// receiveInteraction stores a command or the press of a button, then confirms that to its user: the reply to a command
// is a message of its own, and a press that does not count is answered with the reason.
func (l *Listener) receiveInteraction(ctx context.Context, s *adapter.Shell, i *discordapi.Interaction,
	in adapter.Inbound) (err error) {
	text := "/" + i.Data.Name + ": on its way"
	if i.Type == discordapi.InteractionPress {
		text, err = s.ReceivePress(ctx, in)
	} else {
		err = s.ReceiveAlways(ctx, in)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if text == "" {
		err = l.api.Acknowledge(ctx, i)
	} else {
		err = l.api.Answer(ctx, i, text)
	}
	if err != nil {
		s.Log.Warn("interaction stored but not confirmed; Discord shows its user an error", "command", i.Data.Name,
			"chat", in.Messages[0].ChatJID, "err", err)
	}
	return nil
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
