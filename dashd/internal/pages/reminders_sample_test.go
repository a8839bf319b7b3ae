package pages_test

import "arizuko/dashd/internal/pages"

func reminderSamples() []sample {
	return []sample{
		{name: "reminders", template: "reminders.html", section: "/reminders", data: sampleReminders, hostile: hostileReminders},
		{name: "no-reminders", template: "reminders.html", section: "/reminders", data: func(now int64) any { return pages.RemindersPage{Now: now} }, hostile: hostileReminders},
		{name: "polls", template: "polls.html", section: "/polls", data: samplePolls, hostile: hostilePolls},
		{name: "no-polls", template: "polls.html", section: "/polls", data: func(now int64) any { return pages.PollsPage{Now: now} }, hostile: hostilePolls},
	}
}

func sampleReminders(now int64) any {
	return pages.RemindersPage{
		Now: now, Of: "Reminders of the group acme/eng that are done", More: "/reminders?after=18",
		Choices: []pages.Choice{{Link: pages.Link{Path: "/reminders", Text: "Active"}, Current: true}, {Link: pages.Link{Path: "/reminders?state=done", Text: "Done"}}},
		Lines: []pages.ReminderLine{
			{ID: 17, Folder: "acme/eng", Chat: "telegram:-1001234567", Title: "Engineering", Topic: "#deploy", Prompt: true, Body: "Say which checks of the nightly build are red, and who broke them.\nOne line each.",
				Repeats: "0 9 * * 1-5", Zone: "Europe/Rome", Next: now + 7_300_000, Last: now - 86_400_000, LastRow: 5120, By: "telegram:42", CanCancel: true},
			{ID: 18, Folder: "main", Chat: "web:main", Body: "Pay the bill", Zone: "UTC", State: "cancelled", EndedBy: "web:operator", Error: "the chat does not exist any more", Last: now - 1000},
		},
	}
}

func hostileReminders(text string) any {
	return pages.RemindersPage{
		Choices: []pages.Choice{{Link: pages.Link{Path: text, Text: text}}}, Of: text, More: text, Now: 10,
		Lines: []pages.ReminderLine{{ID: 1, Folder: text, Chat: text, Title: text, Topic: text, Body: text, Repeats: text, Zone: text, Next: 20, Last: 2, LastRow: 3, State: text, Error: text, By: text, EndedBy: text, CanCancel: true}},
	}
}

func samplePolls(now int64) any {
	return pages.PollsPage{
		Now: now, Older: "/polls?before=3", Choices: []pages.Choice{{Link: pages.Link{Path: "/polls", Text: "All"}, Current: true}, {Link: pages.Link{Path: "/polls?state=open", Text: "Open"}}},
		Lines: []pages.PollLine{
			{ID: 4, Message: 5200, Folder: "acme/eng", Chat: "telegram:-1001234567", Title: "Engineering", Question: "When do we release?", Open: true, Multiple: true, Voters: 9, CreatedAt: now - 90_000, Closes: now + 600_000,
				Options: []pages.PollOption{{Text: "Friday", Votes: 2, Share: 25}, {Text: "Monday, with everyone awake and the whole on-call team at their desks", Votes: 8, Share: 100}, {Text: "never"}}},
			{ID: 3, Message: 5100, Folder: "main", Chat: "web:main", Question: "Tea?", Options: []pages.PollOption{{Text: "yes", Votes: 1, Share: 100}, {Text: "no"}}, Voters: 1, CreatedAt: now - 9_000_000, Ended: now - 8_000_000},
		},
	}
}

func hostilePolls(text string) any {
	return pages.PollsPage{
		Choices: []pages.Choice{{Link: pages.Link{Path: text, Text: text}}}, Older: text, Now: 10,
		Lines: []pages.PollLine{{ID: 1, Message: 2, Folder: text, Chat: text, Title: text, Question: text, Options: []pages.PollOption{{Text: text, Votes: 1, Share: 50}}, Open: true, Closes: 20}},
	}
}
