package pages_test

import "arizuko/dashd/internal/pages"

func approvalsSamples() []sample {
	return []sample{
		{name: "approvals", template: "approvals.html", section: "/approvals", data: func(now int64) any { return sampleApprovals(now) }, hostile: hostileApprovals},
		{name: "no-approvals", template: "approvals.html", section: "/approvals", data: func(now int64) any { return pages.Approvals{Now: now} }, hostile: hostileApprovals},
	}
}

func connectSamples() []sample {
	connect := func(text ...string) pages.Connect {
		return pages.Connect{Platform: pages.Platform{Name: text[0], Daemon: text[1], Where: text[2], Token: text[3], Secrets: text[3:]}, Profiles: "telegram,slack"}
	}
	return []sample{{
		name: "connect", template: "connect.html", section: "/",
		data: func(int64) any {
			return connect("Slack", "slakd", "and SLACK_APP_TOKEN, from your app's page", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN")
		},
		hostile: func(text string) any { return connect(text, "slakd", text, "SLACK_BOT_TOKEN") }, // the others name parts of a page
	}}
}

func hostileRequest(text string) pages.RequestLine {
	return pages.RequestLine{
		Code: text, Chat: text, Kind: text, Title: text, Sender: text, SenderName: text, Sample: text, DefaultFolder: text,
		State: text, Folder: text, Reason: text, By: text,
	}
}

func hostileApprovals(text string) any {
	request := hostileRequest(text)
	noted := request
	noted.Approving = text
	return pages.Approvals{
		Pending: []pages.RequestLine{request, noted}, More: 1, Decided: []pages.RequestLine{request}, Now: 10,
		Groups: []pages.GroupChats{{Folder: text, Chats: []string{text}, More: 1}},
	}
}

func sampleApprovals(now int64) pages.Approvals {
	return pages.Approvals{
		Now: now, More: 3,
		Pending: []pages.RequestLine{
			{Code: "KQVD-4821", Chat: "telegram:-1001234567890", Kind: "group chat", Title: "Engineering: builds, releases and everything that breaks at night", Sender: "telegram:4211223344", SenderName: "Ada Lovelace",
				Sample: "@arizuko can you say why the nightly build is red? It has been since Tuesday, and TestWriteOrder looks like it waits for a lock that no process holds.", CreatedAt: now - 90_000, DefaultFolder: "telegram-engineering-builds-releases-and-ev"},
			{Code: "BMRT-0077", Chat: "discord:dm-99887766554433", Kind: "direct chat", CreatedAt: now - 7_200_000},
			{Code: "XPLS-5150", Chat: "slack:C0ABC", Kind: "group chat", Title: "ops", Sender: "slack:U0AB", SenderName: "Grace", Sample: "hello", CreatedAt: now - 90_000_000, Approving: "acme/ops"},
		},
		Decided: []pages.RequestLine{
			{Code: "QWRT-1234", Chat: "telegram:42", Title: "", State: "approved", Folder: "acme/eng", By: "telegram:42", DecidedAt: now - 3_600_000},
			{Code: "ZXCV-9876", Chat: "telegram:-100777", Title: "Free coins, click here", State: "rejected", Reason: "spam", By: "web:operator", DecidedAt: now - 86_400_000},
		},
		Groups: []pages.GroupChats{{Folder: "acme/eng", Chats: []string{"Dev (telegram:-100)", "slack:C0DEF"}, More: 2}, {Folder: "main"}},
	}
}
