package pages_test

import (
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/why"
)

func messagesSamples() []sample {
	return []sample{
		{name: "messages", template: "messages.html", section: "/messages", data: func(now int64) any { return sampleMessages(now) }},
		{name: "no-messages", template: "messages.html", section: "/messages", data: func(now int64) any { return pages.Messages{Now: now, Filter: noFilter()} }},
		{name: "window-messages", template: "messages.html", section: "/messages", data: func(now int64) any {
			return pages.Messages{Now: now, Through: now - 86_400_000, Next: "/messages?before=9", Newest: "/messages", Wrong: "since", Problem: "Write the time as 2026-05-31T14:00.", Filter: noFilter()}
		}},
		{name: "why", template: "why.html", section: "/messages", data: func(now int64) any { return sampleWhy(now) }},
		{name: "why-replayed", template: "why.html", section: "/messages", data: func(now int64) any {
			return pages.Why{Now: now, Message: &msg.Message{ID: 7, Direction: msg.Out, ChatJID: "telegram:-1001234567890", Content: "hello"}, Replay: true, Copy: 9, Took: 2710 * time.Millisecond}
		}},
		{name: "lost", template: "lost.html", section: "/lost", data: func(now int64) any { return sampleLost(now) }},
		{name: "no-lost", template: "lost.html", section: "/lost", data: func(now int64) any { return pages.Lost{Now: now} }},
		{name: "confirm-lost", template: "lost.html", section: "/lost", data: func(now int64) any {
			lost := sampleLost(now)
			lost.List, lost.Confirm = nil, &pages.LostConfirm{IDs: "1 2 3", Count: 3, Before: 1234567, Next: 9,
				Titles: sampleTitles(), Chats: []pages.LostChat{{JID: "telegram:-1001234567890", Count: 2}, {JID: "slack:C0ABC", Count: 1}}}
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
	return pages.Messages{Now: now, Filter: filter, Lines: sampleLines(now), Titles: sampleTitles(), Next: "/messages?before=7", Newest: "/messages", Lag: rows.SearchLag{Rows: 1234, Since: now - 60_000}, Groups: []string{"main", "acme/eng"}}
}

func sampleWhy(now int64) pages.Why {
	at := time.Date(2026, 9, 21, 14, 13, 20, 0, time.Local).UnixMilli()
	return pages.Why{
		Now: now, Took: 6100 * time.Millisecond, Change: "It was edited since, to: @arizuko why is the build red again?", Replay: true, Request: "KQVD-4821",
		Message: &msg.Message{ID: 812, Direction: msg.In, ChatJID: "telegram:-1001234567890", Content: "@arizuko why is the build red?\nIt was green on Monday.", Attachments: []msg.Attachment{
			{Name: "voice.ogg", Transcript: &msg.Transcript{Text: "and what broke it?"}}, {Name: "late.ogg", Transcript: &msg.Transcript{}}, {Name: "noise.ogg", Transcript: &msg.Transcript{Error: "it is empty"}}}},
		Fields: []pages.Field{
			{Name: "State", Text: "received: routed, route"}, {Name: "Chat", Text: "Engineering: builds, releases and everything that breaks at night", Path: "/messages?chat=x"},
			{Name: "Sender", Text: "telegram:4211223344", Path: "/messages?sender=x"}, {Name: "Topic of the message", Text: "9"}, {Name: "Turn 97", Text: "failed, group acme/eng, topic #deploy", Path: "/turns/97"},
		},
		Steps: []why.Step{
			{At: at, Text: "row 812 stored by teled", Owner: "teled", Row: 812, Main: true},
			{At: at + 31, After: 31 * time.Millisecond, Text: "row 812 decided: routed, route (a route named the group), folder acme/eng", Owner: "gated", Turn: 97, Main: true},
			{At: at + 40, After: 9 * time.Millisecond, Text: "run 55 started: runtime docker, label arizuko-run-55", Owner: "gated"},
			{At: at + 6000, After: 5960 * time.Millisecond, Text: "turn 97 ended: failed, agent_error (the agent failed), failed attempts: 2, error: the agent ended without an answer: exit code 3", Owner: "gated", Main: true},
			{At: at + 36_000_000, After: 9*time.Hour + 47*time.Minute, Text: "row 813 part 1: queued, attempts 3, rate error: Too Many Requests: retry after 10", Owner: "teled", Row: 813, From: &why.Origin{Reminder: 7}, Main: true},
		},
		Open: []why.Open{{Text: "row 813 part 1: next attempt in 10s", Owner: "teled", Row: 813}},
		Near: []pages.NearMessage{{Message: &msg.Message{ID: 813, ChatJID: "telegram:-1001234567890", Content: "Sorry, that failed."}, Relation: "an answer of turn 97"}},
	}
}

func sampleLost(now int64) pages.Lost {
	failed := pages.LostReason{Key: "failed.permanent", Title: "failed, permanent", Text: "the platform refused it", Count: 3, Replay: true, Filter: rows.MessageFilter{State: msg.OutFailed}}
	return pages.Lost{Now: now, Chosen: &failed, Groups: []pages.LostGroup{
		{Title: "Not delivered", Reasons: []pages.LostReason{failed, {Key: "failed.expired", Title: "failed, expired", Text: "the platform was out of reach for too long", Count: pages.MaxLostCount}}},
		{Title: "Dropped", Reasons: []pages.LostReason{{Key: "dropped.no_route", Title: "no_route", Text: "no route matches, and the row asks for no group: the bot was not addressed, or another bot wrote it", Count: 812}}},
		{Title: "Waiting for an operator"},
	}, List: &pages.LostList{Lines: sampleLines(now), Titles: sampleTitles(), Copies: map[int64]int64{81234566: 9}, Next: "/lost?before=3"}}
}
