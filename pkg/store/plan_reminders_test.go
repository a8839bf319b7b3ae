package store

// reminderPlans has the expected plan of every statement in queries_reminders.go.
func reminderPlans() map[string][2]string {
	return map[string][2]string{
		"queryReminder":        {queryReminder, "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryFolderReminders": {queryFolderReminders, "SEARCH r USING INDEX reminders_folder (folder=? AND state=? AND id>?)"},
		"queryChatReminders":   {queryChatReminders, "SEARCH r USING INDEX reminders_chat (chat_jid=? AND state=? AND id>?)"},
		"queryActiveReminders": {queryActiveReminders, "SEARCH r USING INDEX reminders_active (id>?)"},
		"queryDueReminders":    {queryDueReminders, "SEARCH r USING INDEX reminders_due (next_slot<?)"},

		"queryLastSlot":   {queryLastSlot, "SEARCH reminder_slots USING PRIMARY KEY (reminder_id=?)"},
		"queryReminderOf": {queryReminderOf, "SEARCH reminder_slots USING COVERING INDEX reminder_slots_message (message_id=?)"},
	}
}
