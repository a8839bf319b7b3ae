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
	beside  context.Context //nolint:containedctx // of the calls of one connection
}

func newWaiting() waiting {
	return waiting{held: map[string][]*discordgo.Event{}, lookups: map[string]bool{}}
}

// full reports whether no more events can wait, so that the gateway has to.
func (w *waiting) full() bool { return w.count >= maxHeld }

// foundChannel is a channel that was looked up.
type foundChannel struct {
	channel discordapi.Channel
	err     error // why Discord does not show it
}

// waits reports whether an event has to wait, and looks up its channel if that is not known.
func (l *Listener) waits(s *adapter.Shell, u *discordapi.Update) bool {
	guild, channel := u.Place()
	if channel == "" {
		return false
	}
	if l.guilds.Lacks(u) != "" {
		if !l.lookups[channel] {
			l.lookups[channel] = true
			ctx, found := l.beside, l.found
			l.calls.Go(func() { l.lookUp(ctx, s, guild, channel, found) })
		}
		return true
	}
	if u.Interaction != nil { // its user waits for seconds only
		return false
	}
	g := l.read.gaps[channel]
	return len(l.held[channel]) > 0 || g != nil && g.held.After(s.Now())
}

// hold lets an event wait. If too many wait, those that wait for missed messages no longer do.
func (l *Listener) hold(s *adapter.Shell, u *discordapi.Update, e *discordgo.Event) {
	_, channel := u.Place()
	l.held[channel] = append(l.held[channel], e)
	if l.count++; l.full() {
		for _, g := range l.read.gaps {
			g.held = s.Now()
		}
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
	delete(l.lookups, f.channel.ID)
	l.guilds.Add(f.channel)
	// a thread that was archived when the session began
	if f.err == nil && l.read.last[bookmarkPrefix+f.channel.ID] != "" {
		if err := l.catchUp(ctx, s, f.channel); err != nil {
			return err
		}
	}
	return l.release(ctx, s, f.channel.ID)
}

// release lets the events of a channel pass, as far as they do not wait for something else.
func (l *Listener) release(ctx context.Context, s *adapter.Shell, channel string) error {
	events := l.held[channel]
	delete(l.held, channel)
	l.count -= len(events)
	for i, e := range events {
		if err := l.receive(ctx, s, e); err != nil {
			l.held[channel] = append(l.held[channel], events[i:]...)
			l.count += len(events[i:])
			return err
		}
	}
	return nil
}

// releaseAll lets all events pass, as far as they do not wait for something else.
func (l *Listener) releaseAll(ctx context.Context, s *adapter.Shell) error {
	for _, channel := range slices.Sorted(maps.Keys(l.held)) {
		if err := l.release(ctx, s, channel); err != nil {
			return err
		}
	}
	return nil
}

// releaseDue lets events pass that have waited for missed messages for long enough.
func (l *Listener) releaseDue(ctx context.Context, s *adapter.Shell) error {
	now := s.Now()
	for _, channel := range slices.Sorted(maps.Keys(l.held)) {
		if g := l.read.gaps[channel]; g == nil || g.held.After(now) || l.lookups[channel] {
			continue
		}
		if err := l.release(ctx, s, channel); err != nil {
			return err
		}
	}
	return nil
}

// wakeAfter is how long readMissed and releaseDue have nothing to do, unless something happens.
func (l *Listener) wakeAfter(now time.Time) time.Duration {
	wait := probeInterval
	if due, some := l.read.dueAt(); some && l.reads < maxReads {
		if l.nextRead.After(due) {
			due = l.nextRead
		}
		wait = min(wait, due.Sub(now))
	}
	for channel := range l.held {
		if g := l.read.gaps[channel]; g != nil && !l.lookups[channel] {
			wait = min(wait, g.held.Sub(now))
		}
	}
	return max(wait, 0)
}
