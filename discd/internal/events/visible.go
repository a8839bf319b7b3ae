package events

import (
	"context"
	"slices"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// learnAndCatchUp caches an event's facts about guilds, and looks for missed messages where it makes channels
// known or visible.
func (l *Listener) learnAndCatchUp(ctx context.Context, s *adapter.Shell, u *discordapi.Update) error {
	b := l.backfill
	hidden := b.hiddenIn(u)
	fresh := b.unknownIn(u)
	l.decoder.learn(s, u)
	switch {
	case u.Ready != nil:
		return b.catchUpPrivate(ctx, s)
	case u.Guild != nil:
		return b.catchUpGuild(ctx, s, u.Guild)
	case u.ChannelGone != nil:
		if err := b.forgetChannel(ctx, s, u.ChannelGone.ID); err != nil {
			return err
		}
		return l.release(ctx, s, u.ChannelGone.ID)
	}
	hidden = slices.DeleteFunc(hidden, b.hides)
	for _, channel := range hidden {
		b.read.unblock(channel, s.Now().Add(maxHold))
	}
	if u.Made() {
		l.joinAddressed(s, u.Channel)
		return b.storeCursors(ctx, s, b.read.begin("", fresh...))
	}
	return b.catchUp(ctx, s, fresh...)
}

// joinAddressed joins a new thread that began with a message to the bot, so that it hears the replies. The call runs
// beside the receive loop; should it fail, the bot joins with its answer.
func (l *Listener) joinAddressed(s *adapter.Shell, c *discordapi.Channel) {
	if !c.IsThread() || !c.NewlyCreated || !discordapi.IsID(c.ParentID) {
		return
	}
	ctx, chat := l.beside, msg.JID(l.decoder.me.Platform, c.ParentID)
	l.calls.Go(func() {
		m, err := l.store.MessageByPlatformID(ctx, chat, c.ID)
		if err == nil && m != nil && m.Addressed {
			err = l.api.JoinThread(ctx, c.ID)
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("joining thread failed", "channel", c.ID, "err", err)
		}
	})
}

// hiddenIn are the channels of the guild of an event that changes permissions that the bot may not read before it.
func (b *backfill) hiddenIn(u *discordapi.Update) []string {
	guild := ""
	switch {
	case u.RoleChange != nil:
		guild = u.RoleChange.GuildID
	case u.RoleGone != nil:
		guild = u.RoleGone.GuildID
	case u.MemberChanged != nil && u.MemberChanged.User != nil && u.MemberChanged.User.ID == b.decoder.me.ID:
		guild = u.MemberChanged.GuildID
	case u.Channel != nil:
		guild = u.Channel.GuildID
	default:
		return nil
	}
	return slices.DeleteFunc(b.decoder.guilds.ChannelsOf(guild), func(channel string) bool { return !b.hides(channel) })
}

// unknownIn are the channels and threads in an event, other than that of a whole guild, that are not known.
func (b *backfill) unknownIn(u *discordapi.Update) (channels []discordapi.Channel) {
	switch {
	case u.Channel != nil:
		channels = []discordapi.Channel{*u.Channel}
	case u.ThreadList != nil:
		channels = slices.Clone(u.ThreadList.Threads)
	}
	for i := range channels {
		if u.ThreadList != nil {
			channels[i].GuildID = u.ThreadList.GuildID
		}
	}
	return slices.DeleteFunc(channels, func(c discordapi.Channel) bool { return b.decoder.guilds.Knows(c.ID) })
}

// forgetChannel removes all that is stored about a deleted channel.
func (b *backfill) forgetChannel(ctx context.Context, s *adapter.Shell, channel string) error {
	gone := map[string]string{}
	for _, k := range []string{bookmarkPrefix + channel, threadPrefix + channel, hiddenPrefix + channel} {
		gone[k] = ""
	}
	delete(b.read.last, bookmarkPrefix+channel)
	delete(b.read.parents, channel)
	delete(b.read.hidden, channel)
	delete(b.read.gaps, channel)
	return b.storeCursors(ctx, s, gone)
}

// forgetThreads removes, once in a session, the bookmarks of threads that were quiet for long.
func (b *backfill) forgetThreads(ctx context.Context, s *adapter.Shell) error {
	if b.forgot == b.decoder.session || !b.decoder.guilds.Complete() {
		return nil
	}
	b.forgot = b.decoder.session
	gone := map[string]string{}
	for _, k := range b.read.forget(s.Now(), b.decoder.guilds.Knows) {
		gone[k] = ""
	}
	return b.storeCursors(ctx, s, gone)
}
