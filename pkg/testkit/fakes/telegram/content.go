package telegram

import (
	"slices"
)

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
