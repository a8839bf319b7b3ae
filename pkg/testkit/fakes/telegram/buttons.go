package telegram

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Buttons are the data of a message's buttons by their labels.
func (m *Message) Buttons() map[string]string {
	var keyboard struct {
		Inline [][]button `json:"inline_keyboard"`
	}
	_ = json.Unmarshal(m.Markup, &keyboard) // none has no buttons
	all := map[string]string{}
	for _, b := range slices.Concat(keyboard.Inline...) {
		all[b.Text] = b.Data
	}
	return all
}

// Press is TryPress for a button that must be there.
func (p Place) Press(by User, message int, data string) (query string) {
	query, err := p.TryPress(by, message, data)
	must(err)
	return query
}

// TryPress presses a button of the bot with some data under a message. The query has an id, which the bot answers.
func (p Place) TryPress(by User, message int, data string) (query string, err error) {
	return p.press(by, message, data, false)
}

// ForgePress is TryPress with any data, as a modified app sends it: Telegram does not compare it with the buttons.
func (p Place) ForgePress(by User, message int, data string) (query string) {
	query, err := p.press(by, message, data, true)
	must(err)
	return query
}

func (p Place) press(by User, message int, data string, isForged bool) (query string, err error) {
	err = p.try(func(r *room) error {
		m := r.messages[message]
		if m == nil || !r.in(by) {
			return fmt.Errorf("%s sees no message %d", by.FirstName, message)
		}
		if !isForged && !slices.Contains(slices.Collect(maps.Values(m.Buttons())), data) {
			return fmt.Errorf("message %d has no button %q", message, data)
		}
		query = fmt.Sprintf("4382%012d", p.s.firstID+len(p.s.clicks)+1)
		p.s.clicks[query] = &click{at: time.Now(), by: by, chat: p.ChatID}
		shown := m.snapshot()
		p.s.emit("callback_query", fields{"id": query, "from": by, "message": &shown,
			"chat_instance": fmt.Sprint(p.ChatID), "data": data})
		return nil
	})
	return query, err
}

// maxWait is how long Telegram waits for the answer to a press. The documentation gives no number.
const maxWait = 15 * time.Second

// click is a press that the bot has to answer.
type click struct {
	at       time.Time
	by       User
	chat     int64
	answered bool
	answer   PressAnswer
}

// PressAnswer is the text that the user of a press sees, in a window of its own if Alert is true.
type PressAnswer struct {
	Text  string
	Alert bool
}

// Notice is a text that only the user of a press sees, as the answer to it.
type Notice struct {
	By   User
	At   time.Time
	Text string
}

// Notices are the notices in a chat, oldest first.
func (p Place) Notices() (all []Notice) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, query := range slices.Sorted(maps.Keys(p.s.clicks)) {
		if c := p.s.clicks[query]; c.chat == p.ChatID && c.answer.Text != "" {
			all = append(all, Notice{c.by, c.at, c.answer.Text})
		}
	}
	return all
}

// PressAnswer returns the bot's answer to a press. ok is false while there is none.
func (s *Server) PressAnswer(query string) (a PressAnswer, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clicks[query]
	if c == nil || !c.answered {
		return PressAnswer{}, false
	}
	return c.answer, true
}

// answerCallbackQuery takes one answer to each query, in time.
func (s *Server) answerCallbackQuery(p params) (any, error) {
	c := s.clicks[p.str("callback_query_id")]
	if c == nil || c.answered || time.Since(c.at) > maxWait {
		return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
	}
	if units(p.str("text")) > 200 {
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	c.answered, c.answer = true, PressAnswer{Text: p.str("text"), Alert: p.bool("show_alert")}
	return true, nil
}
