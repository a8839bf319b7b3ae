package telegram

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Place is a chat, or a topic of a forum. Its methods are the actions of users there.
type Place struct {
	s        *Server
	ChatID   int64
	ThreadID int   // of a topic; 0 for the chat
	DirectID int64 // of a topic of direct messages; 0 elsewhere
}

// Attachment is a file that a user sends. Its kind is photo, document, video, audio, voice,
// video_note or sticker. The Name of a sticker is its emoji.
type Attachment struct {
	Kind string
	Name string
	MIME string // guessed from the name's extension if empty
	Data []byte
}

// Draft is a message to send. Entities are those that Telegram does not find in the text. With an
// Attachment, Text is the caption.
type Draft struct {
	Text       string
	Entities   []Entity
	ReplyTo    int
	Elsewhere  Place // where ReplyTo is, if not in this chat or topic
	Attachment *Attachment
	Album      string // an id that the parts of an album share
	Location   *Location
	Contact    *Contact
	Poll       *Poll           // without ID and counts
	Rich       json.RawMessage // a message of blocks, without Text
}

// User creates a user.
func (s *Server) User(name, username string) User { return s.newUser(name, username, false) }

// OtherBot creates a bot other than Me.
func (s *Server) OtherBot(name, username string) User { return s.newUser(name, username, true) }

func (s *Server) newUser(name, username string, bot bool) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := User{ID: s.nextUser, IsBot: bot, FirstName: name, Username: username}
	if !bot {
		u.Language = "en"
	}
	s.nextUser++
	s.users[u.ID] = u
	return u
}

// DM is the private chat of a user with the bot.
func (s *Server) DM(with User) Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rooms[with.ID] == nil {
		s.newRoom(Chat{ID: with.ID, Type: Private, FirstName: with.FirstName, Username: with.Username}, with)
	}
	return Place{s: s, ChatID: with.ID}
}

// Group creates a basic group with the bot as a member; the first member is the creator. The bot
// gets no update about it.
func (s *Server) Group(title string, members ...User) Place {
	return s.createRoom(Chat{Type: Group, Title: title}, members)
}

// Supergroup is like Group.
func (s *Server) Supergroup(title string, members ...User) Place {
	return s.createRoom(Chat{Type: Supergroup, Title: title}, members)
}

// Forum creates a supergroup with topics: General, and those of Topic.
func (s *Server) Forum(title string, members ...User) Place {
	return s.createRoom(Chat{Type: Supergroup, Title: title, IsForum: true}, members)
}

func (s *Server) createRoom(chat Chat, members []User) Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	chat.ID = s.newChatID(chat.Type)
	s.newRoom(chat, members...)
	return Place{s: s, ChatID: chat.ID}
}

func (s *Server) newChatID(kind string) int64 {
	const supergroups = 1_000_000_000_000 // -100… in front
	id := s.nextChat
	s.nextChat++
	if kind == Supergroup {
		return -supergroups - id
	}
	return -id
}

// Place is a chat, or a topic of it, by its ids.
func (s *Server) Place(chat int64, thread int) Place {
	return Place{s: s, ChatID: chat, ThreadID: thread}
}

// Topic opens a topic.
func (p Place) Topic(by User, name string) Place {
	var m *Message
	p.act(func(r *room) error {
		if !r.chat.IsForum || !r.in(by) {
			return fmt.Errorf("%s cannot open a topic there", by.FirstName)
		}
		m = p.s.openTopic(r, by, name)
		return nil
	})
	return Place{s: p.s, ChatID: p.ChatID, ThreadID: m.ID}
}

// CloseTopic closes or reopens a topic, or General: messages to a closed one are refused, unless the bot is an
// administrator.
func (p Place) CloseTopic(isClosed bool) {
	p.act(func(r *room) error {
		t := r.topics[p.ThreadID]
		if p.ThreadID == 0 && r.chat.IsForum {
			r.closed = isClosed
			return nil
		}
		if t == nil {
			return fmt.Errorf("no topic %d", p.ThreadID)
		}
		t.closed = isClosed
		return nil
	})
}

// DeleteTopic deletes a topic with its messages. The bot gets no update.
func (p Place) DeleteTopic() {
	p.act(func(r *room) error {
		delete(r.topics, p.ThreadID)
		maps.DeleteFunc(r.messages, func(_ int, m *Message) bool { return m.IsTopic && m.Thread == p.ThreadID })
		return nil
	})
}

// try calls do under the lock.
func (p Place) try(do func(*room) error) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	r := p.s.rooms[p.ChatID]
	if r == nil {
		return fmt.Errorf("no chat %d", p.ChatID)
	}
	return do(r)
}

// act is try for an action that must succeed.
func (p Place) act(do func(*room) error) { must(p.try(do)) }

func must(err error) {
	if err != nil {
		panic("telegram: impossible action: " + err.Error())
	}
}

// Post sends a message. It fails if the user is not a member, the topic or the message to which it
// replies does not exist, or the chat was deleted.
func (p Place) Post(from User, d Draft) (Message, error) {
	var sent Message
	err := p.try(func(r *room) error {
		var replyTo *Message
		thread := p.ThreadID
		switch {
		case !r.in(from) || r.migrated != 0 || r.gone != "":
			return fmt.Errorf("%s cannot write there", from.FirstName)
		case p.ThreadID != 0 && r.topics[p.ThreadID] == nil:
			return fmt.Errorf("no topic %d", p.ThreadID)
		case d.ReplyTo != 0 && d.Elsewhere.s == nil:
			if replyTo = r.messages[d.ReplyTo]; replyTo == nil {
				return fmt.Errorf("no message %d to reply to", d.ReplyTo)
			}
			if replyTo.IsTopic && thread == 0 {
				thread = replyTo.Thread
			}
		}
		if err := r.ownTopic(from, p.DirectID, replyTo); err != nil {
			return err
		}
		m := p.s.compose(from, d)
		m.DirectTopic = r.direct[p.DirectID]
		if err := p.s.quote(m, d); err != nil {
			return err
		}
		m = r.add(m, thread, replyTo)
		p.s.emitMessage("message", r, m)
		sent = m.snapshot()
		return nil
	})
	return sent, err
}

func (s *Server) compose(from User, d Draft) *Message {
	m := &Message{From: &from, MediaGroup: d.Album, Location: d.Location, Contact: d.Contact,
		Rich: d.Rich}
	text, entities := d.Text, mark(d.Text, d.Entities)
	if a := d.Attachment; a != nil {
		f := s.newFile(a.Kind, a.Name, a.MIME, a.Data)
		f.attach(m)
		m.Caption, m.CaptionEntities = text, entities
	} else {
		m.Text, m.Entities = text, entities
	}
	if d.Poll != nil {
		m.Poll = d.Poll.copied()
		s.open(m.Poll, false)
	}
	return m
}

func (p Place) addPost(from User, d Draft) Message {
	m, err := p.Post(from, d)
	must(err)
	return m
}

// Say sends a text. Telegram finds commands, mentions, links and hashtags in it; entities are
// additional ones.
func (p Place) Say(from User, text string, entities ...Entity) Message {
	return p.addPost(from, Draft{Text: text, Entities: entities})
}

// Reply replies to a message.
func (p Place) Reply(from User, to int, text string, entities ...Entity) Message {
	return p.addPost(from, Draft{Text: text, Entities: entities, ReplyTo: to})
}

// Attach sends a file with a caption, which may be empty.
func (p Place) Attach(from User, a Attachment, caption string, entities ...Entity) Message {
	return p.addPost(from, Draft{Text: caption, Entities: entities, Attachment: &a})
}

// Photo sends a picture.
func (p Place) Photo(from User, data []byte, caption string) Message {
	return p.Attach(from, Attachment{Kind: "photo", Data: data}, caption)
}

// Document sends a file.
func (p Place) Document(from User, name string, data []byte, caption string) Message {
	return p.Attach(from, Attachment{Kind: "document", Name: name, Data: data}, caption)
}

// Voice sends a recording.
func (p Place) Voice(from User, data []byte) Message {
	return p.Attach(from, Attachment{Kind: "voice", Data: data, MIME: "audio/ogg"}, "")
}

// Sticker sends a sticker that stands for an emoji.
func (p Place) Sticker(from User, emoji string) Message {
	return p.Attach(from, Attachment{Kind: "sticker", Name: emoji, Data: []byte("RIFF....WEBPVP8 ")}, "")
}

// Album sends several files as one; the caption is the first one's.
func (p Place) Album(from User, caption string, all ...Attachment) []Message {
	p.s.mu.Lock()
	album := p.s.newAlbum()
	p.s.mu.Unlock()
	var sent []Message
	for _, a := range all {
		sent = append(sent, p.addPost(from, Draft{Text: caption, Attachment: &a, Album: album}))
		caption = ""
	}
	return sent
}

// Location sends a point on the map.
func (p Place) Location(from User, latitude, longitude float64) Message {
	return p.addPost(from, Draft{Location: &Location{Latitude: latitude, Longitude: longitude}})
}

// Contact sends a phone number.
func (p Place) Contact(from User, phone, name string) Message {
	return p.addPost(from, Draft{Contact: &Contact{Phone: phone, FirstName: name}})
}

// Poll sends a poll.
func (p Place) Poll(from User, question string, options ...string) Message {
	return p.addPost(from, Draft{Poll: newPoll(question, options)})
}

// Forward forwards a message of any chat, with its sender.
func (p Place) Forward(from User, m Message) Message {
	origin := m.Origin
	if origin == nil {
		origin = &Origin{Type: "user", Date: m.Date, SenderUser: m.From}
	}
	var sent Message
	p.act(func(r *room) error {
		if !r.in(from) {
			return fmt.Errorf("%s is not a member", from.FirstName)
		}
		copied := m.snapshot()
		copied.From, copied.Origin = &from, origin
		copied.ReplyTo, copied.Thread, copied.IsTopic, copied.EditDate = nil, 0, false, 0
		added := r.add(&copied, p.ThreadID, nil)
		p.s.emitMessage("message", r, added)
		sent = added.snapshot()
		return nil
	})
	return sent
}

// TryEdit changes the text, or the caption, of the user's own message.
func (p Place) TryEdit(by User, id int, text string, entities ...Entity) (Message, error) {
	var edited Message
	err := p.try(func(r *room) error {
		m := r.messages[id]
		switch {
		case m == nil || m.From.ID != by.ID:
			return fmt.Errorf("no message %d of %s", id, by.FirstName)
		case m.Text != "":
			m.Text, m.Entities = text, mark(text, entities)
		default:
			m.Caption, m.CaptionEntities = text, mark(text, entities)
		}
		m.EditDate = time.Now().Unix()
		p.s.emitMessage("edited_message", r, m)
		edited = m.snapshot()
		return nil
	})
	return edited, err
}

// Edit is TryEdit for an edit that must succeed.
func (p Place) Edit(by User, id int, text string, entities ...Entity) Message {
	m, err := p.TryEdit(by, id, text, entities...)
	must(err)
	return m
}

// Delete deletes a message. The Bot API has no update for that.
func (p Place) Delete(id int) {
	p.act(func(r *room) error {
		if r.messages[id] == nil {
			return fmt.Errorf("no message %d", id)
		}
		delete(r.messages, id)
		p.s.Notify()
		return nil
	})
}

// SetReactions sets all of a user's reactions to a message; no emoji removes them. In groups the bot
// gets an update only as an administrator.
func (p Place) SetReactions(by User, id int, emoji ...string) error {
	return p.try(func(r *room) error {
		if r.messages[id] == nil || !r.in(by) {
			return fmt.Errorf("%s cannot react to message %d", by.FirstName, id)
		}
		old := r.react(id, by, emoji)
		if r.chat.Type == Private && r.in(p.s.me) || r.admin(p.s.me) {
			p.s.emit("message_reaction", fields{"chat": r.chat, "message_id": id, "user": by, "date": time.Now().Unix(),
				"old_reaction": reactions(old), "new_reaction": reactions(emoji)})
		}
		p.s.Notify()
		return nil
	})
}

func reactions(emoji []string) []Reaction {
	all := []Reaction{}
	for _, e := range emoji {
		all = append(all, Reaction{Type: "emoji", Emoji: e})
	}
	return all
}

// AllowReactions lets the chat take only these emoji as reactions, as administrators may choose.
func (p Place) AllowReactions(emoji ...string) {
	p.act(func(r *room) error {
		r.allowed = append([]string{}, emoji...)
		return nil
	})
}

// React is SetReactions for reactions that must succeed.
func (p Place) React(by User, id int, emoji ...string) { must(p.SetReactions(by, id, emoji...)) }

// Unreact removes a user's reactions.
func (p Place) Unreact(by User, id int) { p.React(by, id) }

// AnswerPoll chooses options of a poll by index; none retracts the answer. It panics where Telegram would
// not let the user vote.
func (s *Server) AnswerPoll(by User, pollID string, options ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.polls[pollID]
	if p == nil || p.state.IsClosed || !p.state.Multiple && len(options) > 1 ||
		slices.ContainsFunc(options, func(i int) bool { return i < 0 || i >= len(p.state.Options) }) {
		must(fmt.Errorf("no such answer to poll %s", pollID))
	}
	s.vote(p, by, options)
}
