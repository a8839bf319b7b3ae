package pages_test

import (
	"fmt"
	"strings"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/egress"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/hooks"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

func reminderSamples() []sample {
	return []sample{
		{name: "reminders", template: "reminders.html", section: "/reminders", data: sampleReminders},
		{name: "no-reminders", template: "reminders.html", section: "/reminders", data: func(now int64) any { return pages.List[pages.ReminderLine]{Now: now} }},
		{name: "polls", template: "polls.html", section: "/polls", data: samplePolls},
		{name: "no-polls", template: "polls.html", section: "/polls", data: func(now int64) any { return pages.List[pages.PollLine]{Now: now} }},
	}
}

func sampleReminders(now int64) any {
	return pages.List[pages.ReminderLine]{
		Now: now, Of: "Reminders of the group acme/eng that are done", Next: "/reminders?after=18",
		Choices: []pages.Choice{{Link: pages.Link{Path: "/reminders", Text: "Active"}, Current: true}, {Link: pages.Link{Path: "/reminders?state=done", Text: "Done"}}},
		Titles:  pages.Titles{"telegram:-1001234567": "Engineering"},
		Lines: []pages.ReminderLine{
			{LastSlot: now - 86_400_000, LastRow: 5120, Reminder: &msg.Reminder{ID: 17, Folder: "acme/eng", ChatJID: "telegram:-1001234567", Topic: "#deploy", Kind: msg.ReminderPrompt,
				Body: "Say which checks of the nightly build are red, and who broke them.\nOne line each.", Cron: "0 9 * * 1-5", TimeZone: "Europe/Rome", NextSlot: now + 7_300_000, CreatedBy: "telegram:42", State: msg.ReminderActive}},
			{LastSlot: now - 1000, Reminder: &msg.Reminder{ID: 18, Folder: "main", ChatJID: "web:main", Body: "Pay the bill", TimeZone: "UTC", State: msg.ReminderCancelled, UpdatedBy: "web:operator", Error: "the chat does not exist any more"}},
		},
	}
}

func samplePolls(now int64) any {
	return pages.List[pages.PollLine]{
		Now: now, Next: "/polls?before=3", Choices: []pages.Choice{{Link: pages.Link{Path: "/polls", Text: "All"}, Current: true}, {Link: pages.Link{Path: "/polls?state=open", Text: "Open"}}},
		Titles: pages.Titles{"telegram:-1001234567": "Engineering"},
		Lines: []pages.PollLine{
			{Result: msg.PollResult{Counts: []int{2, 8}, Voters: 9}, StoredPoll: &msg.StoredPoll{ID: 4, MessageID: 5200, Folder: "acme/eng", ChatJID: "telegram:-1001234567", State: msg.PollOpen, CreatedAt: now - 90_000,
				Poll: msg.Poll{Question: "When do we release?", Multiple: true, ClosesAt: now + 600_000, Options: []string{"Friday", "Monday, with everyone awake and the whole on-call team at their desks", "never"}}}},
			{Result: msg.PollResult{Counts: []int{1}, Voters: 1}, StoredPoll: &msg.StoredPoll{ID: 3, MessageID: 5100, Folder: "main", ChatJID: "web:main", CreatedAt: now - 9_000_000, ClosedAt: now - 8_000_000,
				Poll: msg.Poll{Question: "Tea?", Options: []string{"yes", "no"}}}},
		},
	}
}

func chatSamples() []sample {
	return []sample{
		{name: "chatlist", template: "chatlist.html", section: "/chats", data: sampleChatList},
		{name: "no-chatlist", template: "chatlist.html", section: "/chats", data: func(now int64) any { return pages.ChatList{Now: now} }},
		{name: "chatlist-searched", template: "chatlist.html", section: "/chats", data: func(now int64) any {
			return pages.ChatList{Now: now, Text: "no such chat", Platforms: []string{"telegram"}, Platform: "telegram", Bounded: true, Next: "/chats?before=5~telegram%3A-1"}
		}},
		{name: "chat-page", template: "onechat.html", section: "/chats", data: sampleOneChat},
		{name: "empty-chat-page", template: "onechat.html", section: "/chats", data: func(now int64) any {
			return pages.OneChat{Now: now, ChatRow: pages.ChatRow{SeenChat: rows.SeenChat{Chat: msg.Chat{JID: "slack:C0ABC"}}}}
		}},
		{name: "person", template: "person.html", section: "/search", data: samplePerson},
		{name: "unknown-person", template: "person.html", section: "/search", data: func(now int64) any { return pages.Person{Now: now, ID: "slack:U0AB"} }},
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

func sampleOneChat(now int64) any {
	windows := sampleEngagement(now).(pages.List[rows.OpenWindow])
	return pages.OneChat{
		Now: now, ChatRow: sampleChatList(now).(pages.ChatList).Lines[0], Messages: sampleMessages(now), Windows: windows,
		Turns: sampleTurns(now).(pages.List[*msg.Turn]), Reminders: sampleReminders(now).(pages.List[pages.ReminderLine]), Polls: samplePolls(now).(pages.List[pages.PollLine]),
		Request: &factrows.Request{Code: "KQVD-4821", State: factrows.RequestApproved, DecidedBy: "web:operator", DecidedAt: now - 86_400_000},
		Routes:  pages.Routes{Rows: []pages.RouteLine{{ID: 7, Place: 2, Match: "room=-1001234567890 verb=mention", Words: "mentions of the bot in the room “Engineering”", Target: "acme/eng", Folder: "acme/eng", Does: "answered by"}}},
	}
}

func samplePerson(now int64) any {
	return pages.Person{
		Now: now, ID: "telegram:4211223344", Names: []string{"Ada Lovelace", "ada"}, Operator: true, Titles: sampleTitles(), Messages: sampleMessages(now), Turns: sampleTurns(now).(pages.List[*msg.Turn]),
		Asked: rows.Asked{Spend: factrows.Spend{Turns: 12, CostUSD: 3.456}, Hour: 2},
		Chats: []pages.PersonChat{
			{SenderChat: rows.SenderChat{JID: "telegram:-1001234567890", Count: 812, At: now - 60_000}, Home: "acme/eng", Rate: 60},
			{SenderChat: rows.SenderChat{JID: "telegram:4211223344", Count: 3, At: now - 86_400_000}, Home: "main"}, {SenderChat: rows.SenderChat{JID: "slack:C0ABC", Count: 1, At: now}},
		},
		Roles: []pages.GroupRoles{{Folder: "acme/eng", Roles: groupconfig.Roles{}.Lines(nil)[:2]}},
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
		Groups: []pages.GroupRoles{
			{Folder: "acme/eng", Roles: []groupconfig.RoleLine{
				{Name: "ask", Meaning: "write to the agent", Who: "operators and telegram:4211223344; slack:U0AB12CD3", Role: groupconfig.Role{{Who: "telegram:4211223344"}}},
				{Name: "approve", Meaning: "answer its permission requests", Who: "operators, and in a direct message its user"},
			}},
			{Folder: "main", Roles: []groupconfig.RoleLine{{Name: "operate", Meaning: "stop what others asked for", Who: "operators"}}},
		},
		Next: "/access?after=main",
		Chat: "telegram:-1001234567890", Sender: "telegram:4211223344", Chats: []rows.SeenChat{{Chat: msg.Chat{JID: "telegram:-1001234567890", Title: "Engineering"}}, {Chat: msg.Chat{JID: "slack:C0ABC"}}},
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

func groupSamples() []sample {
	return []sample{
		{name: "groups", template: "groups.html", section: "/groups", data: sampleGroups},
		{name: "no-groups", template: "groups.html", section: "/groups", data: func(now int64) any { return pages.Groups{Now: now} }},
		{name: "group", template: "group.html", section: "/groups", data: sampleGroup},
		{name: "group-new", template: "group.html", section: "/groups", data: func(now int64) any { return pages.Group{Now: now, Folder: "main", Config: "{}"} }},
		{name: "hook", template: "hook.html", section: "/groups", data: sampleHook},
		{name: "hook-new", template: "hook.html", section: "/groups", data: func(now int64) any {
			return pages.Hook{Now: now, ID: "main.k3q5", Samples: []string{"push"}}
		}},
		{name: "hook-off", template: "hook.html", section: "/groups", data: func(now int64) any {
			return pages.Hook{Now: now, Found: hooks.Found{Hook: groupconfig.Hook{Off: true}}, Next: "/hooks/main.k3q5?before=8"}
		}},
		{name: "egress", template: "egress.html", section: "/egress", data: sampleEgress},
		{name: "no-egress", template: "egress.html", section: "/egress", data: func(now int64) any {
			return pages.Egress{Now: now, Compared: new(egress.Comparison), Draft: egress.Rule{Host: "example.com"}}
		}},
		{name: "egress-refused", template: "egress.html", section: "/egress", data: func(now int64) any {
			return pages.Egress{Now: now, Problem: "host \"https://x\": want a name as in api.github.com"}
		}},
		{name: "notifications", template: "notifications.html", section: "/notifications", data: func(now int64) any {
			return pages.Notifications{Now: now, Key: "BA", Devices: []*rows.PushDevice{{ID: 2, Name: "Firefox on Android", Kinds: "answer problem", CreatedAt: now - 9000000, SentAt: now - 60000},
				{ID: 1, Name: "Safari on iPhone", CreatedAt: now - 99000000, FailedAt: now - 5000, Error: "the push service answered 403 Forbidden"}}}
		}},
		{name: "no-notifications", template: "notifications.html", section: "/notifications", data: func(now int64) any { return pages.Notifications{Now: now} }},
		{name: "settings", template: "settings.html", section: "/settings", data: sampleSettings},
		{name: "no-settings", template: "settings.html", section: "/settings", data: func(now int64) any { return pages.Settings{Now: now} }},
	}
}

func sampleHook(now int64) any {
	return pages.Hook{
		Now: now, ID: "acme/eng.k3q5v7x2m4n6p8r1k3q5v7x2m4", Samples: []string{"check_run", "issues", "push"},
		URL: "https://bot.example.com/hook/acme/eng.k3q5v7x2m4n6p8r1k3q5v7x2m4",
		Found: hooks.Found{Name: "ci", Folder: "acme/eng", JID: "hook:acme/eng.k3q5v7x2m4n6p8r1k3q5v7x2m4", Hook: groupconfig.Hook{Kind: groupconfig.HookHMAC, Header: "X-Signature", To: "slack:C0ABC", Thread: "1733.5", Events: []string{"issues.opened", "check_run.completed"}, Branches: []string{"main", "release/*"},
			Only: map[string]string{"check_run.conclusion": "failure"}, Ignore: []string{"acme-bot"}, QuietMS: 90_000}},
		Lines: []*msg.Message{
			{ID: 84_312, TurnID: 411, ReceivedAt: now - 90_000, Disposition: msg.Routed, Reason: msg.ReasonAddress, Content: "check_run.completed in acme/engineering-builds-and-releases: nightly failed on main, see https://github.com/acme/engineering-builds-and-releases/runs/1733"},
			{ID: 84_311, ReceivedAt: now - 100_000, Disposition: msg.Observed, Reason: msg.ReasonHookFilter, Content: "push to dev by ada", Error: "branch dev"},
			{ID: 84_310, DerivedFrom: 84_300, ReceivedAt: now - 7_200_000},
		},
		Next: "/hooks/acme/eng.k3q5?before=84310", Refusals: []rows.HookRefusal{{At: now - 60_000, Reason: "the signature is not one of this body with the hook's secret"}, {At: now - 7_200_000, Reason: "the header X-Hub-Signature-256 is missing"}},
	}
}

func sampleHooks() map[string]groupconfig.Hook {
	return map[string]groupconfig.Hook{
		"ci":                           {ID: "k3q5", Kind: groupconfig.HookGitHub, To: "telegram:-1001234567890", Events: []string{"check_run.completed", "issues.opened", "pull_request_review_comment.*"}},
		"payments-of-the-shop-in-oslo": {ID: "n6p8", Kind: groupconfig.HookStandard, Off: true},
	}
}

func sampleRequests(now int64) []*egress.Receipt {
	return []*egress.Receipt{
		{ID: 9, At: now - 5000, TurnID: 411, Folder: "acme/eng", Method: "POST", Host: "api.github.com", Port: 443, Path: "/repos/acme/engineering-builds-and-releases/issues/1733/comments?per_page", BytesOut: 412,
			State: egress.Sent, Status: 201, By: "telegram:42", Secret: "github"},
		{ID: 8, At: now - 90_000, Folder: "main", Method: "PUT", Host: "files.example.com", Port: 8443, Path: "/x", State: egress.Refused, Reason: "no rule, and no approver can be reached at night"},
	}
}

func sampleEgress(now int64) any {
	return pages.Egress{
		Now: now, Draft: egress.Rule{Seq: 11, Host: "api.github.com", Method: "POST", Path: "/repos/acme/", Folder: "acme/eng", Secret: "github"},
		Rules: egress.Rules{
			{ID: 33, Seq: 10, Folder: "acme/eng", Host: "api.github.com", Method: "POST", Path: "/repos/acme/engineering-builds-and-releases/issues/", Action: egress.Inject, Secret: "github", Author: "telegram:4211223344", CreatedAt: now - 7_200_000},
			{ID: 1, Seq: 20, Host: "*.githubusercontent.com", Method: "GET", Action: egress.Pass, Author: "preset"}, {ID: 2, Seq: 1_000_000_000, Host: "*", Action: egress.Deny, Author: "cli"},
		},
		Actions: []pages.Option{{Value: "ask", Text: "ask"}, {Value: "inject", Text: "inject", Selected: true}},
		Compared: &egress.Comparison{Requests: 412, Changed: 60,
			Examples: []egress.Example{{Was: "ask", Would: "inject github", ID: 9, At: now - 5000, Folder: "acme/eng", Request: "POST api.github.com/repos/acme/engineering-builds-and-releases/issues/1733/comments?per_page"}}},
		Groups: []string{"acme/eng", "main"}, Group: "acme/eng", States: []pages.Option{{Text: "any"}, {Value: "sent", Text: "sent", Selected: true}}, Requests: sampleRequests(now), Next: "/egress?before=8",
	}
}

func sampleGroups(now int64) any {
	return pages.Groups{
		Now: now, Next: "/groups?after=main",
		Lines: []pages.GroupRow{
			{Group: msg.Group{Folder: "acme/engineering-builds-and-releases", Name: "Engineering: builds, releases and everything that breaks at night"}, Chats: []string{"telegram:-1001234567890", "messages that match platform=slack room=C*"}, More: 4, Turn: 412, TurnAt: now - 60_000, Warnings: 2},
			{Group: msg.Group{Folder: "main"}},
		},
	}
}

func sampleGroup(now int64) any {
	return pages.Group{
		Sections: []pages.ConfigSection{
			{Fields: []pages.ConfigField{{Key: groupconfig.Keys()[0], Value: "Eng"}, {Key: groupconfig.Keys()[2], Value: "odd"}}},
			{Name: "agent", Wrong: true, Fields: []pages.ConfigField{{Key: groupconfig.Key{Path: "agent.settings", Kind: groupconfig.KindObject, Help: "further variables"}, Value: `["x"]`, Problem: "must be a JSON object"}}},
		},
		Now: now, Folder: "acme/eng", Name: "Engineering", Config: "{\n  \"access\": [\"telegram:42\"],\n  \"rates\": 20\n}", Version: "0011223344556677", Problem: "config: unknown setting rates",
		Choice:   pages.AgentChoice{Agent: "codex", Missing: true, Model: "default", Agents: []string{"default", "claude"}, Models: []string{"gpt-5", "gpt-5-mini"}},
		Warnings: []string{"route 3 lets any user reach group acme/eng: match a sender or a room, or set roles.ask in the group's config"}, Chats: []string{"telegram:-1001234567890"}, MoreChats: 3,
		Sessions: []rows.TopicSession{{ID: "3f2a9c01-7741", UpdatedAt: now - 60_000}, {Topic: "#deploy", ID: "77aa0011-9021", UpdatedAt: now - 9e7}}, NextSession: "/groups/acme/eng?session=x",
		Rules: []*msg.PermissionRule{
			{ID: 12, Text: "May I use Bash with this input?\ntool: \"Bash\"\ninput:\n  command: \"make --directory=/srv/engineering-builds-and-releases deploy-to-staging-and-wait\"", Author: "telegram:4211223344", CreatedAt: now - 7_200_000, Used: 31, UsedAt: now - 5000},
			{ID: 3, Text: "May I use Write with this input?", Author: "web:operator", CreatedAt: now - 90_000_000},
		},
		Hooks: sampleHooks(), Runs: sampleRuns(now), Requests: sampleRequests(now),
		Files: pages.Files{
			Dir: "notes/2026", Up: "/groups/acme/eng?dir=notes", Next: "/groups/acme/eng?after=x", Cut: true,
			Lines: []pages.FileLine{{Name: "old", Path: "notes/2026/old", Folder: true, At: now - 9e8}, {Name: "a.md", Path: "notes/2026/a.md", Regular: true, Size: 5_300_000, At: now - 100}, {Name: "link"}},
		},
	}
}

func sampleSettings(now int64) any {
	return pages.Settings{
		Now: now, Version: "v1.2.3", Schema: 10,
		Set:      []config.Shown{{Name: "DASH_PASSWORD", Value: "set", Doc: "logs in to the dashboard"}, {Name: "OPERATORS", Doc: "senders that may approve chats"}},
		Defaults: []config.Shown{{Name: "DASHD_ADDR", Value: "127.0.0.1:8083", Doc: "where it listens"}},
		Paths:    []config.Shown{{Name: "Database", Value: "/var/lib/arizuko/arizuko.db"}},
		Daemons:  daemons(now, daemonrows.Daemon{Name: "gated"}, daemonrows.Daemon{Name: "teled", Connection: string(daemon.BadCredentials), Detail: "the token is wrong"}),
	}
}

func routesSamples() []sample {
	const list, editor, changes = "routes.html", "route-editor.html", "audit.html"
	return []sample{
		{name: "routes", template: list, section: "/routes", data: func(int64) any { return sampleRoutes() }},
		{name: "no-routes", template: list, section: "/routes", data: func(int64) any { return pages.Routes{} }},
		{name: "routes-not-found", template: list, section: "/routes", data: func(int64) any { return pages.Routes{Count: 7, Query: "telegram:-1009"} }},
		{name: "route-editor", template: editor, section: "/routes", data: func(now int64) any { return sampleEditor(now) }},
		{name: "route-editor-empty", template: editor, section: "/routes", data: func(now int64) any {
			return pages.RouteEditor{Now: now, NextKey: "n1", Replay: &pages.Replay{}}
		}},
		{name: "route-editor-large", template: editor, section: "/routes", data: func(now int64) any {
			return pages.RouteEditor{Now: now, TooLarge: "The table has 2400 routes, and is too large for this page. Change single routes on the server: routd routes add, routd routes rm."}
		}},
		{name: "audit", template: changes, section: "/audit", data: func(now int64) any { return sampleAudit(now) }},
		{name: "no-audit", template: changes, section: "/audit", data: func(now int64) any { return pages.Audit{Now: now} }},
		{name: "audit-not-found", template: changes, section: "/audit", data: func(now int64) any {
			return pages.Audit{Now: now, Filtered: true, Who: "telegram:7", What: "add route", Whats: []string{"add route", "approve"}}
		}},
	}
}

func sampleRoutes() pages.Routes {
	return pages.Routes{
		Count: 61, After: "/routes?from=51",
		Rows: []pages.RouteLine{
			{ID: 7, Place: 1, Match: "sender=telegram:666", Words: "everything from telegram:666", Target: "builtin:drop", Does: "ignored"},
			{ID: 3, Place: 2, Match: "chat_jid=telegram:-1001234567890 verb=mention", Words: "mentions of the bot in “Engineering: builds, releases and everything that breaks at night” (telegram:-1001234567890)",
				Target: "acme/eng", Folder: "acme/eng", Does: "answered by", Waits: "waits for silence of 3s; waits at most 1m0s; reaction weighs 0"},
			{ID: 4, Place: 3, Match: "chat_jid=telegram:-1001234567890", Words: "everything in “Engineering: builds, releases and everything that breaks at night” (telegram:-1001234567890)",
				Target: "acme/eng#observe", Folder: "acme/eng", Does: "read along by"},
			{ID: 9, Place: 4, Match: "platform=slack", Words: "everything on Slack", Target: "acme/ops", Folder: "acme/ops", Does: "answered by",
				Warnings: []string{"lets any user reach group acme/ops; direct messages of all of them share its sessions: match a sender or a room, or set roles.ask in the group's config"}},
			{ID: 11, Place: 5, Match: "platfrom=discord", Words: "nothing: it cannot be read", Target: "acme/eng", Folder: "acme/eng", Does: "answered by",
				Problem: `match: unknown key "platfrom": use platform, account, room, chat_jid, sender, sender_name or verb`},
			{ID: 2, Place: 6, Words: "everything", Target: "daemon:onbod", Does: "asks you to connect the chat"},
			{ID: 12, Place: 7, Match: "chat_jid=slack:C0ABC", Words: "everything in slack:C0ABC", Target: "acme/ops", Folder: "acme/ops", Does: "answered by",
				Warnings: []string{"never used: the route at place 4 matches all that it does"}},
		},
	}
}

func sampleEditor(now int64) pages.RouteEditor {
	row := func(place int, key, words, does string) pages.DraftRow {
		return pages.DraftRow{Key: key, RouteLine: pages.RouteLine{ID: int64(place), Place: place, Words: words, Does: does}}
	}
	open := row(2, "3", "mentions of the bot in “Engineering: builds, releases and everything that breaks at night” (telegram:-1001234567890)", "answered by acme/ops")
	open.Match, open.Target, open.Impulse, open.Waits, open.Open, open.Changed = "chat_jid=telegram:-1001234567890 verb=mention", "acme/ops", `{"quiet_ms":3000,"max_hold_ms":60000}`, "waits for silence of 3s; waits at most 1m0s", true, true
	bad := row(3, "n1", "nothing: it cannot be read", "no target yet")
	bad.New, bad.Open, bad.Match, bad.Problem = true, true, "platfrom=discord", `match: unknown key "platfrom": use platform, account, room, chat_jid, sender, sender_name or verb`
	raw := row(4, "9", "everything on Slack", "answered by acme/ops")
	raw.Open, raw.Impulse, raw.Waits, raw.Problem = true, `{"quiet_ms":"3 s"}`, "its waiting settings cannot be read", `impulse_config: "quiet_ms": must be a number`
	raw.Warnings = []string{"lets any user reach group acme/ops; direct messages of all of them share its sessions: match a sender or a room, or set roles.ask in the group's config"}
	return pages.RouteEditor{
		Digest: strings.Repeat("0", 64), NextKey: "n2", Now: now, Checked: true, Problems: 2,
		Rows:    []pages.DraftRow{row(1, "7", "everything from telegram:666", "ignored"), open, bad, raw, row(5, "2", "everything", "asks you to connect the chat")},
		Targets: []string{"acme/eng", "acme/eng#observe", "builtin:drop"}, Chats: []rows.SeenChat{{Chat: msg.Chat{JID: "telegram:-1001234567890", Title: "Engineering"}}},
		Changes:  []string{"change route 3: chat_jid=telegram:-1001234567890 verb=mention → acme/ops; before: chat_jid=telegram:-1001234567890 verb=mention → acme/eng", "add at place 3: platfrom=discord → "},
		Conflict: true, Refused: true,
		Verbs: []pages.Option{{Value: "message", Text: "a plain message"}, {Value: "mention", Text: "a mention of the bot", Selected: true}},
		Test:  pages.TestMessage{Chat: "telegram:-1001234567890", Sender: "telegram:42", Verb: "mention"},
		Tested: &pages.TestedMessage{Decision: "answered by acme/ops", Now: "answered by acme/eng", Why: []string{
			"route 7 (sender=telegram:666) does not match: sender is telegram:42", "the row names the group acme/ops"}},
		Replay: &pages.Replay{
			Messages: 187, Skipped: 13, Changed: 61, Kinds: []pages.ReplayKind{{Was: "answered by acme/eng", Would: "answered by acme/ops", Count: 60}, {Was: "read along by acme/eng", Would: "goes nowhere", Count: 1}},
			Rows: []pages.ReplayRow{
				{Inbound: &rows.Inbound{ID: 84_312, Title: "Engineering: builds, releases and everything that breaks at night", SenderName: "Ada Lovelace", ReceivedAt: now - 90_000, Content: "@arizuko can you say why the nightly build is red? It has been since Tuesday, and TestWriteOrder looks like it waits for…"},
					Was: "answered by acme/eng", Would: "answered by acme/ops", Why: "route 3 (chat_jid=telegram:-1001234567890 verb=mention) leads to acme/ops"},
				{Inbound: &rows.Inbound{ID: 84_102, ChatJID: "slack:C0ABC", Sender: "Grace", ReceivedAt: now - 7_200_000}, Was: "read along by acme/eng", Would: "goes nowhere", Why: "no route matches"},
			},
		},
	}
}

func sampleAudit(now int64) pages.Audit {
	return pages.Audit{
		Now: now, Next: "/audit?before=12", Since: now - 40_000_000_000, Deleted: true, Max: 50_000, Whats: []string{"add route", "approve", "cancel reminder", "change group"},
		Lines: []factrows.AuditRow{
			{ID: 19, At: now - 60_000, Who: "web:operator", What: "change route", Detail: "3: order 0, chat_jid=telegram:-1001234567890 verb=mention to acme/ops; before: order 0, chat_jid=telegram:-1001234567890 verb=mention to acme/eng"},
			{ID: 18, At: now - 7_200_000, Who: "cli", What: "change group", Detail: "acme/eng: config.access, config.reach"},
			{ID: 13, At: now - 90_000_000, Who: "telegram:4211223344", What: "approve", Detail: "KQVD-4821 telegram:-1001234567890 acme/eng"},
		},
	}
}

func spendSamples() []sample {
	line := func(name string, turns int64, usd float64) factrows.SpendRow {
		return factrows.SpendRow{Name: name, Spend: factrows.Spend{Turns: turns, Input: 512_000, Output: 31_000, CostUSD: usd}}
	}
	full := func(int64) any {
		page := pages.Spend{Titles: pages.Titles{"telegram:-1001234": "Builds"}}
		page.Chart = sampleChart("days", pages.Dollars, 30, "Jan 2", 24*time.Hour, "Dollars")
		for i, usd := range []float64{0.004, 1.2, 8.125, 3.016} {
			page.Days = append(page.Days, line(fmt.Sprintf("2026-11-1%d", i), int64(11*i), usd))
		}
		page.Groups = []factrows.SpendRow{line("acme/eng", 60, 12.3), line("main", 6, 0.045)}
		page.Chats = []factrows.SpendRow{line("telegram:-1001234", 40, 11), line("web:main", 26, 1.3)}
		return page
	}
	return []sample{
		{"spend", "spend.html", "/spend", full},
		{"no-spend", "spend.html", "/spend", func(int64) any {
			return pages.Spend{Chart: sampleChart("days", pages.Dollars, 30, "Jan 2", 24*time.Hour)}
		}},
	}
}
