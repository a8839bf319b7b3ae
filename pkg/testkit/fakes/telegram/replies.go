package telegram

import "fmt"

// pasteSize is where the apps cut a text that is too long for one message, in UTF-16 units.
const pasteSize = maxText

// maxQuote is the longest part of a text that can be quoted, in UTF-16 units.
const maxQuote = 1024

// quote adds to a message the one of another topic or chat that it answers, of which Telegram quotes the beginning.
func (s *Server) quote(m *Message, d Draft) error {
	if d.Elsewhere.s == nil {
		return nil
	}
	there := s.rooms[d.Elsewhere.ChatID]
	if there == nil || there.messages[d.ReplyTo] == nil {
		return fmt.Errorf("no message %d to reply to in chat %d", d.ReplyTo, d.Elsewhere.ChatID)
	}
	replyTo := there.messages[d.ReplyTo]
	m.External = external(there, replyTo)
	if text := replyTo.Text + replyTo.Caption; text != "" {
		m.Quote = &Quote{Text: head(text, maxQuote)}
	}
	return nil
}

// external is a message as an answer elsewhere contains it.
func external(r *room, m *Message) *External {
	e := &External{Origin: Origin{Type: "user", Date: m.Date, SenderUser: m.From}, Photo: m.Photo, Document: m.Document,
		Voice: m.Voice}
	if r.chat.Type == Supergroup {
		chat := r.chat
		e.Chat, e.MessageID = &chat, m.ID
	}
	return e
}

// head is the beginning of a text, of at most so many UTF-16 units.
func head(text string, most int) string {
	n := 0
	for i, r := range text {
		if n += units(string(r)); n > most {
			return text[:i]
		}
	}
	return text
}

// ReplyElsewhere answers a message of another topic or chat.
func (p Place) ReplyElsewhere(from User, there Place, to int, text string, entities ...Entity) Message {
	return p.addPost(from, Draft{Text: text, Entities: entities, ReplyTo: to, Elsewhere: there})
}

// Paste sends a text that may be too long for one message: the app cuts it into several.
func (p Place) Paste(from User, text string) (sent []Message) {
	for text != "" {
		piece := head(text, pasteSize)
		sent = append(sent, p.Say(from, piece))
		text = text[len(piece):]
	}
	return sent
}
