package discord

import (
	"net/http"
	"slices"
)

// The routes of the API by their names in the documentation, as in Fault and Call.
const (
	GetCurrentUser       = "GET /users/@me"
	GetCurrentUserGuilds = "GET /users/@me/guilds"
	GetApplication       = "GET /applications/@me"
	GetGatewayBot        = "GET /gateway/bot"

	GetChannel      = "GET /channels/{channel}"
	ModifyChannel   = "PATCH /channels/{channel}"
	DeleteChannel   = "DELETE /channels/{channel}"
	GetMessages     = "GET /channels/{channel}/messages"
	GetMessage      = "GET /channels/{channel}/messages/{message}"
	CreateMessage   = "POST /channels/{channel}/messages"
	EditMessage     = "PATCH /channels/{channel}/messages/{message}"
	DeleteMessage   = "DELETE /channels/{channel}/messages/{message}"
	BulkDelete      = "POST /channels/{channel}/messages/bulk-delete"
	CreateReaction  = "PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me"
	DeleteReaction  = "DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me"
	GetReactions    = "GET /channels/{channel}/messages/{message}/reactions/{emoji}"
	DeleteReactions = "DELETE /channels/{channel}/messages/{message}/reactions"
	PinMessage      = "PUT /channels/{channel}/messages/pins/{message}"
	TriggerTyping   = "POST /channels/{channel}/typing"
	EndPoll         = "POST /channels/{channel}/polls/{message}/expire"
	GetVoters       = "GET /channels/{channel}/polls/{message}/answers/{answer}"

	StartThreadFromMessage    = "POST /channels/{channel}/messages/{message}/threads"
	StartThread               = "POST /channels/{channel}/threads"
	JoinThread                = "PUT /channels/{channel}/thread-members/@me"
	ListArchivedThreads       = "GET /channels/{channel}/threads/archived/public"
	ListJoinedArchivedThreads = "GET /channels/{channel}/users/@me/threads/archived/private"

	GetGuildChannels = "GET /guilds/{guild}/channels"
	CreateChannel    = "POST /guilds/{guild}/channels"
	GetActiveThreads = "GET /guilds/{guild}/threads/active"
	GetMember        = "GET /guilds/{guild}/members/{user}"
	GetRoles         = "GET /guilds/{guild}/roles"
	CreateRole       = "POST /guilds/{guild}/roles"
	ModifyRole       = "PATCH /guilds/{guild}/roles/{role}"
	DeleteRole       = "DELETE /guilds/{guild}/roles/{role}"
	AddMemberRole    = "PUT /guilds/{guild}/members/{user}/roles/{role}"

	GetCommands            = "GET /applications/{application}/commands"
	OverwriteCommands      = "PUT /applications/{application}/commands"
	CreateCommand          = "POST /applications/{application}/commands"
	EditCommand            = "PATCH /applications/{application}/commands/{command}"
	OverwriteGuildCommands = "PUT /applications/{application}/guilds/{guild}/commands"
	AnswerInteraction      = "POST /interactions/{interaction}/{token}/callback"

	CreateWebhook      = "POST /channels/{channel}/webhooks"
	GetChannelWebhooks = "GET /channels/{channel}/webhooks"
	GetGuildWebhooks   = "GET /guilds/{guild}/webhooks"
	DeleteWebhook      = "DELETE /webhooks/{webhook}/{token}"

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
		ModifyChannel: s.modifyChannel, DeleteChannel: s.deleteChannel, TriggerTyping: s.triggerTyping,
		GetMessages: s.getMessages, CreateMessage: s.createMessage, BulkDelete: s.bulkDelete,
		StartThread: s.startThread, JoinThread: s.joinThread,
		ListArchivedThreads: s.listArchivedThreads, ListJoinedArchivedThreads: s.listJoinedArchivedThreads,
		CreateWebhook: s.createWebhook, GetChannelWebhooks: s.getChannelWebhooks,
	}
}

// messageRoutes are those of a message that exists.
func (s *Server) messageRoutes() map[string]func(*request, *channel, *Message) (any, error) {
	return map[string]func(*request, *channel, *Message) (any, error){
		GetMessage: s.getMessage, EditMessage: s.editMessage, DeleteMessage: s.deleteMessage,
		CreateReaction: s.createReaction, DeleteReaction: s.deleteReaction, GetReactions: s.getReactions,
		DeleteReactions: s.deleteReactions, PinMessage: s.pinMessage, EndPoll: s.endPoll, GetVoters: s.getVoters,
		StartThreadFromMessage: s.startThreadFromMessage,
	}
}

// guildRoutes are those of a guild that the bot is in.
func (s *Server) guildRoutes() map[string]func(*request, *guild) (any, error) {
	return map[string]func(*request, *guild) (any, error){
		GetGuildChannels: func(_ *request, g *guild) (any, error) { return s.channelsOf(g, false), nil },
		CreateChannel:    s.createChannel, GetActiveThreads: s.getActiveThreads, GetMember: s.getMember,
		GetRoles:   func(_ *request, g *guild) (any, error) { return slices.Clone(g.roles), nil },
		CreateRole: s.createRole, ModifyRole: s.modifyRole, DeleteRole: s.deleteRole, AddMemberRole: s.addMemberRole,
		GetGuildWebhooks: s.getGuildWebhooks, OverwriteGuildCommands: s.overwriteGuildCommands,
	}
}

// otherRoutes are those of the bot itself.
func (s *Server) otherRoutes() map[string]handler {
	return map[string]handler{
		GetCurrentUser:       func(*request) (any, error) { return s.me, nil },
		GetCurrentUserGuilds: s.getCurrentUserGuilds, GetApplication: s.getApplication, GetGatewayBot: s.getGatewayBot,
		GetCommands: s.getCommands, OverwriteCommands: s.overwriteCommands, CreateCommand: s.createCommand,
		EditCommand: s.editCommand,
	}
}

// openRoutes are those that need no token of the bot: they have one of their own.
func (s *Server) openRoutes() map[string]handler {
	return map[string]handler{
		AnswerInteraction: s.answerInteraction, ExecuteWebhook: s.executeWebhook, DeleteWebhook: s.deleteWebhook,
		GetWebhookMessage: s.getWebhookMessage, EditWebhookMessage: s.editWebhookMessage,
		DeleteWebhookMessage: s.deleteWebhookMessage,
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
	for name, do := range s.guildRoutes() {
		add(name, true, func(q *request) (any, error) {
			g, err := s.guildOf(q)
			if err != nil {
				return nil, err
			}
			return do(q, g)
		})
	}
	for name, do := range s.otherRoutes() {
		add(name, true, do)
	}
	for name, do := range s.openRoutes() {
		add(name, false, do)
	}
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
				"id": g.id, "name": g.name, "icon": nil, "owner": false, "permissions": g.permissions().String(),
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
