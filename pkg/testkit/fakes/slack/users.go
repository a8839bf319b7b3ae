package slack

import (
	"maps"
	"slices"
	"time"
)

// userObject is a user as in answers.
func (s *Server) userObject(u User) userInfo {
	return userInfo{
		ID: u.ID, Team: teamID, Name: u.Name, Deleted: u.Deleted, RealName: u.RealName, TZ: "Europe/Prague",
		IsBot:   u.IsBot(),
		Updated: time.Now().Unix(), Profile: profile{RealName: u.RealName, DisplayName: u.DisplayName, BotID: u.BotID,
			AppID: u.AppID},
	}
}

func (s *Server) userInfo(p params) (any, error) {
	u, known := s.users[p.str("user")]
	if !known {
		return nil, errorCode("user_not_found")
	}
	return struct {
		OK   bool     `json:"ok"`
		User userInfo `json:"user"`
	}{true, s.userObject(u)}, nil
}

func (s *Server) listUsers(p params) (any, error) {
	all := []userInfo{}
	for _, id := range slices.Sorted(maps.Keys(s.users)) {
		all = append(all, s.userObject(s.users[id]))
	}
	page, next, err := cutPage(p, all, pageOf)
	return struct {
		OK       bool             `json:"ok"`
		Members  []userInfo       `json:"members"`
		Metadata responseMetadata `json:"response_metadata"`
	}{true, page, responseMetadata{NextCursor: next}}, err
}

type botAnswer struct {
	OK  bool    `json:"ok"`
	Bot botInfo `json:"bot"`
}

type botInfo struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
	Name    string `json:"name"`
	UserID  string `json:"user_id,omitempty"`
	AppID   string `json:"app_id,omitempty"`
	Updated int64  `json:"updated"`
}

func (s *Server) botInfo(p params) (any, error) {
	for _, u := range s.users {
		if u.IsBot() && u.BotID == p.str("bot") {
			return botAnswer{true, botInfo{
				ID: u.BotID, Name: u.RealName, UserID: u.ID, AppID: u.AppID, Deleted: u.Deleted,
				Updated: time.Now().Unix(),
			}}, nil
		}
	}
	return nil, errorCode("bot_not_found")
}
