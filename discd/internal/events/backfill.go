package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/inbound"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// page is the result of a call about a gap.
type page struct {
	gap      *gap
	messages []json.RawMessage
	ended    map[int]json.RawMessage // polls that ended, by the message about that
	pasted   map[string]string       // texts that came as files, by the URLs of these
	threads  []discordapi.Channel    // of a gap of archived threads
	more     bool
	err      error
}

// backfill reads the messages that were missed, a page after another, beside the receive loop. That stores them.
type backfill struct {
	api     *discordapi.Client
	store   *store.Store
	decoder *decoder
	pastes  *pasteReader
	read    *bookmarks

	calls  *sync.WaitGroup
	pages  chan page // of the present connection
	reads  int       // calls for pages that run
	next   time.Time // when the next call may begin
	forgot string    // the session in which old threads were forgotten
}

// load reads the bookmarks, when a session begins.
func (b *backfill) load(ctx context.Context, s *adapter.Shell) error {
	return s.Retry(ctx, "reading bookmarks failed; retrying", func() error {
		stored, err := b.store.DaemonCursors(ctx, s.Daemon, "")
		b.read = newBookmarks(stored)
		return err
	})
}

// resume forgets the calls of an earlier connection.
func (b *backfill) resume() {
	b.pages, b.reads = make(chan page, maxReads), 0
	for _, g := range b.read.gaps {
		g.reading = false
	}
}

// holdNothing lets no event wait for missed messages any more.
func (b *backfill) holdNothing(now time.Time) {
	for _, g := range b.read.gaps {
		g.held = now
	}
}

// start begins the calls for the next pages of missed messages: first of the channels where events wait.
func (b *backfill) start(ctx context.Context, s *adapter.Shell, waits func(channel string) bool) {
	for now := s.Now(); b.reads < maxReads && !b.next.After(now); now = s.Now() {
		g := b.read.next(now, waits)
		if g == nil {
			return
		}
		if g.bound(b.oldest(s)) {
			s.Log.Info("messages older than MAX_AGE are not read, if any were missed", "channel", g.channel)
		}
		g.reading = true
		b.reads++
		b.next = now.Add(readInterval)
		asked, pages := *g, b.pages
		b.calls.Go(func() { pages <- b.readPage(ctx, g, &asked) })
	}
}

// dueIn is how long start has nothing to do, if there is something to wait for.
func (b *backfill) dueIn(now time.Time) (wait time.Duration, some bool) {
	due, some := b.read.dueAt()
	if b.next.After(due) {
		due = b.next
	}
	return due.Sub(now), some && b.reads < maxReads
}

// pass returns the bookmark after a message that the session has sent.
func (b *backfill) pass(ctx context.Context, s *adapter.Shell, m *discordapi.Message) (*adapter.Cursor, error) {
	private := b.decoder.guilds.Private(m.GuildID, m.ChannelID)
	key, value := b.read.move(m.ChannelID, m.ID, private)
	// it has no permissions that may change: the next session asks again
	if private && b.read.hidden[m.ChannelID] != "" {
		delete(b.read.hidden, m.ChannelID)
		if err := b.storeCursors(ctx, s, map[string]string{hiddenPrefix + m.ChannelID: ""}); err != nil {
			return nil, err
		}
	}
	return &adapter.Cursor{Key: key, Value: value}, nil
}

// oldest is an id before the oldest message that is still read.
func (b *backfill) oldest(s *adapter.Shell) string {
	return discordapi.SnowflakeAt(s.Now().Add(-s.MaxAge).UnixMilli())
}

// readPage makes one call about a gap.
func (b *backfill) readPage(ctx context.Context, g, asked *gap) page {
	p := page{gap: g}
	switch {
	case asked.joined:
		p.threads, p.more, p.err = b.api.JoinedArchivedThreads(ctx, asked.channel, asked.below)
		return p
	case asked.archive:
		p.threads, p.more, p.err = b.api.ArchivedThreads(ctx, asked.channel, asked.before)
		return p
	}
	if p.messages, p.err = b.api.MessagesAfter(ctx, asked.channel, asked.after); p.err == nil {
		p.ended, p.err = b.endedPolls(ctx, asked.channel, p.messages)
	}
	if p.err == nil {
		p.pasted = b.pastes.readMissed(ctx, p.messages)
	}
	return p
}

// endedPolls reads the polls of the bot whose end is among missed messages, which do not have its counts.
func (b *backfill) endedPolls(ctx context.Context, channel string, messages []json.RawMessage) (map[int]json.RawMessage,
	error) {
	ended := map[int]json.RawMessage{}
	for i, raw := range messages {
		var m discordapi.Message
		if json.Unmarshal(raw, &m) != nil || m.Type != discordapi.MessagePollResult || m.Reference == nil ||
			!discordapi.IsID(m.Reference.MessageID) {
			continue
		}
		poll, err := b.api.Message(ctx, channel, m.Reference.MessageID)
		switch {
		case err == nil:
			ended[i] = poll
		case discordapi.Failure(err).Class != msg.Permanent:
			return nil, err
		}
	}
	return ended, nil
}

// storePage stores the result of a call about a gap, and returns the channel whose events no longer wait for it, ""
// for none. The session has other gaps if it is a new one.
func (b *backfill) storePage(ctx context.Context, s *adapter.Shell, p page) (done string, err error) {
	g := p.gap
	b.reads--
	g.reading = false
	switch {
	case b.read.gaps[g.key()] != g || ctx.Err() != nil:
		return "", ctx.Err()
	case p.err != nil:
		return b.readFailed(ctx, s, g, p.err)
	case g.archive:
		return "", b.storeArchived(ctx, s, p)
	}
	var ids []string
	for _, raw := range p.messages {
		ids = append(ids, discordapi.IDOf(raw))
	}
	over := g.read(ids)
	key, value := bookmarkKey(g.channel, g.private), g.after
	if over {
		key, value = b.read.close(g)
	} else {
		b.read.last[key] = value
		b.read.again(g)
	}
	err = b.storeMissedMessages(ctx, s, p, &adapter.Cursor{Key: key, Value: value})
	if err != nil || !over {
		return "", err
	}
	if g.count > 0 {
		s.Log.Info("missed messages stored", "channel", g.channel, "count", g.count)
	}
	return g.channel, b.endSearch(ctx, s, g.parent)
}

// storeMissedMessages stores a page of messages and the bookmark after them in one transaction, or one after another if
// the database refuses one of them.
func (b *backfill) storeMissedMessages(ctx context.Context, s *adapter.Shell, p page, bookmark *adapter.Cursor) error {
	var each []adapter.Inbound
	all := adapter.Inbound{Cursor: bookmark}
	for i, raw := range p.messages {
		u, in, ok := b.decoder.missed(s, &discordgo.Event{Type: "MESSAGE_CREATE", RawData: raw}, p.pasted)
		if !ok {
			continue
		}
		if poll := p.ended[i]; poll != nil {
			_, counted, ok := b.decoder.missed(s, &discordgo.Event{Type: "MESSAGE_UPDATE", RawData: poll}, nil)
			if ok && len(counted.Messages) > 0 && counted.Messages[0].Verb == msg.VerbPollEnd {
				in = counted
			}
		}
		if err := b.decoder.receiveBallot(ctx, s, &in); err != nil {
			return err
		}
		b.decoder.learn(s, u)
		each = append(each, in)
		all.Messages, all.Quoted = append(all.Messages, in.Messages...), append(all.Quoted, in.Quoted...)
		all.Chats, all.Threads = append(all.Chats, in.Chats...), append(all.Threads, in.Threads...)
	}
	refused := false
	err := s.Retry(ctx, "storing missed messages failed; retrying", func() error {
		err := s.Receive(ctx, all)
		if refused = errors.Is(err, store.ErrRefused); refused {
			return nil
		}
		return err
	})
	if err != nil || !refused {
		return err
	}
	for _, one := range append(each, adapter.Inbound{Cursor: bookmark}) {
		if err := s.ReceiveAlways(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// readFailed plans the next attempt at a gap. A channel that Discord does not show is not read again before the bot's
// permissions there change; a channel that is gone is forgotten. done is as for storePage.
func (b *backfill) readFailed(ctx context.Context, s *adapter.Shell, g *gap, err error) (done string,
	_ error) {
	f := discordapi.Failure(err)
	if f.Class != msg.Permanent {
		if g.failures == 0 && f.Class != msg.Rate {
			s.Log.Warn("reading missed messages failed; retrying", "channel", g.channel, "err", err)
		}
		g.fail(s.Now(), f.After)
		return "", nil
	}
	s.Log.Warn("missed messages not read: Discord does not show the channel", "channel", g.channel, "err", err)
	g.blocked, g.held = true, time.Time{}
	stored := map[string]string{}
	switch {
	case g.archive:
		delete(b.read.gaps, g.key())
	case discordapi.Gone(err):
		delete(b.read.gaps, g.key())
		stored[bookmarkKey(g.channel, g.private)] = ""
		stored[threadPrefix+g.channel] = ""
		delete(b.read.last, bookmarkKey(g.channel, g.private))
		delete(b.read.parents, g.channel)
	default:
		b.read.hidden[g.channel] = cmp.Or(b.decoder.guilds.Permissions(g.channel, b.decoder.me), inbound.Hidden)
		stored[hiddenPrefix+g.channel] = b.read.hidden[g.channel]
	}
	return g.channel, b.storeCursors(ctx, s, stored)
}

// storeArchived looks for missed messages in threads that were archived meanwhile.
func (b *backfill) storeArchived(ctx context.Context, s *adapter.Shell, p page) error {
	g := p.gap
	threads, over := g.found(p.threads, p.more)
	if over {
		delete(b.read.gaps, g.key())
	} else {
		b.read.again(g)
	}
	for i := range threads {
		threads[i].GuildID = b.decoder.guilds.GuildOf(g.channel)
		b.decoder.guilds.Add(threads[i])
	}
	if err := b.storeCursors(ctx, s, b.read.begin(g.after, threads...)); err != nil {
		return err
	}
	b.openGaps(s, &gap{quiet: true, parent: g.channel}, threads...)
	return b.endSearch(ctx, s, g.channel)
}

// endSearch forgets that archived threads of a channel may have missed messages, once those are read.
func (b *backfill) endSearch(ctx context.Context, s *adapter.Shell, channel string) error {
	if b.read.archive[channel] == "" || !b.read.searched(channel) {
		return nil
	}
	delete(b.read.archive, channel)
	return b.storeCursors(ctx, s, map[string]string{archivePrefix + channel: ""})
}

// catchUp stores bookmarks of channels that have become known, or visible, and opens their gaps.
func (b *backfill) catchUp(ctx context.Context, s *adapter.Shell, channels ...discordapi.Channel) error {
	if len(channels) == 0 {
		return nil
	}
	if err := b.storeCursors(ctx, s, b.read.begin(b.read.since[channels[0].GuildID], channels...)); err != nil {
		return err
	}
	b.openGaps(s, &gap{}, channels...)
	return nil
}

// openGaps opens the gaps of channels that have messages after their bookmarks. Those that the bot may not read
// cost nothing.
func (b *backfill) openGaps(s *adapter.Shell, like *gap, channels ...discordapi.Channel) {
	for _, c := range b.read.missed(channels...) {
		g := *like
		g.channel, g.after = c.ID, b.read.last[bookmarkPrefix+c.ID]
		if g.blocked = b.hides(c.ID); !g.blocked {
			g.held = s.Now().Add(maxHold)
		}
		b.read.open(&g)
	}
}

// hides reports whether Discord does not show the messages of a channel, as far as that is known.
func (b *backfill) hides(channel string) bool {
	now := b.decoder.guilds.Permissions(channel, b.decoder.me)
	return now == inbound.Hidden || b.read.hidden[channel] != "" && b.read.hidden[channel] == now
}

// catchUpGuild looks for missed messages in a guild, of which Discord has sent the channels and the active threads.
func (b *backfill) catchUpGuild(ctx context.Context, s *adapter.Shell, g *discordapi.Guild) error {
	known := slices.Concat(g.Channels, g.Threads)
	for i := range known {
		known[i].GuildID = g.ID
	}
	b.read.since[g.ID] = b.read.youngest(known...)
	stored := map[string]string{}
	for i := range g.Channels {
		id := g.Channels[i].ID
		lacking := b.read.lacking(id, g.Threads)
		if b.read.archive[id] == "" && b.read.since[g.ID] != "" && lacking != "" {
			b.read.archive[id] = b.read.since[g.ID]
			stored[archivePrefix+id] = b.read.since[g.ID]
		}
		since := b.read.archive[id]
		if since == "" || b.hides(id) {
			continue
		}
		b.read.open(&gap{channel: id, archive: true, quiet: true, after: since})
		if !g.Channels[i].IsForum() {
			b.read.open(&gap{channel: id, archive: true, joined: true, quiet: true, after: since,
				until: older(lacking, b.oldest(s))})
		}
	}
	if err := b.storeCursors(ctx, s, stored); err != nil {
		return err
	}
	return b.catchUp(ctx, s, known...)
}

// catchUpPrivate opens the gaps of private chats, since Discord does not say which have new messages.
func (b *backfill) catchUpPrivate(ctx context.Context, s *adapter.Shell) error {
	channels, old := b.read.private(s.Now())
	if len(channels) > maxPrivate {
		s.Log.Warn("missed messages are read in the private chats with the newest messages only", "count", maxPrivate,
			"skipped", len(channels)-maxPrivate)
		channels = channels[:maxPrivate]
	}
	for _, channel := range channels {
		if b.read.hidden[channel] != "" {
			continue
		}
		b.read.open(&gap{channel: channel, private: true, quiet: true, after: b.read.last[privatePrefix+channel],
			held: s.Now().Add(maxHold)})
	}
	gone := map[string]string{}
	for _, key := range old {
		gone[key] = ""
	}
	return b.storeCursors(ctx, s, gone)
}

// storeCursors stores values by key; "" removes one.
func (b *backfill) storeCursors(ctx context.Context, s *adapter.Shell, values map[string]string) error {
	if len(values) == 0 {
		return nil
	}
	return s.Retry(ctx, "storing bookmarks failed; retrying", func() error {
		return b.store.Write(ctx, func(tx *store.Tx) error {
			for key, value := range values {
				if err := (&adapter.Cursor{Key: key, Value: value}).Write(tx, s.Daemon); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
