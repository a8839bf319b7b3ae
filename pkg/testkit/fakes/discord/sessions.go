package discord

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// keptEvents is how many events of a session can be replayed. Discord's number is not documented.
const keptEvents = 10_000

// gateway holds connections and sessions. The server's lock guards it.
type gateway struct {
	conns      []*conn
	sessions   map[string]*session
	stats      GatewayStats
	moves      int       // connections that get RECONNECT instead of HELLO
	identified time.Time // the last IDENTIFY
	starts     int       // IDENTIFYs that began a session since counted
	counted    time.Time // when their count was reset
}

// The documented limit of the sessions that a bot may begin.
const (
	maxStarts   = 1000
	startWindow = 24 * time.Hour
)

// startsLeft is how many sessions may still begin, and how long until there are maxStarts again: the count is reset a
// day after the first of them.
func (g *gateway) startsLeft(now time.Time) (left int, reset time.Duration) {
	if g.starts == 0 || now.Sub(g.counted) >= startWindow {
		g.starts = 0
		return maxStarts, 0
	}
	return max(0, maxStarts-g.starts), startWindow - now.Sub(g.counted)
}

// countStart counts an IDENTIFY.
func (g *gateway) countStart(now time.Time) {
	if _, reset := g.startsLeft(now); reset == 0 {
		g.counted = now
	}
	g.starts++
}

// identifyWindow is the time in which a bot may begin one session.
const identifyWindow = 5 * time.Second

// GatewayStats counts the actions of clients of the gateway.
type GatewayStats struct {
	Connections int
	Identified  int
	Resumed     int
	Early       int // IDENTIFYs before Discord allows one: they get Invalid Session
	Heartbeats  int
}

// session is a session, which can outlive its connection.
type session struct {
	id        string
	intents   Intent
	zip       bool
	sequence  int64 // of the last event
	confirmed int64 // the last event that a heartbeat confirmed
	log       []sentEvent
	conn      *conn // nil while disconnected
}

// event is an event on its way to a session.
type event struct {
	to   *session
	name string
	data json.RawMessage
	sent frame // once it is sent
}

// sentEvent is an event that a session was sent, for replay.
type sentEvent struct {
	sequence int64
	body     []byte
}

func (g *gateway) forget(c *conn) {
	g.conns = slices.DeleteFunc(slices.Clone(g.conns), func(other *conn) bool { return other == c })
}

// authenticated checks the token of IDENTIFY and RESUME, which may have the prefix "Bot ".
func (c *conn) authenticated(token string) bool {
	switch {
	case c.session != nil:
		c.close(CloseAlreadyAuthenticated, "Already authenticated.")
	case !c.s.accepts(strings.TrimPrefix(token, "Bot ")):
		c.close(CloseAuthenticationFailed, "Authentication failed.")
	default:
		return true
	}
	return false
}

// identify starts a session: READY, then a GUILD_CREATE for each guild.
func (c *conn) identify(d json.RawMessage) {
	var p struct {
		Token    string  `json:"token"`
		Intents  *Intent `json:"intents"`
		Compress bool    `json:"compress"`
	}
	s := c.s
	switch err := json.Unmarshal(d, &p); {
	case err != nil || p.Intents == nil:
		c.close(CloseDecodeError, "Error while decoding payload.")
		return
	case !c.authenticated(p.Token):
		return
	case *p.Intents&^allIntents != 0:
		c.close(CloseInvalidIntents, "Invalid intent(s).")
		return
	case *p.Intents&privileged&s.denied != 0:
		c.close(CloseDisallowedIntents, "Disallowed intent(s).")
		return
	}
	if now := s.clock(); s.rates != nil {
		if now.Sub(s.gateway.identified) < identifyWindow {
			s.gateway.stats.Early++
			c.send(opInvalidSession, false)
			return
		}
		s.gateway.identified = now
	}
	s.gateway.stats.Identified++
	s.gateway.countStart(s.clock())
	c.session = &session{id: rand.Text(), intents: *p.Intents, zip: p.Compress, conn: c}
	s.gateway.sessions[c.session.id] = c.session
	c.ready()
}

func (c *conn) ready() {
	s := c.s
	unavailable := []map[string]any{}
	var in []*guild
	for _, g := range s.sortedGuilds() {
		if g.member(s.me.ID) != nil {
			in = append(in, g)
			unavailable = append(unavailable, map[string]any{"id": g.id, "unavailable": true})
		}
	}
	c.session.send("READY", map[string]any{
		"v": 9, "user": s.me, "guilds": unavailable, "session_id": c.session.id,
		"resume_gateway_url": "ws://" + c.host + resumePath,
		"session_type":       "normal", "private_channels": []any{}, "shard": []int{0, 1}, "relationships": []any{},
		"presences":   []any{},
		"application": map[string]any{"id": s.me.ID, "flags": s.applicationFlags()},
	})
	if c.session.intents&Guilds == 0 {
		return
	}
	for _, g := range in {
		for _, t := range s.channelsOf(g, true) {
			s.channels[t.ID].heard = true
		}
		s.dispatch(c.session, "GUILD_CREATE", s.guildCreate(g))
	}
}

// resume resumes a session: the missed events, then RESUMED.
func (c *conn) resume(d json.RawMessage) {
	var p struct {
		Token    string `json:"token"`
		Session  string `json:"session_id"`
		Sequence int64  `json:"seq"`
	}
	if json.Unmarshal(d, &p) != nil {
		c.close(CloseDecodeError, "Error while decoding payload.")
		return
	}
	if !c.authenticated(p.Token) {
		return
	}
	again := c.s.gateway.sessions[p.Session]
	switch {
	case again == nil || len(again.log) > 0 && p.Sequence+1 < again.log[0].sequence:
		c.send(opInvalidSession, false)
		return
	case p.Sequence > again.sequence || p.Sequence < 0:
		c.close(CloseInvalidSequence, "Invalid seq.")
		return
	}
	if again.conn != nil { // its break was not noticed
		again.conn.session = nil
		again.conn.drop()
	}
	c.s.gateway.stats.Resumed++
	c.session, again.conn = again, c
	for _, e := range again.log {
		if e.sequence > p.Sequence {
			c.queue(frame{body: e.body, zip: again.zip})
		}
	}
	again.send("RESUMED", map[string]any{})
}

// dispatch sends an event to a session. The lock is held.
func (s *Server) dispatch(n *session, name string, d any) {
	data, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("discord: encode event: %v", err)) // the fake's own types
	}
	s.Emit(event{to: n, name: name, data: data})
}

// push sends an event, some times with the same number. Numbers increase in the order of sending, as Discord's
// do: a client that resumes in between misses nothing.
func (s *Server) push(e event, times int) {
	e.sent = e.to.send(e.name, e.data)
	for range times - 1 {
		e.to.queue(e.sent)
	}
	s.Delivered(e)
	s.Notify()
}

// pushAgain sends events again, with their old numbers.
func (s *Server) pushAgain(events []event) {
	for _, e := range events {
		e.to.queue(e.sent)
	}
	s.Notify()
}

// send gives an event the next number, keeps it for replay, and queues it if a client is connected.
func (n *session) send(name string, d any) frame {
	n.sequence++
	e := sentEvent{sequence: n.sequence, body: payload(opDispatch, d, n.sequence, name)}
	n.log = append(n.log, e)
	if extra := len(n.log) - keptEvents; extra > 0 {
		n.log = slices.Delete(n.log, 0, extra)
	}
	f := frame{body: e.body, zip: n.zip}
	n.queue(f)
	return f
}

func (n *session) queue(f frame) {
	if n.conn != nil {
		n.conn.queue(f)
	}
}

// emit sends an event to all sessions with the intent. The lock is held.
func (s *Server) emit(need Intent, name string, d any) {
	s.emitFor(need, name, func(Intent) any { return d })
}

func (s *Server) emitFor(need Intent, name string, d func(Intent) any) {
	for _, n := range s.gateway.sessions {
		if n.intents&need == need {
			s.dispatch(n, name, d(n.intents))
		}
	}
	s.Notify()
}

// emitOf sends an event of a channel, if the bot sees and hears it.
func (s *Server) emitOf(ch *channel, need Intent, name string, fields map[string]any) {
	fields["channel_id"] = ch.info.ID
	if ch.guild != nil {
		fields["guild_id"] = ch.guild.id
	}
	if s.sees(ch) && s.hears(ch) {
		s.emit(need, name, fields)
	}
	s.Notify()
}

// emitMessage sends an event of a message, if the bot sees the channel.
func (s *Server) emitMessage(name string, ch *channel, m *Message) {
	if s.sees(ch) && !s.hears(ch) && mentions(*m, s.me.ID) {
		s.enter(ch, s.me)
	}
	if !s.sees(ch) || !s.hears(ch) {
		s.Notify()
		return
	}
	shown := s.inEvent(ch, m)
	s.emitFor(ch.intent(GuildMessages, DirectMessages), name, func(has Intent) any {
		return s.visible(shown, ch.guild != nil, has)
	})
}

// Intent is a set of kinds of events.
type Intent uint64

// The intents.
const (
	Guilds                 Intent = 1 << 0
	GuildMembers           Intent = 1 << 1 // privileged
	GuildPresences         Intent = 1 << 8 // privileged
	GuildMessages          Intent = 1 << 9
	GuildMessageReactions  Intent = 1 << 10
	DirectMessages         Intent = 1 << 12
	DirectMessageReactions Intent = 1 << 13
	MessageContent         Intent = 1 << 15 // privileged
	GuildMessagePolls      Intent = 1 << 24
	DirectMessagePolls     Intent = 1 << 25

	// allIntents are the valid ones: bits 17 to 19, 22 and 23 are not.
	allIntents Intent = 1<<17 - 1 | 1<<20 | 1<<21 | GuildMessagePolls | DirectMessagePolls
	privileged        = GuildMembers | GuildPresences | MessageContent
)

// intent is the one for events of a channel.
func (ch *channel) intent(inGuild, direct Intent) Intent {
	if ch.guild == nil {
		return direct
	}
	return inGuild
}

// visible is a message as a client with these intents receives it. Without MessageContent, messages
// of others in guilds are empty unless they mention the bot.
func (s *Server) visible(m Message, inGuild bool, intents Intent) Message {
	if !inGuild || intents&MessageContent != 0 || m.Author.ID == s.me.ID || mentions(m, s.me.ID) {
		return m
	}
	m.Content, m.Embeds, m.Attachments, m.Poll, m.Snapshots = "", []Embed{}, []Attachment{}, nil, nil
	return m
}

func mentions(m Message, user string) bool {
	for _, mentioned := range m.Mentions {
		if mentioned.ID == user {
			return true
		}
	}
	return false
}
