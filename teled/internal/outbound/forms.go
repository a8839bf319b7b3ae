package outbound

import (
	"maps"
	"slices"

	"arizuko/pkg/render"
	"arizuko/teled/internal/telegramapi"
)

// otherForm returns another form of a call that was refused with an error, and whether there is one. Each form is
// tried once, since it leaves out what another refusal would be about.
func (c call) otherForm(refused error) (other call, ok bool) {
	refusedFor := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return telegramapi.RefusedFor(refused, text) })
	}
	switch {
	case c.formatted() && refusedFor("entit"): // plain text is better than none
		return c.plain("sent without formatting: " + refused.Error()), true
	case c.method == "editMessageText" && refusedFor("no text in the message"):
		return c.captionEdit(), true
	case c.method == "sendPoll" && c.params["is_anonymous"] == "false" && refusedFor("non-anonymous poll"):
		c.params = maps.Clone(c.params)
		c.params["is_anonymous"] = "true"
		c.remark = "sent as an anonymous poll, of which only the counts are known: " + refused.Error()
		return c, true
	case c.file != nil && c.method != "sendDocument" && refusedFor("photo", "image", "video", "audio", "voice", "wrong file", "wrong type"):
		c.method, c.field, c.remark = "sendDocument", "document", "sent as a document: "+refused.Error()
		return c, true
	case c.sends() && c.params["message_thread_id"] != nil && refusedFor("topic_closed", "topic_deleted", "message thread not found"):
		c.params = maps.Clone(c.params)
		delete(c.params, "message_thread_id")
		delete(c.params, "reply_parameters") // a reply would go to the same topic
		c.remark = "sent to the chat outside of the topic: " + refused.Error()
		return c, true
	}
	return c, false
}

func (c call) formatted() bool {
	return c.text != "" && (c.params["entities"] != nil || c.params["caption_entities"] != nil)
}

// plain is a call whose text has no formatting, with a remark that says why.
func (c call) plain(remark string) call {
	c.params = maps.Clone(c.params)
	delete(c.params, "entities")
	delete(c.params, "caption_entities")
	if text, ok := c.params[c.text].(string); ok { // no code keeps mentions away now
		c.params[c.text] = render.PlainMentions(text)
	}
	c.remark = remark
	return c
}

// captionEdit edits the caption of a file in place of a text.
func (c call) captionEdit() call {
	c.method, c.text = "editMessageCaption", "caption"
	p := maps.Clone(c.params)
	p["caption"], p["caption_entities"] = p["text"], p["entities"]
	delete(p, "text")
	delete(p, "entities")
	c.params = p
	return c
}
