package inbound

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
)

// signs are the forms of users, roles, channels, emoji, times and commands in a text:
// <@user> or <@!user>, <@&role>, <#channel>, <:name:id> or <a:name:id>, <t:seconds:style>, </name:id>.
var signs = regexp.MustCompile(`<(?:@!?(?P<user>\d{1,20})|@&(?P<role>\d{1,20})|#(?P<channel>\d{1,20})|` +
	`a?:(?P<emoji>\w{1,32}):\d{1,20}|t:(?P<time>-?\d{1,13})(?::[tTdDfFR])?|/(?P<command>[^<>:\n]{1,100}):\d{1,20})>`)

// The groups of signs.
const (
	signUser = iota + 1
	signRole
	signChannel
	signEmoji
	signTime
	signCommand
)

// plain returns a text with names in place of ids. Mentions of the bot, and of its own role, are
// removed unless others are named beside it; addressed says that there were any. Mentions in code do not count,
// as on Discord. Without the bot's id nothing is removed.
func plain(m *discordapi.Message, text string, p *place, me Self, known *Guilds) (content string, addressed bool) {
	var changes []plaintext.Change
	for _, found := range signs.FindAllStringSubmatchIndex(text, -1) {
		value := func(group int) string {
			if found[2*group] < 0 {
				return ""
			}
			return text[found[2*group]:found[2*group+1]]
		}
		change := plaintext.Change{From: found[0], To: found[1], Insert: text[found[0]:found[1]]}
		switch {
		case value(signUser) != "":
			change.Insert = "@" + userNamed(m, value(signUser), p, known)
			change.Names = whom(value(signUser) == me.ID && mentions(m, me.ID))
		case value(signRole) != "":
			change.Insert = "@" + known.roleName(p.guild, value(signRole))
			change.Names = whom(me.ID != "" && value(signRole) == known.ourRole(p.guild) &&
				slices.Contains(m.MentionRoles, value(signRole)))
		case value(signChannel) != "":
			change.Insert = "#" + channelNamed(m, value(signChannel), known)
		case value(signEmoji) != "":
			change.Insert = ":" + value(signEmoji) + ":"
		case value(signTime) != "":
			change.Insert = moment(value(signTime), change.Insert)
		case value(signCommand) != "":
			change.Insert = "/" + value(signCommand)
		}
		addressed = addressed || change.Names == plaintext.Us
		changes = append(changes, change)
	}
	return plaintext.Apply(text, changes), addressed
}

func whom(ours bool) plaintext.Named {
	if ours {
		return plaintext.Us
	}
	return plaintext.Other
}

// mentions reports whether a message pings a user.
func mentions(m *discordapi.Message, user string) bool {
	return slices.ContainsFunc(m.Mentions, func(u discordapi.User) bool { return u.ID == user })
}

// userNamed is the name of a user that a text names by id.
func userNamed(m *discordapi.Message, user string, p *place, known *Guilds) string {
	for i := range m.Mentions {
		if m.Mentions[i].ID == user {
			return userName(&m.Mentions[i], m.Mentions[i].Member)
		}
	}
	return known.nameOf(p.guild, user)
}

// channelNamed is the name of a channel that a text names by id. That of another server stands in the message.
func channelNamed(m *discordapi.Message, channel string, known *Guilds) string {
	if known.channels[channel].ID == "" {
		for _, c := range m.MentionChannels {
			if c.ID == channel && plaintext.Line(c.Name) != "" {
				return plaintext.Line(c.Name)
			}
		}
	}
	return known.channelName(channel)
}

// moment formats a time in unix seconds; an invalid one stays as it is.
func moment(seconds, as string) string {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 || adapter.UnixMilli(n*1000) == 0 && n != 0 {
		return as
	}
	return time.Unix(n, 0).UTC().Format("2006-01-02 15:04 UTC")
}
