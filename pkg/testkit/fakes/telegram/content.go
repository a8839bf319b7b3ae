package telegram

import (
	"slices"
)

// post sends a message that has no text, whose content is made once its place is known to be valid.
func (s *Server) post(p params, content func() (Message, error)) (any, error) {
	r, err := s.writable(p)
	if err != nil {
		return nil, err
	}
	m, err := content()
	if err != nil {
		return nil, err
	}
	return s.deliver(p, r, &m)
}

// source is the message that a request forwards or copies.
func (s *Server) source(p params, use string) (*Message, error) {
	from := params{Params: p.Clone()}
	from.Params["chat_id"] = p.str("from_chat_id")
	_, m, err := s.message(from, "message to "+use)
	return m, err
}

func (s *Server) forwardMessage(p params) (any, error) {
	return s.post(p, func() (m Message, err error) {
		from, err := s.source(p, "forward")
		if err != nil {
			return m, err
		}
		origin := from.Origin
		if origin == nil {
			origin = &Origin{Type: "user", Date: from.Date, SenderUser: from.From}
		}
		m = from.contents()
		m.Origin = origin
		return m, nil
	})
}

// copyMessage returns only the id of the copy.
func (s *Server) copyMessage(p params) (any, error) {
	made, err := s.post(p, func() (m Message, err error) {
		from, err := s.source(p, "copy")
		if err != nil {
			return m, err
		}
		return from.contents(), nil
	})
	if err != nil {
		return nil, err
	}
	return fields{"message_id": made.(Message).ID}, nil
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
