package telegram

import (
	"slices"
	"strconv"
)

// diceValues are the emoji of sendDice with the number of their values.
var diceValues = map[string]int{"🎲": 6, "🎯": 6, "🎳": 6, "🏀": 5, "⚽": 5, "🎰": 64}

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

// sendDice gives the value 1 first, then the others in their order.
func (s *Server) sendDice(p params) (any, error) {
	return s.post(p, func() (m Message, err error) {
		emoji := p.str("emoji")
		if emoji == "" {
			emoji = "🎲"
		}
		if diceValues[emoji] == 0 {
			return m, badRequest("wrong dice emoji specified")
		}
		m.Dice = &Dice{Emoji: emoji, Value: s.thrown%diceValues[emoji] + 1}
		s.thrown++
		return m, nil
	})
}

func (s *Server) sendLocation(p params) (any, error) {
	return s.post(p, func() (m Message, err error) {
		at, err := p.location()
		m.Location = &at
		return m, err
	})
}

func (s *Server) sendVenue(p params) (any, error) {
	return s.post(p, func() (m Message, err error) {
		at, err := p.location()
		if err == nil && (p.str("title") == "" || p.str("address") == "") {
			err = badRequest("venue title and address must be non-empty")
		}
		m.Venue, m.Location = &Venue{Location: at, Title: p.str("title"), Address: p.str("address")}, &at
		return m, err
	})
}

func (p params) location() (at Location, err error) {
	latitude, err1 := strconv.ParseFloat(p.str("latitude"), 64)
	longitude, err2 := strconv.ParseFloat(p.str("longitude"), 64)
	if err1 != nil || err2 != nil || latitude < -90 || latitude > 90 || longitude < -180 || longitude > 180 {
		return at, badRequest("can't parse location")
	}
	return Location{Latitude: latitude, Longitude: longitude}, nil
}

func (s *Server) sendContact(p params) (any, error) {
	return s.post(p, func() (m Message, err error) {
		switch {
		case p.str("phone_number") == "":
			return m, badRequest("phone number is empty")
		case p.str("first_name") == "":
			return m, badRequest("first name is empty")
		}
		m.Contact = &Contact{Phone: p.str("phone_number"), FirstName: p.str("first_name"), LastName: p.str("last_name")}
		return m, nil
	})
}

// source is the message that a request forwards or copies.
func (s *Server) source(p params, what string) (*Message, error) {
	from := params{Params: p.Clone()}
	from.Params["chat_id"] = p.str("from_chat_id")
	_, m, err := s.message(from, "message to "+what)
	if err == nil && service(m) {
		err = badRequest("the message can't be %s", map[string]string{"forward": "forwarded", "copy": "copied"}[what])
	}
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
		m = from.contents()
		if p.Params["caption"] != "" && m.Text == "" {
			m.Caption, m.CaptionEntities, err = p.caption()
		}
		return m, err
	})
	if err != nil {
		return nil, err
	}
	return messageID{made.(Message).ID}, nil
}

// contents is a message without what belongs to its place.
func (m *Message) contents() Message {
	c := m.snapshot()
	c.Origin, c.ReplyTo, c.External, c.Quote, c.Thread, c.IsTopic, c.EditDate, c.Markup, c.MediaGroup = nil, nil, nil,
		nil, 0, false, 0, nil, ""
	return c
}

type messageID struct {
	ID int `json:"message_id"`
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
