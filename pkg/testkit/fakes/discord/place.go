package discord

import (
	"cmp"
	"fmt"
	"slices"
)

// Place is a channel, also a private one, or a thread. Its methods are actions of users there.
type Place struct {
	s         *Server
	ChannelID string
}

// Draft is a message to send.
type Draft struct {
	Text     string
	ReplyTo  string
	Files    []File
	Stickers []string // names
	Poll     *Poll
}

// User creates a user.
func (s *Server) User(name, username string) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newUser("", name, username, false)
}

// OtherBot creates a bot other than Me.
func (s *Server) OtherBot(name, username string) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newUser("", name, username, true)
}

// newUser creates a user, with a new id unless one is given.
func (s *Server) newUser(id, name, username string, bot bool) User {
	u := User{ID: cmp.Or(id, s.newID()), Username: username, Discriminator: "0", GlobalName: Nullable(name), Bot: bot}
	s.users[u.ID] = u
	return u
}

// DM is the private channel of a user with the bot.
func (s *Server) DM(with User) Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Place{s: s, ChannelID: s.private(with).info.ID}
}

func (s *Server) private(with User) *channel {
	for _, ch := range s.channels {
		if ch.guild == nil && ch.info.Recipients[0].ID == with.ID {
			return ch
		}
	}
	return s.newChannel(Channel{Type: Private, Recipients: []User{with}}, nil, nil)
}

// Place is a channel or a thread by its id.
func (s *Server) Place(channel string) Place { return Place{s: s, ChannelID: channel} }

// Mention is the text that mentions a channel.
func (p Place) Mention() string { return "<#" + p.ChannelID + ">" }

// lock returns the channel, which must exist, with the lock held.
func (p Place) lock() *channel {
	p.s.mu.Lock()
	ch := p.s.channels[p.ChannelID]
	if ch == nil {
		p.s.mu.Unlock()
		panic("discord: no channel " + p.ChannelID)
	}
	return ch
}

func (p Place) unlock() {
	p.s.Notify()
	p.s.mu.Unlock()
}

// try calls do with the channel under the lock, if it exists.
func (p Place) try(do func(*channel) error) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	ch := p.s.channels[p.ChannelID]
	if ch == nil {
		return fmt.Errorf("no channel %s", p.ChannelID)
	}
	return do(ch)
}

func must(err error) {
	require(err == nil, "%v", err)
}

// withMessage calls do with a message, which must exist, under the lock.
func (p Place) withMessage(id string, do func(*channel, *Message) error) error {
	return p.try(func(ch *channel) error {
		m := ch.messages[id]
		if m == nil {
			return fmt.Errorf("no message %s", id)
		}
		return do(ch, m)
	})
}

// in reports whether a user can write in a channel.
func (ch *channel) in(u User) bool {
	if ch.guild == nil {
		return ch.info.Recipients[0].ID == u.ID
	}
	return ch.guild.member(u.ID) != nil
}

// Post sends a message. It fails if the user is not a member, and for a reply to a message that does
// not exist.
func (p Place) Post(from User, d Draft) (Message, error) {
	var sent Message
	err := p.try(func(ch *channel) error {
		m := p.s.draft(ch, from, d)
		answered := ch.messages[d.ReplyTo]
		switch {
		case !ch.in(from) || ch.info.Type == Forum:
			return fmt.Errorf("%s is not a member", from.Name())
		case d.ReplyTo != "" && (answered == nil || answered.isSystem()):
			return fmt.Errorf("no message %s to reply to", d.ReplyTo)
		case answered != nil:
			m.answer(ch, answered)
			p.s.mention(ch, m, answered.Author.ID)
		}
		p.s.add(ch, m)
		p.s.emitMessage("MESSAGE_CREATE", ch, m)
		sent = m.snapshot()
		return nil
	})
	return sent, err
}

func (s *Server) draft(ch *channel, from User, d Draft) *Message {
	m := &Message{Author: from, Content: d.Text}
	for _, f := range d.Files {
		if m.Attachments = append(m.Attachments, s.newAttachment(ch, f)); f.Voice {
			m.Flags |= IsVoiceMessage
		}
	}
	for _, name := range d.Stickers {
		m.Stickers = append(m.Stickers, Sticker{ID: s.newID(), Name: name, Format: 1})
	}
	m.Poll = d.Poll
	s.mark(ch, m, allMentions())
	return m
}

func (p Place) addPost(from User, d Draft) Message {
	m, err := p.Post(from, d)
	must(err)
	return m
}

// Say sends a text. Users, roles and channels in it are written as their Mention.
func (p Place) Say(from User, text string) Message { return p.addPost(from, Draft{Text: text}) }

// Reply replies to a message, and mentions its author.
func (p Place) Reply(from User, to, text string) Message {
	return p.addPost(from, Draft{Text: text, ReplyTo: to})
}

// Attach sends files with a text, which may be empty.
func (p Place) Attach(from User, text string, files ...File) Message {
	return p.addPost(from, Draft{Text: text, Files: files})
}

// Voice sends a recording.
func (p Place) Voice(from User, data []byte) Message {
	return p.Attach(from, "", File{Name: "voice-message.ogg", MIME: "audio/ogg", Data: data, Voice: true})
}

// Sticker sends a sticker.
func (p Place) Sticker(from User, name string) Message {
	return p.addPost(from, Draft{Stickers: []string{name}})
}

// Forward forwards a message of any channel.
func (p Place) Forward(from User, m Message) Message {
	ch := p.lock()
	defer p.unlock()
	source := p.s.channels[m.ChannelID]
	require(source != nil && ch.in(from), "%s cannot forward that there", from.Name())
	copied := &Message{Author: from}
	copied.forward(source, &m)
	p.s.add(ch, copied)
	p.s.emitMessage("MESSAGE_CREATE", ch, copied)
	return copied.snapshot()
}

// TryEdit changes the text of the user's own message.
func (p Place) TryEdit(by User, id, text string) (Message, error) {
	var edited Message
	err := p.withMessage(id, func(ch *channel, m *Message) error {
		if m.Author.ID != by.ID {
			return fmt.Errorf("no message %s of %s", id, by.Name())
		}
		m.Content = text
		p.s.mark(ch, m, allMentions())
		p.s.edited(ch, m)
		edited = m.snapshot()
		return nil
	})
	return edited, err
}

// Edit is TryEdit for an edit that must succeed.
func (p Place) Edit(by User, id, text string) Message {
	m, err := p.TryEdit(by, id, text)
	must(err)
	return m
}

// Unfurl adds a preview to a message, as Discord does when it has loaded a link: there is a second
// event, but no edit.
func (p Place) Unfurl(id string, e Embed) {
	p.unfurl(id, e, func(*Message) {})
}

// UnfurlLate is Unfurl for a link of a message as it was before an edit. Discord then brings back the old text.
func (p Place) UnfurlLate(before Message, e Embed) {
	p.unfurl(before.ID, e, func(m *Message) { m.Content, m.Components = before.Content, before.Components })
}

// unfurl adds a preview to a message, after a change, unless it has SuppressEmbeds.
func (p Place) unfurl(id string, e Embed, change func(*Message)) {
	ch := p.lock()
	defer p.unlock()
	m := ch.mustHave(id)
	if m.Flags&SuppressEmbeds != 0 {
		return
	}
	change(m)
	m.Embeds = append(slices.Clone(m.Embeds), e)
	p.s.emitMessage("MESSAGE_UPDATE", ch, m)
}

// mustHave is a message of a user's action, which must exist.
func (ch *channel) mustHave(id string) *Message {
	require(ch.messages[id] != nil, "no message %s", id)
	return ch.messages[id]
}

// Delete deletes messages. Several emit one event.
func (p Place) Delete(ids ...string) {
	ch := p.lock()
	defer p.unlock()
	for _, id := range ids {
		ch.mustHave(id)
	}
	p.s.remove(ch, ids...)
}

// SetReaction adds or removes a user's reaction to a message.
func (p Place) SetReaction(by User, id, emoji string, on bool) error {
	return p.withMessage(id, func(ch *channel, m *Message) error {
		if !isEmoji(emoji) || !ch.in(by) {
			return fmt.Errorf("%s cannot react to message %s with %s", by.Name(), id, emoji)
		}
		p.s.react(ch, m, by, Emoji{Name: emoji}, on)
		return nil
	})
}

// React is SetReaction for a reaction that must succeed.
func (p Place) React(by User, id, emoji string) { must(p.SetReaction(by, id, emoji, true)) }

// Unreact removes a user's reaction.
func (p Place) Unreact(by User, id, emoji string) { must(p.SetReaction(by, id, emoji, false)) }

// Poll sends a poll.
func (p Place) Poll(from User, question string, answers ...string) Message {
	request := pollRequest{Question: PollMedia{Text: question}, Multiple: true}
	for _, a := range answers {
		request.Answers = append(request.Answers, PollAnswer{Media: PollMedia{Text: a}})
	}
	return p.addPost(from, Draft{Poll: request.open(p.s.now())})
}

// Vote adds or removes a vote for an answer of a poll, counted from 1. It panics where Discord would not
// let the user vote.
func (p Place) Vote(by User, id string, answer int, on bool) {
	ch := p.lock()
	defer p.unlock()
	m := ch.mustHave(id)
	require(m.Poll != nil && !m.Poll.Results.IsFinalized && answer >= 1 && answer <= len(m.Poll.Answers),
		"no such answer to poll %s", id)
	other := func(v vote) bool { return v.user == by.ID && v.answer != answer }
	require(!on || m.Poll.Multiple || !slices.ContainsFunc(ch.votes[id], other), "a second answer to poll %s", id)
	p.s.vote(ch, m, by, answer, on)
}

// EndPoll ends a poll, as its expiry does.
func (p Place) EndPoll(id string) {
	ch := p.lock()
	defer p.unlock()
	m := ch.mustHave(id)
	require(m.Poll != nil && !m.Poll.Results.IsFinalized, "no open poll %s", id)
	p.s.finishPoll(ch, m)
}
