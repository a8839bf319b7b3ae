package inbound

import (
	"cmp"
	"strconv"
	"strings"
)

// escape makes mrkdwn of a text without markup.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// inline is an element of rich text as mrkdwn, as Slack writes it into the text of a message.
func inline(n node) string {
	switch n.kind() {
	case "emoji":
		return emojiName(n)
	case "user", "canvas_user_mention":
		return bracketed("@", n.str("user_id"))
	case "usergroup":
		return bracketed("!subteam^", n.str("usergroup_id"))
	case "channel":
		return bracketed("#", n.str("channel_id"))
	case "broadcast":
		return bracketed("!", n.str("range"))
	case "team":
		return "@" + idOnly(n.str("team_id"))
	case "color":
		return escape.Replace(n.str("value"))
	case "date":
		return "<!date^" + strconv.Itoa(n.number("timestamp")) + "|" + escape.Replace(n.str("fallback")) + ">"
	case "canvas_message_unfurl":
		return "[message in " + bracketed("#", n.str("root_message_channel")) + "]"
	}
	text := n.first("text", "label", "salesforce_field_label", "fallback")
	if n.kind() == "text" { // may be a blank
		text = n.str("text")
	}
	text = escape.Replace(text)
	switch url := n.str("url"); {
	case url != "" && !strings.ContainsAny(url[:1], "@#!"):
		text = "<" + strings.ReplaceAll(escape.Replace(url), "|", "%7C") + "|" + text + ">"
	case text == "":
		text = escape.Replace(bracket(n.kind()))
	}
	return styled(text, nodeOf(n["style"]))
}

// styled puts the marks of a style around a text.
func styled(text string, style node) string {
	if strings.TrimSpace(text) == "" {
		return text
	}
	for _, mark := range []struct{ style, sign string }{{"code", "`"}, {"strike", "~"}, {"italic", "_"},
		{"bold", "*"}} {
		if on, _ := style[mark.style].(bool); on {
			text = mark.sign + text + mark.sign
		}
	}
	return text
}

// emojiName is an emoji as it stands in texts, ":wave::skin-tone-2:".
func emojiName(n node) string {
	name := ":" + escape.Replace(n.str("name")) + ":"
	if tone := n.number("skin_tone"); tone > 0 {
		name += ":skin-tone-" + strconv.Itoa(tone) + ":"
	}
	return name
}

// bracketed is the mention of an id.
func bracketed(kind, id string) string { return "<" + kind + cmp.Or(idOnly(id), "unknown") + ">" }

// idOnly is an id without the end of a mention.
func idOnly(id string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("<>|^&", r) {
			return -1
		}
		return r
	}, id)
}
