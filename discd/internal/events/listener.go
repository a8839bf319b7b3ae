// Package events receives Discord's events over the gateway, and reads the messages that were missed
// while discd was not connected.
package events

import (
	"context"
	"errors"
	"fmt"
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

// Listener implements adapter.Listener. Its goroutine alone stores rows; calls beside it hand over their results.
type Listener struct {
	api      *discordapi.Client
	store    *store.Store
	gateway  *Gateway
	decoder  *decoder
	backfill *backfill
	votes    *voteReader
	pastes   *pasteReader
	commands *commandMenu
	waiting  waiting

	calls  sync.WaitGroup  // that run beside the receive loop
	beside context.Context //nolint:containedctx // of the calls of one connection
	found  chan foundChannel
}

// NewListener makes a listener for a bot's token, whose gateway is on a network.
func NewListener(api *discordapi.Client, st *store.Store, token string, n adapter.Network) *Listener {
	l := &Listener{
		api: api, store: st, gateway: NewGateway(token), pastes: &pasteReader{api: api},
		decoder:  &decoder{guilds: inbound.NewGuilds(), ballots: ballots(st), convert: inbound.Convert},
		commands: &commandMenu{api: api, store: st}, waiting: newWaiting(), found: make(chan foundChannel),
	}
	l.gateway.network = n
	l.votes = &voteReader{api: api, store: st, decoder: l.decoder, hidden: map[int64]bool{}}
	l.backfill = &backfill{
		api: api, store: st, decoder: l.decoder, pastes: l.pastes, read: newBookmarks(nil), calls: &l.calls,
		pages: make(chan page, maxReads),
	}
	return l
}

// Listen implements adapter.Listener.
func (l *Listener) Listen(ctx context.Context, s *adapter.Shell) error {
	wanted, err := l.prepare(ctx)
	if err != nil {
		return ConnectionError(err)
	}
	if err := l.decoder.ballots.Load(ctx, s); err != nil {
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
	l.calls.Go(func() { watchStarts(beside, s, l.api, l.gateway) })
	if l.commands.application != "" {
		l.calls.Go(func() { l.commands.register(beside, s) })
	}
	return l.loop(ctx, beside, s, broken)
}

// resumeCalls prepares for the calls of a connection, in place of those of the one before.
func (l *Listener) resumeCalls(ctx, beside context.Context, s *adapter.Shell) error {
	l.beside = beside
	l.backfill.resume()
	l.votes.read = nil
	clear(l.waiting.lookups)
	return l.releaseAll(ctx, s, false)
}

// loop receives events until the connection is broken. Results of the calls beside it are stored between them.
func (l *Listener) loop(ctx, beside context.Context, s *adapter.Shell, broken <-chan struct{}) error {
	probe := time.NewTicker(probeInterval)
	defer probe.Stop()
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		again, err := l.decoder.ballots.Retry(ctx, s)
		if err != nil {
			return err
		}
		l.backfill.start(beside, s, l.waiting.holds)
		wake.Reset(l.wakeAfter(s.Now()))
		queue, voters := l.gateway.queue(), l.votes.read
		if len(queue) > 0 { // live events first
			voters = nil
		}
		if l.waiting.full() {
			queue = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again:
		case <-wake.C:
			err = l.releaseAll(ctx, s, true)
		case <-probe.C:
			s.Connected()
			err = l.backfill.forgetThreads(ctx, s)
		case e := <-queue:
			err = l.receive(ctx, s, e)
		case p := <-l.backfill.pages:
			err = l.storePage(ctx, s, p)
		case f := <-l.found:
			err = l.addFound(ctx, s, f)
		case v, more := <-voters:
			err = l.votes.storePoll(ctx, s, v, more)
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

// storePage stores a page of missed messages. The events of a channel pass once nothing is missed there any more.
func (l *Listener) storePage(ctx context.Context, s *adapter.Shell, p page) error {
	channel, err := l.backfill.storePage(ctx, s, p)
	if err != nil || channel == "" {
		return err
	}
	return l.release(ctx, s, channel)
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
		err := fmt.Errorf("Discord lets the bot connect only %d times more today", gateway.Left)
		return 0, &adapter.Failure{Class: msg.Rate, After: gateway.Till, Err: err}
	}
	l.gateway.address = gateway.URL
	app, err := l.api.Application(ctx)
	if err != nil {
		return 0, err
	}
	l.commands.application = app.ID
	if app.HearsMembers() {
		return intents | discordgo.IntentGuildMembers, nil
	}
	return intents, nil
}

// receive stores one event, or lets it wait for something that comes before it.
func (l *Listener) receive(ctx context.Context, s *adapter.Shell, e *discordgo.Event) error {
	u, ok := l.decoder.parse(s, e)
	if !ok {
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
	l.pastes.readNew(ctx, s, u.Message)
	in, ok := l.decoder.rows(s, u, e)
	if !ok {
		return nil
	}
	if l.votes.hear(u) {
		in.Messages = nil
	}
	if err := l.decoder.receiveBallot(ctx, s, &in); err != nil {
		return err
	}
	var err error
	if u.Message != nil { // the bot's own messages move the bookmark too
		if in.Cursor, err = l.backfill.pass(ctx, s, u.Message); err != nil {
			return err
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
	if l.votes.lacks(u.Type) {
		l.calls.Go(l.votes.reading(l.beside, s))
	}
	return l.learnAndCatchUp(ctx, s, u)
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
	l.backfill.holdNothing(s.Now()) // the new session reads the gaps again
	if err := l.releaseAll(ctx, s, false); err != nil {
		return err
	}
	l.decoder.session = u.Ready.SessionID
	l.decoder.me = inbound.Self{Platform: s.Platform, ID: u.Ready.User.ID}
	return l.backfill.load(ctx, s)
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

// ConnectionError says why a connection ended, with advice for operators.
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
