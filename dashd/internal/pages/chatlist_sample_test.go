package pages_test

import "arizuko/dashd/internal/pages"

func chatSamples() []sample {
	return []sample{
		{name: "chatlist", template: "chatlist.html", section: "/chats", data: sampleChatList, hostile: hostileChatList},
		{name: "no-chatlist", template: "chatlist.html", section: "/chats", data: func(now int64) any { return pages.ChatList{Now: now} }, hostile: hostileChatList},
		{name: "chatlist-searched", template: "chatlist.html", section: "/chats", data: func(now int64) any {
			return pages.ChatList{Now: now, Text: "no such chat", Platforms: []string{"telegram"}, Platform: "telegram", Bounded: true, Next: "/chats?before=5~telegram%3A-1"}
		}, hostile: hostileChatList},
		{name: "engagement", template: "engagement.html", section: "/engagement", data: sampleEngagement, hostile: hostileEngagement},
		{name: "no-engagement", template: "engagement.html", section: "/engagement", data: func(now int64) any { return pages.Engagement{Now: now} }, hostile: hostileEngagement},
		{name: "access", template: "access.html", section: "/access", data: sampleAccess, hostile: hostileAccess},
		{name: "no-access", template: "access.html", section: "/access", data: func(int64) any { return pages.Access{} }, hostile: hostileAccess},
		{name: "access-refused", template: "access.html", section: "/access", data: func(int64) any {
			return pages.Access{Chat: "engineering", Sender: "ada", Problem: "sender \"ada\" is not platform:user"}
		}, hostile: hostileAccess},
	}
}

func sampleChatList(now int64) any {
	return pages.ChatList{
		Now: now, Platforms: []string{"discord", "slack", "telegram", "telegram+work", "web"}, Next: "/chats?before=5~telegram%3A-1",
		Lines: []pages.ChatRow{
			{JID: "telegram:-1001234567890", Shown: "telegram:-1001234567890", Title: "Engineering: builds, releases and everything that breaks at night", Kind: "group chat", SeenAt: now - 5000,
				Home: "acme/eng", Open: 2, Engaged: "acme/eng", Until: now + 8*60_000, Spend: pages.SpendLine{Turns: 12, USD: 3.456}},
			{JID: "telegram+work:42", Shown: "telegram+work:42", Kind: "direct chat", Account: "work", SeenAt: now - 86_400_000, Home: "main", Pinned: "main", Topic: "#deploy", Spend: pages.SpendLine{Turns: 1, USD: 0.004}},
			{JID: "slack:C0ABC", Shown: "slack:C0ABC", Title: "ops", Kind: "channel"},
		},
	}
}

func hostileChatList(text string) any {
	return pages.ChatList{
		Platforms: []string{text}, Platform: text, Text: text, Next: text, Now: 10,
		Lines: []pages.ChatRow{{JID: text, Shown: text, Title: text, Kind: text, Account: text, SeenAt: 1, Home: text, Pinned: text, Topic: text, Open: 1, Engaged: text, Until: 20}},
	}
}

func sampleEngagement(now int64) any {
	return pages.Engagement{
		Now: now, Next: "/engagement?until=5&chat=telegram%3A-1&place=",
		Lines: []pages.WindowRow{
			{JID: "telegram:-1001234567890", Shown: "telegram:-1001234567890", Title: "Engineering: builds, releases and everything that breaks at night", Folder: "acme/eng", At: now - 60_000, Until: now + 30_000},
			{JID: "slack:C0ABC", Shown: "slack:C0ABC", Title: "ops", Place: "1700000000.000100", PlaceShown: "1700000000.000100", Folder: "main", At: now - 3_600_000, Until: now + 9*60_000},
		},
	}
}

func hostileEngagement(text string) any {
	return pages.Engagement{Next: text, Now: 10, Lines: []pages.WindowRow{{JID: text, Place: text, Shown: text, Title: text, PlaceShown: text, Folder: text, Until: 20}}}
}

func sampleAccess(now int64) any {
	return pages.Access{
		Operators: pages.Operators{
			Named: []string{"telegram:4211223344"}, Now: now,
			Made: []pages.MadeOperator{{Sender: "slack:U0AB12CD3", Shown: "slack:U0AB12CD3", By: "web:operator", At: now - 86_400_000}},
		},
		Chat: "telegram:-1001234567890", Sender: "telegram:4211223344", Chats: []pages.KnownChat{{JID: "telegram:-1001234567890", Title: "Engineering"}, {JID: "slack:C0ABC"}},
		Answer: &pages.AccessAnswer{
			JID: "telegram:-1001234567890", Chat: "telegram:-1001234567890", Title: "Engineering", Kind: "group chat", Sender: "telegram:4211223344",
			Home: "acme/eng", Lists: "everyone", Admitted: true, Reaches: "acme, acme/ops",
			Rows: []pages.AccessRow{
				{Verb: "A message", Outcome: "starts nothing", Why: []string{"the chat is pinned to no group", "route 3 (chat_jid=telegram:-1001234567890 verb=mention) does not match: verb is message", "no route matches"}},
				{Verb: "A mention of the bot", Outcome: "starts a turn of acme/eng, at most 20 an hour", Folder: "acme/eng", Starts: true, Why: []string{"route 3 matches"}},
				{Verb: "A reply to the bot", Outcome: "is observed by acme/eng, which sees it with its next turn", Folder: "acme/eng"},
			},
		},
	}
}

func hostileAccess(text string) any {
	return pages.Access{
		Chat: text, Sender: text, Name: text, Thread: text, Chats: []pages.KnownChat{{JID: text, Title: text}}, Problem: text,
		Operators: hostileOperators(text),
		Answer: &pages.AccessAnswer{
			JID: text, Chat: text, Title: text, Kind: text, Sender: text, Pinned: text, Home: text, Lists: text, Reaches: text, Admitted: true,
			Rows: []pages.AccessRow{{Verb: text, Outcome: text, Folder: text, Why: []string{text}}},
		},
	}
}

func hostileOperators(text string) pages.Operators {
	return pages.Operators{Named: []string{text}, Invalid: []string{text}, Made: []pages.MadeOperator{{Sender: text, Shown: text, By: text, At: 1}}, Now: 2}
}
