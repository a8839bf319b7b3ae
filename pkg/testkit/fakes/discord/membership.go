package discord

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Guild is a guild, which clients call a server. Its methods are actions of its members.
type Guild struct {
	s  *Server
	ID string
}

// Guild creates a guild without channels, with the bot as a member; the first member owns it.
func (s *Server) Guild(name string, members ...User) Guild {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &guild{id: s.newID(), name: name}
	g.roles = []Role{{ID: g.id, Name: "@everyone", Permissions: everyonePermissions.String()}}
	at := s.now()
	for i, u := range members {
		if i == 0 {
			g.owner = u.ID
		}
		g.members = append(g.members, joined(u, at))
	}
	s.guilds[g.id] = g
	s.admitBot(g)
	return Guild{s: s, ID: g.id}
}

// admitBot makes the bot a member, with its own role.
func (s *Server) admitBot(g *guild) {
	role := Role{
		ID: s.newID(), Name: s.me.Name(), Position: 1, Permissions: everyonePermissions.String(), Managed: true,
		Tags: &RoleTags{BotID: s.me.ID},
	}
	g.roles = append(g.roles, role)
	g.members = append(g.members, joined(s.me, s.now(), role.ID))
	s.emit(Guilds, "GUILD_CREATE", s.guildCreate(g))
}

// lock returns the guild, which must exist, with the lock held.
func (g Guild) lock() *guild {
	g.s.mu.Lock()
	in := g.s.guilds[g.ID]
	if in == nil {
		g.s.mu.Unlock()
		panic("discord: no guild " + g.ID)
	}
	return in
}

func (g Guild) unlock() {
	g.s.Notify()
	g.s.mu.Unlock()
}

// require panics unless an action of a user is possible.
func require(possible bool, format string, args ...any) {
	if !possible {
		panic("discord: impossible action: " + fmt.Sprintf(format, args...))
	}
}

// AddBot adds the bot to a guild that it was removed from.
func (g Guild) AddBot() {
	in := g.lock()
	defer g.unlock()
	require(in.member(g.s.me.ID) == nil, "the bot is in guild %s", g.ID)
	g.s.admitBot(in)
}

// RemoveBot removes the bot. Messages that it sends there are refused from then on.
func (g Guild) RemoveBot() {
	in := g.lock()
	defer g.unlock()
	in.expel(g.s.me.ID)
	in.roles = slices.DeleteFunc(in.roles, func(r Role) bool { return r.Managed && r.Tags.BotID == g.s.me.ID })
	g.s.emit(Guilds, "GUILD_DELETE", map[string]any{"id": g.ID})
}

// Outage makes the guild unavailable to the bot, and available again.
func (g Guild) Outage() {
	in := g.lock()
	defer g.unlock()
	g.s.toBot(in, Guilds, "GUILD_DELETE", map[string]any{"id": g.ID, "unavailable": true})
	g.s.toBot(in, Guilds, "GUILD_CREATE", g.s.guildCreate(in))
}

func (g *guild) expel(user string) {
	g.members = slices.DeleteFunc(g.members, func(m *Member) bool { return m.User.ID == user })
}

// Join adds a user to the guild. The system channel announces it.
func (g Guild) Join(user User) {
	in := g.lock()
	defer g.unlock()
	require(in.member(user.ID) == nil, "%s is in guild %s", user.Name(), g.ID)
	m := joined(user, g.s.now())
	in.members = append(in.members, m)
	g.s.toBot(in, GuildMembers, "GUILD_MEMBER_ADD", memberEvent{g.ID, *m})
	if ch := g.s.channels[in.system]; ch != nil {
		g.s.emitMessage("MESSAGE_CREATE", ch, g.s.add(ch, &Message{Author: user, Type: UserJoin}))
	}
}

// memberEvent is a member as in events of guilds.
type memberEvent struct {
	GuildID string `json:"guild_id"`
	Member
}

// Leave makes a user leave the guild.
func (g Guild) Leave(user User) {
	in := g.lock()
	defer g.unlock()
	require(in.member(user.ID) != nil, "%s is not in guild %s", user.Name(), g.ID)
	in.expel(user.ID)
	g.s.toBot(in, GuildMembers, "GUILD_MEMBER_REMOVE", map[string]any{"guild_id": g.ID, "user": user})
}

// Channel creates a text channel. The first one of a guild is its system channel.
func (g Guild) Channel(name string) Place { return g.addChannel(name, Text) }

// Forum creates a forum; OpenPost adds posts.
func (g Guild) Forum(name string) Place { return g.addChannel(name, Forum) }

func (g Guild) addChannel(name string, kind int) Place {
	in := g.lock()
	defer g.unlock()
	ch := g.s.newChannel(Channel{Name: name, Type: kind}, in, nil)
	if kind == Text {
		in.system = cmp.Or(in.system, ch.info.ID)
	}
	g.s.toBot(in, Guilds, "CHANNEL_CREATE", ch.snapshot(g.s))
	return Place{s: g.s, ChannelID: ch.info.ID}
}

// DeleteChannel deletes a channel, or a thread, with its messages.
func (p Place) DeleteChannel() {
	ch := p.lock()
	defer p.unlock()
	p.s.dropChannel(ch)
}

func (s *Server) dropChannel(ch *channel) {
	name := "CHANNEL_DELETE"
	if ch.isThread() {
		name = "THREAD_DELETE"
	}
	if s.sees(ch) {
		s.emit(Guilds, name, ch.snapshot(s))
	}
	delete(s.channels, ch.info.ID)
	maps.DeleteFunc(s.channels, func(_ string, t *channel) bool { return t.parent == ch })
}

// Rename renames a channel or a thread.
func (p Place) Rename(name string) {
	ch := p.lock()
	defer p.unlock()
	ch.info.Name = name
	p.update(ch)
}

func (p Place) update(ch *channel) {
	if ch.isThread() {
		p.s.threadUpdate(ch)
	} else if ch.guild != nil {
		p.s.toBot(ch.guild, Guilds, "CHANNEL_UPDATE", ch.snapshot(p.s))
	}
}

// Deny revokes permissions of the bot in a channel, and grants all others.
func (p Place) Deny(denied Permission) {
	ch := p.lock()
	defer p.unlock()
	ch.denied = denied
	p.update(ch)
}

// Block makes a user block the bot, or unblock it.
func (s *Server) Block(by User, blocked bool) {
	p := s.DM(by)
	ch := p.lock()
	defer p.unlock()
	ch.blocked = blocked
}

// Thread starts a thread without a message.
func (p Place) Thread(by User, name string) Place { return p.startThread(by, PublicThread, name) }

// PrivateThread starts a thread that only its members see. The bot is not a member.
func (p Place) PrivateThread(by User, name string) Place {
	return p.startThread(by, PrivateThread, name)
}

func (p Place) startThread(by User, kind int, name string) Place {
	ch := p.lock()
	defer p.unlock()
	require(ch.info.Type == Text && ch.in(by), "%s cannot start a thread there", by.Name())
	return Place{s: p.s, ChannelID: p.s.addThread(ch, kind, name, by).info.ID}
}

// TryThreadFrom starts a thread from a message. It fails if the message does not exist, has a
// thread, or is in a place without threads.
func (p Place) TryThreadFrom(by User, id, name string) (t Place, err error) {
	err = p.withMessage(id, func(ch *channel, m *Message) error {
		if ch.info.Type != Text || !ch.in(by) || p.s.channels[id] != nil {
			return fmt.Errorf("%s cannot start a thread from message %s", by.Name(), id)
		}
		t = Place{s: p.s, ChannelID: p.s.branch(ch, m, name, by).info.ID}
		return nil
	})
	return t, err
}

// ThreadFrom is TryThreadFrom for a thread that must be possible.
func (p Place) ThreadFrom(by User, id, name string) Place {
	t, err := p.TryThreadFrom(by, id, name)
	must(err)
	return t
}

// OpenPost opens a post of a forum with its first message.
func (p Place) OpenPost(by User, name, text string) Place {
	ch := p.lock()
	defer p.unlock()
	require(ch.info.Type == Forum && ch.in(by), "%s cannot open a post there", by.Name())
	post := p.s.openThread(ch, PublicThread, "", name, by)
	m := p.s.draft(post, by, Draft{Text: text})
	m.ID = post.info.ID
	p.s.add(post, m)
	p.s.emitMessage("MESSAGE_CREATE", post, m)
	return Place{s: p.s, ChannelID: post.info.ID}
}

// Archive archives or unarchives a thread. A message unarchives a thread, unless it is locked.
func (p Place) Archive(isArchived, isLocked bool) {
	ch := p.lock()
	defer p.unlock()
	require(ch.isThread(), "%s is not a thread", p.ChannelID)
	p.s.archive(ch, isArchived, isLocked)
}

// AddToThread adds a user, or the bot, to a thread.
func (p Place) AddToThread(user User) {
	ch := p.lock()
	defer p.unlock()
	p.s.enter(ch, user)
}

// Channels are all channels, also private ones, without threads, in the order of creation.
func (s *Server) Channels() []Channel {
	return s.listed(func(ch *channel) bool { return !ch.isThread() })
}

// Threads are the threads of a channel.
func (p Place) Threads() []Channel {
	return p.s.listed(func(ch *channel) bool { return ch.isThread() && ch.parent.info.ID == p.ChannelID })
}

func (s *Server) listed(want func(*channel) bool) []Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Channel
	for _, ch := range s.channels {
		if want(ch) {
			all = append(all, ch.snapshot(s))
		}
	}
	slices.SortFunc(all, func(a, b Channel) int { return compareIDs(a.ID, b.ID) })
	return all
}

// Messages are those of the place, oldest first.
func (p Place) Messages() (all []Message) {
	ch := p.lock()
	defer p.s.mu.Unlock()
	for _, m := range ch.sorted() {
		all = append(all, p.s.inAnswer(ch, m))
	}
	return all
}

// Members are the users and bots that can write there, in the order of their names.
func (p Place) Members() (all []User) {
	ch := p.lock()
	defer p.s.mu.Unlock()
	if ch.guild == nil {
		all = []User{p.s.me, ch.info.Recipients[0]}
	} else {
		for _, m := range ch.guild.members {
			all = append(all, *m.User)
		}
	}
	slices.SortFunc(all, func(a, b User) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}

// Reactions are the emoji under a message, by user.
func (p Place) Reactions(id string) map[string][]string {
	ch := p.lock()
	defer p.s.mu.Unlock()
	all := map[string][]string{}
	for _, r := range ch.reactions[id] {
		for _, user := range r.users {
			all[user] = append(all[user], r.emoji.Name)
		}
	}
	return all
}
