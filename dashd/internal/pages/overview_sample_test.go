package pages_test

import (
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/dashd/internal/status"
	"arizuko/pkg/daemon"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

func overviewSamples() []sample {
	state := func(name string, data func(now int64) any) sample {
		return sample{name: name, template: "overview.html", section: "/", data: data}
	}
	return []sample{
		state("overview", func(now int64) any { return sampleFacts(now) }),
		state("fresh", func(now int64) any { return pages.Overview{Facts: status.Facts{Now: now}} }),
		state("steps", func(now int64) any { return pages.Overview{Facts: status.Facts{Now: now}, Steps: sampleSteps(false)} }),
		state("machines", func(now int64) any { return sampleMachines(now) }),
		state("connected", func(now int64) any {
			return pages.Overview{Facts: status.Facts{Now: now}, Pending: 2, Steps: sampleSteps(true)}
		}),
	}
}

func sampleSteps(connected bool) *pages.Steps {
	s := &pages.Steps{Platforms: []pages.Platform{
		{Name: "Telegram", Daemon: "teled", Token: "TELEGRAM_BOT_TOKEN", Where: "from @BotFather, command /newbot", Connected: connected, OperatorID: "write /chatid to the bot in a direct chat: its answer is your entry"},
		{Name: "Discord", Daemon: "discd", Token: "DISCORD_BOT_TOKEN", Where: "from the developer portal, Bot, Reset Token", OperatorID: "discord:123, your user id (Settings, Advanced, Developer Mode; your profile, Copy User ID)"},
		{Name: "Slack", Daemon: "slakd", Token: "SLACK_BOT_TOKEN", Where: "and SLACK_APP_TOKEN, from your app's page", OperatorID: "slack:U0AB, your member id (your profile, Copy member ID)"},
	}}
	if !connected {
		s.Daemons = []string{"onbod"}
		s.Platforms[2].Problem = "Slack does not accept SLACK_BOT_TOKEN: invalid_auth"
		return s
	}
	s.Requests = sampleApprovals(0).Pending
	return s
}

func sampleFacts(now int64) pages.Overview {
	report := "route 3 matches nothing: match: sender: \"Ann\" is not an id, which has a platform as in telegram:42: use sender_name for a display name\n" +
		"route 7 (platform=telegram) lets any user reach group main; direct messages of all of them share its sessions: match a sender or a room, or set access in the group's config"
	return pages.Overview{
		Facts: status.Facts{
			Daemons: []status.Daemon{
				{Name: "dashd", Connection: daemon.Connected, Version: "v0.3.0", OK: true, HeartbeatAt: now - 2_000},
				{Name: "gated", Connection: daemon.Connected, Version: "v0.3.0", OK: true, HeartbeatAt: now - 3_000, LastProbeAt: now - 3_000},
				{Name: "routd", Connection: daemon.Connected, Detail: report, Version: "v0.3.0", OK: true, HeartbeatAt: now - 1_000},
				{Name: "teled", Connection: daemon.BadCredentials, Detail: "getMe: 401 Unauthorized: the token is not known", Version: "v0.3.0", HeartbeatAt: now - 1_000, LastEventAt: now - 600_000, LastProbeAt: now - 240_000},
			},
			RunningCount: 1, Running: []*msg.Turn{{ID: 412, Folder: "main", ChatJID: "web:main", Topic: "#deploy", State: msg.TurnRunning, StartedAt: now - 95_000, Attempts: 1}},
			QueuedCount: 2, Queued: []*msg.Turn{
				{ID: 413, Folder: "acme/eng", ChatJID: "telegram:-1001234567", State: msg.TurnQueued, CreatedAt: now - 30_000, Attempts: 2, Error: "exit status 1: the agent ended without an answer"},
				{ID: 414, Folder: "acme/eng", ChatJID: "slack:C0ABC", Topic: "#fix", State: msg.TurnQueued, CreatedAt: now - 12_000},
			},
			Inbound: factrows.Waiting{Rows: 3, ChatJID: "telegram:-1001234567", Since: now - 240_000},
			Now:     now,
		},
		Attention: []facts.Fact{
			{Text: "teled cannot log in: getMe: 401 Unauthorized: the token is not known", Fix: "set TELEGRAM_BOT_TOKEN to the current token, run `teled check`, and restart teled", Level: facts.Problem},
			{Text: "2 turns failed within a day, the last (409, of acme/eng): exit status 1", Page: facts.Page{Path: "/turns?state=failed", Text: "Failed turns", Fix: "once the cause is gone, try them again there"}},
		},
		Unlisted: 3, Down: 1,
		Minutes: sampleMinutes(),
	}
}

// sampleMachines is an instance on three machines; one hangs.
func sampleMachines(now int64) pages.Overview {
	process := func(daemon, host, addr string, works bool, since, quiet int64) status.Process {
		left := 12_000 - quiet
		return status.Process{Daemon: daemon, Place: host + ":/var/lib/arizuko", Addr: addr, Version: "v0.3.0", Works: works, Since: now - since, Quiet: quiet, Left: left, Bad: left <= 0}
	}
	o := sampleFacts(now)
	o.Machines = []status.Process{
		process("gated", "machine1", "10.0.0.11:8080", true, 7_200_000, 1_000),
		process("gated", "machine2", "10.0.0.12:8080", false, 7_100_000, 2_000),
		process("gated", "machine3", "10.0.0.13:8080", false, 86_400_000, 8_000),
		process("routd", "machine1", "10.0.0.11:8081", true, 7_200_000, 1_000),
		process("routd", "machine2", "10.0.0.12:8081", false, 7_100_000, 2_000),
		process("teled", "machine3", "10.0.0.13:8091", true, 86_400_000, 40_000),
	}
	o.Machines[1].Bad, o.Machines[1].Note = true, "agents cannot be started: the Docker engine does not answer"
	o.Attention[0] = facts.Fact{Level: facts.Problem, Text: "teled does not run: its last heartbeat was 40 s ago",
		Fix: "the lease of its process on machine3:/var/lib/arizuko ended 28 s ago, and no other took over: look at its log there, or start teled on another machine"}
	return o
}

// sampleMinutes has a quiet minute now and then.
func sampleMinutes() (m pages.Minutes) {
	for i := range 60 {
		m.Rows = append(m.Rows, rows.Minute{In: i * i % 23, Out: i * 7 % 11})
	}
	return m
}
