package discord

import "net/http"

// The routes of the API by their names in the documentation, as in Fault and Call.
const (
	GetCurrentUser       = "GET /users/@me"
	GetCurrentUserGuilds = "GET /users/@me/guilds"
	GetUser              = "GET /users/{user}"
	CreateDM             = "POST /users/@me/channels"
	GetApplication       = "GET /applications/@me"
	GetOAuth2Application = "GET /oauth2/applications/@me"
	GetGateway           = "GET /gateway"
	GetGatewayBot        = "GET /gateway/bot"

	GetChannel     = "GET /channels/{channel}"
	GetMessages    = "GET /channels/{channel}/messages"
	GetMessage     = "GET /channels/{channel}/messages/{message}"
	CreateMessage  = "POST /channels/{channel}/messages"
	EditMessage    = "PATCH /channels/{channel}/messages/{message}"
	DeleteMessage  = "DELETE /channels/{channel}/messages/{message}"
	CreateReaction = "PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me"
	DeleteReaction = "DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me"
	TriggerTyping  = "POST /channels/{channel}/typing"
	EndPoll        = "POST /channels/{channel}/polls/{message}/expire"
	GetVoters      = "GET /channels/{channel}/polls/{message}/answers/{answer}"

	StartThreadFromMessage = "POST /channels/{channel}/messages/{message}/threads"
	StartThread            = "POST /channels/{channel}/threads"
	ListThreadMembers      = "GET /channels/{channel}/thread-members"
	JoinThread             = "PUT /channels/{channel}/thread-members/@me"
	LeaveThread            = "DELETE /channels/{channel}/thread-members/@me"

	GetGuild         = "GET /guilds/{guild}"
	GetGuildChannels = "GET /guilds/{guild}/channels"
	GetActiveThreads = "GET /guilds/{guild}/threads/active"
	GetMember        = "GET /guilds/{guild}/members/{user}"

	GetCommands       = "GET /applications/{application}/commands"
	OverwriteCommands = "PUT /applications/{application}/commands"
	AnswerInteraction = "POST /interactions/{interaction}/{token}/callback"

	// Connect opens a connection of the gateway, and Download loads an attachment. Their paths
	// have no version.
	Connect  = "GET /gateway/{$}"
	Download = "GET /attachments/{channel}/{attachment}/{name}"
)

// route is one route of the API. do runs under the server's lock; its result is a JSON answer,
// nil for 204.
type route struct {
	name  string
	token bool // it requires the bot's token
	do    func(*request) (any, error)
}

func (s *Server) routeTable() http.Handler {
	mux := http.NewServeMux()
	for name, do := range map[string]func(*request) (any, error){
		GetCurrentUser: s.getCurrentUser, GetCurrentUserGuilds: s.getCurrentUserGuilds, GetUser: s.getUser, CreateDM: s.createDM,
		GetApplication: s.getApplication, GetOAuth2Application: s.getApplication, GetGatewayBot: s.getGatewayBot,

		GetChannel: s.getChannel, GetMessages: s.getMessages, GetMessage: s.getMessage, CreateMessage: s.createMessage,
		EditMessage: s.editMessage, DeleteMessage: s.deleteMessage, CreateReaction: s.createReaction,
		DeleteReaction: s.deleteReaction, TriggerTyping: s.triggerTyping, EndPoll: s.endPoll, GetVoters: s.getVoters,

		StartThreadFromMessage: s.startThreadFromMessage, StartThread: s.startThread, ListThreadMembers: s.listThreadMembers,
		JoinThread: s.joinThread, LeaveThread: s.leaveThread,

		GetGuild: s.getGuild, GetGuildChannels: s.getGuildChannels, GetActiveThreads: s.getActiveThreads, GetMember: s.getMember,
		GetCommands: s.getCommands, OverwriteCommands: s.overwriteCommands,
	} {
		mux.Handle(name, s.serving(route{name: name, token: true, do: do}))
	}
	mux.Handle(GetGateway, s.serving(route{name: GetGateway, do: s.getGateway}))
	mux.Handle(AnswerInteraction, s.serving(route{name: AnswerInteraction, do: s.answerInteraction}))
	lost := func(w http.ResponseWriter, _ *http.Request) { writeError(w, noRoute()) }
	mux.HandleFunc("/", lost)

	all := http.NewServeMux()
	for _, version := range []string{"/api/v9", "/api/v10"} {
		all.Handle(version+"/", http.StripPrefix(version, mux))
	}
	all.HandleFunc("GET /gateway", s.connect)
	all.HandleFunc(Connect, s.connect)
	all.HandleFunc(Download, s.download)
	all.HandleFunc("/", lost)
	return all
}

func (s *Server) serving(r route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { s.call(w, req, r) })
}

func (s *Server) getCurrentUser(*request) (any, error) { return s.me, nil }

func (s *Server) getUser(q *request) (any, error) {
	id, err := q.id("user")
	if err != nil {
		return nil, err
	}
	user, known := s.users[id]
	if !known {
		return nil, unknown(10013, "User")
	}
	return user, nil
}

func (s *Server) getCurrentUserGuilds(*request) (any, error) {
	all := []map[string]any{}
	for _, g := range s.sortedGuilds() {
		if g.member(s.me.ID) != nil {
			all = append(all, map[string]any{
				"id": g.id, "name": g.name, "icon": nil, "owner": false, "permissions": everyonePermissions.String(), "features": []string{},
			})
		}
	}
	return all, nil
}

// createDM opens the private channel with a user.
func (s *Server) createDM(q *request) (any, error) {
	var body struct {
		Recipient string `json:"recipient_id"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	if _, ok := snowflake(body.Recipient); !ok {
		return nil, badSnowflake("recipient_id", body.Recipient)
	}
	user, known := s.users[body.Recipient]
	switch {
	case !known:
		return nil, unknown(10013, "User")
	case user.ID == s.me.ID:
		return nil, refuse(http.StatusBadRequest, 50033, "Invalid Recipient(s)")
	}
	return s.private(user).snapshot(s), nil
}

// The flags of an application with privileged intents, in fewer than a hundred guilds.
const (
	presenceLimited = 1 << 13
	membersLimited  = 1 << 15
	contentLimited  = 1 << 19
)

func (s *Server) applicationFlags() (flags int) {
	for intent, flag := range map[Intent]int{
		GuildPresences: presenceLimited, GuildMembers: membersLimited, MessageContent: contentLimited,
	} {
		if s.denied&intent == 0 {
			flags |= flag
		}
	}
	return flags
}

func (s *Server) getApplication(*request) (any, error) {
	return map[string]any{
		"id": s.me.ID, "name": s.me.Name(), "icon": nil, "description": "", "bot_public": true, "bot_require_code_grant": false,
		"verify_key": "", "flags": s.applicationFlags(), "bot": s.me, "approximate_guild_count": len(s.guilds),
	}, nil
}

// gatewayURL is on the host of the request.
func gatewayURL(host string) string { return "ws://" + host + "/gateway" }

func (s *Server) getGateway(q *request) (any, error) {
	return map[string]any{"url": gatewayURL(q.host)}, nil
}

func (s *Server) getGatewayBot(q *request) (any, error) {
	return map[string]any{"url": gatewayURL(q.host), "shards": 1, "session_start_limit": map[string]int{
		"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 1,
	}}, nil
}
