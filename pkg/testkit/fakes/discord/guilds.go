package discord

import (
	"maps"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// guild is a guild with its members. The server's lock guards it.
type guild struct {
	id, name string
	owner    string
	roles    []Role // the first is @everyone
	members  []*Member
	emojis   []Emoji
	system   string // the system channel, where joins are announced
	commands []Command
	granted  Permission // of the bot, besides those of everyone
}

func (g *guild) member(user string) *Member {
	for _, m := range g.members {
		if m.User.ID == user {
			return m
		}
	}
	return nil
}

func (g *guild) role(id string) *Role {
	for i := range g.roles {
		if g.roles[i].ID == id {
			return &g.roles[i]
		}
	}
	return nil
}

// bare is a member without the user, as beside an author.
func (g *guild) bare(user string) *Member {
	m := g.member(user)
	if m == nil {
		return nil
	}
	c := *m
	c.User = nil
	return &c
}

// channel is a channel with its contents. The server's lock guards it.
type channel struct {
	info      Channel // without counts and ids of messages
	guild     *guild  // nil for a private one
	parent    *channel
	messages  map[string]*Message
	reactions map[string][]*reaction // by message
	pins      []pin                  // the latest first
	votes     map[string][]vote      // by message
	members   []ThreadMember         // of a thread
	denied    Permission             // of the bot
	blocked   bool                   // the user has blocked the bot
	heard     bool                   // the bot hears the thread although it has not joined it
	renames   fakeserver.Window
	sent      int
	last      string
}

func (s *Server) newChannel(info Channel, g *guild, parent *channel) *channel {
	if info.ID == "" {
		info.ID = s.newID()
	}
	if g != nil {
		info.GuildID = g.id
	}
	if parent != nil {
		info.ParentID = Nullable(parent.info.ID)
	}
	ch := &channel{
		info: info, guild: g, parent: parent,
		messages: map[string]*Message{}, reactions: map[string][]*reaction{}, votes: map[string][]vote{},
	}
	s.channels[info.ID] = ch
	return ch
}

func (ch *channel) isThread() bool { return ch.info.Metadata != nil }

// snapshot is a copy of a channel, which later changes do not affect.
func (ch *channel) snapshot(s *Server) Channel {
	c := ch.info
	c.LastMessageID, c.LastPin = Nullable(ch.last), ch.lastPin()
	if ch.denied != 0 {
		c.Overwrites = []Overwrite{{ID: s.me.ID, Type: 1, Allow: "0", Deny: ch.denied.String()}}
	}
	if ch.isThread() {
		metadata := *ch.info.Metadata
		c.Metadata = &metadata
		c.MessageCount, c.TotalSent, c.MemberCount = new(len(ch.messages)), new(ch.sent), new(len(ch.members))
		c.Member = ch.threadMember(s.me.ID)
	}
	return c
}

func (ch *channel) threadMember(user string) *ThreadMember {
	for _, m := range ch.members {
		if m.UserID == user {
			return &m
		}
	}
	return nil
}

// readable is the channel of a request, if the bot may read it.
func (s *Server) readable(q *request) (*channel, error) {
	id, err := q.id("channel")
	if err != nil {
		return nil, err
	}
	ch := s.channels[id]
	switch {
	case ch == nil:
		return nil, unknown(10003, "Channel")
	case !s.sees(ch):
		return nil, missingAccess()
	}
	return ch, nil
}

// writable is the channel of a request, if the bot may send to it.
func (s *Server) writable(q *request) (*channel, error) {
	ch, err := s.readable(q)
	if err != nil {
		return nil, err
	}
	send := SendMessages
	if ch.isThread() {
		send = SendMessagesInThreads
	}
	switch {
	case ch.info.Type == Forum, ch.info.Type == Category:
		return nil, refuse(400, 50008, "Cannot send messages in a non-text channel")
	case ch.blocked:
		return nil, refuse(403, 50007, "Cannot send messages to this user")
	case !s.may(ch, send):
		return nil, missingPermissions()
	case ch.isThread() && ch.info.Metadata.Archived &&
		(s.archiveStays || ch.info.Metadata.Locked && !s.may(ch, ManageThreads)):
		return nil, archived()
	case ch.isThread() && ch.info.Metadata.Locked && !s.may(ch, ManageThreads):
		return nil, refuse(403, 160005, "Thread is locked")
	}
	return ch, nil
}

func archived() error { return refuse(400, 50083, "Thread is archived") }

// message is the message of a request.
func (s *Server) message(q *request) (*channel, *Message, error) {
	ch, err := s.readable(q)
	if err != nil {
		return nil, nil, err
	}
	id, err := q.id("message")
	if err != nil {
		return nil, nil, err
	}
	m := ch.messages[id]
	if m == nil {
		return nil, nil, unknown(10008, "Message")
	}
	return ch, m, nil
}

// sorted is the messages of a channel, oldest first.
func (ch *channel) sorted() []*Message {
	return slices.SortedFunc(maps.Values(ch.messages), func(a, b *Message) int { return compareIDs(a.ID, b.ID) })
}

// compareIDs orders snowflakes by age.
func compareIDs(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func (s *Server) sortedGuilds() []*guild {
	return slices.SortedFunc(maps.Values(s.guilds), func(a, b *guild) int { return compareIDs(a.id, b.id) })
}

// channelsOf are a guild's channels, or its active threads. As on Discord, hidden channels are
// included, threads in them are not.
func (s *Server) channelsOf(g *guild, threads bool) []Channel {
	all := []Channel{}
	for _, ch := range s.channels {
		if ch.guild != g || ch.isThread() != threads || threads && (!s.sees(ch) || ch.info.Metadata.Archived) {
			continue
		}
		all = append(all, ch.snapshot(s))
	}
	slices.SortFunc(all, func(a, b Channel) int { return compareIDs(a.ID, b.ID) })
	return all
}

// guildObject is a guild in answers, and a part of GUILD_CREATE.
func (s *Server) guildObject(g *guild) map[string]any {
	return map[string]any{
		"id": g.id, "name": g.name, "icon": nil, "owner_id": g.owner, "roles": slices.Clone(g.roles),
		"emojis":   slices.Clone(g.emojis),
		"features": []string{}, "system_channel_id": Nullable(g.system), "verification_level": 0, "mfa_level": 0,
		"premium_tier":     0,
		"preferred_locale": "en-US", "nsfw_level": 0, "stickers": []any{},
	}
}

// guildCreate is the data of GUILD_CREATE. The only member is the bot, as without the intent for
// presences.
func (s *Server) guildCreate(g *guild) map[string]any {
	object := s.guildObject(g)
	me := g.member(s.me.ID)
	maps.Copy(object, map[string]any{
		"joined_at": me.JoinedAt, "large": false, "unavailable": false, "member_count": len(g.members),
		"members":  []Member{*me},
		"channels": s.channelsOf(g, false), "threads": s.channelsOf(g, true), "presences": []any{},
		"voice_states":    []any{},
		"stage_instances": []any{}, "guild_scheduled_events": []any{}, "soundboard_sounds": []any{},
	})
	return object
}

// guildOf is the guild of a request, if the bot is in it.
func (s *Server) guildOf(q *request) (*guild, error) {
	id, err := q.id("guild")
	if err != nil {
		return nil, err
	}
	g := s.guilds[id]
	switch {
	case g == nil:
		return nil, unknown(10004, "Guild")
	case g.member(s.me.ID) == nil:
		return nil, missingAccess()
	}
	return g, nil
}

func (s *Server) getGuild(q *request) (any, error) {
	g, err := s.guildOf(q)
	if err != nil {
		return nil, err
	}
	return s.guildObject(g), nil
}

func (s *Server) getGuildChannels(q *request) (any, error) {
	g, err := s.guildOf(q)
	if err != nil {
		return nil, err
	}
	return s.channelsOf(g, false), nil
}

func (s *Server) getActiveThreads(q *request) (any, error) {
	g, err := s.guildOf(q)
	if err != nil {
		return nil, err
	}
	threads, members := s.channelsOf(g, true), []ThreadMember{}
	for _, t := range threads {
		if t.Member != nil {
			members = append(members, *t.Member)
		}
	}
	return map[string]any{"threads": threads, "members": members}, nil
}

func (s *Server) getChannel(q *request) (any, error) {
	ch, err := s.readable(q)
	if err != nil {
		return nil, err
	}
	return ch.snapshot(s), nil
}

// triggerTyping shows the bot as typing for ten seconds.
func (s *Server) triggerTyping(q *request) (any, error) {
	_, err := s.writable(q)
	return nil, err
}

// joined is a new member of a guild.
func joined(u User, at time.Time, roles ...string) *Member {
	return &Member{User: &u, Roles: append([]string{}, roles...), JoinedAt: at}
}
