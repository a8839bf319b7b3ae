package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/bwmarrin/discordgo"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/inbound"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// page is what a call about a gap returned.
type page struct {
	gap      *gap
	messages []json.RawMessage
	ended    map[int]json.RawMessage // polls that ended, by the message about that
	pasted   map[string]string       // texts that came as files, by the URLs of these
	threads  []discordapi.Channel    // of a gap of archived threads
	more     bool
	err      error
}

// readMissed starts the calls for the next pages of missed messages. Their results come beside live events.
func (l *Listener) readMissed(ctx context.Context, s *adapter.Shell) {
	for now := s.Now(); l.reads < maxReads && !l.nextRead.After(now); now = s.Now() {
		g := l.read.next(now, func(channel string) bool { return len(l.held[channel]) > 0 })
		if g == nil {
			return
		}
		if g.bound(l.oldest(s)) {
			s.Log.Info("messages older than MAX_AGE are not read, if any were missed", "channel", g.channel)
		}
		g.reading = true
		l.reads++
		l.nextRead = now.Add(readInterval)
		asked := *g
		l.calls.Go(func() { l.pages <- l.readPage(ctx, g, &asked) })
	}
}

// oldest is an id before the oldest message that is still read.
func (l *Listener) oldest(s *adapter.Shell) string {
	return discordapi.SnowflakeAt(s.Now().Add(-s.MaxAge).UnixMilli())
}

// readPage makes one call about a gap.
func (l *Listener) readPage(ctx context.Context, g, asked *gap) page {
	p := page{gap: g}
	switch {
	case asked.joined:
		p.threads, p.more, p.err = l.api.JoinedArchivedThreads(ctx, asked.channel, asked.below)
		return p
	case asked.archive:
		p.threads, p.more, p.err = l.api.ArchivedThreads(ctx, asked.channel, asked.before)
		return p
	}
	if p.messages, p.err = l.api.MessagesAfter(ctx, asked.channel, asked.after); p.err == nil {
		p.ended, p.err = l.endedPolls(ctx, asked.channel, p.messages)
	}
	if p.err == nil {
		p.pasted = l.pastes(ctx, p.messages)
	}
	return p
}

// endedPolls reads the polls of the bot whose end is among missed messages, which do not have its counts.
func (l *Listener) endedPolls(ctx context.Context, channel string, messages []json.RawMessage) (map[int]json.RawMessage,
	error) {
	ended := map[int]json.RawMessage{}
	for i, raw := range messages {
		var m discordapi.Message
		if json.Unmarshal(raw, &m) != nil || m.Type != discordapi.MessagePollResult || m.Reference == nil ||
			!discordapi.IsID(m.Reference.MessageID) {
			continue
		}
		poll, err := l.api.Message(ctx, channel, m.Reference.MessageID)
		switch {
		case err == nil:
			ended[i] = poll
		case discordapi.Failure(err).Class != msg.Permanent:
			return nil, err
		}
	}
	return ended, nil
}

// storePage stores what a call about a gap returned. The session has other gaps if it is a new one.
func (l *Listener) storePage(ctx context.Context, s *adapter.Shell, p page) error {
	g := p.gap
	l.reads--
	g.reading = false
	switch {
	case l.read.gaps[g.key()] != g || ctx.Err() != nil:
		return ctx.Err()
	case p.err != nil:
		return l.readFailed(ctx, s, g, p.err)
	case g.archive:
		return l.storeArchived(ctx, s, p)
	}
	var ids []string
	for _, raw := range p.messages {
		ids = append(ids, discordapi.IDOf(raw))
	}
	over := g.read(ids)
	key, value := bookmarkKey(g.channel, g.private), g.after
	if over {
		key, value = l.read.close(g)
	} else {
		l.read.last[key] = value
		l.read.again(g)
	}
	if err := l.storeMissedMessages(ctx, s, p, &adapter.Cursor{Key: key, Value: value}); err != nil || !over {
		return err
	}
	if g.count > 0 {
		s.Log.Info("missed messages stored", "channel", g.channel, "count", g.count)
	}
	if err := l.endSearch(ctx, s, g.parent); err != nil {
		return err
	}
	return l.release(ctx, s, g.channel)
}

// storeMissedMessages stores a page of messages and the bookmark after them in one transaction.
func (l *Listener) storeMissedMessages(ctx context.Context, s *adapter.Shell, p page, bookmark *adapter.Cursor) error {
	var all adapter.Inbound
	for i, raw := range p.messages {
		u, in, ok := l.decode(s, &discordgo.Event{Type: "MESSAGE_CREATE", RawData: raw}, p.pasted)
		if !ok {
			continue
		}
		if poll := p.ended[i]; poll != nil {
			if _, counted, ok := l.decode(s, &discordgo.Event{Type: "MESSAGE_UPDATE", RawData: poll}, nil); ok &&
				len(counted.Messages) > 0 && counted.Messages[0].Verb == msg.VerbPollEnd {
				in = counted
			}
		}
		if err := l.receiveBallot(ctx, s, &in); err != nil {
			return err
		}
		l.learn(s, u)
		all.Messages, all.Quoted = append(all.Messages, in.Messages...), append(all.Quoted, in.Quoted...)
		all.Chats, all.Threads = append(all.Chats, in.Chats...), append(all.Threads, in.Threads...)
	}
	all.Cursor = bookmark
	return l.storeAll(ctx, s, all)
}

// storeAll stores many rows in one transaction, or one after another if the database refuses one of them.
func (l *Listener) storeAll(ctx context.Context, s *adapter.Shell, all adapter.Inbound) error {
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
	for _, one := range oneByOne(all) {
		if err := s.ReceiveAlways(ctx, one); err != nil {
			return err
		}
	}
	return s.ReceiveAlways(ctx, adapter.Inbound{Cursor: all.Cursor})
}

// oneByOne are the messages of many rows, each with the post that it answers. The first messages of threads, which none
// answers here, come before them.
func oneByOne(all adapter.Inbound) (each []adapter.Inbound) {
	alone := slices.Clone(all.Quoted)
	for _, m := range all.Messages {
		one := adapter.Inbound{Messages: []*msg.Message{m}, Chats: all.Chats, Threads: all.Threads}
		answered := func(q *msg.Message) bool { return q.PlatformID == m.ReplyToID && q.ChatJID == m.ChatJID }
		for _, q := range all.Quoted {
			if answered(q) {
				one.Quoted = append(one.Quoted, q)
			}
		}
		alone = slices.DeleteFunc(alone, answered)
		each = append(each, one)
	}
	var first []adapter.Inbound
	for _, q := range alone {
		first = append(first, adapter.Inbound{Quoted: []*msg.Message{q}, Chats: all.Chats, Threads: all.Threads})
	}
	return append(first, each...)
}

// readFailed plans the next attempt at a gap. What Discord does not show is not read again before the bot's
// permissions there change; a channel that is gone is forgotten.
func (l *Listener) readFailed(ctx context.Context, s *adapter.Shell, g *gap, err error) error {
	f := discordapi.Failure(err)
	if f.Class != msg.Permanent {
		if g.failures == 0 && f.Class != msg.Rate {
			s.Log.Warn("reading missed messages failed; retrying", "channel", g.channel, "err", err)
		}
		g.fail(s.Now(), f.After)
		return nil
	}
	s.Log.Warn("missed messages not read: Discord does not show the channel", "channel", g.channel, "err", err)
	g.blocked, g.held = true, time.Time{}
	stored := map[string]string{}
	switch {
	case g.archive:
		delete(l.read.gaps, g.key())
	case discordapi.Gone(err):
		delete(l.read.gaps, g.key())
		stored[bookmarkKey(g.channel, g.private)] = ""
		stored[threadPrefix+g.channel] = ""
		delete(l.read.last, bookmarkKey(g.channel, g.private))
		delete(l.read.parents, g.channel)
	default:
		l.read.hidden[g.channel] = cmp.Or(l.guilds.Permissions(g.channel, l.me), inbound.Hidden)
		stored[hiddenPrefix+g.channel] = l.read.hidden[g.channel]
	}
	if err := l.storeCursors(ctx, s, stored); err != nil {
		return err
	}
	return l.release(ctx, s, g.channel)
}

// storeArchived looks for missed messages in threads that were archived meanwhile.
func (l *Listener) storeArchived(ctx context.Context, s *adapter.Shell, p page) error {
	g := p.gap
	threads, over := g.found(p.threads, p.more)
	if over {
		delete(l.read.gaps, g.key())
	} else {
		l.read.again(g)
	}
	for i := range threads {
		threads[i].GuildID = l.guilds.GuildOf(g.channel)
		l.guilds.Add(threads[i])
	}
	if err := l.storeCursors(ctx, s, l.read.begin(g.after, threads...)); err != nil {
		return err
	}
	l.openGaps(s, &gap{quiet: true, parent: g.channel}, threads...)
	return l.endSearch(ctx, s, g.channel)
}

// endSearch forgets that archived threads of a channel may have missed messages, once those are read.
func (l *Listener) endSearch(ctx context.Context, s *adapter.Shell, channel string) error {
	if l.read.archive[channel] == "" || !l.read.searched(channel) {
		return nil
	}
	delete(l.read.archive, channel)
	return l.storeCursors(ctx, s, map[string]string{archivePrefix + channel: ""})
}

// catchUp stores bookmarks of channels that have become known, or visible, and opens their gaps.
func (l *Listener) catchUp(ctx context.Context, s *adapter.Shell, channels ...discordapi.Channel) error {
	if len(channels) == 0 {
		return nil
	}
	if err := l.storeCursors(ctx, s, l.read.begin(l.read.since[channels[0].GuildID], channels...)); err != nil {
		return err
	}
	l.openGaps(s, &gap{}, channels...)
	return nil
}

// openGaps opens the gaps of channels that have messages after their bookmarks. Those that the bot may not read
// cost nothing.
func (l *Listener) openGaps(s *adapter.Shell, like *gap, channels ...discordapi.Channel) {
	for _, c := range l.read.missed(channels...) {
		g := *like
		g.channel, g.after = c.ID, l.read.last[bookmarkPrefix+c.ID]
		if g.blocked = l.hides(c.ID); !g.blocked {
			g.held = s.Now().Add(maxHold)
		}
		l.read.open(&g)
	}
}

// hides reports whether Discord does not show the messages of a channel, as far as that is known.
func (l *Listener) hides(channel string) bool {
	now := l.guilds.Permissions(channel, l.me)
	return now == inbound.Hidden || l.read.hidden[channel] != "" && l.read.hidden[channel] == now
}

// catchUpGuild looks for missed messages in a guild, of which Discord has sent the channels and the active threads.
func (l *Listener) catchUpGuild(ctx context.Context, s *adapter.Shell, g *discordapi.Guild) error {
	known := slices.Concat(g.Channels, g.Threads)
	for i := range known {
		known[i].GuildID = g.ID
	}
	l.read.since[g.ID] = l.read.youngest(known...)
	stored := map[string]string{}
	for i := range g.Channels {
		id := g.Channels[i].ID
		lacking := l.read.lacking(id, g.Threads)
		if l.read.archive[id] == "" && l.read.since[g.ID] != "" && lacking != "" {
			l.read.archive[id] = l.read.since[g.ID]
			stored[archivePrefix+id] = l.read.since[g.ID]
		}
		since := l.read.archive[id]
		if since == "" || l.hides(id) {
			continue
		}
		l.read.open(&gap{channel: id, archive: true, quiet: true, after: since})
		if !g.Channels[i].IsForum() {
			l.read.open(&gap{channel: id, archive: true, joined: true, quiet: true, after: since,
				until: older(lacking, l.oldest(s))})
		}
	}
	if err := l.storeCursors(ctx, s, stored); err != nil {
		return err
	}
	return l.catchUp(ctx, s, known...)
}

// catchUpPrivate opens the gaps of private chats, since Discord does not say which have new messages.
func (l *Listener) catchUpPrivate(ctx context.Context, s *adapter.Shell) error {
	channels, old := l.read.private(s.Now())
	if len(channels) > maxPrivate {
		s.Log.Warn("missed messages are read in the private chats with the newest messages only", "count", maxPrivate,
			"skipped", len(channels)-maxPrivate)
		channels = channels[:maxPrivate]
	}
	for _, channel := range channels {
		if l.read.hidden[channel] != "" {
			continue
		}
		l.read.open(&gap{channel: channel, private: true, quiet: true, after: l.read.last[privatePrefix+channel],
			held: s.Now().Add(maxHold)})
	}
	gone := map[string]string{}
	for _, key := range old {
		gone[key] = ""
	}
	return l.storeCursors(ctx, s, gone)
}

// storeCursors stores values by key; "" removes one.
func (l *Listener) storeCursors(ctx context.Context, s *adapter.Shell, values map[string]string) error {
	if len(values) == 0 {
		return nil
	}
	return s.Retry(ctx, "storing bookmarks failed; retrying", func() error {
		return l.store.Write(ctx, func(tx *store.Tx) error {
			for key, value := range values {
				if value == "" {
					if err := tx.DeleteCursor(s.Daemon, key); err != nil {
						return err
					}
					continue
				}
				if err := tx.PutCursor(s.Daemon, key, value); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
