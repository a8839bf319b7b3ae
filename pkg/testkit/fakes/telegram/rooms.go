package telegram

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// general is the topic that every forum has. Its messages have no thread.
const general = 1

// topicColor is the first of the six documented colours.
const topicColor = 0x6FB9F0

// room is a chat with its contents. The server's lock guards it.
type room struct {
	chat      Chat
	ids       *int // the next message id; each supergroup counts its own
	messages  map[int]*Message
	statuses  map[int64]string // by user
	topics    map[int]*topic
	reactions map[int]map[int64][]string // emoji by message and user
	direct    map[int64]*DirectTopic     // of direct messages, by id
	allowed   []string                   // the emoji that the chat takes as reactions, nil for all
	muted     bool                       // the bot may not send
	voiceless bool                       // the user of the chat takes no voice messages
	closed    bool                       // General is closed
	gone      string                     // the error of calls once the chat is deleted or migrated
	migrated  int64
}

type topic struct {
	created *Message
	closed  bool
}

func (s *Server) newRoom(chat Chat, members ...User) *room {
	r := &room{
		chat: chat, ids: &s.nextID, messages: map[int]*Message{}, statuses: map[int64]string{},
		topics: map[int]*topic{}, direct: map[int64]*DirectTopic{},
		reactions: map[int]map[int64][]string{},
	}
	if chat.Type == Supergroup {
		first := s.firstID + 1
		if chat.IsForum {
			first += general // which has id 1
		}
		r.ids = &first
	}
	for _, u := range append(members, s.me) {
		r.statuses[u.ID] = Member
	}
	if len(members) > 0 && chat.Type != Private {
		r.statuses[members[0].ID] = Creator
	}
	s.rooms[chat.ID] = r
	return r
}

func (r *room) status(u User) string {
	if status := r.statuses[u.ID]; status != "" {
		return status
	}
	return Left
}

func (r *room) admin(u User) bool {
	status := r.status(u)
	return status == Administrator || status == Creator
}

func (r *room) in(u User) bool { return r.admin(u) || r.status(u) == Member }

// member is a user's status in a chat, as in answers and updates.
func (r *room) member(u User) fields {
	m := fields{"status": r.status(u), "user": u}
	switch r.status(u) {
	case Administrator:
		m["can_manage_chat"], m["can_delete_messages"], m["can_manage_topics"] = true, true, true
	case Kicked:
		m["until_date"] = 0 // without an end
	}
	return m
}

// readable is the chat of a request, if the bot may read it.
func (s *Server) readable(p params) (*room, error) {
	r := s.rooms[p.int("chat_id", 0)]
	switch {
	case p.str("chat_id") == "":
		return nil, badRequest("chat_id is empty")
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
	switch r.status(s.me) {
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
	case r.chat.Type == Private && r.status(s.me) != Member:
		return nil, forbidden("bot was blocked by the user")
	case r.muted:
		return nil, badRequest("not enough rights to send text messages to the chat")
	}
	return r, nil
}

// target is the thread of a message to send, and the message to which it replies.
func (r *room) target(p params, bot User) (thread int, replyTo *Message, err error) {
	thread = int(p.int("message_thread_id", 0))
	if thread != 0 {
		if r.topics[thread] == nil { // also for General, which cannot be named here
			return 0, nil, badRequest("message thread not found")
		}
	}
	id, optional, err := p.replyTo()
	if err != nil {
		return 0, nil, err
	}
	if id == 0 {
		return thread, nil, r.openTo(bot, thread)
	}
	replyTo = r.messages[id]
	if replyTo == nil && !optional {
		return 0, nil, badRequest("message to be replied not found")
	}
	if replyTo != nil && thread == 0 && replyTo.IsTopic {
		thread = replyTo.Thread
	}
	return thread, replyTo, r.openTo(bot, thread)
}

// openTo refuses messages to a closed topic, but those of administrators.
func (r *room) openTo(bot User, thread int) error {
	closed := r.closed && thread == 0
	if t := r.topics[thread]; t != nil {
		closed = t.closed
	}
	if closed && !r.admin(bot) {
		return badRequest("TOPIC_CLOSED")
	}
	return nil
}

// add adds a message to a chat: it sets its id, date and thread.
func (r *room) add(m *Message, thread int, replyTo *Message) *Message {
	m.ID, m.Chat, m.Date = *r.ids, r.chat, time.Now().Unix()
	*r.ids++
	if replyTo != nil {
		m.ReplyTo = quoted(replyTo)
	}
	if t := r.topics[thread]; t != nil {
		m.Thread, m.IsTopic = thread, true
		if m.ReplyTo == nil { // messages of a topic reply to its first
			m.ReplyTo = quoted(t.created)
		}
	} else if replyTo != nil && r.chat.Type == Supergroup {
		// Replies in a supergroup share a thread with their first message, and are in no topic.
		m.Thread = replyTo.Thread
		if m.Thread == 0 {
			m.Thread = replyTo.ID
		}
	}
	r.messages[m.ID] = m
	return m
}

// quoted is a message as a reply contains it: without the message to which it replies itself.
func quoted(m *Message) *Message {
	q := m.snapshot()
	q.ReplyTo = nil
	return &q
}

// snapshot is a copy of a message, which later changes do not affect.
func (m *Message) snapshot() Message {
	c := *m
	if m.Poll != nil {
		c.Poll = m.Poll.copied()
	}
	return c
}

// sees reports whether the bot receives a message. Privacy mode hides messages that are not for the
// bot, unless it is an administrator.
func (s *Server) sees(r *room, m *Message) bool {
	switch {
	case !r.in(s.me) || m.From.ID == s.me.ID:
		return false
	case r.chat.Type == Private || !s.privacy || r.admin(s.me) || service(m):
		return true
	case m.ReplyTo != nil && m.ReplyTo.From.ID == s.me.ID && m.ReplyTo.TopicCreated == nil:
		return true
	}
	return s.addressed(m.Text, m.Entities) || s.addressed(m.Caption, m.CaptionEntities) || s.addressedByRich(m.Rich)
}

func service(m *Message) bool {
	return m.NewMembers != nil || m.LeftMember != nil || m.TopicCreated != nil || m.MigrateTo != 0 ||
		m.MigrateFrom != 0
}

// addressed reports whether a text is a command, or mentions the bot.
func (s *Server) addressed(text string, entities []Entity) bool {
	me := "@" + s.me.Username
	return slices.ContainsFunc(entities, func(e Entity) bool {
		switch e.Type {
		case "mention":
			return strings.EqualFold(entityText(text, e), me)
		case "text_mention":
			return e.User != nil && e.User.ID == s.me.ID
		case "bot_command":
			_, to, named := strings.Cut(entityText(text, e), "@")
			return e.Offset == 0 && !named || strings.EqualFold("@"+to, me)
		}
		return false
	})
}

// addressedByRich reports whether a message of blocks mentions the bot by its name.
func (s *Server) addressedByRich(blocks json.RawMessage) bool {
	return strings.Contains(string(blocks), fmt.Sprintf(`"type":"mention","text":"@%s"`, s.me.Username))
}

// emitMessage queues a message for the bot, if the bot sees it.
func (s *Server) emitMessage(kind string, r *room, m *Message) {
	if s.sees(r, m) {
		s.emit(kind, m)
	}
	s.Notify()
}

// setStatus changes a user's status in a chat. The bot gets an update of its own status, and as an
// administrator of that of others.
func (s *Server) setStatus(r *room, by, user User, status string) {
	old := r.member(user)
	r.statuses[user.ID] = status
	change := fields{"chat": r.chat, "from": by, "date": time.Now().Unix(), "old_chat_member": old,
		"new_chat_member": r.member(user)}
	switch {
	case user.ID == s.me.ID:
		s.emit("my_chat_member", change)
	case r.admin(s.me):
		s.emit("chat_member", change)
	}
	s.Notify()
}

// openTopic opens a topic with its service message.
func (s *Server) openTopic(r *room, by User, name string) *Message {
	m := r.add(&Message{From: &by, TopicCreated: &TopicCreated{Name: name, Color: topicColor}}, 0, nil)
	m.Thread, m.IsTopic = m.ID, true
	r.topics[m.ID] = &topic{created: m}
	s.emitMessage("message", r, m)
	return m
}

// sortedMessages are a chat's messages, oldest first.
func (r *room) sortedMessages() []Message {
	all := make([]Message, 0, len(r.messages))
	for _, id := range slices.Sorted(maps.Keys(r.messages)) {
		all = append(all, r.messages[id].snapshot())
	}
	return all
}
