package telegram

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// The documented limits, in UTF-16 units.
const (
	minOptions  = 2
	maxOptions  = 12
	maxQuestion = 300
	maxOption   = 100
)

// minOpen and maxOpen bound how long a poll is open that closes by itself, in seconds.
const (
	minOpen = 5
	maxOpen = 600
)

// poll is a poll with its votes.
type poll struct {
	state *Poll
	byBot bool
	votes map[int64][]int
}

// optionTexts parses options, which are strings or InputPollOption objects.
func (p params) optionTexts() ([]string, error) {
	var raw []json.RawMessage
	if found, err := p.json("options", &raw); err != nil || !found {
		return nil, badRequest("can't parse options JSON object")
	}
	var texts []string
	for _, option := range raw {
		var text string
		var object struct{ Text string }
		if json.Unmarshal(option, &text) != nil {
			if json.Unmarshal(option, &object) != nil {
				return nil, badRequest("can't parse options JSON object")
			}
			text = object.Text
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func checkPoll(question string, options []string) error {
	switch {
	case question == "":
		return badRequest("text must be non-empty")
	case units(question) > maxQuestion:
		return badRequest("poll question length must not exceed %d", maxQuestion)
	case len(options) < minOptions:
		return badRequest("poll must have at least %d option", minOptions)
	case len(options) > maxOptions:
		return badRequest("poll can't have more than %d options", maxOptions)
	}
	for _, o := range options {
		if o == "" {
			return badRequest("text must be non-empty")
		}
		if units(o) > maxOption {
			return badRequest("poll options length must not exceed %d", maxOption)
		}
	}
	return nil
}

func (s *Server) sendPoll(p params) (any, error) {
	r, err := s.writable(p)
	if err != nil {
		return nil, err
	}
	switch {
	case r.chat.IsDirect:
		return nil, badRequest("polls can't be sent to channel direct messages chats")
	case p.str("type") == "quiz", p.str("open_period") != "":
		return nil, badRequest("this fake server takes no quizzes, and close_date in place of open_period")
	}
	options, err := p.optionTexts()
	if err == nil {
		err = checkPoll(p.str("question"), options)
	}
	if err != nil {
		return nil, err
	}
	state := newPoll(p.str("question"), options)
	state.IsAnonymous = p.str("is_anonymous") == "" || p.bool("is_anonymous")
	state.Multiple = p.bool("allows_multiple_answers")
	if err := state.limit(p); err != nil {
		return nil, err
	}
	if _, _, err := r.target(p, s.me); err != nil {
		return nil, err // the poll is not stored yet
	}
	s.open(state, true)
	s.closeInTime(state)
	return s.deliver(p, r, &Message{Poll: state})
}

// limit sets when a poll closes by itself: after 5 to 600 seconds, as documented.
func (p *Poll) limit(of params) error {
	now, date := time.Now().Unix(), of.int("close_date", 0)
	switch {
	case date == 0:
		return nil
	case date < now+minOpen || date > now+maxOpen:
		return badRequest("POLL_OPEN_PERIOD_INVALID")
	}
	p.OpenPeriod, p.CloseDate = int(date-now), date
	return nil
}

// closeInTime closes a poll at its time. The bot gets an update.
func (s *Server) closeInTime(state *Poll) {
	if state.CloseDate == 0 {
		return
	}
	time.AfterFunc(time.Until(time.Unix(state.CloseDate, 0)), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !state.IsClosed {
			state.IsClosed = true
			s.emit("poll", state)
		}
	})
}

func newPoll(question string, options []string) *Poll {
	state := &Poll{Question: question, Type: "regular", IsAnonymous: true}
	for _, o := range options {
		state.Options = append(state.Options, PollOption{Text: o})
	}
	return state
}

func (s *Server) open(state *Poll, byBot bool) {
	state.ID = fmt.Sprintf("6100000%06d", s.firstID+len(s.polls)+1)
	s.polls[state.ID] = &poll{state: state, byBot: byBot, votes: map[int64][]int{}}
}

// copied is a copy of a poll, whose counts do not change.
func (p *Poll) copied() *Poll {
	c := *p
	c.Options = slices.Clone(p.Options)
	return &c
}

func (s *Server) stopPoll(p params) (any, error) {
	_, m, err := s.message(p, "message with poll to stop")
	switch {
	case err != nil:
		return nil, err
	case m.Poll == nil:
		return nil, badRequest("message with poll to stop not found")
	case m.From.ID != s.me.ID:
		return nil, badRequest("poll can't be stopped")
	case m.Poll.IsClosed:
		return nil, badRequest("poll has already been closed")
	}
	m.Poll.IsClosed = true
	s.emit("poll", m.Poll)
	return *m.Poll.copied(), nil
}

// vote sets a user's answer. The bot gets an update, if the poll is its own.
func (s *Server) vote(p *poll, by User, options []int) {
	p.votes[by.ID] = slices.Clone(options)
	if len(options) == 0 {
		delete(p.votes, by.ID)
	}
	for i := range p.state.Options {
		p.state.Options[i].Voters = 0
	}
	for _, chosen := range p.votes {
		for _, i := range chosen {
			p.state.Options[i].Voters++
		}
	}
	p.state.Total = len(p.votes)
	s.Notify()
	if !p.byBot {
		return
	}
	s.emit("poll", p.state)
	if !p.state.IsAnonymous {
		chosen := append([]int{}, options...)
		s.emit("poll_answer", fields{"poll_id": p.state.ID, "user": by, "option_ids": chosen})
	}
}
