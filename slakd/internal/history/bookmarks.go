// Package history reads the messages of the time when slakd was not connected: Slack sends an event again three times
// within some minutes, and then no more.
package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/store"
)

const (
	// bookmarkPrefix begins the keys of bookmarks, which the id of the conversation ends.
	bookmarkPrefix = "read "
	// beganKey is the key of the time of the first start. Nothing older is read.
	beganKey = "began"
	// maxQuiet is how long no event may be posted before the next one for events not to have been given up: Slack
	// sends each of them again for about six minutes.
	maxQuiet = 5 * time.Minute
	// lookInterval is how often the history is read while no event is posted.
	lookInterval = 15 * time.Minute
	// overlap is read again before each bookmark: for so long Slack may send again what it sent first, and
	// later messages may have been stored before it.
	overlap = 10 * time.Minute
	// maxDateDelay is how far behind a right clock the time of an answer may be, which has whole seconds.
	maxDateDelay = 5 * time.Second
	// maxOrdered is how long after a gap has opened live messages wait for those that were missed before them,
	// each for at most maxAwait: Slack waits three seconds for the acknowledgement.
	maxOrdered = 10 * time.Second
	maxAwait   = 1500 * time.Millisecond
)

// Bookmarks say how far each conversation has been read. Times are unix microseconds, the unit of Slack's
// ids. They are safe for concurrent use.
type Bookmarks struct {
	store  *store.Store
	daemon string
	now    func() time.Time

	mu     sync.Mutex
	loaded bool
	last   map[string]int64 // by conversation
	began  int64
	// slackTime is the time of Slack's clock at slackTimeAt of the machine's, zero if it is not known.
	slackTime, slackTimeAt time.Time
	heard                  time.Time // of the last connection, or the last event that was posted
	gap                    int       // the number of the gap that is open, 0 if none is
	gaps                   int       // how many there were
	again                  bool      // messages may have been missed since the gap opened
	read                   map[string]bool
	opened                 chan struct{} // has room for one signal

	openedAt time.Time       // when the last gap opened
	awaited  map[string]bool // conversations in which live messages wait
	changed  chan struct{}   // closed, and replaced, when one has been read
}

// NewBookmarks makes bookmarks; Load reads them. A gap is open from the start, so that no event moves a bookmark past
// the time when slakd did not run.
func NewBookmarks(st *store.Store, daemon string, now func() time.Time) *Bookmarks {
	return &Bookmarks{
		store: st, daemon: daemon, now: now, last: map[string]int64{}, read: map[string]bool{},
		opened:  make(chan struct{}, 1),
		awaited: map[string]bool{}, changed: make(chan struct{}),
		gap: 1, gaps: 1,
	}
}

// Load reads the bookmarks, unless that was done. At the first start ever it stores that nothing older is
// to be read: Slack's time is to be set before. Its error is ctx's.
func (b *Bookmarks) Load(ctx context.Context, s *adapter.Shell) error {
	b.mu.Lock()
	loaded := b.loaded
	b.mu.Unlock()
	if loaded {
		return nil
	}
	return s.Retry(ctx, "reading bookmarks failed; retrying", func() error {
		stored, err := b.store.DaemonCursors(ctx, b.daemon, "")
		if err != nil {
			return err
		}
		b.mu.Lock()
		now := b.slackNow().UnixMicro()
		b.mu.Unlock()
		began := micros(stored[beganKey])
		if began == 0 || began > now {
			began = now
			err = b.store.Write(ctx, func(tx *store.Tx) error {
				return tx.PutCursor(b.daemon, beganKey,
					timestamp(began))
			})
		}
		if err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		for key, value := range stored {
			if channel, is := strings.CutPrefix(key, bookmarkPrefix); is {
				b.last[channel] = micros(value)
			}
		}
		b.began, b.loaded = began, true
		return nil
	})
}

// SetSlackTime notes the present time of Slack's clock, in whole seconds. It counts where the machine's clock shows
// another time, and also if that is set later.
func (b *Bookmarks) SetSlackTime(slack time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if diff := now.Sub(slack); diff >= 0 && diff < maxDateDelay {
		slack = now
	}
	b.slackTime, b.slackTimeAt = slack, now
}

// slackNow is the time of Slack's clock, as far as it is known. The caller holds the lock.
func (b *Bookmarks) slackNow() time.Time {
	if b.slackTime.IsZero() {
		return b.now()
	}
	return b.slackTime.Add(b.now().Sub(b.slackTimeAt)) // elapsed time: setting the clock changes nothing
}

// sane bounds where a bookmark goes, so that a malformed message from the future hides none: what is read begins
// overlap before it. The caller holds the lock.
func (b *Bookmarks) sane(at int64) int64 { return min(at, b.slackNow().Add(overlap).UnixMicro()) }

// wall is the time on the wall: a machine may have been asleep.
func (b *Bookmarks) wall() time.Time { return b.now().Round(0) }

// Connected notes a new connection. A gap opens before it, or one that is open begins again: what Slack sent into
// the connection before it may be sent again in five minutes, or not at all.
func (b *Bookmarks) Connected() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open()
	b.heard = b.wall()
	b.signal()
}

// Posted notes a posted event, before it is stored. repeated says whether Slack has sent it before: then Slack may
// have given up others.
func (b *Bookmarks) Posted(repeated bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	quiet := b.wall().Sub(b.heard) > maxQuiet
	b.heard = b.wall()
	if repeated || quiet {
		b.miss()
	}
}

// Missed opens a gap. One that is open is read to its end first, and then everything again.
func (b *Bookmarks) Missed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.miss()
}

// Look opens a gap if no event has been posted for long: it may be that none arrives.
func (b *Bookmarks) Look() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.wall()
	if b.gap == 0 && now.Sub(b.heard) >= lookInterval && now.Sub(b.openedAt) >= lookInterval {
		b.miss()
	}
}

func (b *Bookmarks) miss() {
	if b.gap != 0 {
		b.again = true
		return
	}
	b.open()
	b.signal()
}

func (b *Bookmarks) open() {
	b.gaps++
	b.gap, b.again, b.openedAt = b.gaps, false, b.wall()
	clear(b.read)
}

// signal wakes the reader if a gap is open.
func (b *Bookmarks) signal() {
	if b.gap != 0 {
		select {
		case b.opened <- struct{}{}:
		default:
		}
	}
}

// Move returns the bookmark to store with a live message, nil to leave it: it does not pass a gap.
func (b *Bookmarks) Move(channel, ts string) *adapter.Cursor {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.sane(micros(ts))
	if at <= b.last[channel] || b.gap != 0 && (b.again || !b.read[channel]) {
		return nil
	}
	b.last[channel] = at
	return &adapter.Cursor{Key: bookmarkPrefix + channel, Value: timestamp(at)}
}

// advance is Move for a message that was missed: all before it are stored.
func (b *Bookmarks) advance(channel string, at int64) *adapter.Cursor {
	b.mu.Lock()
	defer b.mu.Unlock()
	at = b.sane(at)
	if at <= b.last[channel] {
		return nil
	}
	b.last[channel] = at
	return &adapter.Cursor{Key: bookmarkPrefix + channel, Value: timestamp(at)}
}

// settle ends the gap of one conversation.
func (b *Bookmarks) settle(channel string, gap int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gap == gap {
		b.read[channel] = true
		b.release(channel)
	}
}

// release lets the live messages of conversations go on. The caller holds the lock.
func (b *Bookmarks) release(channels ...string) {
	for _, channel := range channels {
		delete(b.awaited, channel)
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// Await returns once the missed messages of a conversation are stored, so that a live message comes after it. Soon
// after the gap has opened the order is worth a delay; later, and of a conversation that cannot be read,
// live messages do not wait.
func (b *Bookmarks) Await(ctx context.Context, channel string) {
	late := time.NewTimer(maxAwait)
	defer late.Stop()
	for {
		b.mu.Lock()
		waits := b.gap != 0 && !b.read[channel] && b.wall().Sub(b.openedAt) < maxOrdered
		if waits {
			b.awaited[channel] = true
		}
		changed := b.changed
		b.mu.Unlock()
		if !waits {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// nextOf is the index of the conversation to read next: one in which live messages wait, else the first.
func (b *Bookmarks) nextOf(unread []string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, slices.IndexFunc(unread, func(channel string) bool { return b.awaited[channel] }))
}

// close ends a gap, unless a newer one is open or has to be, and reports whether none is open.
func (b *Bookmarks) close(gap int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.gap != gap:
	case b.again:
		b.open()
	default:
		b.gap = 0
		b.release(slices.Collect(maps.Keys(b.awaited))...)
	}
	return b.gap == 0
}

// current is the number of the gap that is open, 0 for none.
func (b *Bookmarks) current() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gap
}

// left are those of the given conversations, and of those with a bookmark, that have not been read since
// the gap opened, the one with the latest message first.
func (b *Bookmarks) left(listed []string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Collect(maps.Keys(b.last))
	all = slices.DeleteFunc(append(all, listed...), func(channel string) bool { return b.read[channel] })
	slices.SortFunc(all, func(one, other string) int {
		return cmp.Or(cmp.Compare(b.last[other], b.last[one]), strings.Compare(one, other))
	})
	return slices.Compact(all)
}

// span is the part of a conversation that is read: posts after since, and threads whose first message is after floor.
func (b *Bookmarks) span(channel string, maxAge time.Duration) *gathering {
	b.mu.Lock()
	defer b.mu.Unlock()
	floor := max(b.began, b.slackNow().Add(-maxAge).UnixMicro())
	last := b.last[channel]
	g := &gathering{channel: channel, since: max(floor, last-overlap.Microseconds()), floor: floor, bookmark: last}
	if !b.slackTime.IsZero() {
		g.upTo = b.slackNow().Add(-settleTime).UnixMicro()
	}
	return g
}

// forget deletes the bookmark of a conversation that the bot is no longer in.
func (b *Bookmarks) forget(ctx context.Context, channel string) error {
	b.mu.Lock()
	delete(b.last, channel)
	b.mu.Unlock()
	return b.store.Write(ctx, func(tx *store.Tx) error { return tx.DeleteCursor(b.daemon, bookmarkPrefix+channel) })
}

// micros is the time in the id of a message, 0 if it is invalid.
func micros(ts string) int64 {
	seconds, rest, _ := strings.Cut(ts, ".")
	whole, err := strconv.ParseUint(seconds, 10, 40)
	part, bad := strconv.ParseUint((rest + "000000")[:6], 10, 32)
	if err != nil || bad != nil {
		return 0
	}
	return int64(whole)*int64(time.Second/time.Microsecond) + int64(part) //nolint:gosec // 40 bits and 6 digits
}

// timestamp is the id of a message at a time.
func timestamp(at int64) string {
	const second = int64(time.Second / time.Microsecond)
	return fmt.Sprintf("%d.%06d", at/second, at%second)
}
