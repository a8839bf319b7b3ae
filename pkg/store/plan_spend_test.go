package store

// spendPlans has the expected plan of every statement in queries_spend.go. Lists read a row for each day, group and chat
// in which something was used, of the days that they are about, and sort their sums.
func spendPlans() map[string][2]string {
	const sorted = "\nUSE TEMP B-TREE FOR GROUP BY\nUSE TEMP B-TREE FOR ORDER BY"
	return map[string][2]string{
		"upsertMovedSpend":      {upsertMovedSpend, "SEARCH spend USING INDEX spend_chat (chat_jid=?)"},
		"deleteChatSpend":       {deleteChatSpend, "SEARCH spend USING INDEX spend_chat (chat_jid=?)"},
		"querySpendDays":        {querySpendDays, "SEARCH spend USING PRIMARY KEY (day>? AND day<?)"},
		"queryFolderSpendDays":  {queryFolderSpendDays, "SEARCH spend USING INDEX spend_folder (folder=? AND day>? AND day<?)"},
		"querySpendGroups":      {querySpendGroups, "SEARCH spend USING PRIMARY KEY (day>? AND day<?)" + sorted},
		"querySpendChats":       {querySpendChats, "SEARCH spend USING PRIMARY KEY (day>? AND day<?)" + sorted},
		"queryFolderSpendChats": {queryFolderSpendChats, "SEARCH spend USING INDEX spend_folder (folder=? AND day>? AND day<?)" + sorted},
	}
}
