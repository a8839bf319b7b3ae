package pages_test

import (
	"arizuko/dashd/internal/pages"
	"arizuko/pkg/facts"
)

func overviewSamples() []sample {
	state := func(name string, data func(now int64) any) sample {
		return sample{name: name, template: "overview.html", section: "/", data: data, hostile: hostileOverview}
	}
	return []sample{
		state("overview", func(now int64) any { return sampleFacts(now) }),
		state("fresh", func(now int64) any { return pages.Overview{Now: now} }),
		state("steps", func(now int64) any { return pages.Overview{Now: now, Steps: sampleSteps(false)} }),
		state("machines", func(now int64) any { return sampleMachines(now) }),
		state("connected", func(now int64) any { return pages.Overview{Now: now, Pending: 2, Steps: sampleSteps(true)} }),
	}
}

func hostileOverview(text string) any {
	turn := []pages.TurnLine{{ID: 1, Folder: text, Chat: text, Topic: text, State: text, Attempts: 2, Error: text}}
	waiting := pages.WaitingLine{Rows: 1, Chat: text, Since: 1}
	platform := pages.Platform{Name: text, Daemon: text, Token: text, Where: text, OperatorID: text}
	refused := platform
	refused.Problem = text
	steps := &pages.Steps{
		Daemons: []string{text}, Platforms: []pages.Platform{platform, refused}, Operators: hostileOperators(text),
		Requests: []pages.RequestLine{hostileRequest(text)},
	}
	return pages.Overview{
		Pending: 1, Steps: steps, Attention: []facts.Fact{{Text: text, Fix: text, Level: facts.Problem, Page: facts.Page{Path: text, Text: text}}, {Text: text, Page: facts.Page{Path: text, Text: text, Fix: text}}}, Unlisted: 2,
		Daemons: []pages.DaemonLine{{Name: text, Connection: text, Detail: text, Version: text}}, Routes: []string{text},
		Machines: []pages.MachineLine{{Daemon: text, Does: text, Place: text, Addr: text, Version: text, Note: text, Bad: true}},
		Running:  pages.Turns{Count: 1, Lines: turn}, Queued: pages.Turns{Count: 52, Lines: turn}, Waiting: waiting, Unsent: waiting, Now: 10,
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
	return pages.Overview{
		Daemons: []pages.DaemonLine{
			{Name: "dashd", Connection: "connected", Version: "v0.3.0", OK: true, HeartbeatAt: now - 2_000},
			{Name: "gated", Connection: "connected", Version: "v0.3.0", OK: true, HeartbeatAt: now - 3_000, LastProbeAt: now - 3_000},
			{Name: "routd", Connection: "connected", Version: "v0.3.0", OK: true, HeartbeatAt: now - 1_000},
			{Name: "teled", Connection: "bad credentials", Detail: "getMe: 401 Unauthorized: the token is not known", Version: "v0.3.0", HeartbeatAt: now - 180_000, LastEventAt: now - 600_000, LastProbeAt: now - 240_000},
		},
		Routes: []string{
			`route 3 matches nothing: match: sender: "Ann" is not an id, which has a platform as in telegram:42: use sender_name for a display name`,
			"route 7 (platform=telegram) lets any user reach group main; direct messages of all of them share its sessions: " +
				"match a sender or a room, or set access in the group's config",
		},
		Attention: []facts.Fact{
			{Text: "teled cannot log in: getMe: 401 Unauthorized: the token is not known", Fix: "set TELEGRAM_BOT_TOKEN to the current token, run `teled check`, and restart teled", Level: facts.Problem},
			{Text: "2 turns failed within a day, the last (409, of acme/eng): exit status 1", Page: facts.Page{Path: "/turns?state=failed", Text: "Failed turns", Fix: "once the cause is gone, try them again there"}},
		},
		Unlisted: 3,
		Minutes:  sampleMinutes(),
		Running: pages.Turns{Count: 1, Lines: []pages.TurnLine{
			{ID: 412, Folder: "main", Chat: "web:main", Topic: "#deploy", State: "running", Since: now - 95_000, Attempts: 1},
		}},
		Queued: pages.Turns{Count: 2, Lines: []pages.TurnLine{
			{ID: 413, Folder: "acme/eng", Chat: "telegram:-1001234567", State: "queued", Since: now - 30_000, Attempts: 2, Error: "exit status 1: the agent ended without an answer"},
			{ID: 414, Folder: "acme/eng", Chat: "slack:C0ABC", Topic: "#fix", State: "queued", Since: now - 12_000},
		}},
		Waiting: pages.WaitingLine{Rows: 3, Chat: "telegram:-1001234567", Since: now - 240_000},
		Now:     now,
	}
}

// sampleMachines is an instance on three machines, of which one hangs.
func sampleMachines(now int64) pages.Overview {
	line := func(daemon, does, host, addr string, since, quiet int64) pages.MachineLine {
		left := 12_000 - quiet
		return pages.MachineLine{
			Daemon: daemon, Does: does, Place: host + ":/var/lib/arizuko", Addr: addr, Version: "v0.3.0", Since: now - since, Quiet: quiet, Left: left, Bad: left <= 0,
		}
	}
	o := sampleFacts(now)
	o.Machines = []pages.MachineLine{
		line("gated", "decides, runs agents", "machine1", "10.0.0.11:8080", 7_200_000, 1_000),
		line("gated", "runs agents", "machine2", "10.0.0.12:8080", 7_100_000, 2_000),
		line("gated", "runs agents", "machine3", "10.0.0.13:8080", 86_400_000, 8_000),
		line("routd", "works", "machine1", "10.0.0.11:8081", 7_200_000, 1_000),
		line("routd", "stands by", "machine2", "10.0.0.12:8081", 7_100_000, 2_000),
		line("teled", "works", "machine3", "10.0.0.13:8091", 86_400_000, 40_000),
	}
	o.Machines[1].Bad, o.Machines[1].Note = true, "agents cannot be started: the Docker engine does not answer"
	o.Attention[0] = facts.Fact{Level: facts.Problem, Text: "teled does not run: its last heartbeat was 40 s ago",
		Fix: "the lease of its process on machine3:/var/lib/arizuko ended 28 s ago, and no other took over: look at its log there, or start teled on another machine"}
	return o
}

// sampleMinutes has a quiet minute now and then.
func sampleMinutes() (m pages.Minutes) {
	for i := range 60 {
		m.In, m.Out = append(m.In, i*i%23), append(m.Out, i*7%11)
	}
	return m
}
