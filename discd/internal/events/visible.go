package events

import (
	"context"
	"slices"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// learnAndCatchUp caches what an event contains about guilds, and looks for missed messages where it makes channels
// known or visible.
func (l *Listener) learnAndCatchUp(ctx context.Context, s *adapter.Shell, u *discordapi.Update) error {
	hidden := l.hiddenIn(u)
	fresh := l.unknownIn(u)
	l.learn(s, u)
	switch {
	case u.Ready != nil:
		return l.catchUpPrivate(ctx, s)
	case u.Guild != nil:
		return l.catchUpGuild(ctx, s, u.Guild)
	case u.ChannelGone != nil:
		return l.forgetChannel(ctx, s, u.ChannelGone.ID)
	}
	hidden = slices.DeleteFunc(hidden, l.hides)
	for _, channel := range hidden {
		l.read.unblock(channel, s.Now().Add(maxHold))
	}
	if u.Made() {
		l.joinAddressed(s, u.Channel)
		return l.storeCursors(ctx, s, l.read.begin("", fresh...))
	}
	return l.catchUp(ctx, s, fresh...)
}

// joinAddressed joins a new thread that began with a message to the bot, so that it hears what follows. The call runs
// beside the receive loop; should it fail, the bot joins with its answer.
func (l *Listener) joinAddressed(s *adapter.Shell, c *discordapi.Channel) {
	if !c.IsThread() || !c.NewlyCreated || !discordapi.IsID(c.ParentID) {
		return
	}
	ctx, chat := l.beside, msg.JID(l.me.Platform, c.ParentID)
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
func (l *Listener) hiddenIn(u *discordapi.Update) []string {
	guild := ""
	switch {
	case u.RoleChange != nil:
		guild = u.RoleChange.GuildID
	case u.RoleGone != nil:
		guild = u.RoleGone.GuildID
	case u.MemberChanged != nil && u.MemberChanged.User != nil && u.MemberChanged.User.ID == l.me.ID:
		guild = u.MemberChanged.GuildID
	case u.Channel != nil:
		guild = u.Channel.GuildID
	default:
		return nil
	}
	return slices.DeleteFunc(l.guilds.ChannelsOf(guild), func(channel string) bool { return !l.hides(channel) })
}

// unknownIn are the channels and threads in an event, other than that of a whole guild, that are not known.
func (l *Listener) unknownIn(u *discordapi.Update) (channels []discordapi.Channel) {
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
	return slices.DeleteFunc(channels, func(c discordapi.Channel) bool { return l.guilds.Knows(c.ID) })
}

// forgetChannel removes what is stored about a channel that is deleted.
func (l *Listener) forgetChannel(ctx context.Context, s *adapter.Shell, channel string) error {
	gone := map[string]string{}
	for _, k := range []string{bookmarkPrefix + channel, threadPrefix + channel, hiddenPrefix + channel} {
		gone[k] = ""
	}
	delete(l.read.last, bookmarkPrefix+channel)
	delete(l.read.parents, channel)
	delete(l.read.hidden, channel)
	delete(l.read.gaps, channel)
	if err := l.storeCursors(ctx, s, gone); err != nil {
		return err
	}
	return l.release(ctx, s, channel)
}

// forgetThreads removes, once in a session, the bookmarks of threads that were quiet for long.
func (l *Listener) forgetThreads(ctx context.Context, s *adapter.Shell) error {
	if l.forgot == l.session || !l.guilds.Complete() {
		return nil
	}
	l.forgot = l.session
	gone := map[string]string{}
	for _, k := range l.read.forget(s.Now(), l.guilds.Knows) {
		gone[k] = ""
	}
	return l.storeCursors(ctx, s, gone)
}
