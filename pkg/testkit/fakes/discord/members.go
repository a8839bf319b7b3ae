package discord

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The documented limits of the members of a guild.
const (
	maxChunk       = 1000 // members of one event
	maxQueried     = 100
	maxChunkNonce  = 32 // bytes; a longer one is ignored
	allMembersWait = 30 * time.Second
	maxMembersPage = 1000
	maxNick        = 32
)

// membersRequest is the data of the gateway's request for members.
type membersRequest struct {
	GuildID   string          `json:"guild_id"`
	Query     *string         `json:"query"`
	Limit     int             `json:"limit"`
	Presences bool            `json:"presences"`
	UserIDs   json.RawMessage `json:"user_ids"`
	Nonce     string          `json:"nonce"`
}

// users are the ids asked for, one or a list.
func (r *membersRequest) users() (ids []string, err error) {
	if len(r.UserIDs) == 0 || string(r.UserIDs) == "null" {
		return nil, nil
	}
	var one string
	if json.Unmarshal(r.UserIDs, &one) == nil {
		return []string{one}, nil
	}
	err = json.Unmarshal(r.UserIDs, &ids)
	return ids, err
}

// requestMembers answers with events. As on Discord there is no answer about a guild that the bot is not in, and none
// with all members without the intent.
func (c *conn) requestMembers(d json.RawMessage) {
	var r membersRequest
	err := json.Unmarshal(d, &r)
	ids, bad := r.users()
	if err != nil || bad != nil || r.Query == nil && ids == nil {
		c.close(CloseDecodeError, "Error while decoding payload.")
		return
	}
	if len(r.Nonce) > maxChunkNonce {
		r.Nonce = ""
	}
	g := c.s.guilds[r.GuildID]
	if g == nil || g.member(c.s.me.ID) == nil {
		return
	}
	answer := map[string]any{"guild_id": g.id}
	if r.Nonce != "" {
		answer["nonce"] = r.Nonce
	}
	if r.Presences {
		answer["presences"] = []any{}
	}
	if ids != nil {
		members, unknown := g.byIDs(ids[:min(len(ids), maxQueried)])
		answer["not_found"] = unknown
		c.s.sendMembers(c.session, answer, members)
		return
	}
	all := *r.Query == "" && r.Limit == 0
	if all && c.session.intents&GuildMembers == 0 || all && !c.mayAskForAll(g, r.Nonce) {
		return
	}
	members := g.byPrefix(*r.Query)
	if !all {
		members = members[:min(len(members), max(r.Limit, 1), maxQueried)]
	}
	c.s.sendMembers(c.session, answer, members)
}

// mayAskForAll reports whether a session may ask for all members of a guild once more, and tells the client if not.
func (c *conn) mayAskForAll(g *guild, nonce string) bool {
	now, n := c.s.clock(), c.session
	if wait := allMembersWait - now.Sub(n.askedAll[g.id]); c.s.rates != nil && wait > 0 {
		c.s.dispatch(n, "RATE_LIMITED", map[string]any{
			"opcode": opMembers, "retry_after": wait.Seconds(),
			"meta": map[string]any{"guild_id": g.id, "nonce": nonce},
		})
		return false
	}
	if n.askedAll == nil {
		n.askedAll = map[string]time.Time{}
	}
	n.askedAll[g.id] = now
	return true
}

// sendMembers sends members, in at least one event.
func (s *Server) sendMembers(n *session, answer map[string]any, members []Member) {
	count := max(1, (len(members)+maxChunk-1)/maxChunk)
	for i := range count {
		answer["chunk_index"], answer["chunk_count"] = i, count
		answer["members"] = members[i*maxChunk : min((i+1)*maxChunk, len(members))]
		s.dispatch(n, "GUILD_MEMBERS_CHUNK", answer)
	}
}

// sorted are copies of the members of a guild, by id.
func (g *guild) sorted() []Member {
	all := []Member{}
	for _, m := range g.members {
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Member) int { return compareIDs(a.User.ID, b.User.ID) })
	return all
}

func (g *guild) byIDs(ids []string) (members []Member, unknown []string) {
	members, unknown = []Member{}, []string{}
	for _, id := range ids {
		if m := g.member(id); m != nil {
			members = append(members, *m)
		} else {
			unknown = append(unknown, id)
		}
	}
	return members, unknown
}

// byPrefix are the members with a name that begins with a text.
func (g *guild) byPrefix(text string) []Member {
	text = strings.ToLower(text)
	return slices.DeleteFunc(g.sorted(), func(m Member) bool {
		return !strings.HasPrefix(strings.ToLower(m.User.Username), text) &&
			!strings.HasPrefix(strings.ToLower(string(m.User.GlobalName)), text) &&
			!strings.HasPrefix(strings.ToLower(string(m.Nick)), text)
	})
}

// member is the member of a request.
func (q *request) member(g *guild) (*Member, error) {
	id, err := q.id("user")
	if err != nil {
		return nil, err
	}
	m := g.member(id)
	if m == nil {
		return nil, unknown(10007, "Member")
	}
	return m, nil
}

func (s *Server) getMember(q *request) (any, error) {
	g, err := s.guildOf(q)
	if err != nil {
		return nil, err
	}
	m, err := q.member(g)
	if id := q.path("user"); err != nil {
		if _, ok := snowflake(id); ok && s.users[id].ID == "" {
			err = unknown(10013, "User")
		}
		return nil, err
	}
	return *m, nil
}

// listMembers lists members by id; it needs the privileged intent.
func (s *Server) listMembers(q *request) (any, error) {
	g, err := s.guildOf(q)
	if err != nil {
		return nil, err
	}
	limit, err := q.number("limit", 1, 1, maxMembersPage)
	if err != nil {
		return nil, err
	}
	after := q.query.Get("after")
	if _, ok := snowflake(after); after != "" && !ok {
		return nil, badSnowflake("after", after)
	}
	if s.denied&GuildMembers != 0 {
		return nil, missingAccess()
	}
	all := slices.DeleteFunc(g.sorted(), func(m Member) bool {
		return after != "" &&
			compareIDs(m.User.ID, after) <= 0
	})
	return all[:min(limit, len(all))], nil
}

func (s *Server) searchMembers(q *request) (any, error) {
	g, err := s.guildOf(q)
	if err != nil {
		return nil, err
	}
	limit, err := q.number("limit", 1, 1, maxMembersPage)
	switch {
	case err != nil:
		return nil, err
	case q.query.Get("query") == "":
		return nil, required("query")
	}
	found := g.byPrefix(q.query.Get("query"))
	return found[:min(limit, len(found))], nil
}

// modifyOwnMember changes the name of the bot in a guild.
func (s *Server) modifyOwnMember(q *request) (any, error) {
	g, err := s.guildOf(q)
	if err != nil {
		return nil, err
	}
	var body struct {
		Nick *string `json:"nick"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	m := g.member(s.me.ID)
	if body.Nick != nil {
		if utf8.RuneCountInString(*body.Nick) > maxNick {
			return nil, invalid("nick", "BASE_TYPE_BAD_LENGTH", fmt.Sprintf("Must be %d or fewer in length.", maxNick))
		}
		m.Nick = Nullable(*body.Nick)
		s.memberChanged(g, m)
	}
	return *m, nil
}
