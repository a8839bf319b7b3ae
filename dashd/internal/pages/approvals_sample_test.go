package pages_test

import (
	"arizuko/dashd/internal/pages"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

func approvalsSamples() []sample {
	return []sample{
		{name: "approvals", template: "approvals.html", section: "/approvals", data: func(now int64) any { return sampleApprovals(now) }},
		{name: "no-approvals", template: "approvals.html", section: "/approvals", data: func(now int64) any { return pages.Approvals{Now: now} }},
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
	}}
}

func sampleApprovals(now int64) pages.Approvals {
	return pages.Approvals{
		Now: now, More: 3, Defaults: map[string]string{"KQVD-4821": "telegram-engineering-builds-releases-and-ev"},
		Pending: []*factrows.Request{
			{Code: "KQVD-4821", ChatJID: "telegram:-1001234567890", Kind: msg.ChatGroup, Title: "Engineering: builds, releases and everything that breaks at night", Sender: "telegram:4211223344", SenderName: "Ada Lovelace",
				State: factrows.RequestPending, CreatedAt: now - 90_000,
				Sample: "@arizuko can you say why the nightly build is red? It has been since Tuesday, and TestWriteOrder looks like it waits for a lock that no process holds."},
			{Code: "BMRT-0077", ChatJID: "discord:dm-99887766554433", Kind: msg.ChatDM, State: factrows.RequestPending, CreatedAt: now - 7_200_000},
			{Code: "XPLS-5150", ChatJID: "slack:C0ABC", Kind: msg.ChatGroup, Title: "ops", Sender: "slack:U0AB", SenderName: "Grace", Sample: "hello", State: factrows.RequestPending, CreatedAt: now - 90_000_000, Folder: "acme/ops"},
		},
		Decided: []*factrows.Request{
			{Code: "QWRT-1234", ChatJID: "telegram:42", State: "approved", Folder: "acme/eng", DecidedBy: "telegram:42", DecidedAt: now - 3_600_000},
			{Code: "ZXCV-9876", ChatJID: "telegram:-100777", Title: "Free coins, click here", State: "rejected", Reason: "spam", DecidedBy: "web:operator", DecidedAt: now - 86_400_000},
		},
		Groups: []pages.GroupChats{{Folder: "acme/eng", Chats: []string{"Dev (telegram:-100)", "slack:C0DEF"}, More: 2}, {Folder: "main"}},
	}
}
