package pages_test

import (
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

func chatSamples() []sample {
	return []sample{
		{name: "chatlist", template: "chatlist.html", section: "/chats", data: sampleChatList},
		{name: "no-chatlist", template: "chatlist.html", section: "/chats", data: func(now int64) any { return pages.ChatList{Now: now} }},
		{name: "chatlist-searched", template: "chatlist.html", section: "/chats", data: func(now int64) any {
			return pages.ChatList{Now: now, Text: "no such chat", Platforms: []string{"telegram"}, Platform: "telegram", Bounded: true, Next: "/chats?before=5~telegram%3A-1"}
		}},
		{name: "engagement", template: "engagement.html", section: "/engagement", data: sampleEngagement},
		{name: "no-engagement", template: "engagement.html", section: "/engagement", data: func(now int64) any { return pages.List[rows.OpenWindow]{Now: now} }},
		{name: "access", template: "access.html", section: "/access", data: sampleAccess},
		{name: "no-access", template: "access.html", section: "/access", data: func(int64) any { return pages.Access{} }},
		{name: "access-refused", template: "access.html", section: "/access", data: func(int64) any {
			return pages.Access{Chat: "engineering", Sender: "ada", Problem: "sender \"ada\" is not platform:user"}
		}},
	}
}

func sampleChatList(now int64) any {
	return pages.ChatList{
		Now: now, Platforms: []string{"discord", "slack", "telegram", "telegram+work", "web"}, Next: "/chats?before=5~telegram%3A-1",
		Lines: []pages.ChatRow{
			{SeenChat: rows.SeenChat{Chat: msg.Chat{JID: "telegram:-1001234567890", Title: "Engineering: builds, releases and everything that breaks at night", Kind: msg.ChatGroup}, Platform: "telegram", SeenAt: now - 5000},
				Home: "acme/eng", Open: 2, Window: rows.OpenWindow{Engagement: msg.Engagement{Folder: "acme/eng", Until: now + 8*60_000}}, Spend: factrows.Spend{Turns: 12, CostUSD: 3.456}},
			{SeenChat: rows.SeenChat{Chat: msg.Chat{JID: "telegram+work:42", Kind: msg.ChatDM, StickyGroup: "main", StickyTopic: "#deploy"}, Platform: "telegram+work", SeenAt: now - 86_400_000},
				Home: "main", Spend: factrows.Spend{Turns: 1, CostUSD: 0.004}},
			{SeenChat: rows.SeenChat{Chat: msg.Chat{JID: "slack:C0ABC", Title: "ops", Kind: msg.ChatChannel}, Platform: "slack"}},
		},
	}
}

func sampleEngagement(now int64) any {
	return pages.List[rows.OpenWindow]{
		Now: now, Next: "/engagement?until=5&chat=telegram%3A-1&place=",
		Lines: []rows.OpenWindow{
			{Engagement: msg.Engagement{ChatJID: "telegram:-1001234567890", Folder: "acme/eng", At: now - 60_000, Until: now + 30_000}, Title: "Engineering: builds, releases and everything that breaks at night"},
			{Engagement: msg.Engagement{ChatJID: "slack:C0ABC", Place: "1700000000.000100", Folder: "main", At: now - 3_600_000, Until: now + 9*60_000}, Title: "ops"},
		},
	}
}

func sampleAccess(now int64) any {
	return pages.Access{
		Operators: pages.Operators{
			Named: []string{"telegram:4211223344"}, Now: now,
			Made: []pages.MadeOperator{{Shown: "slack:U0AB12CD3", MadeOperator: store.MadeOperator{Sender: "slack:U0AB12CD3", By: "web:operator", At: now - 86_400_000}}},
		},
		Chat: "telegram:-1001234567890", Sender: "telegram:4211223344", Chats: []rows.ChatTitle{{JID: "telegram:-1001234567890", Title: "Engineering"}, {JID: "slack:C0ABC"}},
		Titles: pages.Titles{"telegram:-1001234567890": "Engineering"},
		Answer: &routeapi.Access{
			ChatJID: "telegram:-1001234567890", Kind: msg.ChatGroup, Sender: "telegram:4211223344",
			Home: &routeapi.HomeAccess{Folder: "acme/eng", Admitted: true, Reaches: []string{"acme", "acme/ops"}},
			Rows: []routeapi.RowAccess{
				{Verb: msg.VerbMessage, Admitted: true, Answer: routeapi.Answer{Trace: []string{"the chat is pinned to no group", "route 3 (chat_jid=telegram:-1001234567890 verb=mention) does not match: verb is message", "no route matches"}}},
				{Verb: msg.VerbMention, Admitted: true, Rate: 20, Answer: routeapi.Answer{Action: routeapi.Trigger, Folder: "acme/eng", Trace: []string{"route 3 matches"}}},
				{Verb: msg.VerbReply, Admitted: true, Answer: routeapi.Answer{Action: routeapi.Observe, Folder: "acme/eng"}},
			},
		},
	}
}
