package discord

import "net/http"

// The routes of the API by their names in the documentation, as in Fault and Call.
const (
	GetCurrentUser       = "GET /users/@me"
	GetCurrentUserGuilds = "GET /users/@me/guilds"
	GetApplication       = "GET /applications/@me"
	GetGatewayBot        = "GET /gateway/bot"

	GetChannel     = "GET /channels/{channel}"
	ModifyChannel  = "PATCH /channels/{channel}"
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

	StartThreadFromMessage    = "POST /channels/{channel}/messages/{message}/threads"
	JoinThread                = "PUT /channels/{channel}/thread-members/@me"
	ListArchivedThreads       = "GET /channels/{channel}/threads/archived/public"
	ListJoinedArchivedThreads = "GET /channels/{channel}/users/@me/threads/archived/private"

	GetCommands       = "GET /applications/{application}/commands"
	CreateCommand     = "POST /applications/{application}/commands"
	EditCommand       = "PATCH /applications/{application}/commands/{command}"
	AnswerInteraction = "POST /interactions/{interaction}/{token}/callback"

	// Connect opens a connection of the gateway, and Download loads an attachment. Their paths
	// have no version.
	Connect  = "GET /gateway/{$}"
	Download = "GET /attachments/{channel}/{attachment}/{name}"
)

// route is one route of the API.
type route struct {
	name  string
	token bool // it requires the bot's token
	do    handler
}

// handler carries a call out under the server's lock. Its result is a JSON answer, nil for 204.
type handler func(*request) (any, error)

// channelRoutes are those of channels, messages and threads. The bot must see the channel.
func (s *Server) channelRoutes() map[string]func(*request, *channel) (any, error) {
	return map[string]func(*request, *channel) (any, error){
		GetChannel:    func(_ *request, ch *channel) (any, error) { return ch.snapshot(s), nil },
		ModifyChannel: s.modifyChannel, TriggerTyping: s.triggerTyping,
		GetMessages: s.getMessages, CreateMessage: s.createMessage, JoinThread: s.joinThread,
		ListArchivedThreads: s.listArchivedThreads, ListJoinedArchivedThreads: s.listJoinedArchivedThreads,
	}
}

// messageRoutes are those of a message that exists.
func (s *Server) messageRoutes() map[string]func(*request, *channel, *Message) (any, error) {
	return map[string]func(*request, *channel, *Message) (any, error){
		GetMessage: s.getMessage, EditMessage: s.editMessage, DeleteMessage: s.deleteMessage,
		CreateReaction: s.createReaction, DeleteReaction: s.deleteReaction, EndPoll: s.endPoll, GetVoters: s.getVoters,
		StartThreadFromMessage: s.startThreadFromMessage,
	}
}

// otherRoutes are those of the bot itself.
func (s *Server) otherRoutes() map[string]handler {
	return map[string]handler{
		GetCurrentUser:       func(*request) (any, error) { return s.me, nil },
		GetCurrentUserGuilds: s.getCurrentUserGuilds, GetApplication: s.getApplication, GetGatewayBot: s.getGatewayBot,
		GetCommands: s.getCommands, CreateCommand: s.createCommand, EditCommand: s.editCommand,
	}
}

func (s *Server) routeTable() http.Handler {
	api := http.NewServeMux()
	add := func(name string, token bool, do handler) {
		api.HandleFunc(name, func(w http.ResponseWriter, r *http.Request) { s.call(w, r, route{name, token, do}) })
	}
	for name, do := range s.channelRoutes() {
		add(name, true, func(q *request) (any, error) {
			ch, err := s.readable(q)
			if err != nil {
				return nil, err
			}
			return do(q, ch)
		})
	}
	for name, do := range s.messageRoutes() {
		add(name, true, func(q *request) (any, error) {
			ch, m, err := s.message(q)
			if err != nil {
				return nil, err
			}
			return do(q, ch, m)
		})
	}
	for name, do := range s.otherRoutes() {
		add(name, true, do)
	}
	add(AnswerInteraction, false, s.answerInteraction) // which has a token of its own
	lost := func(w http.ResponseWriter, _ *http.Request) { writeError(w, noRoute()) }
	api.HandleFunc("/", lost)
	all := http.NewServeMux()
	for _, version := range []string{"/api/v9", "/api/v10"} {
		all.Handle(version+"/", http.StripPrefix(version, api))
	}
	for _, path := range []string{"GET /gateway", Connect, "GET " + resumePath, "GET " + resumePath + "/{$}"} {
		all.HandleFunc(path, s.connect)
	}
	all.HandleFunc(Download, s.download)
	all.HandleFunc("/", lost)
	return all
}

func (s *Server) getCurrentUserGuilds(*request) (any, error) {
	all := []map[string]any{}
	for _, g := range s.sortedGuilds() {
		if g.member(s.me.ID) != nil {
			all = append(all, map[string]any{
				"id": g.id, "name": g.name, "icon": nil, "owner": false, "permissions": everyonePermissions.String(),
				"features": []string{},
			})
		}
	}
	return all, nil
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
		"id": s.me.ID, "name": s.me.Name(), "icon": nil, "description": "", "bot_public": true,
		"bot_require_code_grant": false,
		"verify_key":             "", "flags": s.applicationFlags(), "bot": s.me, "team": nil,
		"owner":                   User{ID: "100", Username: "owner", Discriminator: "0"},
		"approximate_guild_count": len(s.guilds),
	}, nil
}

// resumePath is where sessions are resumed.
const resumePath = "/gateway/resume"

func (s *Server) getGatewayBot(q *request) (any, error) {
	left, reset := s.gateway.startsLeft(s.clock())
	return map[string]any{"url": "ws://" + q.host + "/gateway", "shards": 1, "session_start_limit": map[string]int64{
		"total": maxStarts, "remaining": int64(left), "reset_after": reset.Milliseconds(), "max_concurrency": 1,
	}}, nil
}
