package slack

import "time"

// triggerLife is how long the trigger of a command or a press opens a view.
const triggerLife = 3 * time.Second

// view is the view of a request, which must be of a type.
func (s *Server) view(p params, kind string) (any, error) {
	var v fields
	if found, valid := p.json("view", &v); !found || !valid || v["type"] != kind || v["blocks"] == nil {
		return nil, errorCode("invalid_arguments")
	}
	v["id"], v["team_id"], v["bot_id"] = s.id("V"), teamID, s.me.BotID
	return fields{"view": v}.ok(), nil
}

// openView opens a modal for the user of a trigger, which can be used once.
func (s *Server) openView(p params) (any, error) {
	at, known := s.triggers[p.str("trigger_id")]
	switch {
	case !known:
		return nil, errorCode("invalid_trigger_id")
	case time.Since(at) > triggerLife:
		return nil, errorCode("expired_trigger_id")
	}
	delete(s.triggers, p.str("trigger_id"))
	return s.view(p, "modal")
}

// publishView sets a user's Home tab.
func (s *Server) publishView(p params) (any, error) {
	if u, known := s.users[p.str("user_id")]; !known || u.IsBot() {
		return nil, errorCode("invalid_arguments")
	}
	return s.view(p, "home")
}
