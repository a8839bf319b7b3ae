package telegram

import (
	"cmp"
	"slices"
)

// forwardMessage sends a message again, with its sender.
func (s *Server) forwardMessage(p params) (any, error) {
	r, from, err := s.source(p, "message to forward")
	if err != nil {
		return nil, err
	}
	m := from.contents()
	m.Origin = cmp.Or(from.Origin, &Origin{Type: "user", Date: from.Date, SenderUser: from.From})
	return s.deliver(p, r, &m)
}

// copyMessage sends a message again, as the bot's own, and returns only the id of the copy.
func (s *Server) copyMessage(p params) (any, error) {
	r, from, err := s.source(p, "message to copy")
	if err != nil {
		return nil, err
	}
	m := from.contents()
	made, err := s.deliver(p, r, &m)
	return fields{"message_id": made.ID}, err
}

// source is the message that a request forwards or copies, and the chat to which it goes.
func (s *Server) source(p params, name string) (*room, *Message, error) {
	r, err := s.writable(p)
	if err != nil {
		return nil, nil, err
	}
	from := params{Params: p.Clone()}
	from.Params["chat_id"] = p.str("from_chat_id")
	_, m, err := s.message(from, name)
	return r, m, err
}

// contents is a message without the fields that belong to its place.
func (m *Message) contents() Message {
	c := m.snapshot()
	c.Origin, c.ReplyTo, c.External, c.Quote, c.Thread, c.IsTopic, c.EditDate, c.Markup, c.MediaGroup = nil, nil, nil,
		nil, 0, false, 0, nil, ""
	return c
}

// markup is the keyboard of a request, nil for none. Only one of buttons stays with its message.
func (p params) markup() ([]byte, error) {
	var keyboard struct {
		Inline [][]button `json:"inline_keyboard"`
	}
	if found, err := p.json("reply_markup", &keyboard); err != nil || !found || p.str("reply_markup") == "null" {
		if err != nil {
			err = badRequest("object expected as reply markup")
		}
		return nil, err
	}
	if len(keyboard.Inline) == 0 {
		return nil, nil
	}
	for _, b := range slices.Concat(keyboard.Inline...) {
		switch {
		case b.Text == "":
			return nil, badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
		case len(b.Data) > 64:
			return nil, badRequest("BUTTON_DATA_INVALID")
		case b.Data == "" && b.URL == "":
			return nil, badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
		}
	}
	return []byte(p.str("reply_markup")), nil
}

// button is a button under a message.
type button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
	URL  string `json:"url"`
}
