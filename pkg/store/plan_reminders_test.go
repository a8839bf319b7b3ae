package store

// reminderPlans has the expected plan of every statement in queries_reminders.go.
func reminderPlans() map[string][2]string {
	const row = "SEARCH reminders USING INTEGER PRIMARY KEY (rowid=?)"
	return map[string][2]string{
		"queryReminder":        {queryReminder, "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryFolderReminders": {queryFolderReminders, "SEARCH r USING INDEX reminders_folder (folder=? AND state=? AND id>?)"},
		"queryChatReminders":   {queryChatReminders, "SEARCH r USING INDEX reminders_chat (chat_jid=? AND state=? AND id>?)"},
		"queryActiveReminders": {queryActiveReminders, "SEARCH r USING INDEX reminders_active (id>?)"},
		"queryDueReminders":    {queryDueReminders, "SEARCH r USING INDEX reminders_due (next_slot<?)"},
		"queryNextSlot":        {queryNextSlot, "SEARCH reminders USING COVERING INDEX reminders_due (next_slot>?)"},
		"queryCountReminders": {queryCountReminders, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 1\nSEARCH reminders USING COVERING INDEX reminders_folder (folder=? AND state=?)\n" +
			"SCALAR SUBQUERY 2\nSEARCH reminders USING COVERING INDEX reminders_chat (chat_jid=? AND state=?)"},
		"queryPlannedPrompts":  {queryPlannedPrompts, "SEARCH reminders USING INDEX reminders_chat (chat_jid=? AND state=?)\nUSE TEMP B-TREE FOR ORDER BY"}, // 50 at most
		"queryNotifiedOfLimit": {queryNotifiedOfLimit, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 2\nCO-ROUTINE n\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\nSCAN n"},
		// When metrics are read.
		"queryCountActive": {queryCountActive, "SCAN reminders USING COVERING INDEX reminders_active"},
		"queryLastSlot":    {queryLastSlot, "SEARCH reminder_slots USING PRIMARY KEY (reminder_id=?)"},
		"queryReminderOf":  {queryReminderOf, "SEARCH reminder_slots USING COVERING INDEX reminder_slots_message (message_id=?)"},
		"queryRefusedSlots": {queryRefusedSlots, "SEARCH s USING PRIMARY KEY (reminder_id=?)\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nCORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH o USING INDEX messages_turn (turn_id=?)\nCORRELATED SCALAR SUBQUERY 2\nMULTI-INDEX OR\nINDEX 1\nSEARCH o USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"INDEX 2\nSEARCH o USING INDEX messages_turn (turn_id=?)\nSEARCH d USING PRIMARY KEY (message_id=?)"},
		"insertReminder":     {insertReminder, noRead},
		"updateReminder":     {updateReminder, row},
		"updateEndReminder":  {updateEndReminder, row},
		"updateFireReminder": {updateFireReminder, row},
		"insertSlot":         {insertSlot, noRead},
		"updateSlot":         {updateSlot, "SEARCH reminder_slots USING PRIMARY KEY (reminder_id=? AND slot=?)"},

		"queryBroadcastByKey": {queryBroadcastByKey, "SEARCH broadcasts USING INDEX sqlite_autoindex_broadcasts_1 (key=?)"},
		"queryBroadcastOf":    {queryBroadcastOf, "SCAN broadcasts\nSCAN json_each EXISTS VIRTUAL TABLE INDEX 1:"}, // by hand
		"queryOpenBroadcast":  {queryOpenBroadcast, "SCAN broadcasts USING INDEX broadcasts_open"},                 // the first of them
		"insertBroadcast":     {insertBroadcast, noRead},
		"updateBroadcast":     {updateBroadcast, "SEARCH broadcasts USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryChatsPage":      {queryChatsPage, "SEARCH chats USING PRIMARY KEY (jid>?)"},
	}
}
