package discord

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// mentionForm matches a mention of a user, of a role or of everyone.
var mentionForm = regexp.MustCompile(`<@!?(\d+)>|<@&(\d+)>|@everyone|@here`)

// allowed is allowed_mentions of a request.
type allowed struct {
	Parse   []string `json:"parse"`
	Replied bool     `json:"replied_user"`
}

// allMentions allows all mentions, which is the default.
func allMentions() allowed {
	return allowed{Parse: []string{"users", "roles", "everyone"}, Replied: true}
}

func (a allowed) check() error {
	for _, kind := range a.Parse {
		if !slices.Contains([]string{"users", "roles", "everyone"}, kind) {
			return invalid("allowed_mentions.parse", "BASE_TYPE_CHOICES",
				"Value must be one of {'users', 'roles', 'everyone'}.")
		}
	}
	return nil
}

// mark adds the allowed mentions in a message's content to the message, and returns them as they
// are written. A mention of a user who does not exist is only text.
func (s *Server) mark(ch *channel, m *Message, a allowed) (pings []string) {
	m.Mentions, m.MentionRoles, m.MentionEveryone = []Mentioned{}, []string{}, false
	for _, found := range mentionForm.FindAllStringSubmatch(m.Content, -1) {
		text, user, role := found[0], found[1], found[2]
		switch {
		case user != "":
			if !slices.Contains(a.Parse, "users") || !s.mention(ch, m, user) {
				continue
			}
		case role != "":
			if ch.guild == nil || ch.guild.role(role) == nil || !slices.Contains(a.Parse, "roles") {
				continue
			}
			if !slices.Contains(m.MentionRoles, role) {
				m.MentionRoles = append(m.MentionRoles, role)
			}
		default:
			if ch.guild == nil || !slices.Contains(a.Parse, "everyone") {
				continue
			}
			m.MentionEveryone = true
		}
		pings = append(pings, text)
	}
	return pings
}

// mention adds a user to a message's mentions, and reports whether the user exists.
func (s *Server) mention(ch *channel, m *Message, id string) bool {
	user, known := s.users[id]
	if !known {
		return false
	}
	if !mentions(*m, id) {
		mentioned := Mentioned{User: user}
		if ch.guild != nil {
			mentioned.Member = ch.guild.bare(id)
		}
		m.Mentions = append(m.Mentions, mentioned)
	}
	return true
}

// maxNonce is the documented length of a nonce, which is a string or a number.
const maxNonce = 25

// nonceText is a nonce for comparison.
func nonceText(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var text string
	var number json.Number
	switch {
	case json.Unmarshal(raw, &text) == nil:
	case json.Unmarshal(raw, &number) == nil:
		text = number.String()
	default:
		return "", invalid("nonce", "BASE_TYPE_BAD", "Value must be a string or an integer.")
	}
	if utf8.RuneCountInString(text) > maxNonce {
		return "", tooLong("nonce", maxNonce)
	}
	return text, nil
}

// isEmoji reports whether a text can be a unicode emoji: it has a symbol. There is no list of all.
func isEmoji(text string) bool {
	const keycap = '\u20e3'
	isSymbol := func(r rune) bool { return r == keycap || r == '©' || r == '®' || r >= 0x2190 }
	isWord := func(r rune) bool { return 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || r == ' ' }
	return strings.ContainsFunc(text, isSymbol) && !strings.ContainsFunc(text, isWord)
}
