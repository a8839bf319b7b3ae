package telegram

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// general is the topic that every forum has; its messages bear no thread.
const general = 1

// topicColor is the first of the six colours that a topic may have.
const topicColor = 0x6FB9F0

// room is a chat with what stands in it. The server's lock guards it.
type room struct {
	chat      Chat
	ids       *int // the next message id; supergroups count for themselves
	messages  map[int]*Message
	standings map[int64]string // by user
	topics    map[int]*topic
	reactions map[int]map[int64][]string // emoji by message and user
	muted     bool                       // the bot may not send
	gone      string                     // why nobody can write any more, as an error says it
	migrated  int64
}

type topic struct {
	created *Message
	closed  bool
}

func (s *Server) newRoom(chat Chat, members ...User) *room {
	r := &room{
		chat: chat, ids: &s.nextID, messages: map[int]*Message{}, standings: map[int64]string{},
		topics: map[int]*topic{}, reactions: map[int]map[int64][]string{},
	}
	if chat.Type == Supergroup {
		first := 1
		if chat.IsForum {
			first = general + 1 // that id is taken from the start
		}
		r.ids = &first
	}
	for _, u := range append(members, s.me) {
		r.standings[u.ID] = Member
	}
	if len(members) > 0 && chat.Type != Private {
		r.standings[members[0].ID] = Creator
	}
	s.rooms[chat.ID] = r
	return r
}

func (r *room) standing(u User) string {
	if status := r.standings[u.ID]; status != "" {
		return status
	}
	return Left
}

func (r *room) admin(u User) bool {
	status := r.standing(u)
	return status == Administrator || status == Creator
}

func (r *room) in(u User) bool { return r.admin(u) || r.standing(u) == Member }

func (r *room) member(u User) ChatMember {
	m := ChatMember{Status: r.standing(u), User: u}
	if m.Status == Administrator {
		m.ManageChat, m.DeleteOthers, m.ManageTopics = true, true, true
	}
	return m
}

// readable is the chat of a request, if the bot may look at it.
func (s *Server) readable(p params) (*room, error) {
	name := p.str("chat_id")
	if name == "" {
		return nil, badRequest("chat_id is empty")
	}
	r := s.rooms[p.int("chat_id", 0)]
	if public, ok := strings.CutPrefix(name, "@"); ok {
		r = s.roomNamed(public)
	}
	switch {
	case r == nil:
		return nil, badRequest("chat not found")
	case r.migrated != 0:
		return nil, &apiError{
			code: 400, description: "Bad Request: group chat was upgraded to a supergroup chat", migratedTo: r.migrated,
		}
	case r.gone != "":
		return nil, forbidden(r.gone)
	case r.chat.Type == Private:
		return r, nil
	}
	kind := map[string]string{Group: "group chat", Supergroup: "supergroup chat"}[r.chat.Type]
	switch r.standing(s.me) {
	case Kicked:
		return nil, forbidden("bot was kicked from the " + kind)
	case Left:
		return nil, forbidden("bot is not a member of the " + kind)
	}
	return r, nil
}

// writable is the chat of a request, if the bot may send to it.
func (s *Server) writable(p params) (*room, error) {
	r, err := s.readable(p)
	switch {
	case err != nil:
		return nil, err
	case r.chat.Type == Private && r.standing(s.me) != Member:
		return nil, forbidden("bot was blocked by the user")
	case r.muted:
		return nil, badRequest("not enough rights to send text messages to the chat")
	}
	return r, nil
}

func (s *Server) roomNamed(username string) *room {
	for _, r := range s.rooms {
		if username != "" && r.chat.Type != Private && strings.EqualFold(r.chat.Username, username) {
			return r
		}
	}
	return nil
}

// target is where the bot's next message goes: the thread, and the message it answers.
func (r *room) target(p params) (thread int, replyTo *Message, err error) {
	thread = int(p.int("message_thread_id", 0))
	if thread != 0 {
		t := r.topics[thread]
		if t == nil { // also for the General topic, which has no id of its own here
			return 0, nil, badRequest("message thread not found")
		}
		if t.closed {
			return 0, nil, badRequest("TOPIC_CLOSED")
		}
	}
	id, optional, err := p.replyTo()
	if err != nil || id == 0 {
		return thread, nil, err
	}
	replyTo = r.messages[id]
	if replyTo == nil && !optional {
		return 0, nil, badRequest("message to be replied not found")
	}
	if replyTo != nil && thread == 0 && replyTo.IsTopic {
		thread = replyTo.Thread
	}
	return thread, replyTo, nil
}

// add puts a message into a chat: it gets its id, date, and the marks of its thread.
func (r *room) add(m *Message, thread int, replyTo *Message) *Message {
	m.ID, m.Chat, m.Date = *r.ids, r.chat, time.Now().Unix()
	*r.ids++
	if replyTo != nil {
		m.ReplyTo = quoted(replyTo)
	}
	if t := r.topics[thread]; t != nil {
		m.Thread, m.IsTopic = thread, true
		if m.ReplyTo == nil { // what stands in a topic answers its beginning
			m.ReplyTo = quoted(t.created)
		}
	} else if replyTo != nil && r.chat.Type == Supergroup {
		// Answers in a supergroup hang on their first message without being in a topic.
		m.Thread = replyTo.Thread
		if m.Thread == 0 {
			m.Thread = replyTo.ID
		}
	}
	r.messages[m.ID] = m
	return m
}

// quoted is a message as it stands in an answer to it: without what it answers itself.
func quoted(m *Message) *Message {
	q := m.shown()
	q.ReplyTo = nil
	return &q
}

// shown is a message as it stands now, which no later change reaches.
func (m *Message) shown() Message {
	c := *m
	if m.Poll != nil {
		c.Poll = m.Poll.copied()
	}
	return c
}

// sees reports whether a message reaches the bot. Privacy mode hides what is not for it from
// a bot that is no administrator.
func (s *Server) sees(r *room, m *Message) bool {
	switch {
	case !r.in(s.me) || m.From.ID == s.me.ID:
		return false
	case r.chat.Type == Private || !s.privacy || r.admin(s.me) || service(m):
		return true
	case m.ReplyTo != nil && m.ReplyTo.From.ID == s.me.ID && m.ReplyTo.TopicCreated == nil:
		return true
	}
	return s.addressed(m.Text, m.Entities) || s.addressed(m.Caption, m.CaptionEntities)
}

func service(m *Message) bool {
	return m.NewMembers != nil || m.LeftMember != nil || m.TopicCreated != nil || m.MigrateTo != 0 || m.MigrateFrom != 0
}

// addressed reports whether a text is a command, or mentions the bot.
func (s *Server) addressed(text string, entities []Entity) bool {
	me := "@" + s.me.Username
	return slices.ContainsFunc(entities, func(e Entity) bool {
		switch e.Type {
		case "mention":
			return strings.EqualFold(stretch(text, e), me)
		case "text_mention":
			return e.User != nil && e.User.ID == s.me.ID
		case "bot_command":
			_, to, named := strings.Cut(stretch(text, e), "@")
			return e.Offset == 0 && !named || strings.EqualFold("@"+to, me)
		}
		return false
	})
}

// tell gives a message to the bot, if it reaches it.
func (s *Server) tell(kind string, r *room, m *Message) {
	if s.sees(r, m) {
		s.emit(kind, m)
	}
	s.Notify()
}

// standing changes a user's standing in a chat, and tells the bot: of its own always, of
// others' if it is an administrator.
func (s *Server) standing(r *room, by, who User, status string) {
	old := r.member(who)
	r.standings[who.ID] = status
	change := MemberUpdated{Chat: r.chat, From: by, Date: time.Now().Unix(), Old: old, New: r.member(who)}
	switch {
	case who.ID == s.me.ID:
		s.emit("my_chat_member", change)
	case r.admin(s.me):
		s.emit("chat_member", change)
	}
	s.Notify()
}

// openTopic begins a topic with its service message.
func (s *Server) openTopic(r *room, by User, name string) *Message {
	m := r.add(&Message{From: &by, TopicCreated: &TopicCreated{Name: name, Color: topicColor}}, 0, nil)
	m.Thread, m.IsTopic = m.ID, true
	r.topics[m.ID] = &topic{created: m}
	s.tell("message", r, m)
	return m
}

// sortedMessages are a chat's messages, oldest first.
func (r *room) sortedMessages() []Message {
	all := make([]Message, 0, len(r.messages))
	for _, id := range slices.Sorted(maps.Keys(r.messages)) {
		all = append(all, r.messages[id].shown())
	}
	return all
}
