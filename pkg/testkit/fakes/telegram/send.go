package telegram

import (
	"slices"
	"strings"
	"time"
)

// deliver sends a message of the bot to the place of a request.
func (s *Server) deliver(p params, r *room, m *Message) (Message, error) {
	thread, replyTo, err := r.target(p, s.me)
	if err != nil {
		return Message{}, err
	}
	if m.DirectTopic, err = r.directTo(p, replyTo); err != nil {
		return Message{}, err
	}
	if m.Markup, err = p.markup(); err != nil {
		return Message{}, err
	}
	me := s.me
	m.From = &me
	return r.add(m, thread, replyTo).snapshot(), nil
}

func (s *Server) sendMessage(p params) (any, error) {
	r, err := s.writable(p)
	if err != nil {
		return nil, err
	}
	text, entities, err := p.text()
	if err != nil {
		return nil, err
	}
	return s.deliver(p, r, &Message{Text: text, Entities: entities})
}

// text is the text of a request with all its entities.
func (p params) text() (string, []Entity, error) {
	text := p.str("text")
	entities, err := p.entitiesOf("entities")
	if err == nil {
		err = checkText(text, entities)
	}
	if err == nil {
		err = p.checkLinkPreview()
	}
	return text, mark(text, entities), err
}

// checkLinkPreview refuses options for the preview of a link that are no object, or not of its types.
func (p params) checkLinkPreview() error {
	var options *struct {
		Disabled bool   `json:"is_disabled"`
		URL      string `json:"url"`
		Small    bool   `json:"prefer_small_media"`
		Large    bool   `json:"prefer_large_media"`
		Above    bool   `json:"show_above_text"`
	}
	if found, err := p.json("link_preview_options", &options); err != nil || found && options == nil {
		return badRequest("object expected as link preview options")
	}
	return nil
}

func (p params) caption() (string, []Entity, error) {
	caption := p.str("caption")
	entities, err := p.entitiesOf("caption_entities")
	if err == nil {
		err = checkCaption(caption, entities)
	}
	return caption, mark(caption, entities), err
}

// message is the message of a request. name is its name in the error.
func (s *Server) message(p params, name string) (*room, *Message, error) {
	r, err := s.readable(p)
	if err != nil {
		return nil, nil, err
	}
	if p.int("message_id", 0) == 0 {
		return nil, nil, badRequest("message identifier is not specified")
	}
	m := r.messages[int(p.int("message_id", 0))]
	if m == nil {
		return nil, nil, badRequest("%s not found", name)
	}
	return r, m, nil
}

// editable is the message of a request, which must be the bot's own.
func (s *Server) editable(p params) (*Message, error) {
	if _, err := s.writable(p); err != nil {
		return nil, err
	}
	_, m, err := s.message(p, "message to edit")
	switch {
	case err != nil:
		return nil, err
	case m.From.ID != s.me.ID || service(m) || m.Origin != nil:
		return nil, badRequest("message can't be edited")
	}
	return m, nil
}

func notModified() error {
	return badRequest("message is not modified: specified new message content and reply markup are exactly " +
		"the same as a current content and reply markup of the message")
}

// editMessageText replaces the buttons too: without reply_markup there are none afterwards.
func (s *Server) editMessageText(p params) (any, error) {
	m, err := s.editable(p)
	if err != nil {
		return nil, err
	}
	text, entities, err := p.text()
	if err != nil {
		return nil, err
	}
	markup, err := p.markup()
	switch {
	case err != nil:
		return nil, err
	case m.Text == "":
		return nil, badRequest("there is no text in the message to edit")
	case m.Text == text && sameEntities(m.Entities, entities) && string(m.Markup) == string(markup):
		return nil, notModified()
	}
	m.Text, m.Entities, m.Markup, m.EditDate = text, entities, markup, time.Now().Unix()
	return m.snapshot(), nil
}

// editMessageReplyMarkup changes only the buttons, without reply_markup to none. Clients do not show such a message as
// edited.
func (s *Server) editMessageReplyMarkup(p params) (any, error) {
	m, err := s.editable(p)
	if err != nil {
		return nil, err
	}
	markup, err := p.markup()
	switch {
	case err != nil:
		return nil, err
	case string(m.Markup) == string(markup):
		return nil, notModified()
	}
	m.Markup = markup
	return m.snapshot(), nil
}

func (s *Server) editMessageCaption(p params) (any, error) {
	m, err := s.editable(p)
	if err != nil {
		return nil, err
	}
	caption, entities, err := p.caption()
	if err != nil {
		return nil, err
	}
	markup, err := p.markup()
	switch {
	case err != nil:
		return nil, err
	case m.Text != "" || m.Poll != nil || m.Sticker != nil:
		return nil, badRequest("there is no caption in the message to edit")
	case m.Caption == caption && sameEntities(m.CaptionEntities, entities) && string(m.Markup) == string(markup):
		return nil, notModified()
	}
	m.Caption, m.CaptionEntities, m.Markup, m.EditDate = caption, entities, markup, time.Now().Unix()
	return m.snapshot(), nil
}

func sameEntities(a, b []Entity) bool {
	return slices.EqualFunc(a, b, func(a, b Entity) bool {
		sameUser := a.User == nil && b.User == nil || a.User != nil && b.User != nil && a.User.ID == b.User.ID
		a.User, b.User = nil, nil
		return a == b && sameUser
	})
}

// deleteMessage deletes any message of a private chat, elsewhere only the bot's own, unless it is
// an administrator.
func (s *Server) deleteMessage(p params) (any, error) {
	r, m, err := s.message(p, "message to delete")
	if err != nil {
		return nil, err
	}
	if !s.deletable(r, m) {
		return nil, badRequest("message can't be deleted")
	}
	delete(r.messages, m.ID)
	return true, nil
}

// deletable is also limited by age, except for administrators.
func (s *Server) deletable(r *room, m *Message) bool {
	const maxAge = 48 * time.Hour
	own := m.From.ID == s.me.ID || r.chat.Type == Private
	return r.admin(s.me) || own && time.Since(time.Unix(m.Date, 0)) < maxAge
}

// sendChatAction is the only method that accepts the id of General, where without it nothing is shown.
func (s *Server) sendChatAction(p params) (any, error) {
	r, err := s.writable(p)
	if err != nil {
		return nil, err
	}
	if r.chat.IsDirect {
		return nil, badRequest("chat actions can't be sent to channel direct messages chats")
	}
	thread := int(p.int("message_thread_id", 0))
	if thread != 0 && r.topics[thread] == nil && (thread != general || !r.chat.IsForum) {
		return nil, badRequest("message thread not found")
	}
	switch strings.ToLower(p.str("action")) {
	case "typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice", "upload_document",
		"choose_sticker", "find_location", "record_video_note", "upload_video_note", "cancel":
		return true, nil
	}
	return nil, badRequest("wrong parameter action in request")
}

// setMessageReaction sets or removes the bot's only reaction to a message.
func (s *Server) setMessageReaction(p params) (any, error) {
	r, m, err := s.message(p, "message to react")
	if err != nil {
		return nil, err
	}
	var reactions []Reaction
	if _, err := p.json("reaction", &reactions); err != nil {
		return nil, badRequest("can't parse reaction types JSON object")
	}
	if len(reactions) > 1 {
		return nil, badRequest("REACTIONS_TOO_MANY")
	}
	var emoji []string
	for _, reaction := range reactions {
		if reaction.Type != "emoji" || !reactionEmoji(reaction.Emoji) ||
			r.allowed != nil && !slices.Contains(r.allowed, reaction.Emoji) {
			return nil, badRequest("REACTION_INVALID")
		}
		emoji = append(emoji, reaction.Emoji)
	}
	r.react(m.ID, s.me, emoji)
	return true, nil
}

// react sets a user's reactions, and returns the old ones.
func (r *room) react(message int, by User, emoji []string) (old []string) {
	if r.reactions[message] == nil {
		r.reactions[message] = map[int64][]string{}
	}
	old = r.reactions[message][by.ID]
	r.reactions[message][by.ID] = emoji
	return old
}

// reactionEmoji reports whether an emoji is a free reaction, with or without the variation selector
// for emoji presentation.
func reactionEmoji(emoji string) bool {
	const selector = "\ufe0f"
	return slices.Contains(strings.Fields(freeReactions), strings.ReplaceAll(emoji, selector, ""))
}

// freeReactions are listed at ReactionTypeEmoji in the documentation.
const freeReactions = "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤\u200d🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 " +
	"🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨\u200d💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 " +
	"🤷\u200d♂ 🤷 🤷\u200d♀ 😡"
