package inbound

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"arizuko/discd/internal/restapi"
)

// mark is a change to a text, in bytes: what stands between from and to goes, insert comes.
type mark struct {
	from, to int
	insert   string
	blanks   bool // the blanks around go as well
}

// signs are what stands in a text for people, roles, channels, emoji, times and commands:
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

// plain writes a text with names in place of ids. Mentions of us, and of the role that is ours
// alone, are left out; addressed says that there were any. Those that Discord does not count as
// mentions, because they stand in code, call nobody. Without an id of ours nothing is left out.
func plain(m *restapi.Message, text string, p *place, me Self, known *Guilds) (content string, addressed bool) {
	var marks []mark
	for _, found := range signs.FindAllStringSubmatchIndex(text, -1) {
		value := func(group int) string {
			if found[2*group] < 0 {
				return ""
			}
			return text[found[2*group]:found[2*group+1]]
		}
		change := mark{from: found[0], to: found[1], insert: text[found[0]:found[1]]}
		switch {
		case value(signUser) != "":
			if change.blanks = value(signUser) == me.ID && mentions(m, me.ID); !change.blanks {
				change.insert = "@" + userNamed(m, value(signUser), p, known)
			}
		case value(signRole) != "":
			if change.blanks = me.ID != "" && value(signRole) == known.ourRole(p.guild) && slices.Contains(m.MentionRoles, value(signRole)); !change.blanks {
				change.insert = "@" + known.roleName(p.guild, value(signRole))
			}
		case value(signChannel) != "":
			change.insert = "#" + known.channelName(value(signChannel))
		case value(signEmoji) != "":
			change.insert = ":" + value(signEmoji) + ":"
		case value(signTime) != "":
			change.insert = moment(value(signTime), change.insert)
		case value(signCommand) != "":
			change.insert = "/" + value(signCommand)
		}
		if change.blanks {
			change.insert, addressed = "", true
		}
		marks = append(marks, change)
	}
	return apply(text, marks), addressed
}

// mentions reports whether a message calls a user.
func mentions(m *restapi.Message, user string) bool {
	return slices.ContainsFunc(m.Mentions, func(u restapi.User) bool { return u.ID == user })
}

// userNamed is what the user is called whom a text names by id.
func userNamed(m *restapi.Message, user string, p *place, known *Guilds) string {
	for i := range m.Mentions {
		if m.Mentions[i].ID == user {
			return userName(&m.Mentions[i], m.Mentions[i].Member)
		}
	}
	return known.nameOf(p.guild, user)
}

// moment is a time of unix seconds in words, as it stands if it is out of this world.
func moment(seconds, as string) string {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 || millis(n*1000) == 0 && n != 0 {
		return as
	}
	return time.Unix(n, 0).UTC().Format("2006-01-02 15:04 UTC")
}

// apply makes the changes, which are in the order of the text.
func apply(text string, marks []mark) string {
	var out []byte
	done := 0 // what of the text is written, or left out
	for _, m := range marks {
		if m.from > done {
			out = append(out, text[done:m.from]...)
			done = m.from
		}
		out = append(out, m.insert...)
		if m.to <= done {
			continue
		}
		done = m.to
		if m.blanks {
			left := strings.TrimRightFunc(string(out), unicode.IsSpace)
			right := strings.TrimLeftFunc(text[done:], unicode.IsSpace)
			before, after := string(out[len(left):]), text[done:len(text)-len(right)]
			out = append(out[:len(left)], blank(left, before, after, right)...)
			done = len(text) - len(right)
		}
	}
	return string(append(out, text[done:]...))
}

// blank is what remains of the blanks before and after a word that was taken out from between
// left and right: none at the ends of the text, before a comma or behind a bracket.
func blank(left, before, after, right string) string {
	last, _ := utf8.DecodeLastRuneInString(left)
	next, _ := utf8.DecodeRuneInString(right)
	switch {
	case left == "", right == "":
		return ""
	case after == "" && unicode.IsPunct(next), before == "" && unicode.In(last, unicode.Ps, unicode.Pi):
		return ""
	case after == "", strings.Contains(before, "\n"):
		return before
	}
	return after
}
