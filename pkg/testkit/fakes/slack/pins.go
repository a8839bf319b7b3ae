package slack

import (
	"slices"
	"strings"
)

// pinnable is the message of a request.
func (s *Server) pinnable(p params) (*room, *Message, error) {
	r, err := s.readable(p, "read")
	if err != nil {
		return nil, nil, err
	}
	m := r.find(p.str("timestamp"))
	switch {
	case !r.in(s.me):
		return nil, nil, errorCode("not_in_channel")
	case p.str("timestamp") == "":
		return nil, nil, errorCode("no_item_specified")
	case m == nil:
		return nil, nil, errorCode("message_not_found")
	}
	return r, m, nil
}

func (s *Server) addPin(p params) (any, error) {
	r, m, err := s.pinnable(p)
	switch {
	case err != nil:
		return nil, err
	case slices.Contains(r.pins, m.TS):
		return nil, errorCode("already_pinned")
	}
	r.pins = append(r.pins, m.TS)
	return done{OK: true}, nil
}

func (s *Server) removePin(p params) (any, error) {
	r, m, err := s.pinnable(p)
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(r.pins, m.TS):
		return nil, errorCode("no_pin")
	}
	r.pins = slices.DeleteFunc(r.pins, func(ts string) bool { return ts == m.TS })
	return done{OK: true}, nil
}

type pin struct {
	Type    string  `json:"type"`
	Channel string  `json:"channel"`
	Message Message `json:"message"`
}

func (s *Server) listPins(p params) (any, error) {
	r, err := s.readable(p, "read")
	if err != nil {
		return nil, err
	}
	items := []pin{}
	for _, ts := range r.pins {
		if m := r.find(ts); m != nil {
			items = append(items, pin{"message", r.ID, m.snapshot()})
		}
	}
	return struct {
		OK    bool  `json:"ok"`
		Items []pin `json:"items"`
	}{true, items}, nil
}

// permalink is the URL of a message.
func (s *Server) permalink(p params) (any, error) {
	r := s.rooms[p.str("channel")]
	switch {
	case r == nil || !s.sees(r):
		return nil, errorCode("channel_not_found")
	case r.find(p.str("message_ts")) == nil:
		return nil, errorCode("message_not_found")
	}
	return struct {
		OK        bool   `json:"ok"`
		Channel   string `json:"channel"`
		Permalink string `json:"permalink"`
	}{true, r.ID, s.Base() + "/archives/" + r.ID + "/p" + strings.ReplaceAll(p.str("message_ts"), ".", "")}, nil
}

func (s *Server) teamInfo(params) (any, error) {
	type team struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		Domain string `json:"domain"`
	}
	return struct {
		OK   bool `json:"ok"`
		Team team `json:"team"`
	}{true, team{teamID, s.o.Team, strings.ToLower(s.o.Team)}}, nil
}
