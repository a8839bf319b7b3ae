package inbound

import (
	"cmp"
	"strings"
	"time"

	"arizuko/pkg/adapter/plaintext"
)

// unescape replaces the escapes of the three characters of markup.
var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// plain returns mrkdwn as users see it: names for ids, and the URLs of links after their text.
// Mentions of the bot are removed unless others are named beside it; addressed says that there were any.
func plain(text string, me Self, names Names) (content string, addressed bool) {
	var out []byte
	named := -1 // where the last name of another ends in out
	for {
		before, rest, found := strings.Cut(text, "<")
		out = append(out, unescape.Replace(before)...)
		if !found {
			return string(out), addressed
		}
		token, after, closed := strings.Cut(rest, ">")
		switch {
		case !closed || strings.Contains(token, "<"):
			out, text = append(out, '<'), rest
		case mentions(token, me.User):
			addressed = true
			if named >= 0 && plaintext.Beside(string(out[min(named, len(out)):])) || namedNext(after, me) {
				out, text = append(out, spoken(token, names)...), after
			} else {
				out, text = plaintext.CloseUp(out, after)
			}
		default:
			out, text = append(out, spoken(token, names)...), after
			if strings.HasPrefix(token, "@") {
				named = len(out)
			}
		}
	}
}

// namedNext reports whether a text after the bot's name goes on with the name of another.
func namedNext(text string, me Self) bool {
	between, rest, found := strings.Cut(text, "<@")
	id, _, closed := strings.Cut(rest, ">")
	return found && closed && !mentions("@"+id, me.User) && plaintext.Beside(unescape.Replace(between))
}

// mentions reports whether the content of brackets is a mention of a user.
func mentions(token, user string) bool {
	id, _, _ := strings.Cut(token, "|")
	return user != "" && id == "@"+user
}

// spoken is the text for the content of brackets.
func spoken(token string, names Names) string {
	target, label, _ := strings.Cut(token, "|")
	label = unescape.Replace(label)
	switch {
	case strings.HasPrefix(target, "@"):
		return "@" + cmp.Or(plaintext.Line(names.User(target[1:])), plaintext.Line(label), plaintext.Line(target[1:]))
	case strings.HasPrefix(target, "#"):
		_, title := names.Chat(target[1:])
		return "#" + cmp.Or(strings.TrimPrefix(plaintext.Line(title), "#"), plaintext.Line(label),
			plaintext.Line(target[1:]))
	case strings.HasPrefix(target, "!"):
		return special(target[1:], label)
	}
	return link(unescape.Replace(target), label)
}

// special is a mention of many users, or a date.
func special(command, label string) string {
	name, argument, _ := strings.Cut(command, "^")
	switch name {
	case "here", "channel", "everyone":
		return "@" + name
	case "subteam":
		return "@" + strings.TrimPrefix(cmp.Or(plaintext.Line(label), plaintext.Line(argument), name), "@")
	case "date":
		seconds, _, _ := strings.Cut(argument, "^")
		if at := millis(seconds); label == "" && at > 0 {
			return time.UnixMilli(at).UTC().Format(time.RFC1123)
		}
	}
	return cmp.Or(label, name)
}

// link is a link's text with its URL after it, unless both are the same.
func link(target, words string) string {
	switch words {
	case "":
		return strings.TrimPrefix(target, "mailto:")
	case target:
		return words
	}
	if target == "" {
		return words
	}
	for _, scheme := range []string{"mailto:", "tel:", "https://", "http://"} {
		if rest, ok := strings.CutPrefix(target, scheme); ok &&
			strings.TrimSuffix(rest, "/") == strings.TrimSuffix(words, "/") {
			return words
		}
	}
	return words + " (" + target + ")"
}
