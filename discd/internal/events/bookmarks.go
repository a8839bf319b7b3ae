// Package history is about what was said while nobody listened: how far each place was read, what
// was missed there, and whether something of ours is among it.
package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"arizuko/discd/internal/discordapi"
)

const (
	// Prefix begins the keys under which the last message of each place is kept that was read: by the
	// id of its channel or thread, with private before it where that is a private chat.
	Prefix  = "last:"
	private = Prefix + "dm-"
)

// Bookmarks are the last messages that were read.
type Bookmarks struct {
	last map[string]string // by key
	held map[string]bool   // keys whose gap is not filled yet: they stay where they are
}

// New are those that are kept, by key.
func New(kept map[string]string) *Bookmarks {
	b := &Bookmarks{last: map[string]string{}, held: map[string]bool{}}
	maps.Copy(b.last, kept)
	return b
}

func key(channel string, isPrivate bool) string {
	if isPrivate {
		return private + channel
	}
	return Prefix + channel
}

// Move takes note of a message, and returns what is to be kept. It never goes back.
func (b *Bookmarks) Move(channel, message string, isPrivate bool) (k, value string) {
	k = key(channel, isPrivate)
	if discordapi.Younger(message, b.last[k]) && !b.held[k] {
		b.last[k] = message
	}
	return k, b.last[k]
}

// Hold has the place of a gap be read again from there when the next session begins.
func (b *Bookmarks) Hold(g Gap) {
	b.held[key(g.Channel, g.Private)], b.last[key(g.Channel, g.Private)] = true, g.After
}

// Begin puts bookmarks into a guild, or into channels of it that were just made, and returns those
// that are new, to be kept before anything else is read there. A place begins at its last message,
// or, if it was made after what was read of the guild, at its own first.
func (b *Bookmarks) Begin(channels ...discordapi.Channel) (fresh map[string]string) {
	fresh, youngest := map[string]string{}, ""
	for i := range channels {
		if id := b.last[Prefix+channels[i].ID]; discordapi.Younger(id, youngest) {
			youngest = id
		}
	}
	for i := range channels {
		c := &channels[i]
		k := Prefix + c.ID
		if b.last[k] != "" || !speaks(c) {
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

// speaks reports whether messages stand in a channel of a guild.
func speaks(c *discordapi.Channel) bool {
	switch c.Type {
	case discordapi.ChannelDM, discordapi.ChannelGroupDM, discordapi.ChannelCategory:
		return false
	}
	return discordapi.IsID(c.ID) && !c.IsForum()
}

// Gap is where something may have been missed: behind a message.
type Gap struct {
	Channel, After string
	Private        bool
}

// Private are the private chats. What was last said in them nobody tells.
func (b *Bookmarks) Private() (gaps []Gap) {
	for _, k := range slices.Sorted(maps.Keys(b.last)) {
		if channel, ok := strings.CutPrefix(k, private); ok {
			gaps = append(gaps, Gap{channel, b.last[k], true})
		}
	}
	return gaps
}

// Missed are those of the channels, which have bookmarks, in which something was said since.
func (b *Bookmarks) Missed(channels ...discordapi.Channel) (gaps []Gap) {
	for i := range channels {
		c := &channels[i]
		if after := b.last[Prefix+c.ID]; speaks(c) && discordapi.Younger(c.LastMessageID, after) {
			gaps = append(gaps, Gap{c.ID, after, false})
		}
	}
	return gaps
}

// Behind is what was said in a gap, the oldest first, or the error that ended it. A page at a time
// is had from said, which the REST API's may be.
func Behind(g Gap, said func(channel, after string) ([]json.RawMessage, error)) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for {
			page, err := said(g.Channel, g.After)
			if err != nil {
				yield(nil, err)
				return
			}
			before := g.After
			for _, raw := range page {
				var m struct{ ID string }
				if json.Unmarshal(raw, &m) == nil && discordapi.Younger(m.ID, g.After) {
					g.After = m.ID
				}
				if !yield(raw, nil) {
					return
				}
			}
			if len(page) < discordapi.PageMost || g.After == before {
				return
			}
		}
	}
}

// searchMost bounds what is searched, in messages.
const searchMost = 1000

// ErrUncertain is wrapped by errors of a search that would end so again.
var ErrUncertain = errors.New("it cannot be looked for")

// Search returns the id of the first message in a gap that is the one, "" if it is certain that
// there is none.
func Search(ctx context.Context, api *discordapi.Client, g Gap, isIt func(*discordapi.Message) (bool, error)) (id string, err error) {
	seen := 0
	said := func(channel, after string) ([]json.RawMessage, error) { return api.Said(ctx, channel, after) }
	for raw, err := range Behind(g, said) {
		if seen++; err == nil && seen > searchMost {
			err = fmt.Errorf("%w: too much was said in the channel since", ErrUncertain)
		}
		if err != nil {
			return "", err
		}
		var m discordapi.Message
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		if ok, err := isIt(&m); ok || err != nil {
			return m.ID, err
		}
	}
	if seen > 0 {
		return "", nil
	}
	hidden, err := api.SaysNothing(ctx, g.Channel)
	if err == nil && hidden {
		err = fmt.Errorf("%w: the bot sees nothing in the channel, and may lack the permission Read Message History", ErrUncertain)
	}
	return "", err
}
