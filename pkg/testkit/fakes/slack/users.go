package slack

import (
	"time"
)

// userObject is a user as in answers.
func userObject(u User) fields {
	profile := fields{"real_name": u.RealName, "display_name": u.DisplayName}
	if u.IsBot() {
		profile["bot_id"], profile["api_app_id"] = u.BotID, u.AppID
	}
	return fields{"id": u.ID, "team_id": teamID, "name": u.Name, "deleted": false, "real_name": u.RealName,
		"tz": "Europe/Prague", "profile": profile, "is_bot": u.IsBot(), "is_app_user": false,
		"is_admin": u.Admin, "is_owner": false, "is_primary_owner": false,
		"updated": time.Now().Unix()}
}

func (s *Server) userInfo(p params) (any, error) {
	u, known := s.users[p.str("user")]
	if !known {
		return nil, errorCode("user_not_found")
	}
	return fields{"user": userObject(u)}.ok(), nil
}

func (s *Server) botInfo(p params) (any, error) {
	for _, u := range s.users {
		if u.IsBot() && u.BotID == p.str("bot") {
			return fields{"bot": fields{"id": u.BotID, "deleted": false, "name": u.RealName, "user_id": u.ID,
				"app_id": u.AppID, "updated": time.Now().Unix()}}.ok(), nil
		}
	}
	return nil, errorCode("bot_not_found")
}
