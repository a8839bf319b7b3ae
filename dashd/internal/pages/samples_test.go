package pages_test

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/dashd/internal/status"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/why"
)

// sample is a page for operators with content. Each such page has one, and one for each of its other states: the tests
// of markup and looks show all of them.
type sample struct {
	name, template string
	section        string // the link in the navigation that is current
	// data is what the page shows; now is in unix ms.
	data func(now int64) any
}

// hostile is the data with a text in each of its strings.
func (s sample) hostile(text string) any {
	data := reflect.New(reflect.TypeOf(s.data(10))).Elem()
	data.Set(reflect.ValueOf(s.data(10)))
	fill(data, text)
	return data.Interface()
}

// fill puts a text into every string below a value. Named types, such as states, keep theirs.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(text))
			return
		}
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.String && !v.IsNil() {
			for _, key := range v.MapKeys() {
				v.SetMapIndex(key, reflect.ValueOf(text))
			}
			if v.Type().Key().Kind() == reflect.String {
				v.SetMapIndex(reflect.ValueOf(text), reflect.ValueOf(text))
			}
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(text)
		}
	}
}

// samples returns all samples.
func samples() []sample {
	return slices.Concat(overviewSamples(), connectSamples(), messagesSamples(), turnsSamples(), approvalsSamples(), reminderSamples(),
		chatSamples(), groupSamples(), routesSamples(), spendSamples(), figuresSamples())
}

// view renders a sample with data, in the frame of a page.
func view(t *testing.T, p *pages.Pages, w http.ResponseWriter, s sample, data any, v pages.View) {
	t.Helper()
	html, err := p.Fragment(s.template, data)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	v.Fragment, v.Section = html, s.section
	p.View(w, http.StatusOK, v)
}

// fragment writes a page's fragment without its frame.
func fragment(t *testing.T, p *pages.Pages, w http.ResponseWriter, template string, data any) {
	t.Helper()
	html, err := p.Fragment(template, data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(html)); err != nil {
		t.Fatal(err)
	}
}

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
		{Name: "Telegram", Daemon: "teled", Secrets: []string{"TELEGRAM_BOT_TOKEN"}, Where: "from @BotFather, command /newbot", Connected: connected, OperatorID: "write /chatid to the bot in a direct chat: its answer is your entry"},
		{Name: "Discord", Daemon: "discd", Secrets: []string{"DISCORD_BOT_TOKEN"}, Where: "from the developer portal, Bot, Reset Token", OperatorID: "discord:123, your user id (Settings, Advanced, Developer Mode; your profile, Copy User ID)"},
		{Name: "Slack", Daemon: "slakd", Secrets: []string{"SLACK_BOT_TOKEN"}, Where: "and SLACK_APP_TOKEN, from your app's page", OperatorID: "slack:U0AB, your member id (your profile, Copy member ID)"},
	}}
	if !connected {
		s.Daemons = []string{"onbod"}
		s.Platforms[2].Problem = "Slack does not accept SLACK_BOT_TOKEN: invalid_auth"
		return s
	}
	s.Requests = sampleApprovals(0).Pending
	return s
}

// daemons are rows that are connected and a second old, unless they say otherwise.
func daemons(now int64, rows ...daemonrows.Daemon) facts.Daemons {
	all := facts.Daemons{}
	for _, row := range rows {
		row.Version, row.HeartbeatAt = "v0.3.0", cmp.Or(row.HeartbeatAt, now-1_000)
		row.Connection = cmp.Or(row.Connection, string(daemon.Connected))
		all[row.Name] = &facts.Daemon{Daemon: row}
	}
	return all
}

func sampleFacts(now int64) pages.Overview {
	report := "route 3 matches nothing: match: sender: \"Ann\" is not an id, which has a platform as in telegram:42: use sender_name for a display name\n" +
		"route 7 (platform=telegram) lets any user reach group main; direct messages of all of them share its sessions: match a sender or a room, or set roles.ask in the group's config"
	return pages.Overview{
		Facts: status.Facts{
			Daemons: daemons(now,
				daemonrows.Daemon{Name: "dashd", HeartbeatAt: now - 2_000},
				daemonrows.Daemon{Name: "gated", HeartbeatAt: now - 3_000, LastProbeAt: now - 3_000},
				daemonrows.Daemon{Name: "routd", Detail: report},
				daemonrows.Daemon{Name: "teled", Connection: string(daemon.BadCredentials), Detail: "getMe: 401 Unauthorized: the token is not known", LastEventAt: now - 600_000, LastProbeAt: now - 240_000},
			),
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
		Further: []facts.Fact{{Level: facts.Warning, Text: "the clock went back", Fix: "correct the clock"}}, Down: 1,
		Minutes: sampleMinutes(),
	}
}

// sampleMachines is an instance on three machines; one hangs.
func sampleMachines(now int64) pages.Overview {
	process := func(daemon, host, addr string, works bool, since, quiet int64) daemonrows.Process {
		return daemonrows.Process{Daemon: daemon, Place: host + ":/var/lib/arizuko", Addr: addr, Version: "v0.3.0", Holds: map[bool]string{true: daemon}[works],
			Since: now - since, Now: now, Until: now - quiet + store.LeaseTime.Milliseconds()}
	}
	o := sampleFacts(now)
	o.Machines = []daemonrows.Process{
		process("gated", "machine1", "10.0.0.11:8080", true, 7_200_000, 1_000),
		process("gated", "machine2", "10.0.0.12:8080", false, 7_100_000, 2_000),
		process("gated", "machine3", "10.0.0.13:8080", false, 86_400_000, 8_000),
		process("routd", "machine1", "10.0.0.11:8081", true, 7_200_000, 1_000),
		process("routd", "machine2", "10.0.0.12:8081", false, 7_100_000, 2_000),
		process("teled", "machine3", "10.0.0.13:8091", true, 86_400_000, 40_000),
	}
	o.Machines[1].Connection, o.Machines[1].Detail = string(daemon.Degraded), "agents cannot be started: the Docker engine does not answer"
	o.Attention[0] = facts.Fact{Level: facts.Problem, Text: "teled does not run: its last heartbeat was 40 s ago",
		Fix: "the lease of its process on machine3:/var/lib/arizuko ended 28 s ago, and no other took over: look at its log there, or start teled on another machine"}
	return o
}

// sampleMinutes has a quiet minute now and then.
func sampleMinutes() pages.Chart {
	c := sampleChart("messages", 0, 60, "15:04", time.Minute, "received", "sent")
	for i := range c.Values {
		c.Values[i] = []float64{float64(i * i % 23), float64(i * 7 % 11)}
	}
	return c
}

// sampleChart has a column without anything now and then.
func sampleChart(id string, unit pages.Unit, n int, layout string, each time.Duration, names ...string) pages.Chart {
	c := pages.Chart{ID: id, Title: "Chart of " + id, Unit: unit}
	for j, name := range names {
		c.Series = append(c.Series, pages.NewSeries(name, j%6, "/turns", "state", "done"))
	}
	start := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	for i := range n {
		at, values := start.Add(time.Duration(i)*each), make([]float64, len(names))
		for j := range values {
			values[j] = float64(i * (j + 3) % 7 * 37)
		}
		c.Columns = append(c.Columns, pages.NewColumn(at, at.Add(each), layout))
		c.Values = append(c.Values, values)
	}
	return c
}

func figuresSamples() []sample {
	charts := func(int64) any {
		waits := sampleChart("answer", pages.Milliseconds, 48, "Mon 15:00", time.Hour, "95 % within", "half within")
		waits.Over, waits.About = true, "From a message until the end of its turn."
		return []pages.Chart{
			sampleChart("messages", 0, 48, "Mon 15:00", time.Hour, "received", "sent"), waits,
			sampleChart("queue", 0, 26, "Jan 2", 7*24*time.Hour), sampleChart("spend", pages.Dollars, 30, "Jan 2", 24*time.Hour,
				"acme/eng", "main", "acme/ops", "a group with a name that is far too long for a legend of a chart", "home", "others"),
		}
	}
	return []sample{
		{name: "figures", template: "charts", section: "/figures", data: charts},
		{name: "figures-about", template: "figures.html", section: "/figures", data: func(now int64) any {
			return pages.Figures{Now: now, At: now - 60_000, Zone: "CET", Choices: turnChoices()}
		}},
		{name: "no-figures", template: "figures.html", section: "/figures", data: func(now int64) any { return pages.Figures{Now: now, Choices: turnChoices()} }},
	}
}

func messagesSamples() []sample {
	return []sample{
		{name: "messages", template: "messages.html", section: "/messages", data: func(now int64) any { return sampleMessages(now) }},
		{name: "no-messages", template: "messages.html", section: "/messages", data: func(now int64) any { return pages.Messages{Now: now, Filter: noFilter()} }},
		{name: "window-messages", template: "messages.html", section: "/messages", data: func(now int64) any {
			return pages.Messages{Now: now, Through: now - 86_400_000, Next: "/messages?before=9", Newest: "/messages", Wrong: "since", Problem: "Write the time as 2026-05-31T14:00.", Filter: noFilter()}
		}},
		{name: "search", template: "search.html", section: "/search", data: sampleSearch},
		{name: "no-search", template: "search.html", section: "/search", data: func(now int64) any { return pages.Search{} }},
		{name: "why", template: "why.html", section: "/messages", data: func(now int64) any { return sampleWhy(now) }},
		{name: "why-replayed", template: "why.html", section: "/messages", data: func(now int64) any {
			return pages.Why{Now: now, Path: &why.Path{Asked: &msg.Message{ID: 7, Direction: msg.Out, ChatJID: "telegram:-1001234567890", Content: "hello"}}, Replay: true, Copy: 9, Took: 2710 * time.Millisecond}
		}},
		{name: "lost", template: "lost.html", section: "/lost", data: func(now int64) any { return sampleLost(now) }},
		{name: "no-lost", template: "lost.html", section: "/lost", data: func(now int64) any { return pages.Lost{Now: now} }},
		{name: "confirm-lost", template: "lost.html", section: "/lost", data: func(now int64) any {
			lost := sampleLost(now)
			lost.List, lost.Confirm = nil, &pages.LostConfirm{Before: 1234567, Next: 9, Titles: sampleTitles(),
				Batch: pages.Batch{IDs: []int64{1, 2, 3}, Chats: map[string]int{"telegram:-1001234567890": 2, "slack:C0ABC": 1}}}
			return lost
		}},
		{name: "confirm-none-lost", template: "lost.html", section: "/lost", data: func(now int64) any {
			lost := sampleLost(now)
			lost.List, lost.Confirm = nil, &pages.LostConfirm{Next: 9}
			return lost
		}},
	}
}

func noFilter() pages.MessageFilter {
	any := []pages.Option{{Value: "", Text: "any", Selected: true}, {Value: "x", Text: "a longer choice of this field"}}
	return pages.MessageFilter{Directions: any, Dispositions: any, Reasons: any, State: any}
}

func sampleTitles() pages.Titles {
	return pages.Titles{"telegram:-1001234567890": "Engineering: builds, releases and everything that breaks at night"}
}

func sampleLines(now int64) []*msg.Message {
	return []*msg.Message{
		{ID: 81234567, Direction: msg.Out, Kind: msg.KindMessage, SenderName: "arizuko", ChatJID: "telegram:-1001234567890", OutState: msg.OutFailed, ReceivedAt: now - 30_000,
			Content: "The nightly build is red since Tuesday: TestWriteOrder waits for a lock that no process holds, and the runner gives up after an hour."},
		{ID: 81234566, Direction: msg.In, SenderName: "Ada Lovelace", ChatJID: "telegram:-1001234567890", RoutedTo: "acme/eng", Content: "@arizuko why is the build red?", Verb: msg.VerbMention,
			Disposition: msg.Routed, Reason: "route", ReceivedAt: now - 90_000},
		{ID: 81234565, Direction: msg.In, Sender: "slack:U0AB", ChatJID: "slack:C0ABC", Verb: msg.VerbMessage, Disposition: msg.Dropped, Reason: msg.ReasonNoRoute, ReceivedAt: now - 7_200_000},
	}
}

func sampleMessages(now int64) pages.Messages {
	filter := noFilter()
	filter.Text, filter.Chat, filter.Active = `build "no process"`, "telegram:-1001234567890", "chat"
	return pages.Messages{Now: now, Filter: filter, Lines: sampleLines(now), Ends: map[int64]string{81234566: "taken back"}, Titles: sampleTitles(), Next: "/messages?before=7", Newest: "/messages", Lag: rows.SearchLag{Rows: 1234, Since: now - 60_000}, Groups: []msg.Group{{Folder: "main"}, {Folder: "acme/eng"}}}
}

func sampleSearch(now int64) any {
	found := sampleMessages(now)
	return pages.Search{Query: "build", Messages: found, Turn: &msg.Turn{ID: 7, ChatJID: "web:main", Folder: "main", State: msg.TurnDone, Reason: msg.ReasonAnswered},
		Groups: []msg.Group{{Folder: "acme/build", Name: "Builds & releases"}}, MoreChats: true,
		Chats: []rows.SeenChat{{Chat: msg.Chat{JID: "slack:C0ABC", Title: "builds"}}, {Chat: msg.Chat{JID: "discord+work:1", Title: "build-log"}},
			{Chat: msg.Chat{JID: "telegram:-1001234567890", Title: "Engineering: builds, releases and everything that breaks at night"}}},
	}
}

func sampleWhy(now int64) pages.Why {
	at := time.Date(2026, 9, 21, 14, 13, 20, 0, time.Local).UnixMilli()
	return pages.Why{
		Now: now, Took: 6100 * time.Millisecond, Change: &factrows.Change{Content: "@arizuko why is the build red again?"}, Replay: true, Titles: sampleTitles(),
		Path: &why.Path{
			Request: &factrows.Request{Code: "KQVD-4821"},
			Turns:   []*why.Turn{{Turn: &msg.Turn{ID: 97, State: msg.TurnFailed, Folder: "acme/eng", Topic: "#deploy"}}},
			Asked: &msg.Message{ID: 812, Direction: msg.In, ChatJID: "telegram:-1001234567890", Sender: "telegram:4211223344", SenderName: "Ada", Topic: "9", Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: "acme/eng",
				Content: "@arizuko why is the build red?\nIt was green on Monday.", Timestamp: at, Attachments: []msg.Attachment{
					{Name: "voice.ogg", Transcript: &msg.Transcript{Text: "and what broke it?"}}, {Name: "late.ogg", Transcript: &msg.Transcript{}}, {Name: "noise.ogg", Transcript: &msg.Transcript{Error: "it is empty"}}}},
		},
		Steps: []why.Step{
			{At: at, Text: "message 812 stored by teled", Owner: "teled", Row: 812, Main: true},
			{At: at + 31, After: 31 * time.Millisecond, Text: "message 812 decided: routed, route (a route named the group), folder acme/eng", Words: "went to acme/eng because a route takes mentions", Reason: msg.ReasonRoute, Owner: "gated", Turn: 97, Main: true},
			{At: at + 40, After: 9 * time.Millisecond, Text: "run 55 started: runtime docker, label arizuko-run-55", Owner: "gated"},
			{At: at + 6000, After: 5960 * time.Millisecond, Text: "turn 97 ended: failed, agent_error (the agent failed), failed attempts: 2, error: the agent ended without an answer: exit code 3", Owner: "gated", Main: true},
			{At: at + 36_000_000, After: 9*time.Hour + 47*time.Minute, Text: "message 813 part 1: queued, attempts 3, rate error: Too Many Requests: retry after 10", Owner: "teled", Row: 813, From: &why.Origin{Reminder: 7}, Main: true},
		},
		Open: []why.Open{{Text: "message 813 part 1: next attempt in 10s", Owner: "teled", Row: 813}},
		Near: []pages.NearMessage{{Message: &msg.Message{ID: 813, ChatJID: "telegram:-1001234567890", Content: "Sorry, that failed."}, Relation: "an answer of turn 97"}},
	}
}

func sampleLost(now int64) pages.Lost {
	failed := pages.LostReason{Key: "failed.permanent", Title: "refused", Text: "the platform refused it", Count: 3, Replay: true, Filter: rows.MessageFilter{State: msg.OutFailed}}
	return pages.Lost{Now: now, Chosen: &failed, Groups: []pages.LostGroup{
		{Title: "Not delivered", Reasons: []pages.LostReason{failed, {Key: "failed.expired", Title: "out of time", Text: "the platform was out of reach for too long", Count: pages.MaxLostCount}}},
		{Title: "Not answered", Reasons: []pages.LostReason{{Key: "dropped.no_route", Title: msg.ReasonNoRoute.Words(), Text: "no route matches, and the row asks for no group: the bot was not addressed, or another bot wrote it", Count: 812}}},
	}, List: &pages.Messages{Lines: sampleLines(now), Titles: sampleTitles(), Next: "/lost?before=3"}, Copies: map[int64]int64{81234566: 9}}
}

func turnsSamples() []sample {
	return []sample{
		{name: "turns", template: "turns.html", section: "/turns", data: sampleTurns},
		{name: "no-turns", template: "turns.html", section: "/turns", data: func(now int64) any { return pages.List[*msg.Turn]{Now: now, Choices: turnChoices()} }},
		{name: "turn", template: "turn.html", section: "/turns", data: sampleTurn},
		{name: "turn-queued", template: "turn.html", section: "/turns", data: func(now int64) any {
			return pages.TurnPage{Now: now, Turn: &why.Turn{Turn: &msg.Turn{ID: 7, Folder: "main", ChatJID: "web:main", State: msg.TurnQueued, CreatedAt: now},
				Batch: []*msg.Message{{ID: 9, SenderName: "operator", Content: "hello"}}}}
		}},
		{name: "retry", template: "retry.html", section: "/turns", data: sampleRetry},
		{name: "no-retry", template: "retry.html", section: "/turns", data: func(now int64) any { return pages.Retry{Now: now} }},
		{name: "turn-asks", template: "turn.html", section: "/turns", data: sampleAsks},
		{name: "prompt", template: "prompt.html", section: "/turns", data: func(int64) any {
			return pages.PromptPage{Prompt: "<messages>\n  <message id=\"9\" sender=\"Ada\" time=\"10:42\">" + strings.Repeat("Can you look at the build? ", 9) + "</message>\n</messages>"}
		}},
		{name: "no-prompt", template: "prompt.html", section: "/turns", data: func(int64) any { return pages.PromptPage{Problem: "gated does not answer: start it, then try again."} }},
	}
}

func sampleRetry(now int64) any {
	list := sampleTurns(now).(pages.List[*msg.Turn])
	page := pages.Retry{Now: now, Bounded: true, Titles: list.Titles, Causes: []pages.FailedCause{
		{Key: "a", Turns: slices.Repeat(list.Lines[1:2], 112)}, {Key: "b", Turns: []*msg.Turn{{ID: 7, Folder: "main", EndedAt: now}}}}}
	page.Chosen, page.Batch = &page.Causes[0], pages.Batch{IDs: []int64{1, 2}, Chats: map[string]int{list.Lines[1].ChatJID: 1, list.Lines[2].ChatJID: 1}}
	return page
}

func turnChoices() []pages.Choice {
	return []pages.Choice{
		{Link: pages.Link{Path: "/turns", Text: "All"}, Current: true}, {Link: pages.Link{Path: "/turns?state=running", Text: "Running"}},
		{Link: pages.Link{Path: "/turns?state=queued", Text: "Queued"}}, {Link: pages.Link{Path: "/turns?state=failed", Text: "Failed"}},
		{Link: pages.Link{Path: "/turns?state=cancelled", Text: "Cancelled"}},
	}
}

func sampleTurns(now int64) any {
	return pages.List[*msg.Turn]{
		Now: now, Choices: turnChoices(), Next: "/turns?before=409",
		Titles: pages.Titles{"telegram:-1001234567": "Engineering", "slack:C0ABC": "ops"},
		Asked:  map[int64]*msg.Message{9: sampleLines(now)[0], 8: sampleLines(now)[1]},
		Lines: []*msg.Turn{
			{ID: 412, TriggerMessageID: 9, Folder: "main", ChatJID: "web:main", Topic: "#deploy", State: msg.TurnRunning, CreatedAt: now - 95_000, StartedAt: now - 94_000},
			{ID: 411, TriggerMessageID: 8, Folder: "acme/eng", ChatJID: "telegram:-1001234567", State: msg.TurnFailed, Attempts: 3, CreatedAt: now - 600_000, StartedAt: now - 590_000, EndedAt: now - 400_000,
				Error: "exit status 1: the agent ended without an answer", Reason: msg.ReasonAgentError},
			{ID: 410, Folder: "acme/eng", ChatJID: "slack:C0ABC", State: msg.TurnQueued, CreatedAt: now - 700_000, WaitsFor: msg.WaitsFiles},
			{ID: 409, Folder: "main", ChatJID: "discord:99887766554433", State: msg.TurnDone, CreatedAt: now - 7_200_000, StartedAt: now - 7_199_000, EndedAt: now - 7_100_000, Reason: msg.ReasonAnswered},
		},
	}
}

func sampleRuns(now int64) []*factrows.RunResult {
	return []*factrows.RunResult{
		{Run: msg.Run{ID: 88, Runtime: "bwrap", StartedAt: now - 590_000, EndedAt: now - 580_000}, Result: "error", Error: "exit status 1"},
		{Run: msg.Run{ID: 89, Runtime: "bwrap", StartedAt: now - 570_000}},
	}
}

func sampleTurn(now int64) any {
	list := sampleTurns(now).(pages.List[*msg.Turn])
	turn := list.Lines[1]
	turn.ThreadID, turn.Surface = "1733", "telegram-group"
	return pages.TurnPage{
		Now: now, Titles: list.Titles, Parent: 409, TookIn: []*msg.Turn{{ID: 412}, {ID: 413}},
		Turn: &why.Turn{Turn: turn,
			Batch: []*msg.Message{
				{ID: 5120, SenderName: "Ada Lovelace", Content: "@arizuko can you say why the nightly build is red? It has been since Tuesday.", Attachments: make([]msg.Attachment, 1)},
				{ID: 5121, SenderName: "Grace", Content: "TestWriteOrder looks like it waits for a lock that no process holds."},
			},
			Replies: []*why.Reply{{Message: &msg.Message{ID: 5140, Direction: msg.Out, SenderName: "arizuko", Content: "The agent could not answer. An operator can retry it.", OutState: msg.OutFailed, Error: "the chat does not exist any more"}}},
			Usage:   agentproto.Usage{Input: 5120, Output: 310, CostUSD: 0.021},
			Undos: []*factrows.Undo{
				{State: factrows.UndoDone, By: "telegram:42", Name: "Ada Lovelace", Answer: "Taken back: turn 411 (“@arizuko can you say why the nightly build is red?”).\n- one message is deleted\n\n/redo reverses this.", EndedAt: now - 390_000},
				{State: factrows.UndoRefused, By: "web:operator", Answer: factrows.UndoneFilesChanged + "pkg/store/write_order_test.go, deploy/ci/nightly.yml.\n/undo rest leaves them as they are, and does everything else.", EndedAt: now - 60_000},
			},
			Calls: []factrows.ToolCall{{Tool: "create_reminder", Result: []byte(`{"id":17}`), CreatedAt: now - 500_000}},
			Runs:  sampleRuns(now), Sent: sampleRequests(now),
		},
		Work: &store.Progress{State: agentproto.StatusRunning, UpdatedAt: now - 2000, Text: "The build is red since Tuesday, when",
			Plan: []agentproto.Step{{Content: "Read the log of the build", Status: agentproto.StepCompleted}, {Content: "Find the change", Status: agentproto.StepInProgress},
				{Content: "Say who can fix it", Status: agentproto.StepPending}},
			Tools: []agentproto.Tool{{Title: "Read build.log", Status: agentproto.ToolDone}, {Title: "git bisect run go test ./pkg/store -run TestWriteOrder", Status: agentproto.ToolFailed}}},
		LogRun: 89, LogCut: true, Log: strings.Repeat("2026-11-23T04:10:00Z tool: go test ./pkg/store -run TestWriteOrder -count 50 -v | tail -100\n", 12),
	}
}

func sampleAsks(now int64) any {
	question := func(id int64, state msg.AskState, who, text, hash string, options ...string) pages.Question {
		return pages.Question{Operator: operator, Ask: &msg.Ask{ID: id, TurnID: 7, MessageID: 5130 + id, Question: text, PayloadHash: hash, Options: options, Who: msg.Who{Label: who, Senders: []string{"telegram:42"}},
			State: state, CreatedAt: now - 80_000, ExpiresAt: now + 520_000, EndedAt: now - 60_000}}
	}
	answered := question(2, msg.AskAnswered, "operators", "Run Bash?\ngo test ./pkg/store", strings.Repeat("77aa01c4d5e6", 5), "Allow once", "Deny")
	answered.Option, answered.AnsweredBy = "Allow once", "telegram:42"
	return pages.TurnPage{
		Now: now,
		Turn: &why.Turn{Turn: &msg.Turn{ID: 7, Folder: "main", ChatJID: "telegram:-1001234567", State: msg.TurnRunning, CreatedAt: now - 90_000, StartedAt: now - 89_000},
			Batch: []*msg.Message{{ID: 5120, SenderName: "Ada Lovelace", Content: "fix the nightly build"}}},
		Asks: []pages.Question{
			question(4, msg.AskOpen, "operators", "Run Bash?\ngit push --force-with-lease origin HEAD:refs/heads/release/2026-11-23-hotfix-of-the-write-order\n# pushes the fix", strings.Repeat("3fa1b2c4d5e6", 5), "Allow once", "Deny"),
			question(5, msg.AskOpen, "Ada Lovelace", "Which of the two builds shall I restart?", "", "the nightly one, of the night from Sunday to Monday, all of it", "the release"),
			answered,
			question(3, msg.AskExpired, "", "Shall I go on?", "", "yes", "no"),
		},
	}
}

func approvalsSamples() []sample {
	return []sample{
		{name: "approvals", template: "approvals.html", section: "/approvals", data: func(now int64) any { return sampleApprovals(now) }},
		{name: "no-approvals", template: "approvals.html", section: "/approvals", data: func(now int64) any { return pages.Approvals{Now: now} }},
	}
}

func connectSamples() []sample {
	connect := func(text ...string) pages.Connect {
		return pages.Connect{Platform: pages.Platform{Name: text[0], Daemon: text[1], Where: text[2], Secrets: text[3:]}, Profiles: "telegram,slack"}
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
