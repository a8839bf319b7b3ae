package discord

import (
	"net/http"
	"strings"
)

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
	ModifyChannel  = "PATCH /channels/{channel}"
	DeleteChannel  = "DELETE /channels/{channel}"
	GetMessages    = "GET /channels/{channel}/messages"
	GetMessage     = "GET /channels/{channel}/messages/{message}"
	CreateMessage  = "POST /channels/{channel}/messages"
	EditMessage    = "PATCH /channels/{channel}/messages/{message}"
	DeleteMessage  = "DELETE /channels/{channel}/messages/{message}"
	CreateReaction = "PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me"
	DeleteReaction = "DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me"
	GetReactions   = "GET /channels/{channel}/messages/{message}/reactions/{emoji}"
	BulkDelete     = "POST /channels/{channel}/messages/bulk-delete"

	DeleteUserReaction   = "DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/{user}"
	DeleteEmojiReactions = "DELETE /channels/{channel}/messages/{message}/reactions/{emoji}"
	DeleteAllReactions   = "DELETE /channels/{channel}/messages/{message}/reactions"

	GetPins      = "GET /channels/{channel}/messages/pins"
	PinMessage   = "PUT /channels/{channel}/messages/pins/{message}"
	UnpinMessage = "DELETE /channels/{channel}/messages/pins/{message}"

	// The routes of pins before 2025.
	GetFirstPins    = "GET /channels/{channel}/pins"
	OldPinMessage   = "PUT /channels/{channel}/pins/{message}"
	OldUnpinMessage = "DELETE /channels/{channel}/pins/{message}"

	TriggerTyping = "POST /channels/{channel}/typing"
	EndPoll       = "POST /channels/{channel}/polls/{message}/expire"
	GetVoters     = "GET /channels/{channel}/polls/{message}/answers/{answer}"

	StartThreadFromMessage = "POST /channels/{channel}/messages/{message}/threads"
	StartThread            = "POST /channels/{channel}/threads"
	ListThreadMembers      = "GET /channels/{channel}/thread-members"
	JoinThread             = "PUT /channels/{channel}/thread-members/@me"
	LeaveThread            = "DELETE /channels/{channel}/thread-members/@me"
	GetThreadMember        = "GET /channels/{channel}/thread-members/{user}"
	AddThreadMember        = "PUT /channels/{channel}/thread-members/{user}"
	RemoveThreadMember     = "DELETE /channels/{channel}/thread-members/{user}"

	ListArchivedThreads        = "GET /channels/{channel}/threads/archived/public"
	ListPrivateArchivedThreads = "GET /channels/{channel}/threads/archived/private"
	ListJoinedArchivedThreads  = "GET /channels/{channel}/users/@me/threads/archived/private"

	GetGuild         = "GET /guilds/{guild}"
	GetGuildChannels = "GET /guilds/{guild}/channels"
	CreateChannel    = "POST /guilds/{guild}/channels"
	GetActiveThreads = "GET /guilds/{guild}/threads/active"
	GetMember        = "GET /guilds/{guild}/members/{user}"
	ListMembers      = "GET /guilds/{guild}/members"
	SearchMembers    = "GET /guilds/{guild}/members/search"
	ModifyOwnMember  = "PATCH /guilds/{guild}/members/@me"
	GetRoles         = "GET /guilds/{guild}/roles"
	GetRole          = "GET /guilds/{guild}/roles/{role}"
	CreateRole       = "POST /guilds/{guild}/roles"
	ModifyRole       = "PATCH /guilds/{guild}/roles/{role}"
	DeleteRole       = "DELETE /guilds/{guild}/roles/{role}"
	AddMemberRole    = "PUT /guilds/{guild}/members/{user}/roles/{role}"
	RemoveMemberRole = "DELETE /guilds/{guild}/members/{user}/roles/{role}"

	GetCommands       = "GET /applications/{application}/commands"
	OverwriteCommands = "PUT /applications/{application}/commands"
	CreateCommand     = "POST /applications/{application}/commands"
	EditCommand       = "PATCH /applications/{application}/commands/{command}"
	DeleteCommand     = "DELETE /applications/{application}/commands/{command}"
	GetCommand        = "GET /applications/{application}/commands/{command}"

	GetGuildCommands       = "GET /applications/{application}/guilds/{guild}/commands"
	OverwriteGuildCommands = "PUT /applications/{application}/guilds/{guild}/commands"
	CreateGuildCommand     = "POST /applications/{application}/guilds/{guild}/commands"
	GetGuildCommand        = "GET /applications/{application}/guilds/{guild}/commands/{command}"
	EditGuildCommand       = "PATCH /applications/{application}/guilds/{guild}/commands/{command}"
	DeleteGuildCommand     = "DELETE /applications/{application}/guilds/{guild}/commands/{command}"

	AnswerInteraction = "POST /interactions/{interaction}/{token}/callback"

	CreateWebhook        = "POST /channels/{channel}/webhooks"
	GetChannelWebhooks   = "GET /channels/{channel}/webhooks"
	GetGuildWebhooks     = "GET /guilds/{guild}/webhooks"
	GetWebhook           = "GET /webhooks/{webhook}"
	ModifyWebhook        = "PATCH /webhooks/{webhook}"
	DeleteWebhook        = "DELETE /webhooks/{webhook}"
	GetWebhookByToken    = "GET /webhooks/{webhook}/{token}"
	ModifyWebhookByToken = "PATCH /webhooks/{webhook}/{token}"
	DeleteWebhookByToken = "DELETE /webhooks/{webhook}/{token}"

	// The routes of messages of a webhook, and of an interaction: then the webhook is the application.
	ExecuteWebhook       = "POST /webhooks/{webhook}/{token}"
	GetWebhookMessage    = "GET /webhooks/{webhook}/{token}/messages/{message}"
	EditWebhookMessage   = "PATCH /webhooks/{webhook}/{token}/messages/{message}"
	DeleteWebhookMessage = "DELETE /webhooks/{webhook}/{token}/messages/{message}"

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

// handlers are what carries the calls of routes out, by name.
type handlers map[string]func(*request) (any, error)

// channelRoutes are those of channels, messages and threads.
func (s *Server) channelRoutes() handlers {
	return handlers{
		GetChannel: s.getChannel, ModifyChannel: s.modifyChannel, DeleteChannel: s.deleteChannel,
		TriggerTyping: s.triggerTyping,
		GetMessages:   s.getMessages, GetMessage: s.getMessage, CreateMessage: s.createMessage,
		EditMessage:   s.editMessage,
		DeleteMessage: s.deleteMessage, BulkDelete: s.bulkDelete, EndPoll: s.endPoll, GetVoters: s.getVoters,

		CreateReaction: s.createReaction, DeleteReaction: s.deleteReaction, GetReactions: s.getReactions,
		DeleteUserReaction: s.deleteUserReaction, DeleteEmojiReactions: s.deleteEmojiReactions,
		DeleteAllReactions: s.deleteAllReactions,

		GetPins: s.getPins, PinMessage: s.pinMessage, UnpinMessage: s.unpinMessage,
		GetFirstPins: s.getFirstPins, OldPinMessage: s.pinMessage, OldUnpinMessage: s.unpinMessage,

		StartThreadFromMessage: s.startThreadFromMessage, StartThread: s.startThread,
		ListThreadMembers: s.listThreadMembers,
		GetThreadMember:   s.getThreadMember, AddThreadMember: s.addThreadMember,
		RemoveThreadMember: s.removeThreadMember,
		JoinThread:         s.joinThread, LeaveThread: s.leaveThread, ListArchivedThreads: s.listArchivedThreads,
		ListPrivateArchivedThreads: s.listPrivateArchivedThreads,
		ListJoinedArchivedThreads:  s.listJoinedArchivedThreads,

		CreateWebhook: s.createWebhook, GetChannelWebhooks: s.getChannelWebhooks,
	}
}

// otherRoutes are those of users, guilds, webhooks and commands.
func (s *Server) otherRoutes() handlers {
	return handlers{
		GetCurrentUser: s.getCurrentUser, GetCurrentUserGuilds: s.getCurrentUserGuilds, GetUser: s.getUser,
		CreateDM:       s.createDM,
		GetApplication: s.getApplication, GetOAuth2Application: s.getApplication, GetGatewayBot: s.getGatewayBot,

		GetGuild: s.getGuild, GetGuildChannels: s.getGuildChannels, CreateChannel: s.createChannel,
		GetActiveThreads: s.getActiveThreads,
		GetMember:        s.getMember, ListMembers: s.listMembers, SearchMembers: s.searchMembers,
		ModifyOwnMember: s.modifyOwnMember,
		GetRoles:        s.getRoles, GetRole: s.getRole, CreateRole: s.createRole, ModifyRole: s.modifyRole,
		DeleteRole:    s.deleteRole,
		AddMemberRole: s.addMemberRole, RemoveMemberRole: s.removeMemberRole,

		GetGuildWebhooks: s.getGuildWebhooks, GetWebhook: s.getWebhook, ModifyWebhook: s.modifyWebhook,
		DeleteWebhook: s.deleteWebhook,

		GetCommands: s.getCommands, OverwriteCommands: s.overwriteCommands, CreateCommand: s.createCommand,
		GetCommand: s.getCommand, EditCommand: s.editCommand, DeleteCommand: s.deleteCommand,
		GetGuildCommands: s.getCommands, OverwriteGuildCommands: s.overwriteCommands,
		CreateGuildCommand: s.createCommand,
		GetGuildCommand:    s.getCommand, EditGuildCommand: s.editCommand, DeleteGuildCommand: s.deleteCommand,
	}
}

// openRoutes are those that need no token of the bot. Most have one of their own.
func (s *Server) openRoutes() handlers {
	return handlers{
		GetGateway: s.getGateway, AnswerInteraction: s.answerInteraction, ExecuteWebhook: s.executeWebhook,
		GetWebhookByToken: s.getWebhook, ModifyWebhookByToken: s.modifyWebhook, DeleteWebhookByToken: s.deleteWebhook,
		GetWebhookMessage: s.getWebhookMessage, EditWebhookMessage: s.editWebhookMessage,
		DeleteWebhookMessage: s.deleteWebhookMessage,
	}
}

func (s *Server) routeTable() http.Handler {
	lost := func(w http.ResponseWriter, _ *http.Request) { writeError(w, noRoute()) }
	api := s.api(lost)
	all := http.NewServeMux()
	for _, version := range []string{"/api/v9", "/api/v10"} {
		all.Handle(version+"/", http.StripPrefix(version, api))
	}
	all.HandleFunc("GET /gateway", s.connect)
	all.HandleFunc(Connect, s.connect)
	all.HandleFunc("GET "+resumePath, s.connect)
	all.HandleFunc("GET "+resumePath+"/{$}", s.connect)
	all.HandleFunc(Download, s.download)
	all.HandleFunc("/", lost)
	return all
}

// api serves the routes. Those of pins have a table of their own, since "pins" stands in the place of a message's id.
func (s *Server) api(lost http.HandlerFunc) http.Handler {
	mux, pins := http.NewServeMux(), http.NewServeMux()
	mux.HandleFunc("/", lost)
	pins.HandleFunc("/", lost)
	handle := func(all handlers, token bool) {
		for name, do := range all {
			to := mux
			if strings.Contains(name, "/messages/pins") {
				to = pins
			}
			to.Handle(name, s.serving(route{name: name, token: token, do: do}))
		}
	}
	handle(s.channelRoutes(), true)
	handle(s.otherRoutes(), true)
	handle(s.openRoutes(), false)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if parts := strings.Split(r.URL.Path, "/"); len(parts) > 4 && parts[3] == "messages" && parts[4] == "pins" {
			pins.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
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
				"id": g.id, "name": g.name, "icon": nil, "owner": false, "permissions": g.permissions().String(),
				"features": []string{},
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
		"id": s.me.ID, "name": s.me.Name(), "icon": nil, "description": "", "bot_public": true,
		"bot_require_code_grant": false,
		"verify_key":             "", "flags": s.applicationFlags(), "bot": s.me, "team": nil,
		"owner":                   User{ID: "100", Username: "owner", Discriminator: "0"},
		"approximate_guild_count": len(s.guilds),
	}, nil
}

// gatewayURL is on the host of the request.
func gatewayURL(host string) string { return "ws://" + host + "/gateway" }

// resumePath is where sessions are resumed.
const resumePath = "/gateway/resume"

// resumeURL is the address at which a client is to resume its session.
func resumeURL(host string) string { return "ws://" + host + resumePath }

func (s *Server) getGateway(q *request) (any, error) {
	return map[string]any{"url": gatewayURL(q.host)}, nil
}

func (s *Server) getGatewayBot(q *request) (any, error) {
	left, reset := s.gateway.startsLeft(s.clock())
	return map[string]any{"url": gatewayURL(q.host), "shards": 1, "session_start_limit": map[string]int64{
		"total": maxStarts, "remaining": int64(left), "reset_after": reset.Milliseconds(), "max_concurrency": 1,
	}}, nil
}
