package discord

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// guild is a guild with its members. The server's lock guards it.
type guild struct {
	id, name string
	owner    string
	roles    []Role // the first is @everyone
	members  []*Member
	system   string // the system channel, where joins are announced
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
	votes     map[string][]vote      // by message
	members   []ThreadMember         // of a thread
	denied    Permission             // of the bot
	blocked   bool                   // the user has blocked the bot
	heard     bool                   // the bot hears the thread although it has not joined it
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
	c.LastMessageID = Nullable(ch.last)
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

// writable refuses a channel to which the bot may not send.
func (s *Server) writable(ch *channel) error {
	send := SendMessages
	if ch.isThread() {
		send = SendMessagesInThreads
	}
	switch {
	case ch.info.Type == Forum:
		return refuse(400, 50008, "Cannot send messages in a non-text channel")
	case ch.blocked:
		return refuse(403, 50007, "Cannot send messages to this user")
	case !s.may(ch, send):
		return missingPermissions()
	case ch.isThread() && ch.info.Metadata.Archived && (s.archiveStays || ch.info.Metadata.Locked):
		return archived()
	case ch.isThread() && ch.info.Metadata.Locked:
		return refuse(403, 160005, "Thread is locked")
	}
	return nil
}

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

// guildCreate is the data of GUILD_CREATE. The only member is the bot, as without the intent for
// presences.
func (s *Server) guildCreate(g *guild) map[string]any {
	me := g.member(s.me.ID)
	return map[string]any{
		"id": g.id, "name": g.name, "icon": nil, "owner_id": g.owner, "roles": slices.Clone(g.roles),
		"emojis": []any{}, "features": []string{}, "system_channel_id": Nullable(g.system),
		"verification_level": 0, "mfa_level": 0, "premium_tier": 0, "preferred_locale": "en-US", "nsfw_level": 0,
		"joined_at": me.JoinedAt, "large": false, "unavailable": false, "member_count": len(g.members),
		"members": []Member{*me}, "channels": s.channelsOf(g, false), "threads": s.channelsOf(g, true),
		"presences": []any{}, "voice_states": []any{}, "stage_instances": []any{}, "guild_scheduled_events": []any{},
		"stickers": []any{}, "soundboard_sounds": []any{},
	}
}

// threadList is an answer with threads, and with the bot's memberships in them.
func threadList(threads []Channel) map[string]any {
	members := []ThreadMember{}
	for _, t := range threads {
		if t.Member != nil {
			members = append(members, *t.Member)
		}
	}
	return map[string]any{"threads": threads, "members": members}
}

// triggerTyping shows the bot as typing for ten seconds.
func (s *Server) triggerTyping(_ *request, ch *channel) (any, error) { return nil, s.writable(ch) }

// joined is a new member of a guild.
func joined(u User, at time.Time, roles ...string) *Member {
	return &Member{User: &u, Roles: append([]string{}, roles...), JoinedAt: at}
}

// modifyChannel archives a thread, or takes it out of the archive. The bot manages neither channels nor threads: it can
// do that with its own threads, and anyone who may write in a thread can take it out of the archive.
func (s *Server) modifyChannel(q *request, t *channel) (any, error) {
	var body struct {
		Archived bool `json:"archived"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	if !t.isThread() || t.info.Metadata.Locked ||
		t.info.OwnerID != s.me.ID && (body.Archived || !s.may(t, SendMessagesInThreads)) {
		return nil, missingPermissions()
	}
	s.archive(t, body.Archived, false)
	return t.snapshot(s), nil
}
