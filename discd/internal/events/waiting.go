package events

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/bwmarrin/discordgo"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// waiting are the events that wait, by channel, in order: for the channel to be looked up, or for the messages that
// were missed there before them. Other channels do not wait. After a crash the messages among them are read again,
// since no bookmark has passed them.
type waiting struct {
	held    map[string][]*discordgo.Event
	count   int
	lookups map[string]bool // channels that are being looked up
}

func newWaiting() waiting {
	return waiting{held: map[string][]*discordgo.Event{}, lookups: map[string]bool{}}
}

// holds reports whether events of a channel wait.
func (w *waiting) holds(channel string) bool { return len(w.held[channel]) > 0 }

// full reports whether no more events can wait, so that the gateway has to.
func (w *waiting) full() bool { return w.count >= maxHeld }

// foundChannel is a channel that was looked up.
type foundChannel struct {
	channel discordapi.Channel
	err     error // why Discord does not show it
}

// waits reports whether an event has to wait, and looks up its channel if that is not known.
func (l *Listener) waits(s *adapter.Shell, u *discordapi.Update) bool {
	guild, channel := u.Place.GuildID, u.Place.ChannelID
	if channel == "" {
		return false
	}
	if l.decoder.guilds.Lacks(u) != "" {
		if !l.waiting.lookups[channel] {
			l.waiting.lookups[channel] = true
			ctx, found := l.beside, l.found
			l.calls.Go(func() { l.lookUp(ctx, s, guild, channel, found) })
		}
		return true
	}
	if u.Interaction != nil { // its user waits for seconds only
		return false
	}
	g := l.backfill.read.gaps[channel]
	return l.waiting.holds(channel) || g != nil && g.held.After(s.Now())
}

// hold lets an event wait. If too many wait, those that wait for missed messages no longer do.
func (l *Listener) hold(s *adapter.Shell, u *discordapi.Update, e *discordgo.Event) {
	l.waiting.held[u.Place.ChannelID] = append(l.waiting.held[u.Place.ChannelID], e)
	if l.waiting.count++; l.waiting.full() {
		l.backfill.holdNothing(s.Now())
	}
}

// lookUp asks for a channel until Discord answers.
func (l *Listener) lookUp(ctx context.Context, s *adapter.Shell, guild, channel string, found chan<- foundChannel) {
	f := foundChannel{}
	for delay := firstReadDelay; ; delay = min(2*delay, maxReadDelay) {
		err := l.api.Call(ctx, http.MethodGet, "channels/"+channel, nil, &f.channel)
		if err == nil {
			break
		}
		failure := discordapi.Failure(err)
		if failure.Class == msg.Permanent {
			f.err = err
			break
		}
		if ctx.Err() != nil {
			return
		}
		s.Log.Warn("looking up channel failed; retrying", "channel", channel, "err", err)
		adapter.Pause(ctx, max(failure.After, delay))
	}
	f.channel.ID, f.channel.GuildID = channel, guild
	select {
	case found <- f:
	case <-ctx.Done():
	}
}

// addFound caches a channel that was looked up, and lets its events pass. One that the bot may not see counts as
// no thread.
func (l *Listener) addFound(ctx context.Context, s *adapter.Shell, f foundChannel) error {
	if f.err != nil {
		s.Log.Warn("channel not visible; if it is a thread, its messages are stored in no thread", "channel",
			f.channel.ID, "err", f.err)
	}
	delete(l.waiting.lookups, f.channel.ID)
	l.decoder.guilds.Add(f.channel)
	// a thread that was archived when the session began
	if f.err == nil && l.backfill.read.last[bookmarkPrefix+f.channel.ID] != "" {
		if err := l.backfill.catchUp(ctx, s, f.channel); err != nil {
			return err
		}
	}
	return l.release(ctx, s, f.channel.ID)
}

// release lets the events of a channel pass, as far as they do not wait for something else.
func (l *Listener) release(ctx context.Context, s *adapter.Shell, channel string) error {
	events := l.waiting.held[channel]
	delete(l.waiting.held, channel)
	l.waiting.count -= len(events)
	for i, e := range events {
		if err := l.receive(ctx, s, e); err != nil {
			l.waiting.held[channel] = append(l.waiting.held[channel], events[i:]...)
			l.waiting.count += len(events[i:])
			return err
		}
	}
	return nil
}

// releaseAll lets all events pass, as far as they do not wait for something else. dueOnly means those that have waited
// for missed messages for long enough.
func (l *Listener) releaseAll(ctx context.Context, s *adapter.Shell, dueOnly bool) error {
	now := s.Now()
	for _, channel := range slices.Sorted(maps.Keys(l.waiting.held)) {
		g := l.backfill.read.gaps[channel]
		if dueOnly && (g == nil || g.held.After(now) || l.waiting.lookups[channel]) {
			continue
		}
		if err := l.release(ctx, s, channel); err != nil {
			return err
		}
	}
	return nil
}

// wakeAfter is how long backfill.start and releaseAll have nothing to do, unless something happens.
func (l *Listener) wakeAfter(now time.Time) time.Duration {
	wait := probeInterval
	if due, some := l.backfill.dueIn(now); some {
		wait = min(wait, due)
	}
	for channel := range l.waiting.held {
		if g := l.backfill.read.gaps[channel]; g != nil && !l.waiting.lookups[channel] {
			wait = min(wait, g.held.Sub(now))
		}
	}
	return max(wait, 0)
}
