package slack

import (
	"fmt"
	"slices"
	"strings"
)

// method is one method of the Web API. do runs under the server's lock.
type method struct {
	name  string
	app   bool   // it takes the app-level token, and not the bot's
	scope string // "" if none is required, or it depends on the conversation
	tier  int    // calls a minute; 0 without a limit
	sends bool   // it counts for the rate limit of posts
	do    func(params) (any, error)
}

func (s *Server) methodTable() map[string]method {
	all := []method{
		{name: "auth.test", tier: special, do: s.authTest},
		{name: "apps.connections.open", app: true, do: s.openConnection},

		{name: "chat.postMessage", scope: "chat:write", sends: true, do: s.postMessage},
		{name: "chat.postEphemeral", tier: tier4, scope: "chat:write", sends: true, do: s.postEphemeral},
		{name: "chat.update", tier: tier3, scope: "chat:write", do: s.updateMessage},
		{name: "chat.delete", tier: tier3, scope: "chat:write", do: s.deleteMessage},

		{name: "chat.startStream", tier: tier2, scope: "chat:write", do: s.startStream},
		{name: "chat.appendStream", tier: tier4, scope: "chat:write", do: s.appendStream},
		{name: "chat.stopStream", tier: tier2, scope: "chat:write", do: s.stopStream},
		{name: "agents.sessions.setStatus", tier: tier3, scope: "chat:write", do: s.setSession},

		{name: "conversations.info", tier: tier3, do: s.conversationInfo},
		{name: "conversations.history", tier: tier3, do: s.history},
		{name: "conversations.replies", tier: tier3, do: s.replies},
		{name: "conversations.list", tier: tier2, do: s.listConversations},
		{name: "users.conversations", tier: tier3, do: s.ownConversations},
		{name: "users.info", tier: tier4, scope: "users:read", do: s.userInfo},
		{name: "bots.info", tier: tier3, scope: "users:read", do: s.botInfo},

		{name: "reactions.add", tier: tier3, scope: "reactions:write", do: s.addReaction},
		{name: "reactions.remove", tier: tier2, scope: "reactions:write", do: s.removeReaction},
		{name: "reactions.get", tier: tier3, scope: "reactions:read", do: s.getReactions},

		{name: "files.getUploadURLExternal", tier: tier4, scope: "files:write", do: s.getUploadURL},
		{name: "files.completeUploadExternal", tier: tier4, scope: "files:write", do: s.completeUpload},
		{name: "files.info", tier: tier4, scope: "files:read", do: s.fileInfo},

		{name: "assistant.threads.setStatus", tier: special, scope: "assistant:write", do: s.setStatus},
	}
	table := map[string]method{}
	for _, m := range all {
		table[m.name] = m
	}
	return table
}

// DefaultScopes are the scopes for all methods and events of the fake. An app that may post to public
// channels without being a member has "chat:write.public" too.
func DefaultScopes() []string {
	return []string{
		"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write",
		"commands", "files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write",
		"metadata.message:read", "mpim:history", "mpim:read", "reactions:read", "reactions:write", "users:read",
	}
}

// fields are those of a JSON object.
type fields map[string]any

// ok makes the fields an answer to a call that succeeded.
func (f fields) ok() fields {
	f["ok"] = true
	return f
}

// authorize validates the token of a request.
func (s *Server) authorize(m method, p params) error {
	switch {
	case p.bearer == "":
		return errorCode("not_authed")
	case s.revoked[p.bearer] != "":
		return errorCode(s.revoked[p.bearer])
	case p.bearer != s.o.BotToken && p.bearer != s.o.AppToken:
		return errorCode("invalid_auth")
	case m.app != (p.bearer == s.o.AppToken):
		return errorCode("not_allowed_token_type")
	case m.scope != "":
		return s.need(m.scope)
	}
	return nil
}

// may reports whether the bot has a scope.
func (s *Server) may(scope string) bool { return slices.Contains(s.o.Scopes, scope) }

// need returns an error if the bot lacks a scope.
func (s *Server) need(scope string) error {
	if s.may(scope) {
		return nil
	}
	return &apiError{code: "missing_scope", needed: scope, provided: strings.Join(s.o.Scopes, ",")}
}

// Revoke makes a token refused with an error of Slack, such as token_revoked or account_inactive,
// and breaks its sockets; "" makes it valid again.
func (s *Server) Revoke(token, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked[token] = reason
	if reason != "" {
		s.breakSockets()
	}
	s.Notify()
}

func (s *Server) authTest(params) (any, error) {
	return fields{"url": s.Base() + "/", "team": DefaultTeam, "team_id": teamID, "user": s.me.Name, "user_id": s.me.ID,
		"bot_id": s.me.BotID, "is_enterprise_install": false}.ok(), nil
}

const teamID = "T0FAKE00000"

// id is a new id in Slack's form.
func (s *Server) id(kind string) string {
	s.ids++
	return fmt.Sprintf("%s0FAKE%05d", kind, s.ids)
}
