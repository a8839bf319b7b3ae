package inbound

import (
	"cmp"
	"strings"
	"unicode"

	"arizuko/discd/internal/restapi"
)

// sender is who does something in a chat.
type sender struct {
	jid, name string
	bot       bool
}

// party is a user as a sender; m is nil in private.
func party(u *restapi.User, m *restapi.Member) sender {
	return sender{jid(u.ID), userName(u, m), u.Bot}
}

// userName is what a user is called where they speak: by their name in the guild, the name they
// chose, or their account's.
func userName(u *restapi.User, m *restapi.Member) string {
	nick := ""
	if m != nil {
		nick = m.Nick
	}
	return cmp.Or(oneLine(nick), oneLine(u.GlobalName), oneLine(u.Username), "user "+u.ID)
}

// oneLine is a text people chose, such as a name, fit to stand beside others: on one line, without
// what turns the direction of the text around it, "" if there is nothing to be seen in it.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case invisible(r):
			return -1
		}
		return r
	}, s)
	if !strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) }) {
		return ""
	}
	return strings.Join(strings.Fields(s), " ")
}

// invisible tells the characters that show nothing, or turn the direction of their neighbours
// around. The joiners are none of them: emoji and several scripts are written with them.
func invisible(r rune) bool {
	switch r {
	case 0x00AD, 0x115F, 0x1160, 0x180E, 0x200B, 0x2800, 0x3164, 0xFEFF, 0xFFA0: // soft hyphen, fillers, blanks
		return true
	case 0x061C, 0x200E, 0x200F: // marks of direction
		return true
	}
	return 0x202A <= r && r <= 0x202E || 0x2060 <= r && r <= 0x206F
}
