package events

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"arizuko/discd/internal/discordapi"
)

const (
	// bookmarkPrefix begins the keys of bookmarks. The id of the channel or thread follows, in private
	// chats after privatePrefix.
	bookmarkPrefix = "last:"
	privatePrefix  = bookmarkPrefix + "dm-"
)

// bookmarks are the ids of the last messages that were read, by channel.
type bookmarks struct {
	last map[string]string // by key
	held map[string]bool   // keys whose backfill failed: they do not move
}

// newBookmarks makes them from those that are stored, by key.
func newBookmarks(kept map[string]string) *bookmarks {
	b := &bookmarks{last: map[string]string{}, held: map[string]bool{}}
	maps.Copy(b.last, kept)
	return b
}

func bookmarkKey(channel string, isPrivate bool) string {
	if isPrivate {
		return privatePrefix + channel
	}
	return bookmarkPrefix + channel
}

// move records a message that was read, and returns the bookmark to store. It never goes back.
func (b *bookmarks) move(channel, message string, isPrivate bool) (k, value string) {
	k = bookmarkKey(channel, isPrivate)
	if discordapi.Younger(message, b.last[k]) && !b.held[k] {
		b.last[k] = message
	}
	return k, b.last[k]
}

// hold keeps the bookmark at the start of a gap, which the next session backfills.
func (b *bookmarks) hold(g gap) {
	k := bookmarkKey(g.Channel, g.Private)
	b.held[k], b.last[k] = true, g.After
}

// begin makes bookmarks for the channels of a guild, or for new ones, and returns those to store before
// anything else is read there. A bookmark begins at the channel's last message, or, if the channel is
// younger than what was read of the guild, before its first.
func (b *bookmarks) begin(channels ...discordapi.Channel) (fresh map[string]string) {
	fresh, youngest := map[string]string{}, ""
	for i := range channels {
		if id := b.last[bookmarkPrefix+channels[i].ID]; discordapi.Younger(id, youngest) {
			youngest = id
		}
	}
	for i := range channels {
		c := &channels[i]
		k := bookmarkPrefix + c.ID
		if b.last[k] != "" || !hasMessages(c) {
			continue
		}
		fresh[k] = cmp.Or(c.LastMessageID, "0")
		if youngest != "" && discordapi.Younger(c.ID, youngest) || c.NewlyCreated {
			fresh[k] = discordapi.Before(c.ID)
		}
	}
	maps.Copy(b.last, fresh)
	return fresh
}

// hasMessages reports whether a channel of a guild can have messages.
func hasMessages(c *discordapi.Channel) bool {
	switch c.Type {
	case discordapi.ChannelDM, discordapi.ChannelGroupDM, discordapi.ChannelCategory:
		return false
	}
	return discordapi.IsID(c.ID) && !c.IsForum()
}

// gap is a channel in which messages may have been missed, after the one with an id.
type gap struct {
	Channel, After string
	Private        bool
}

// privateGaps are all private chats: Discord does not say whether they have new messages.
func (b *bookmarks) privateGaps() (gaps []gap) {
	for _, k := range slices.Sorted(maps.Keys(b.last)) {
		if channel, ok := strings.CutPrefix(k, privatePrefix); ok {
			gaps = append(gaps, gap{channel, b.last[k], true})
		}
	}
	return gaps
}

// missed are the channels that have messages after their bookmarks. All have bookmarks.
func (b *bookmarks) missed(channels ...discordapi.Channel) (gaps []gap) {
	for i := range channels {
		c := &channels[i]
		if after := b.last[bookmarkPrefix+c.ID]; hasMessages(c) && discordapi.Younger(c.LastMessageID, after) {
			gaps = append(gaps, gap{c.ID, after, false})
		}
	}
	return gaps
}
