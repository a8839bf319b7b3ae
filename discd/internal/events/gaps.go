package events

import (
	"slices"
	"time"

	"arizuko/discd/internal/discordapi"
)

const (
	// maxReads bounds the calls that read missed messages at once, and readInterval is the shortest time
	// between two of them, so that most of the bot's calls are left for sending.
	maxReads     = 3
	readInterval = 100 * time.Millisecond
	// firstReadDelay is the pause after a call that fails; it doubles with each, up to maxReadDelay.
	firstReadDelay = time.Second
	maxReadDelay   = 5 * time.Minute
	// maxHold is how long the events of a channel wait for the messages that were missed there before them.
	maxHold = 10 * time.Second
	// maxHeld bounds the events that wait, in all channels.
	maxHeld = 1000
)

// gap is a channel in which messages were missed: those after its bookmark.
type gap struct {
	channel  string
	private  bool
	parent   string    // the channel of a thread that was found in the archive, "" for none
	archive  bool      // not messages were missed but public threads of the channel, which are archived
	joined   bool      // of archived threads: private ones in which the bot is
	quiet    bool      // it is read after those that are not
	after    string    // the last message that was read, or of archived threads the last one read before in the guild
	before   time.Time // of archived threads: those archived before are on the next page; zero for the first
	below    string    // of joined threads: those made before this one are on the next page; "" for the first
	until    string    // of joined threads: those made before this one are not listed
	live     string    // the newest message that the session has sent meanwhile
	due      time.Time // when the next page is read at the earliest
	held     time.Time // until when the channel's events wait for it
	reading  bool
	blocked  bool // Discord does not show the channel; its bookmark stays
	failures int
	count    int // messages that were read
	order    int // in the queue of gaps
}

// key names a gap: a channel may also have archived threads.
func (g *gap) key() string {
	switch {
	case g.joined:
		return "joined " + g.channel
	case g.archive:
		return "archive " + g.channel
	}
	return g.channel
}

// open notes a gap.
func (b *bookmarks) open(g *gap) {
	if b.gaps[g.key()] == nil {
		b.queued++
		g.order = b.queued
		b.gaps[g.key()] = g
	}
}

// next returns the gap of which the next page is to be read, nil for none now: first those for which events
// wait, then those that are not quiet, and each in turn.
func (b *bookmarks) next(now time.Time, waits func(channel string) bool) (first *gap) {
	rank := func(g *gap) int {
		switch {
		case !g.archive && waits(g.channel):
			return 0
		case !g.quiet:
			return 1
		}
		return 2
	}
	for _, g := range b.gaps {
		if g.reading || g.blocked || g.due.After(now) {
			continue
		}
		if first == nil || rank(g) < rank(first) || rank(g) == rank(first) && g.order < first.order {
			first = g
		}
	}
	return first
}

// unblock lets a channel be read that Discord shows again: from its bookmark, if it has one.
func (b *bookmarks) unblock(channel string, held time.Time) {
	if g := b.gaps[channel]; g != nil {
		g.blocked, g.held = false, held
	} else if last := b.last[bookmarkPrefix+channel]; last != "" {
		b.open(&gap{channel: channel, quiet: true, after: last, held: held})
	}
}

// again puts a gap at the end of the queue.
func (b *bookmarks) again(g *gap) {
	b.queued++
	g.order = b.queued
}

// dueAt is when the next page may be read, if there is one that is not being read.
func (b *bookmarks) dueAt() (at time.Time, some bool) {
	for _, g := range b.gaps {
		if !g.reading && !g.blocked && (!some || g.due.Before(at)) {
			at, some = g.due, true
		}
	}
	return at, some
}

// close ends a gap whose messages were read, and returns its bookmark. The session has sent all that came later.
func (b *bookmarks) close(g *gap) (k, value string) {
	delete(b.gaps, g.key())
	k = bookmarkKey(g.channel, g.private)
	b.last[k] = newest(newest(b.last[k], g.after), g.live)
	return k, b.last[k]
}

// searched reports whether all that archived threads of a channel may have is read.
func (b *bookmarks) searched(channel string) bool {
	for _, g := range b.gaps {
		if g.parent == channel || g.archive && g.channel == channel {
			return false
		}
	}
	return true
}

// bound moves the beginning of a gap to the oldest message that is still read, and reports whether that skips
// a time.
func (g *gap) bound(oldest string) bool {
	if g.archive || !discordapi.Younger(oldest, g.after) {
		return false
	}
	g.after = oldest
	return true
}

// read moves a gap past a page, and reports whether it was the last one.
func (g *gap) read(ids []string) (over bool) {
	before := g.after
	for _, id := range ids {
		g.after = newest(g.after, id)
	}
	g.count += len(ids)
	g.failures = 0
	return len(ids) < discordapi.MaxPage || g.after == before
}

// fail plans the next attempt after a call that failed.
func (g *gap) fail(now time.Time, after time.Duration) {
	g.due = now.Add(max(after, min(firstReadDelay<<min(g.failures, 20), maxReadDelay)))
	g.failures++
}

// found takes a page of archived threads, and returns those that were archived since the last message that was read
// before. over means that the next page has none.
func (g *gap) found(page []discordapi.Channel, more bool) (threads []discordapi.Channel, over bool) {
	since := time.UnixMilli(discordapi.SnowflakeTime(g.after))
	isOld := func(c discordapi.Channel) bool { return c.ArchivedAt().Before(since) }
	g.failures = 0
	if !more || len(page) == 0 {
		return slices.DeleteFunc(page, isOld), true
	}
	last := page[len(page)-1]
	if g.joined { // in the order of their ids
		g.below = last.ID
		return slices.DeleteFunc(page, isOld), discordapi.Younger(g.until, last.ID)
	}
	g.before = last.ArchivedAt()
	return slices.DeleteFunc(page, isOld), isOld(last)
}
