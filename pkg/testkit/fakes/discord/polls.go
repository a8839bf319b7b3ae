package discord

import (
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// The documented limits of polls.
const (
	maxQuestion   = 300
	maxAnswers    = 10
	maxAnswer     = 55
	maxDuration   = 768 // hours
	usualHours    = 24
	defaultLayout = 1
)

// Poll is the poll of a message.
type Poll struct {
	Question PollMedia    `json:"question"`
	Answers  []PollAnswer `json:"answers"`
	Expiry   *time.Time   `json:"expiry"`
	Multiple bool         `json:"allow_multiselect"`
	Layout   int          `json:"layout_type"`
	Results  PollResults  `json:"results"`
}

// PollMedia is the text of a question or an answer.
type PollMedia struct {
	Text  string `json:"text"`
	Emoji *Emoji `json:"emoji,omitempty"`
}

// PollAnswer is an answer; ids begin at 1.
type PollAnswer struct {
	ID    int       `json:"answer_id"`
	Media PollMedia `json:"poll_media"`
}

// PollResults are the votes for answers that have any.
type PollResults struct {
	IsFinalized bool        `json:"is_finalized"`
	Counts      []PollCount `json:"answer_counts"`
}

// PollCount is the votes for one answer.
type PollCount struct {
	ID      int  `json:"id"`
	Count   int  `json:"count"`
	MeVoted bool `json:"me_voted"`
}

// vote is one user's vote for one answer.
type vote struct {
	user   string
	answer int
}

// pollRequest is a poll in a request; Duration is in hours.
type pollRequest struct {
	Question PollMedia    `json:"question"`
	Answers  []PollAnswer `json:"answers"`
	Duration *int         `json:"duration"`
	Multiple bool         `json:"allow_multiselect"`
}

func (p *pollRequest) check() error {
	if p == nil {
		return nil
	}
	if p.Question.Text == "" {
		return required("poll.question.text")
	}
	if utf8.RuneCountInString(p.Question.Text) > maxQuestion {
		return tooLong("poll.question.text", maxQuestion)
	}
	if len(p.Answers) == 0 || len(p.Answers) > maxAnswers {
		return invalid("poll.answers", "BASE_TYPE_BAD_LENGTH",
			fmt.Sprintf("Must be between 1 and %d in length.", maxAnswers))
	}
	for i, a := range p.Answers {
		field := fmt.Sprintf("poll.answers.%d.poll_media.text", i)
		switch {
		case a.Media.Text == "":
			return required(field)
		case utf8.RuneCountInString(a.Media.Text) > maxAnswer:
			return tooLong(field, maxAnswer)
		}
	}
	if p.Duration != nil && (*p.Duration < 1 || *p.Duration > maxDuration) {
		return invalid("poll.duration", "NUMBER_TYPE_MAX",
			fmt.Sprintf("int value should be between 1 and %d.", maxDuration))
	}
	return nil
}

func (p *pollRequest) open(now time.Time) *Poll {
	hours := usualHours
	if p.Duration != nil {
		hours = *p.Duration
	}
	expiry := now.Add(time.Duration(hours) * time.Hour)
	poll := &Poll{
		Question: p.Question, Expiry: &expiry, Multiple: p.Multiple, Layout: defaultLayout,
		Results: PollResults{Counts: []PollCount{}},
	}
	for i, a := range p.Answers {
		poll.Answers = append(poll.Answers, PollAnswer{ID: i + 1, Media: a.Media})
	}
	return poll
}

// copied is a copy of a poll, whose counts do not change.
func (p *Poll) copied() *Poll {
	c := *p
	c.Results.Counts = slices.Clone(p.Results.Counts)
	return &c
}

// vote adds or removes a vote, and emits it.
func (s *Server) vote(ch *channel, m *Message, by User, answer int, on bool) {
	all, mine := ch.votes[m.ID], vote{by.ID, answer}
	if slices.Contains(all, mine) == on {
		return
	}
	name := "MESSAGE_POLL_VOTE_ADD"
	if on {
		all = append(all, mine)
	} else {
		name = "MESSAGE_POLL_VOTE_REMOVE"
		all = slices.DeleteFunc(all, func(v vote) bool { return v == mine })
	}
	ch.votes[m.ID] = all
	m.Poll.Results.Counts = []PollCount{}
	for _, a := range m.Poll.Answers {
		n := 0
		for _, v := range all {
			if v.answer == a.ID {
				n++
			}
		}
		if n > 0 {
			m.Poll.Results.Counts = append(m.Poll.Results.Counts, PollCount{ID: a.ID, Count: n})
		}
	}
	event := map[string]any{"user_id": by.ID, "channel_id": ch.info.ID, "message_id": m.ID, "answer_id": answer}
	if ch.guild != nil {
		event["guild_id"] = ch.guild.id
	}
	if s.sees(ch) {
		s.emit(ch.intent(GuildMessagePolls, DirectMessagePolls), name, event)
	}
	s.Notify()
}

// getVoters answers with the users who voted for an answer, by id.
func (s *Server) getVoters(q *request, ch *channel, m *Message) (any, error) {
	answer, err := strconv.Atoi(q.path("answer"))
	switch {
	case err != nil:
		return nil, invalid("answer_id", "NUMBER_TYPE_COERCE", fmt.Sprintf("Value %q is not int.", q.path("answer")))
	case !s.may(ch, ReadMessageHistory):
		return nil, missingAccess()
	case m.Poll == nil || !slices.ContainsFunc(m.Poll.Answers, func(a PollAnswer) bool { return a.ID == answer }):
		return nil, noRoute() // Discord does not document a code
	}
	var ids []string
	for _, v := range ch.votes[m.ID] {
		if v.answer == answer {
			ids = append(ids, v.user)
		}
	}
	users, err := s.userPage(q, ids)
	if err != nil {
		return nil, err
	}
	return map[string]any{"users": users}, nil
}

// endPoll ends one of the bot's polls before its time.
func (s *Server) endPoll(_ *request, ch *channel, m *Message) (any, error) {
	switch {
	case m.Poll == nil:
		return nil, refuse(400, 520006, "Cannot expire a non-poll message")
	case m.Author.ID != s.me.ID:
		return nil, missingAccess()
	case m.Poll.Results.IsFinalized:
		return nil, refuse(400, 520001, "Poll expired")
	}
	s.finishPoll(ch, m)
	return s.inAnswer(ch, m), nil
}

// finishPoll closes a poll: its message changes, and another one has the result.
func (s *Server) finishPoll(ch *channel, m *Message) {
	at := s.now()
	m.Poll.Expiry, m.Poll.Results.IsFinalized = &at, true
	s.emitMessage("MESSAGE_UPDATE", ch, m)
	result := s.add(ch, &Message{
		Author: m.Author, Type: PollResultMessage, Embeds: []Embed{{Type: "poll_result",
			Fields: m.Poll.result(len(ch.votes[m.ID]))}},
		Reference: &Reference{MessageID: m.ID, ChannelID: ch.info.ID},
	})
	s.emitMessage("MESSAGE_CREATE", ch, result)
}

// result are the fields about the end of a poll with so many votes. The winner is named if there is one alone.
func (p *Poll) result(votes int) []EmbedField {
	most, winner, ties := 0, 0, 0
	for _, c := range p.Results.Counts {
		switch {
		case c.Count > most:
			most, winner, ties = c.Count, c.ID, 1
		case c.Count == most:
			ties++
		}
	}
	fields := []EmbedField{
		{Name: "poll_question_text", Value: p.Question.Text}, {Name: "victor_answer_votes", Value: fmt.Sprint(most)},
		{Name: "total_votes", Value: fmt.Sprint(votes)},
	}
	if ties == 1 {
		fields = append(fields, EmbedField{Name: "victor_answer_id", Value: fmt.Sprint(winner)},
			EmbedField{Name: "victor_answer_text", Value: p.Answers[winner-1].Media.Text})
	}
	return fields
}
