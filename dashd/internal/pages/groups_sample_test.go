package pages_test

import "arizuko/dashd/internal/pages"

func groupSamples() []sample {
	return []sample{
		{name: "groups", template: "groups.html", section: "/groups", data: sampleGroups, hostile: hostileGroups},
		{name: "no-groups", template: "groups.html", section: "/groups", data: func(now int64) any { return pages.Groups{Now: now} }, hostile: hostileGroups},
		{name: "group", template: "group.html", section: "/groups", data: sampleGroup, hostile: hostileGroup},
		{name: "group-new", template: "group.html", section: "/groups", data: func(now int64) any { return pages.Group{Now: now, Folder: "main", Config: "{}"} }, hostile: hostileGroup},
		{name: "settings", template: "settings.html", section: "/settings", data: sampleSettings, hostile: hostileSettings},
		{name: "no-settings", template: "settings.html", section: "/settings", data: func(now int64) any { return pages.Settings{Now: now} }, hostile: hostileSettings},
	}
}

func sampleGroups(now int64) any {
	return pages.Groups{
		Now: now, Next: "/groups?after=main",
		Lines: []pages.GroupRow{
			{Folder: "acme/engineering-builds-and-releases", Name: "Engineering: builds, releases and everything that breaks at night", Chats: []string{"telegram:-1001234567890", "messages that match platform=slack room=C*"}, More: 4, Turn: 412, TurnAt: now - 60_000, Warnings: 2},
			{Folder: "main"},
		},
	}
}

func hostileGroups(text string) any {
	return pages.Groups{Folder: text, Name: text, Next: text, Now: 10, Lines: []pages.GroupRow{{Folder: text, Name: text, Chats: []string{text}, More: 1, Turn: 1, TurnAt: 2, Warnings: 1}}}
}

func sampleGroup(now int64) any {
	return pages.Group{
		Now: now, Folder: "acme/eng", Name: "Engineering", Config: "{\n  \"access\": [\"telegram:42\"],\n  \"rates\": 20\n}", Version: "0011223344556677", Problem: "config: unknown setting rates",
		Choice:   pages.AgentChoice{Agent: "codex", Missing: true, Model: "default", Agents: []string{"default", "claude"}, Models: []string{"gpt-5", "gpt-5-mini"}},
		Warnings: []string{"route 3 lets any user reach group acme/eng: match a sender or a room, or set access in the group's config"}, Chats: []string{"telegram:-1001234567890"}, MoreChats: 3,
		Sessions: []pages.SessionLine{{ID: "3f2a9c01…", At: now - 60_000}, {Topic: "#deploy", ID: "77aa0011…", At: now - 9e7}}, NextSession: "/groups/acme/eng?session=x",
		Runs: []pages.RunLine{{ID: 89, Runtime: "bwrap", StartedAt: now - 1000}, {ID: 88, Runtime: "bwrap", Result: "error", Error: "exit status 1", StartedAt: now - 9000, EndedAt: now - 8000}},
		Files: pages.Files{
			Dir: "notes/2026", Up: "/groups/acme/eng?dir=notes", Next: "/groups/acme/eng?after=x", Cut: true,
			Lines: []pages.FileLine{{Name: "old", Shown: "old", Path: "notes/2026/old", Folder: true, At: now - 9e8}, {Name: "a.md", Shown: "a-file-with-quite-a-long-name-that-says-all-of-it.md", Path: "notes/2026/a.md", Regular: true, Size: 5_300_000, At: now - 100}, {Name: "link", Shown: "link"}},
		},
	}
}

func hostileGroup(text string) any {
	return pages.Group{
		Folder: text, Name: text, Config: text, Version: text, Problem: text, Warnings: []string{text}, Chats: []string{text}, Now: 10,
		Choice:   pages.AgentChoice{Agent: text, Model: text, Agents: []string{text}, Models: []string{text}, Missing: true},
		Sessions: []pages.SessionLine{{Topic: text, ID: text}}, NextSession: text, Runs: []pages.RunLine{{ID: 1, Runtime: text, Result: text, Error: text}},
		Files: pages.Files{Dir: text, Up: text, Next: text, Lines: []pages.FileLine{{Name: text, Shown: text, Path: text, Regular: true}, {Name: text, Shown: text, Path: text, Folder: true}, {Name: text, Shown: text}}},
	}
}

func sampleSettings(now int64) any {
	return pages.Settings{
		Now: now, Version: "v1.2.3", Schema: 10,
		Values: []pages.Setting{
			{Name: "DASHD_ADDR", Value: "127.0.0.1:8083", Meaning: "where it listens", Default: true}, {Name: "DASH_PASSWORD", Value: "set", Meaning: "logs in to the dashboard"},
			{Name: "OPERATORS", Meaning: "senders that may approve chats"},
		},
		Paths:   []pages.Setting{{Name: "Database", Value: "/var/lib/arizuko/arizuko.db"}},
		Daemons: []pages.DaemonLine{{Name: "gated", Connection: "connected", Version: "v1.2.3", OK: true, HeartbeatAt: now - 1000}, {Name: "teled", Connection: "failed", Detail: "the token is wrong"}},
	}
}

func hostileSettings(text string) any {
	value := []pages.Setting{{Name: text, Value: text, Meaning: text}}
	return pages.Settings{Values: value, Paths: value, Version: text, Now: 10, Daemons: []pages.DaemonLine{{Name: text, Connection: text, Detail: text, Version: text, HeartbeatAt: 1}}}
}
