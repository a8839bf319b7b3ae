package pages_test

import (
	"arizuko/dashd/internal/pages"
	"arizuko/pkg/msg"
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
