package discord

import (
	"encoding/json"
	"fmt"
	"net/url"
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
	Users   []string `json:"users"`
	Roles   []string `json:"roles"`
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
	for field, ids := range map[string][]string{"users": a.Users, "roles": a.Roles} {
		if len(ids) > maxAllowedList {
			return tooLong("allowed_mentions."+field, maxAllowedList)
		}
		for _, id := range ids {
			if _, ok := snowflake(id); !ok {
				return badSnowflake("allowed_mentions."+field, id)
			}
		}
	}
	if slices.Contains(a.Parse, "users") && len(a.Users) > 0 {
		return invalid("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
			"parse:[\"users\"] and users: [ids...] are mutually exclusive.")
	}
	if slices.Contains(a.Parse, "roles") && len(a.Roles) > 0 {
		return invalid("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
			"parse:[\"roles\"] and roles: [ids...] are mutually exclusive.")
	}
	return nil
}

func (a allowed) user(id string) bool {
	return slices.Contains(a.Parse, "users") || slices.Contains(a.Users, id)
}

func (a allowed) role(id string) bool {
	return slices.Contains(a.Parse, "roles") || slices.Contains(a.Roles, id)
}

// mark adds the allowed mentions in a message's content to the message, and returns them as they
// are written. A mention of a user who does not exist is only text.
func (s *Server) mark(ch *channel, m *Message, a allowed) (pings []string) {
	m.Mentions, m.MentionRoles, m.MentionEveryone = []Mentioned{}, []string{}, false
	for _, found := range mentionForm.FindAllStringSubmatch(m.Content, -1) {
		text, user, role := found[0], found[1], found[2]
		switch {
		case user != "":
			if !a.user(user) || !s.mention(ch, m, user) {
				continue
			}
		case role != "":
			if ch.guild == nil || ch.guild.role(role) == nil || !a.role(role) {
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

// The documented limits of embeds, in characters.
const (
	maxEmbeds      = 10
	maxTitle       = 256 // also of an author, and of a field
	maxEmbedText   = 4096
	maxFields      = 25
	maxFieldValue  = 1024
	maxFooter      = 2048
	maxAllEmbeds   = 6000
	maxAllowedList = 100 // users, or roles, of allowed_mentions
)

// checkEmbeds validates embeds by the documented limits.
func checkEmbeds(embeds []Embed) error {
	if len(embeds) > maxEmbeds {
		return tooLong("embeds", maxEmbeds)
	}
	together := 0
	for i, e := range embeds {
		at := fmt.Sprintf("embeds.%d", i)
		texts, err := e.check(at)
		if err != nil {
			return err
		}
		together += utf8.RuneCountInString(texts)
	}
	if together > maxAllEmbeds {
		return invalid("embeds", "MAX_EMBED_SIZE_EXCEEDED", "Embed size exceeds maximum size of 6000")
	}
	return nil
}

// check validates an embed, and returns the texts that count together.
func (e *Embed) check(at string) (texts string, err error) {
	limit := func(field, text string, most int) {
		if texts += text; err == nil && utf8.RuneCountInString(text) > most {
			err = tooLong(at+"."+field, most)
		}
	}
	limit("title", e.Title, maxTitle)
	limit("description", e.Description, maxEmbedText)
	if e.Footer != nil {
		limit("footer.text", e.Footer.Text, maxFooter)
	}
	if e.Author != nil {
		limit("author.name", e.Author.Name, maxTitle)
	}
	if len(e.Fields) > maxFields {
		return "", tooLong(at+".fields", maxFields)
	}
	for i, f := range e.Fields {
		field := fmt.Sprintf("fields.%d", i)
		if err == nil && (strings.TrimSpace(f.Name) == "" || strings.TrimSpace(f.Value) == "") {
			err = required(at + "." + field)
		}
		limit(field+".name", f.Name, maxTitle)
		limit(field+".value", f.Value, maxFieldValue)
	}
	if u, bad := url.Parse(e.URL); err == nil && e.URL != "" &&
		(bad != nil || !slices.Contains([]string{"http", "https"}, u.Scheme)) {
		err = invalid(at+".url", "URL_TYPE_INVALID_SCHEME",
			fmt.Sprintf("Scheme %q is not supported. Scheme must be one of ('http', 'https').", e.URL))
	}
	return texts, err
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
	return strings.ContainsFunc(text, func(r rune) bool {
		return r == keycap || r == '©' || r == '®' ||
			r >= 0x2190
	}) &&
		!strings.ContainsFunc(text, func(r rune) bool {
			return 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' ||
				r == ' '
		})
}
