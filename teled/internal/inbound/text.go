package inbound

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"arizuko/pkg/adapter/plaintext"
	"arizuko/teled/internal/telegramapi"
)

// plain returns a text as Markdown, without differences of fonts, and with the URLs of links after their
// text. Mentions of the bot are removed unless others are named beside it, and "/command@bot" becomes "/command";
// addressed says that there were any. An entity outside of the text is ignored.
func plain(text string, entities []telegramapi.MessageEntity, me Self) (content string, addressed bool) {
	if len(entities) == 0 {
		return text, false
	}
	offsets := unitOffsets(text)
	var changes []plaintext.Change
	for i := range entities {
		from, to, ok := span(offsets, entities[i].Offset, entities[i].Length)
		if !ok {
			continue
		}
		c, ours := changeOf(&entities[i], text[from:to], from, me)
		addressed = addressed || ours
		if c != (plaintext.Change{}) {
			changes = append(changes, c)
		}
		changes = append(changes, marksOf(&entities[i], text[from:to], text[to:], from)...)
	}
	slices.SortStableFunc(changes, func(a, b plaintext.Change) int { return cmp.Compare(a.From, b.From) })
	return plaintext.Apply(text, changes), addressed
}

// changeOf is the change that an entity makes to the text at from; ours if it names the bot.
func changeOf(e *telegramapi.MessageEntity, words string, from int, me Self) (c plaintext.Change, ours bool) {
	to := from + len(words)
	switch e.Type {
	case telegramapi.EntityMention:
		who := me.whom(words)
		return plaintext.Change{From: from, To: to, Insert: words, Names: who}, who == plaintext.Us
	case telegramapi.EntityTextMention:
		who := plaintext.Other
		if e.User != nil && e.User.ID == me.ID {
			who = plaintext.Us
		}
		return plaintext.Change{From: from, To: to, Insert: words, Names: who}, who == plaintext.Us
	case telegramapi.EntityBotCommand:
		command, name, ok := strings.Cut(words, "@")
		switch {
		case ok && me.named(name):
			return plaintext.Change{From: from + len(command), To: to}, true
		case ok:
			return plaintext.Change{From: from, To: to, Insert: words, Names: plaintext.Other}, false
		}
	case telegramapi.EntityTextLink:
		if e.URL != "" && e.URL != words {
			return plaintext.Change{From: to, To: to, Insert: " (" + e.URL + ")"}, false
		}
	case telegramapi.EntityDateTime:
		return plaintext.Change{From: to, To: to, Insert: around(" (", moment(e.UnixTime), ")")}, false
	}
	return plaintext.Change{}, false
}

// moment is a time, in unix seconds, that apps show each user in another way, such as "tomorrow"; "" for none.
func moment(seconds int64) string {
	if millis(seconds) == 0 {
		return ""
	}
	return time.UnixMilli(millis(seconds)).UTC().Format("2006-01-02 15:04 UTC")
}

func (me Self) named(username string) bool {
	return me.Username != "" && strings.EqualFold(username, me.Username)
}

// unitOffsets returns the byte offset of each UTF-16 unit of a text, and of its end; -1 for the second
// half of a surrogate pair.
func unitOffsets(text string) []int {
	offsets := make([]int, 0, len(text)+1)
	for i, r := range text {
		offsets = append(offsets, i)
		if utf8.RuneLen(r) == utf8.UTFMax {
			offsets = append(offsets, -1)
		}
	}
	return append(offsets, len(text))
}

// span converts a range of UTF-16 units into bytes. It is not ok if the range is empty, outside of the
// text, or splits a character.
func span(offsets []int, offset, length int) (from, to int, ok bool) {
	if offset < 0 || length <= 0 || length >= len(offsets)-offset { // the sum may overflow
		return 0, 0, false
	}
	from, to = offsets[offset], offsets[offset+length]
	return from, to, from >= 0 && to >= 0
}

// whom is whom a mention such as "@arizuko_bot" names.
func (me Self) whom(mention string) plaintext.Named {
	name, ok := strings.CutPrefix(mention, "@")
	switch {
	case ok && me.named(name):
		return plaintext.Us
	case strings.HasSuffix(strings.ToLower(name), "bot"): // as the usernames of bots do
		return plaintext.Other
	}
	return plaintext.Token
}
