package pages_test

import (
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/dashd/internal/status"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
)

func groupSamples() []sample {
	return []sample{
		{name: "groups", template: "groups.html", section: "/groups", data: sampleGroups},
		{name: "no-groups", template: "groups.html", section: "/groups", data: func(now int64) any { return pages.Groups{Now: now} }},
		{name: "group", template: "group.html", section: "/groups", data: sampleGroup},
		{name: "group-new", template: "group.html", section: "/groups", data: func(now int64) any { return pages.Group{Now: now, Folder: "main", Config: "{}"} }},
		{name: "settings", template: "settings.html", section: "/settings", data: sampleSettings},
		{name: "no-settings", template: "settings.html", section: "/settings", data: func(now int64) any { return pages.Settings{Now: now} }},
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
		Now: now, Folder: "acme/eng", Name: "Engineering", Config: "{\n  \"access\": [\"telegram:42\"],\n  \"rates\": 20\n}", Version: "0011223344556677", Problem: "config: unknown setting rates",
		Choice:   pages.AgentChoice{Agent: "codex", Missing: true, Model: "default", Agents: []string{"default", "claude"}, Models: []string{"gpt-5", "gpt-5-mini"}},
		Warnings: []string{"route 3 lets any user reach group acme/eng: match a sender or a room, or set access in the group's config"}, Chats: []string{"telegram:-1001234567890"}, MoreChats: 3,
		Sessions: []rows.TopicSession{{ID: "3f2a9c01-7741", UpdatedAt: now - 60_000}, {Topic: "#deploy", ID: "77aa0011-9021", UpdatedAt: now - 9e7}}, NextSession: "/groups/acme/eng?session=x",
		Runs: sampleRuns(now),
		Files: pages.Files{
			Dir: "notes/2026", Up: "/groups/acme/eng?dir=notes", Next: "/groups/acme/eng?after=x", Cut: true,
			Lines: []pages.FileLine{{Name: "old", Path: "notes/2026/old", Folder: true, At: now - 9e8}, {Name: "a.md", Path: "notes/2026/a.md", Regular: true, Size: 5_300_000, At: now - 100}, {Name: "link"}},
		},
	}
}

func sampleSettings(now int64) any {
	return pages.Settings{
		Now: now, Version: "v1.2.3", Schema: 10,
		Values: []config.Shown{
			{Name: "DASHD_ADDR", Value: "127.0.0.1:8083", Doc: "where it listens", Default: true}, {Name: "DASH_PASSWORD", Value: "set", Doc: "logs in to the dashboard"},
			{Name: "OPERATORS", Doc: "senders that may approve chats"},
		},
		Paths:   []config.Shown{{Name: "Database", Value: "/var/lib/arizuko/arizuko.db"}},
		Daemons: []status.Daemon{{Name: "gated", Connection: daemon.Connected, Version: "v1.2.3", OK: true, HeartbeatAt: now - 1000}, {Name: "teled", Connection: daemon.BadCredentials, Detail: "the token is wrong", HeartbeatAt: now - 1000}},
	}
}
