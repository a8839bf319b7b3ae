package slack

import (
	"encoding/json"
	"time"
)

// triggerLife is how long the trigger of a command or a press opens a view.
const triggerLife = 3 * time.Second

// View is a modal, or a user's Home tab.
type View struct {
	ID      string
	UserID  string
	Content json.RawMessage // as in the call
}

type viewAnswer struct {
	OK   bool       `json:"ok"`
	View viewObject `json:"view"`
}

type viewObject struct {
	ID     string          `json:"id"`
	TeamID string          `json:"team_id"`
	BotID  string          `json:"bot_id"`
	Type   string          `json:"type"`
	Title  json.RawMessage `json:"title,omitempty"`
	Blocks json.RawMessage `json:"blocks"`
}

// view is the view of a request, which must be of a type.
func (s *Server) view(p params, kind, user string) (any, error) {
	var v viewObject
	if found, valid := p.json("view", &v); !found || !valid || v.Type != kind || len(v.Blocks) == 0 ||
		kind == "modal" && len(v.Title) == 0 {
		return nil, errorCode("invalid_arguments")
	}
	v.ID, v.TeamID, v.BotID = s.id("V"), teamID, s.me.BotID
	s.views = append(s.views, View{v.ID, user, json.RawMessage(p.str("view"))})
	return viewAnswer{true, v}, nil
}

// openView opens a modal for the user of a trigger, which can be used once.
func (s *Server) openView(p params) (any, error) {
	t, known := s.triggers[p.str("trigger_id")]
	switch {
	case p.str("trigger_id") == "" || !known:
		return nil, errorCode("invalid_trigger_id")
	case t.used:
		return nil, errorCode("exchanged_trigger_id")
	case time.Since(t.at) > triggerLife:
		return nil, errorCode("expired_trigger_id")
	}
	answer, err := s.view(p, "modal", t.user)
	if err == nil {
		t.used = true
		s.triggers[p.str("trigger_id")] = t
	}
	return answer, err
}

// publishView sets a user's Home tab.
func (s *Server) publishView(p params) (any, error) {
	if u, known := s.users[p.str("user_id")]; !known || u.IsBot() {
		return nil, errorCode("invalid_arguments")
	}
	return s.view(p, "home", p.str("user_id"))
}

// trigger is the right to open a view.
type trigger struct {
	user string
	at   time.Time
	used bool
}

// Views are all views that the app has opened or published, oldest first.
func (s *Server) Views() []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]View(nil), s.views...)
}
