package outbound

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/teled/internal/telegramapi"
)

// otherForm returns another form of a call that was refused with an error, and a remark on its difference;
// nil if there is none. Each form is tried once, since it leaves out the cause of another such refusal.
func (c call) otherForm(refused error) (other *call, remark string) {
	refusedFor := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return telegramapi.RefusedFor(refused, text) })
	}
	switch {
	case c.file != nil && telegramapi.TooLarge(refused): // TELEGRAM_LOCAL is not true
		return c.instead(c.file.TooLarge(msg.MaxUploadTelegram(false), "Telegram takes from bots")),
			"sent without the file: " + refused.Error()
	case c.params["reply_parameters"] != nil && refusedFor("message to be replied not found",
		"replied message not found"):
		return c.without("reply_parameters"), "sent without the message that it answers: " + refused.Error()
	case c.params["close_date"] != nil && refusedFor("open_period", "close_date", "close date", "poll_open"):
		other = c.without("close_date")
		other.closes = 0
		return other, "sent as a poll that Telegram does not close by itself: " + refused.Error()
	case c.method == "sendVoice" && refusedFor("voice_messages_forbidden"):
		c.method, c.field = "sendAudio", "audio"
		return &c, "sent as audio, since the user takes no voice messages"
	case c.formatted() && refusedFor("entit"): // plain text is better than none
		return c.plain(), "sent without formatting: " + refused.Error()
	case c.method == "editMessageText" && refusedFor("no text in the message"):
		return c.captionEdit(), ""
	case c.method == "sendPoll" && c.params["is_anonymous"] == "false" && refusedFor("non-anonymous poll"):
		c.params = maps.Clone(c.params)
		c.params["is_anonymous"] = "true"
		return &c, "sent as an anonymous poll, of which only the counts are known: " + refused.Error()
	case c.file != nil && c.method != "sendDocument" &&
		refusedFor("photo", "image", "video", "audio", "voice", "wrong file", "wrong type"):
		c.method, c.field = "sendDocument", "document"
		return &c, "sent as a document: " + refused.Error()
	case c.file != nil && refusedFor("not enough rights to send", "chat_send_", "file must be non-empty"):
		return c.instead(c.file.Refused("Telegram")), "sent without the file: " + refused.Error()
	case c.params[keyboard] != nil && keyboardRefused(refused): // the text has numbers
		return c.without(keyboard), "sent without buttons: " + refused.Error()
	case c.sends() && c.params["message_thread_id"] != nil &&
		refusedFor("topic_closed", "topic_deleted", "message thread not found"):
		other = c.without("message_thread_id", "reply_parameters") // a reply would go to the same topic
		*other = other.beginning(outsideTopic)
		return other, "sent to the chat outside of the topic: " + refused.Error()
	}
	return nil, ""
}

// notModified is in the refusal of an edit that changes nothing, which names the text and the buttons.
const notModified = "message is not modified"

// keyboardRefused reports whether a call was refused because of its buttons.
func keyboardRefused(err error) bool {
	return !telegramapi.RefusedFor(err, notModified) &&
		slices.ContainsFunc([]string{"button", "keyboard", "reply markup", "reply_markup"},
			func(text string) bool { return telegramapi.RefusedFor(err, text) })
}

// outsideTopic begins a message that cannot be sent to its topic.
const outsideTopic = "(for a topic that is closed or deleted) "

// instead is a notice in place of a file, with its caption.
func (c call) instead(notice string) *call {
	text := render.PlainMentions(render.Telegram(notice, maxText)[0].Text)
	if caption := c.spelled(maxText - render.UTF16Len(text) - 2); caption != "" {
		text += "\n\n" + caption
	}
	other := c.without("caption", "caption_entities")
	other.method, other.text, other.file, other.field = "sendMessage", "text", nil, ""
	other.params["text"] = text
	return other
}

// without is a call without some parameters.
func (c call) without(names ...string) *call {
	c.params = maps.Clone(c.params)
	for _, name := range names {
		delete(c.params, name)
	}
	return &c
}

// maxUnits is the limit of the text of a call.
func (c call) maxUnits() int {
	switch c.text {
	case "caption":
		return maxCaption
	case "question":
		return maxPoll
	}
	return maxText
}

// beginning is a call whose text begins with a remark. A file without a text gets it as its caption, and the
// question of a poll, which cannot be cut into parts, loses its end if both are too long; other texts stay as
// they are then.
func (c call) beginning(remark string) call {
	text, _ := c.params[c.text].(string)
	room := c.maxUnits() - render.UTF16Len(remark)
	switch {
	case c.file != nil && c.text == "":
		c.text, text, remark = "caption", "", strings.TrimSpace(remark)
	case c.text == "question" && render.UTF16Len(text) > room:
		text = shorten(text, room)
	case text == "" || render.UTF16Len(text) > room:
		return c
	}
	c.params = maps.Clone(c.params)
	if c.params == nil {
		c.params = telegramapi.Params{}
	}
	c.params[c.text] = remark + text
	shiftEntities(c.params, render.UTF16Len(remark))
	return c
}

// shorten cuts a text to a number of UTF-16 units.
func shorten(text string, units int) string {
	for render.UTF16Len(text)+1 > units {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text + "…"
}

func (c call) formatted() bool {
	return c.text != "" && (c.params["entities"] != nil || c.params["caption_entities"] != nil)
}

// plain is a call whose text has no formatting.
func (c call) plain() *call {
	text := c.spelled(c.maxUnits())
	other := c.without("entities", "caption_entities")
	if text != "" {
		other.params[c.text] = text
	}
	return other
}

// spelled is the text of a call as it is sent without entities: the addresses of links stand behind them, as far as
// they fit into a number of UTF-16 units, and no mention is left that code kept away.
func (c call) spelled(units int) string {
	text, _ := c.params[c.text].(string)
	entities, _ := c.params["entities"].([]render.Entity)
	if c.text == "caption" {
		entities, _ = c.params["caption_entities"].([]render.Entity)
	}
	links := slices.DeleteFunc(slices.Clone(entities), func(e render.Entity) bool { return e.URL == "" })
	slices.SortFunc(links, func(a, b render.Entity) int { return a.Offset + a.Length - b.Offset - b.Length })
	units -= render.UTF16Len(text)
	all := utf16.Encode([]rune(text))
	var out strings.Builder
	from := 0
	for _, e := range links {
		to, address := e.Offset+e.Length, " ("+e.URL+")"
		shown := string(utf16.Decode(all[e.Offset:to])) == e.URL
		if units -= render.UTF16Len(address); shown || units < 0 {
			units += render.UTF16Len(address)
			continue
		}
		out.WriteString(render.PlainMentions(string(utf16.Decode(all[from:to]))) + address)
		from = to
	}
	return out.String() + render.PlainMentions(string(utf16.Decode(all[from:])))
}

// captionEdit edits the caption of a file in place of a text.
func (c call) captionEdit() *call {
	c.method, c.text = "editMessageCaption", "caption"
	p := maps.Clone(c.params)
	p["caption"], p["caption_entities"] = p["text"], p["entities"]
	delete(p, "text")
	delete(p, "entities")
	delete(p, "link_preview_options")
	c.params = p
	return &c
}
