package events

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"arizuko/discd/internal/discordapi"
)

const (
	// bookmarkPrefix begins the keys of bookmarks. The id of the channel or thread follows, in private
	// chats after privatePrefix.
	bookmarkPrefix = "last:"
	privatePrefix  = bookmarkPrefix + "dm-"
	// threadPrefix begins the keys of the channels of threads that have bookmarks.
	threadPrefix = "thread:"
	// hiddenPrefix begins the keys of channels that Discord did not show, and holds the permissions then.
	hiddenPrefix = "hidden:"
	// archivePrefix begins the keys of channels whose archived threads may have missed messages, and holds the
	// last message that was read in the guild before those.
	archivePrefix = "archive:"

	// maxQuiet is how long private chats and threads without messages have bookmarks: Discord does not say
	// whether they have new messages.
	maxQuiet = 30 * 24 * time.Hour
	// maxPrivate bounds the private chats that are read when a session begins.
	maxPrivate = 200
)

// bookmarks are the ids of the last messages that were read, by channel. That of a channel with a gap stands
// where the gap begins, and moves as the gap is read, so that a crash loses none of it.
type bookmarks struct {
	last    map[string]string // by key
	parents map[string]string // of threads, by id
	hidden  map[string]string // permissions with which Discord did not show a channel, by its id
	archive map[string]string // the last message before those that archived threads may have, by channel
	since   map[string]string // the last message that was read before the session, by guild
	gaps    map[string]*gap   // by key
	queued  int               // the last order of a gap
}

// newBookmarks makes them from the stored values, by key.
func newBookmarks(kept map[string]string) *bookmarks {
	b := &bookmarks{last: map[string]string{}, parents: map[string]string{}, hidden: map[string]string{},
		gaps: map[string]*gap{}, archive: map[string]string{}, since: map[string]string{}}
	for key, value := range kept {
		prefix, id, _ := strings.Cut(key, ":")
		switch prefix + ":" {
		case bookmarkPrefix:
			b.last[key] = value
		case threadPrefix:
			b.parents[id] = value
		case hiddenPrefix:
			b.hidden[id] = value
		case archivePrefix:
			b.archive[id] = value
		}
	}
	return b
}

func bookmarkKey(channel string, isPrivate bool) string {
	if isPrivate {
		return privatePrefix + channel
	}
	return bookmarkPrefix + channel
}

// move records a message that a session has sent, and returns the bookmark to store. It never goes back,
// and not past a gap.
func (b *bookmarks) move(channel, message string, isPrivate bool) (k, value string) {
	k = bookmarkKey(channel, isPrivate)
	if g := b.gaps[channel]; g != nil {
		g.live = newest(g.live, message)
		return k, b.last[k]
	}
	b.last[k] = newest(b.last[k], message)
	return k, b.last[k]
}

// newest is the newer one of two ids.
func newest(a, b string) string {
	if discordapi.Younger(b, a) {
		return b
	}
	return a
}

// older is the older one of two ids, of which the first may be "".
func older(a, b string) string {
	if a == "" || discordapi.Younger(a, b) {
		return b
	}
	return a
}

// lacking is the thread of a channel that was made first of those that were active before and are not active now, ""
// for none.
func (b *bookmarks) lacking(channel string, active []discordapi.Channel) (first string) {
	for id, parent := range b.parents {
		if parent == channel && !slices.ContainsFunc(active, func(c discordapi.Channel) bool { return c.ID == id }) {
			first = older(first, id)
		}
	}
	return first
}

// begin makes bookmarks for the channels of a guild, or for new ones, and returns those to store before
// anything else is read there. A bookmark begins at the channel's last message, or, if the guild was read
// before, where that ended, and before the first message of a channel that was made since. What was read last
// in the guild before is "" for nothing.
func (b *bookmarks) begin(youngest string, channels ...discordapi.Channel) (fresh map[string]string) {
	fresh = map[string]string{}
	for i := range channels {
		c := &channels[i]
		k := bookmarkPrefix + c.ID
		if !hasMessages(c) {
			continue
		}
		if c.IsThread() && b.parents[c.ID] != c.ParentID {
			fresh[threadPrefix+c.ID], b.parents[c.ID] = c.ParentID, c.ParentID
		}
		if b.last[k] != "" {
			continue
		}
		fresh[k] = cmp.Or(c.LastMessageID, "0")
		switch {
		case youngest != "" && discordapi.Younger(c.ID, youngest), c.NewlyCreated:
			fresh[k] = discordapi.Before(c.ID)
		case youngest != "" && discordapi.Younger(c.LastMessageID, youngest):
			fresh[k] = youngest
		}
		b.last[k] = fresh[k]
	}
	return fresh
}

// youngest is the last message that was read in some channels, "" for none.
func (b *bookmarks) youngest(channels ...discordapi.Channel) (id string) {
	for i := range channels {
		id = newest(id, b.last[bookmarkPrefix+channels[i].ID])
	}
	return id
}

// hasMessages reports whether a channel of a guild can have messages.
func hasMessages(c *discordapi.Channel) bool {
	switch c.Type {
	case discordapi.ChannelDM, discordapi.ChannelGroupDM, discordapi.ChannelCategory:
		return false
	}
	return discordapi.IsID(c.ID) && !c.IsForum()
}

// missed are the channels that have messages after their bookmarks. All have bookmarks.
func (b *bookmarks) missed(channels ...discordapi.Channel) (missed []discordapi.Channel) {
	for i := range channels {
		c := channels[i]
		if after := b.last[bookmarkPrefix+c.ID]; hasMessages(&c) && discordapi.Younger(c.LastMessageID, after) {
			missed = append(missed, c)
		}
	}
	return missed
}

// private are the private chats to read when a session begins, those with the newest messages first, and the
// keys of those that were quiet for so long that their bookmarks are removed.
func (b *bookmarks) private(now time.Time) (channels, old []string) {
	since := discordapi.SnowflakeAt(now.Add(-maxQuiet).UnixMilli())
	for k, last := range b.last {
		channel, ok := strings.CutPrefix(k, privatePrefix)
		switch {
		case !ok:
		case discordapi.Younger(since, last):
			old = append(old, k)
			delete(b.last, k)
		default:
			channels = append(channels, channel)
		}
	}
	slices.SortFunc(channels, func(x, y string) int {
		return discordapi.CompareIDs(b.last[privatePrefix+y],
			b.last[privatePrefix+x])
	})
	slices.Sort(old)
	return channels, old
}

// forget removes the bookmarks of threads that are not known and were quiet for long, and returns their keys.
func (b *bookmarks) forget(now time.Time, known func(channel string) bool) (keys []string) {
	since := discordapi.SnowflakeAt(now.Add(-maxQuiet).UnixMilli())
	for _, id := range slices.Sorted(maps.Keys(b.parents)) {
		if k := bookmarkPrefix + id; !known(id) && b.gaps[id] == nil && discordapi.Younger(since, b.last[k]) {
			delete(b.last, k)
			delete(b.parents, id)
			keys = append(keys, k, threadPrefix+id)
		}
	}
	return keys
}
