package routecheck_test

import (
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
)

func TestChats_HomeAndLeads(t *testing.T) {
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
	chats := routecheck.NewChats(table, groups)
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
			if got := chats.Home(&tc.chat); got != tc.home {
				t.Errorf("home is %q, want %q", got, tc.home)
			}
			for folder, want := range tc.leads {
				if got := chats.Leads(&tc.chat, folder); got != want {
					t.Errorf("leads to %s: %t, want %t", folder, got, want)
				}
			}
		})
	}
}
