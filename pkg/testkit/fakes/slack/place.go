package slack

import (
	"cmp"
	"fmt"
	"html"
	"regexp"
	"strings"
)

// Place is a conversation, or a thread of it. Its methods are the actions of users there.
type Place struct {
	s         *Server
	ChannelID string
	ThreadTS  string // of a thread's root; "" for the conversation
}

// Attachment is a file that a user shares.
type Attachment struct {
	Name string
	MIME string // guessed from the name's extension, or the content, if empty
	Data []byte
	// Connect makes it a file of another workspace, shared by Slack Connect: messages have only its id, and
	// files.info the rest.
	Connect bool
	// Voice makes it a recording, which Slack names itself and calls a video.
	Voice bool
}

// Draft is a message to send. It goes to the thread of the Place, unless ThreadTS is another one.
type Draft struct {
	Text       string // as on the wire
	ThreadTS   string
	Broadcast  bool // to the channel as well
	Via        User // an app that posts it with the user's own token; the zero value is none
	Subtype    string
	Attachment *Attachment
}

// User creates a user.
func (s *Server) User(name, handle string) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newUser(name, handle, false)
}

// OtherBot creates a bot other than Me.
func (s *Server) OtherBot(name, handle string) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.newUser(name, handle, true)
	u.AppID = s.id("A")
	s.users[u.ID] = u
	return u
}

func (s *Server) newUser(name, handle string, bot bool) User {
	u := User{ID: s.id("U"), Name: handle, RealName: name, DisplayName: name}
	if bot {
		u.BotID = s.id("B")
	}
	s.users[u.ID] = u
	return u
}

// DM is the conversation of a user with the bot.
func (s *Server) DM(with User) Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Place{s: s, ChannelID: s.dm(with).ID}
}

// Channel creates a public channel with the bot as a member; the first member is the creator. The
// bot gets no event about it.
func (s *Server) Channel(name string, members ...User) Place {
	return s.createRoom("C", Channel{Kind: Public, Name: name}, true, members)
}

// PrivateChannel is like Channel.
func (s *Server) PrivateChannel(name string, members ...User) Place {
	return s.createRoom("C", Channel{Kind: Private, Name: name}, true, members)
}

// LegacyPrivateChannel creates a private channel with an id that begins with G, as old ones have.
func (s *Server) LegacyPrivateChannel(name string, members ...User) Place {
	return s.createRoom("G", Channel{Kind: Private, Name: name}, true, members)
}

// ChannelWithoutBot creates a public channel without the bot.
func (s *Server) ChannelWithoutBot(name string, members ...User) Place {
	return s.createRoom("C", Channel{Kind: Public, Name: name}, false, members)
}

// GroupDM creates a conversation of some users with the bot, with an id that begins with C.
func (s *Server) GroupDM(members ...User) Place {
	return s.createRoom("C", Channel{Kind: GroupDM, Name: groupName(members)}, true, members)
}

// LegacyGroupDM is a GroupDM whose id begins with G.
func (s *Server) LegacyGroupDM(members ...User) Place {
	return s.createRoom("G", Channel{Kind: GroupDM, Name: groupName(members)}, true, members)
}

func groupName(members []User) string {
	var names []string
	for _, u := range members {
		names = append(names, u.Name)
	}
	return "mpdm-" + strings.Join(names, "--") + "-1"
}

func (s *Server) createRoom(letter string, c Channel, withBot bool, members []User) Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.ID = s.id(letter)
	if len(members) > 0 {
		c.Creator = members[0].ID
	}
	if withBot {
		members = append(members[:len(members):len(members)], s.me)
	}
	s.newRoom(c, members...)
	return Place{s: s, ChannelID: c.ID}
}

// Place is a conversation, or a thread of it.
func (s *Server) Place(channelID, threadTS string) Place {
	return Place{s: s, ChannelID: channelID, ThreadTS: threadTS}
}

// Thread is the thread that begins with a message.
func (p Place) Thread(ts string) Place { return p.s.Place(p.ChannelID, ts) }

// try calls do under the lock.
func (p Place) try(do func(*room) error) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	r := p.s.rooms[p.ChannelID]
	if r == nil {
		return fmt.Errorf("no conversation %s", p.ChannelID)
	}
	defer p.s.Notify()
	return do(r)
}

// act is try for an action that must succeed.
func (p Place) act(do func(*room) error) { must(p.try(do)) }

func must(err error) {
	if err != nil {
		panic("slack: impossible action: " + err.Error())
	}
}

// Post sends a message. It fails if the user is not a member, the thread does not exist, or the conversation is
// archived. Of a text that begins with a slash, without a file, Slack's clients make a command, see TryCommand; a
// program may send one.
func (p Place) Post(from User, d Draft) (Message, error) {
	var sent Message
	err := p.try(func(r *room) error {
		thread := cmp.Or(d.ThreadTS, p.ThreadTS)
		switch {
		case !r.in(from) || r.Archived:
			return fmt.Errorf("%s is not a member", from.RealName)
		case thread != "" && r.root(thread) == nil:
			return fmt.Errorf("no thread %s", thread)
		case !from.IsBot() && !d.Via.IsBot() && d.Subtype == "" && d.Attachment == nil &&
			strings.HasPrefix(d.Text, "/"):
			return fmt.Errorf("%.40q is a command to Slack's clients", d.Text)
		case d.Broadcast && thread == "":
			return fmt.Errorf("broadcast outside a thread")
		}
		m := p.s.compose(from, d)
		p.s.say(r, m, thread)
		for _, f := range m.Files {
			p.s.files[f.ID].shared(r, m)
		}
		sent = m.snapshot()
		return nil
	})
	return sent, err
}

func (s *Server) compose(from User, d Draft) *Message {
	m := &Message{User: from.ID, Team: teamID, Text: d.Text, Subtype: d.Subtype}
	if app := cmp.Or(d.Via, from); app.IsBot() {
		m.by(app)
	} else {
		m.ClientID = s.id("client-")
	}
	if d.Broadcast {
		m.Subtype = "thread_broadcast"
	}
	if d.Text != "" && !from.IsBot() {
		m.Blocks = encoded([]any{fields{"type": "rich_text", "block_id": "b1", "elements": []any{fields{
			"type": "rich_text_section", "elements": richText(d.Text),
		}}}})
	}
	if d.Attachment != nil {
		f := s.newFile(from, *d.Attachment)
		no := false
		m.Subtype, m.Files, m.Upload = "file_share", []File{f.snapshot(s)}, &no
	}
	return m
}

// richText are the elements of rich text that a client has made a text of.
func richText(text string) (all []fields) {
	for text != "" {
		before, rest, found := strings.Cut(text, "<")
		if before != "" {
			all = append(all, fields{"type": "text", "text": html.UnescapeString(before)})
		}
		if !found {
			break
		}
		var token string
		token, text, _ = strings.Cut(rest, ">")
		target, label, _ := strings.Cut(token, "|")
		switch kind, id := target[:min(1, len(target))], target[min(1, len(target)):]; kind {
		case "@":
			all = append(all, fields{"type": "user", "user_id": id})
		case "#":
			all = append(all, fields{"type": "channel", "channel_id": id})
		case "!":
			all = append(all, fields{"type": "broadcast", "range": id})
		default:
			all = append(all, fields{"type": "link", "url": html.UnescapeString(target),
				"text": html.UnescapeString(label)})
		}
	}
	return all
}

func (p Place) addPost(from User, d Draft) Message {
	m, err := p.Post(from, d)
	must(err)
	return m
}

// Say sends a text, in the thread if the Place is one.
func (p Place) Say(from User, text string) Message { return p.addPost(from, Draft{Text: text}) }

// Reply posts to the thread of a message, which starts one if it is in none.
func (p Place) Reply(from User, ts, text string) Message {
	return p.addPost(from, Draft{Text: text, ThreadTS: ts})
}

// Broadcast is a Reply that is also sent to the channel.
func (p Place) Broadcast(from User, ts, text string) Message {
	return p.addPost(from, Draft{Text: text, ThreadTS: ts, Broadcast: true})
}

// Share shares a file with a text, which may be empty.
func (p Place) Share(from User, a Attachment, text string) Message {
	return p.addPost(from, Draft{Text: text, Attachment: &a})
}

// MeMessage sends a message as with /me.
func (p Place) MeMessage(from User, text string) Message {
	return p.addPost(from, Draft{Text: text, Subtype: "me_message"})
}

// Webhook posts a bot_message, as an integration with a name but no user.
func (p Place) Webhook(name, text string) Message {
	var sent Message
	p.act(func(r *room) error {
		m := &Message{Subtype: "bot_message", BotID: p.s.id("B"), Username: name, Text: text}
		p.s.say(r, m, p.ThreadTS)
		sent = m.snapshot()
		return nil
	})
	return sent
}

var typedName = regexp.MustCompile(`(^|\s)([@#])([\w.-]*\w)`)

// Encode is the text that a client sends for the one that a user types: @names and #names become mentions, and
// &, < and > are escaped.
func (s *Server) Encode(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	return typedName.ReplaceAllStringFunc(text, func(found string) string {
		parts := typedName.FindStringSubmatch(found)
		if parts[2] == "@" {
			switch parts[3] {
			case "channel", "here", "everyone":
				return parts[1] + "<!" + parts[3] + ">"
			}
			for _, u := range s.users {
				if u.Name == parts[3] {
					return parts[1] + u.Mention()
				}
			}
		} else if r := s.roomNamed(parts[3]); r != nil {
			return parts[1] + "<#" + r.ID + "|" + r.Name + ">"
		}
		return found
	})
}
