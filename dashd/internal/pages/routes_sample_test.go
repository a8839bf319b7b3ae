package pages_test

import (
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	factrows "arizuko/pkg/facts/rows"
)

func routesSamples() []sample {
	const list, editor, changes = "routes.html", "route-editor.html", "audit.html"
	return []sample{
		{name: "routes", template: list, section: "/routes", data: func(int64) any { return sampleRoutes() }},
		{name: "no-routes", template: list, section: "/routes", data: func(int64) any { return pages.Routes{} }},
		{name: "routes-not-found", template: list, section: "/routes", data: func(int64) any { return pages.Routes{Count: 7, Query: "telegram:-1009"} }},
		{name: "route-editor", template: editor, section: "/routes", data: func(now int64) any { return sampleEditor(now) }},
		{name: "route-editor-empty", template: editor, section: "/routes", data: func(now int64) any {
			return pages.RouteEditor{Now: now, Last: 200, NextKey: "n1", Replay: &pages.Replay{}}
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
				Target: "acme/eng", Folder: "acme/eng", Does: "answered by", Waits: "waits for silence of 3s; waits at most 1m; weights: reaction=0"},
			{ID: 4, Place: 3, Match: "chat_jid=telegram:-1001234567890", Words: "everything in “Engineering: builds, releases and everything that breaks at night” (telegram:-1001234567890)",
				Target: "acme/eng#observe", Folder: "acme/eng", Does: "read along by"},
			{ID: 9, Place: 4, Match: "platform=slack", Words: "everything on Slack", Target: "acme/ops", Folder: "acme/ops", Does: "answered by",
				Warnings: []string{"lets any user reach group acme/ops; direct messages of all of them share its sessions: match a sender or a room, or set access in the group's config"}},
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
		return pages.DraftRow{Key: key, ID: int64(place), Place: place, Words: words, Does: does}
	}
	open := row(2, "3", "mentions of the bot in “Engineering: builds, releases and everything that breaks at night” (telegram:-1001234567890)", "answered by acme/ops")
	open.Match, open.Target, open.Quiet, open.Hold, open.Open, open.Changed = "chat_jid=telegram:-1001234567890 verb=mention", "acme/ops", "3s", "1m", true, true
	bad := row(3, "n1", "nothing: it cannot be read", "no target yet")
	bad.New, bad.Open, bad.Match, bad.Problem = true, true, "platfrom=discord", `match: unknown key "platfrom": use platform, account, room, chat_jid, sender, sender_name or verb`
	raw := row(4, "9", "everything on Slack", "answered by acme/ops")
	raw.Raw, raw.Open, raw.Waiting = true, true, `{"quiet_ms":"3 s"}`
	raw.Warnings = []string{"lets any user reach group acme/ops; direct messages of all of them share its sessions: match a sender or a room, or set access in the group's config"}
	return pages.RouteEditor{
		Digest: strings.Repeat("0", 64), NextKey: "n2", Now: now, Checked: true, Problems: 1, Last: 200,
		Rows:    []pages.DraftRow{row(1, "7", "everything from telegram:666", "ignored"), open, bad, raw, row(5, "2", "everything", "asks you to connect the chat")},
		Targets: []string{"acme/eng", "acme/eng#observe", "builtin:drop"}, Chats: []rows.ChatTitle{{JID: "telegram:-1001234567890", Title: "Engineering"}},
		Changes:  []string{"change route 3: chat_jid=telegram:-1001234567890 verb=mention → acme/ops; before: chat_jid=telegram:-1001234567890 verb=mention → acme/eng", "add at place 3: platfrom=discord → "},
		Conflict: &pages.Conflict{Saved: true, By: []factrows.AuditRow{{ID: 5, At: now - 120_000, Who: "telegram:4211223344", What: "change route", Detail: "3: order 0, chat_jid=telegram:-1001234567890 to acme/eng#observe"}}},
		Verbs:    []pages.Option{{Value: "message", Text: "a plain message"}, {Value: "mention", Text: "a mention of the bot", Selected: true}},
		Test:     pages.TestMessage{Chat: "telegram:-1001234567890", Sender: "telegram:42", Verb: "mention", Text: "@ops look at this"},
		Tested: &pages.TestedMessage{Decision: "answered by acme/ops", Now: "answered by acme/eng", Why: []string{
			"@ops names the group acme/ops", "route 7 (sender=telegram:666) does not match: sender is telegram:42", "the row names the group acme/ops"}},
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
