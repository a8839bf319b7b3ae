package pages_test

import "arizuko/dashd/internal/pages"

func messagesSamples() []sample {
	return []sample{
		{name: "messages", template: "messages.html", section: "/messages", data: func(now int64) any { return sampleMessages(now) }, hostile: hostileMessages},
		{name: "no-messages", template: "messages.html", section: "/messages", data: func(now int64) any { return pages.Messages{Now: now, Filter: noFilter()} }, hostile: hostileMessages},
		{name: "window-messages", template: "messages.html", section: "/messages", data: func(now int64) any {
			return pages.Messages{Now: now, Through: now - 86_400_000, Next: "/messages?before=9", Newest: "/messages", Wrong: "since", Problem: "The time is not one such as 2026-05-31T14:00.", Filter: noFilter()}
		}, hostile: hostileMessages},
		{name: "why", template: "why.html", section: "/messages", data: func(now int64) any { return sampleWhy(now) }, hostile: hostileWhy},
		{name: "why-replayed", template: "why.html", section: "/messages", data: func(now int64) any {
			return pages.Why{ID: 7, Now: now, Out: true, Replay: &pages.ReplayForm{ID: 7, Copy: 9, Out: true, Chat: "telegram:-1001234567890"}, Text: "hello", Took: "2.71s"}
		}, hostile: hostileWhy},
		{name: "lost", template: "lost.html", section: "/lost", data: func(now int64) any { return sampleLost(now) }, hostile: hostileLost},
		{name: "no-lost", template: "lost.html", section: "/lost", data: func(now int64) any { return pages.Lost{Now: now} }, hostile: hostileLost},
		{name: "confirm-lost", template: "lost.html", section: "/lost", data: func(now int64) any {
			lost := sampleLost(now)
			lost.List, lost.Confirm = nil, &pages.LostConfirm{Title: "Send again: failed, expired", Key: "failed.expired", IDs: "1 2 3", Back: "/lost?reason=failed.expired",
				Verb: "Send again", Count: 3, Left: true, Before: 1234567, Next: "/lost/confirm?before=9&reason=failed.expired", Chats: []pages.LostChat{{Chat: "telegram:-1001234567890", Title: "Engineering: builds and releases", Count: 2}, {Chat: "slack:C0ABC", Count: 1}}}
			return lost
		}, hostile: hostileLost},
		{name: "confirm-none-lost", template: "lost.html", section: "/lost", data: func(now int64) any {
			lost := sampleLost(now)
			lost.List, lost.Confirm = nil, &pages.LostConfirm{Title: "Send again: failed, expired", Back: "/lost", Verb: "Send again", Left: true, Next: "/lost/confirm?before=9&reason=failed.expired"}
			return lost
		}, hostile: hostileLost},
	}
}

func noFilter() pages.MessageFilter {
	any := []pages.Option{{Value: "", Text: "any", Selected: true}, {Value: "x", Text: "a longer choice of this field"}}
	return pages.MessageFilter{Directions: any, Dispositions: any, Reasons: any, State: any}
}

func sampleLines(now int64) []pages.MessageLine {
	return []pages.MessageLine{
		{ID: 81234567, Out: true, Who: "arizuko", Chat: "telegram:-1001234567890", Title: "Engineering: builds, releases and everything that breaks at night", Text: "The nightly build is red since Tuesday: TestWriteOrder waits for a lock that no process holds, and the runner gives up after an hour.", State: "failed", Bad: true, At: now - 30_000},
		{ID: 81234566, Who: "Ada Lovelace", Chat: "telegram:-1001234567890", Title: "Engineering: builds, releases and everything that breaks at night", Group: "acme/eng", Text: "@arizuko why is the build red?", Kind: "mention", State: "routed, route", At: now - 90_000},
		{ID: 81234565, Who: "slack:U0AB", Chat: "slack:C0ABC", Text: "", State: "dropped, no_route", Bad: true, At: now - 7_200_000},
	}
}

func sampleMessages(now int64) pages.Messages {
	filter := noFilter()
	filter.Text, filter.Chat, filter.Active = `build "no process"`, "telegram:-1001234567890", "chat"
	return pages.Messages{Now: now, Filter: filter, Lines: sampleLines(now), Next: "/messages?before=7", Newest: "/messages", Lag: pages.Lag{Rows: 1234, Since: now - 60_000}, Groups: []string{"main", "acme/eng"}}
}

func hostileMessages(text string) any {
	line := pages.MessageLine{ID: 1, Who: text, Chat: text, Title: text, Group: text, Text: text, Kind: text, State: text, At: 1}
	choice := []pages.Option{{Value: text, Text: text, Selected: true}}
	return pages.Messages{Now: 10, Lines: []pages.MessageLine{line}, Problem: text, Groups: []string{text}, Filter: pages.MessageFilter{
		Text: text, Chat: text, Group: text, Sender: text, Since: text, Until: text, Directions: choice, Dispositions: choice, Reasons: choice, State: choice, Active: text,
	}}
}

func sampleWhy(now int64) pages.Why {
	link := func(path, text string) []pages.Link { return []pages.Link{{Path: path, Text: text}} }
	return pages.Why{
		ID: 812, Now: now, Text: "@arizuko why is the build red?\nIt was green on Monday.", Took: "6.1s", Change: "It was edited since, to: @arizuko why is the build red again?",
		Fields: []pages.Field{
			{Name: "State", Text: "received: routed, route"}, {Name: "Chat", Text: "Engineering: builds, releases and everything that breaks at night", Path: "/messages?chat=x"},
			{Name: "Sender", Text: "telegram:4211223344", Path: "/messages?sender=x"}, {Name: "Topic of the message", Text: "9"}, {Name: "Turn 97", Text: "failed, group acme/eng, topic #deploy", Path: "/turns/97"},
		},
		Steps: []pages.WhyStep{
			{Day: "2026-09-21", Time: "14:13:20.000", Text: "row 812 stored by teled", Owner: "teled", Links: link("/messages/812", "message 812"), Main: true},
			{Time: "14:13:20.031", After: "31ms", Text: "row 812 decided: routed, route (a route named the group), folder acme/eng", Reason: "route", Owner: "gated", Links: link("/turns/97", "turn 97"), Main: true},
			{Time: "14:13:20.040", After: "9ms", Text: "run 55 started: runtime docker, label arizuko-run-55", Owner: "gated"},
			{Time: "14:13:26.000", After: "5.96s", Text: "turn 97 ended: failed, agent_error (the agent failed), failed attempts: 2, error: the agent ended without an answer: exit code 3", Reason: "agent_error", Owner: "gated", Main: true},
			{Day: "2026-09-22", Time: "00:00:27.000", After: "9h47m1s", Text: "row 813 part 1: queued, attempts 3, rate error: Too Many Requests: retry after 10", Owner: "teled", Links: link("/messages/813", "message 813"), Main: true},
		},
		Open:    []pages.WhyOpen{{Text: "row 813 part 1: next attempt in 10s", Owner: "teled", Links: link("/messages/813", "message 813")}},
		Near:    []pages.NearMessage{{ID: 813, Relation: "an answer of turn 97", Place: "telegram:-1001234567890", Text: "Sorry, that failed."}},
		Replay:  &pages.ReplayForm{ID: 812, Chat: "telegram:-1001234567890"},
		Request: "KQVD-4821",
	}
}

func hostileWhy(text string) any {
	links := []pages.Link{{Path: "/messages/1", Text: text}}
	return pages.Why{
		ID: 1, Now: 10, Text: text, Cut: true, Change: text, Took: text, Request: text, Fields: []pages.Field{{Name: text, Text: text, Path: "/messages"}, {Name: text, Text: text}},
		Steps: []pages.WhyStep{{Day: text, Time: text, After: text, Text: text, Reason: text, Owner: text, Links: links}}, Open: []pages.WhyOpen{{Text: text, Owner: text, Links: links}},
		Near: []pages.NearMessage{{ID: 2, Relation: text, Place: text, Text: text}}, Replay: &pages.ReplayForm{ID: 1, Copy: 2, Out: true, Chat: text},
	}
}

func sampleLost(now int64) pages.Lost {
	lost := pages.Lost{Now: now, Counts: []pages.LostGroup{
		{Title: "Not delivered", Counts: []pages.LostCount{
			{Reason: "failed, permanent", Text: "the platform refused it", Path: "/lost?reason=failed.permanent", Count: "3", Current: true},
			{Reason: "failed, expired", Text: "the platform was out of reach for too long", Path: "/lost?reason=failed.expired", Count: "10000 or more"},
		}},
		{Title: "Dropped", Counts: []pages.LostCount{{Reason: "no_route", Text: "no route matches, and the row asks for no group: the bot was not addressed, or another bot wrote it", Path: "/lost?reason=dropped.no_route", Count: "812"}}},
		{Title: "Waiting for an operator"},
	}, List: &pages.LostList{Title: "Messages: failed, permanent", Reason: "the platform refused it", Key: "failed.permanent", Next: "/lost?before=3", Replay: true, AllPath: "/lost?all=1", Verb: "Send again"}}
	for i, line := range sampleLines(now) {
		lost.List.Lines = append(lost.List.Lines, pages.LostLine{MessageLine: line, Copy: []int64{0, 9, 0}[i]})
	}
	return lost
}

func hostileLost(text string) any {
	line := pages.LostLine{MessageLine: hostileMessages(text).(pages.Messages).Lines[0]}
	return pages.Lost{
		Now: 10, Counts: []pages.LostGroup{{Title: text, Counts: []pages.LostCount{{Reason: text, Text: text, Path: "/lost", Count: text, Current: true}}}},
		List:    &pages.LostList{Title: text, Reason: text, Key: text, Lines: []pages.LostLine{line}, Replay: true, AllPath: "/lost", Verb: text},
		Confirm: &pages.LostConfirm{Title: text, Key: text, IDs: text, Back: "/lost", Verb: text, Count: 1, Left: true, Chats: []pages.LostChat{{Chat: text, Title: text, Count: 1}}},
	}
}
