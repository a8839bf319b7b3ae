package telegram

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Lengths are in UTF-16 units.
const (
	maxText    = 4096
	maxCaption = 1024
)

const (
	maxEntities     = 100  // of a message, by hand or found
	maxEntitiesSize = 9000 // bytes of those by hand, as JSON
)

func units(text string) int {
	n := 0
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

// checkText validates the text of a message.
func checkText(text string, entities []Entity) error {
	switch {
	case text == "":
		return badRequest("message text is empty")
	case !utf8.ValidString(text):
		return badRequest("strings must be encoded in UTF-8")
	case strings.TrimSpace(text) == "":
		return badRequest("text must be non-empty")
	case units(text) > maxText:
		return badRequest("message is too long")
	}
	return checkEntities(text, entities)
}

func checkCaption(caption string, entities []Entity) error {
	switch {
	case !utf8.ValidString(caption):
		return badRequest("strings must be encoded in UTF-8")
	case units(caption) > maxCaption:
		return badRequest("message caption is too long")
	}
	return checkEntities(caption, entities)
}

// entitiesOf parses a parameter with entities. As the platform does, it drops empty ones.
func (p params) entitiesOf(name string) ([]Entity, error) {
	if p.str("parse_mode") != "" {
		return nil, badRequest("this fake server takes entities, no parse_mode")
	}
	var entities []Entity
	if _, err := p.json(name, &entities); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(entities, func(e Entity) bool { return e.Length <= 0 }), nil
}

// checkEntities requires entities to be within the text, nested or disjoint, and not to split a
// character.
func checkEntities(text string, entities []Entity) error {
	if raw, err := json.Marshal(entities); err != nil || len(raw) > maxEntitiesSize {
		return badRequest("ENTITIES_TOO_LONG")
	}
	borders := map[int]bool{0: true}
	end := 0
	for _, r := range text {
		end += utf16.RuneLen(r)
		borders[end] = true
	}
	var open []Entity
	for _, e := range sorted(entities) {
		if err := checkEntity(e); err != nil {
			return err
		}
		for len(open) > 0 && open[len(open)-1].end() <= e.Offset {
			open = open[:len(open)-1]
		}
		switch {
		case e.Offset < 0 || e.Offset > end:
			return badRequest("entity begins after the end of the text at UTF-16 offset %d", e.Offset)
		case e.end() > end, len(open) > 0 && open[len(open)-1].end() < e.end():
			return badRequest("entity beginning at UTF-16 offset %d ends after the end of the text at UTF-16 offset %d",
				e.Offset, e.end())
		case !borders[e.Offset]:
			return badRequest("entity begins in a middle of a UTF-16 symbol at byte offset %d",
				byteOffset(text, e.Offset))
		case !borders[e.end()]:
			return badRequest("entity beginning at UTF-16 offset %d ends in a middle of a UTF-16 symbol at byte offset %d", e.Offset, byteOffset(text, e.end()))
		}
		open = append(open, e)
	}
	return nil
}

func checkEntity(e Entity) error {
	switch e.Type {
	case "mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bold", "italic",
		"underline", "strikethrough", "spoiler", "blockquote", "expandable_blockquote", "code", "pre":
		return nil
	case "text_link":
		if e.URL == "" {
			return badRequest(`can't parse MessageEntity: Can't find field "url"`)
		}
		return nil
	case "text_mention":
		if e.User == nil {
			return badRequest(`can't parse MessageEntity: Can't find field "user"`)
		}
		return nil
	case "custom_emoji":
		if e.Emoji == "" {
			return badRequest(`can't parse MessageEntity: Can't find field "custom_emoji_id"`)
		}
		return nil
	}
	return badRequest("can't parse MessageEntity: Unsupported type specified")
}

func (e Entity) end() int { return e.Offset + e.Length }

// sorted has outer entities before those inside them.
func sorted(entities []Entity) []Entity {
	return slices.SortedStableFunc(slices.Values(entities), func(a, b Entity) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length))
	})
}

// byteOffset is the start of the character at a UTF-16 offset.
func byteOffset(text string, unit int) int {
	at := 0
	for i, r := range text {
		if at += utf16.RuneLen(r); at > unit {
			return i
		}
	}
	return len(text)
}

// The entities that Telegram finds in a text. The first group of each is the entity.
var detectors = []struct {
	kind    string
	pattern *regexp.Regexp
}{
	{"url", regexp.MustCompile(`(https?://[^\s<>"]*[^\s<>".,!?;:)\]])`)},
	{"email", regexp.MustCompile(`([\w.+-]+@[\w-]+\.[a-zA-Z]{2,})`)},
	{"bot_command", regexp.MustCompile(`(?:^|[^\w/<>])(/\w{1,64}(?:@\w{3,32})?)`)},
	{"mention", regexp.MustCompile(`(?:^|[^\w@/])(@[a-zA-Z]\w{3,31})`)},
	{"hashtag", regexp.MustCompile(`(?:^|[^\pL\pN_&])(#[\pL\pN_]*\pL[\pL\pN_]*)`)},
}

// mark adds the entities that Telegram finds in a text to the given ones, unless it overlaps one of them:
// nothing is found in code.
func mark(text string, given []Entity) []Entity {
	all := sorted(given)
	for _, d := range detectors {
		for _, at := range d.pattern.FindAllStringSubmatchIndex(text, -1) {
			e := Entity{Type: d.kind, Offset: units(text[:at[2]]), Length: units(text[at[2]:at[3]])}
			apart := func(o Entity) bool { return o.end() <= e.Offset || e.end() <= o.Offset }
			if !slices.ContainsFunc(all, func(o Entity) bool { return !apart(o) && !holds(o) }) {
				all = append(all, e)
			}
		}
	}
	all = sorted(all)
	return all[:min(len(all), maxEntities)] // the platform drops the others without an error
}

// holds reports whether Telegram looks for links and names inside an entity.
func holds(e Entity) bool {
	switch e.Type {
	case "bold", "italic", "underline", "strikethrough", "spoiler", "blockquote", "expandable_blockquote":
		return true
	}
	return false
}

// entityText is the text of an entity.
func entityText(text string, e Entity) string {
	all := utf16.Encode([]rune(text))
	if e.Offset < 0 || e.Length < 0 || e.end() > len(all) {
		return ""
	}
	return string(utf16.Decode(all[e.Offset:e.end()]))
}
