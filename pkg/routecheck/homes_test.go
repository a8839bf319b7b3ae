package routecheck_test

import (
	"context"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
)

// by is a route for a sender of any chat, at the top of a table.
func by(sender, target string) msg.Route {
	return msg.Route{Seq: -1, Match: "sender=" + sender, Target: target}
}

func TestHomes_RoutesBySenderOrVerb_MakeNoChatTheirs(t *testing.T) {
	t.Parallel()
	groups := []msg.Group{{Folder: "main"}, {Folder: "ops"}}
	for name, tc := range map[string]struct {
		table []msg.Route
		chat  msg.Chat
		user  string
		home  string
	}{
		"a chat of others":               {[]msg.Route{by("telegram:42", "ops"), {Match: "platform=telegram", Target: "main"}}, msg.Chat{JID: "telegram:77"}, "telegram:77", "main"},
		"a chat without a route":         {[]msg.Route{by("telegram:42", "ops")}, msg.Chat{JID: "telegram:-1"}, "", ""},
		"the sender's direct message":    {[]msg.Route{by("telegram:42", "ops"), {Match: "platform=telegram", Target: "main"}}, msg.Chat{JID: "telegram:42"}, "telegram:42", "ops"},
		"a verb of any chat":             {[]msg.Route{{Match: "verb=mention", Target: "main"}}, msg.Chat{JID: "telegram:-1"}, "", ""},
		"a verb of the chat":             {[]msg.Route{{Match: "chat_jid=telegram:-1 verb=mention", Target: "main"}, {Target: "builtin:drop"}}, msg.Chat{JID: "telegram:-1"}, "", "main"},
		"a sender of the chat":           {[]msg.Route{{Match: "room=-1 sender=telegram:42", Target: "main"}}, msg.Chat{JID: "telegram:-1"}, "", "main"},
		"a verb of chats of a kind":      {[]msg.Route{{Match: "chat_jid=telegram:-* verb=mention", Target: "main"}}, msg.Chat{JID: "telegram:-1"}, "", ""},
		"a verb after a drop":            {[]msg.Route{{Match: "chat_jid=telegram:-1", Target: "builtin:drop"}, {Match: "chat_jid=telegram:-1 verb=mention", Target: "main"}}, msg.Chat{JID: "telegram:-1"}, "", ""},
		"a group that is not registered": {[]msg.Route{{Match: "chat_jid=telegram:-1", Target: "gone"}, {Match: "platform=telegram", Target: "main"}}, msg.Chat{JID: "telegram:-1"}, "", "main"},
		"a pin elsewhere":                {[]msg.Route{{Match: "chat_jid=telegram:-1", Target: "main"}}, msg.Chat{JID: "telegram:-1", StickyGroup: "ops"}, "", "ops"},
	} {
		homes := routecheck.NewHomes(tc.table, groups)
		if got := of(t, homes, &tc.chat, tc.user); got != tc.home {
			t.Errorf("%s: home is %q, want %q", name, got, tc.home)
		}
		if tc.chat.StickyGroup == "ops" && homes.Leads(&tc.chat, "main") {
			t.Errorf("%s: it leads past its pin", name)
		}
	}
}

func TestHomes_HomeAndLeads(t *testing.T) {
	t.Parallel()
	table := []msg.Route{
		{ID: 1, Match: "chat_jid=telegram:-1 verb=mention", Target: "main"},
		{ID: 2, Match: "chat_jid=telegram:-1", Target: "main#observe"},
		{ID: 3, Match: "sender=slack:U1", Target: "ops"},
		{ID: 4, Match: "chat_jid=slack:C1", Target: "builtin:drop"},
		{ID: 5, Match: "platform=slack", Target: "main"},
		{ID: 6, Match: "platform=discord", Target: "gone"},
	}
	groups := []msg.Group{{Folder: "main"}, {Folder: "ops"}}
	homes := routecheck.NewHomes(table, groups)
	for name, tc := range map[string]struct {
		chat  msg.Chat
		home  string
		leads map[string]bool
	}{
		"approved group chat":          {msg.Chat{JID: "telegram:-1"}, "main", map[string]bool{"main": true, "ops": false}},
		"no route":                     {msg.Chat{JID: "telegram:-2"}, "", map[string]bool{"main": false, "ops": true}}, // by its sender
		"ignored":                      {msg.Chat{JID: "slack:C1"}, "", map[string]bool{"main": false, "ops": true}},
		"route of a platform":          {msg.Chat{JID: "slack:C2"}, "main", map[string]bool{"main": true, "ops": true}},
		"group that is not registered": {msg.Chat{JID: "discord:1"}, "", map[string]bool{"gone": false}},
		"pinned":                       {msg.Chat{JID: "telegram:-2", StickyGroup: "ops"}, "ops", map[string]bool{"ops": true, "main": false}},
		"web chat":                     {msg.Chat{JID: "web:main"}, "main", map[string]bool{"main": true, "ops": false}},
		"web chat without a group":     {msg.Chat{JID: "web:gone"}, "", map[string]bool{"main": false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := of(t, homes, &tc.chat, ""); got != tc.home {
				t.Errorf("home is %q, want %q", got, tc.home)
			}
			for folder, want := range tc.leads {
				if got := homes.Leads(&tc.chat, folder); got != want {
					t.Errorf("leads to %s: %t, want %t", folder, got, want)
				}
			}
		})
	}
}

// history has the last user of each chat, and no answers.
type history string

func (user history) LastUser(context.Context, string) (int64, string, error) {
	return 1, string(user), nil
}
func (history) LastHome(context.Context, string) (string, error) { return "", nil }

func of(t *testing.T, homes *routecheck.Homes, chat *msg.Chat, user string) string {
	t.Helper()
	if user != "" {
		chat.Kind = msg.ChatDM
	}
	home, err := homes.Of(t.Context(), history(user), chat)
	if err != nil {
		t.Fatal(err)
	}
	return home
}
