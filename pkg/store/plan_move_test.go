package store

// Steps of the plans of statements about moved chats.
const (
	aliasRow   = "SEARCH chat_aliases USING PRIMARY KEY (old_jid=?)"
	movedIn    = subquery + aliasRow + "\nSCALAR SUBQUERY 3\nSEARCH a USING COVERING INDEX chat_aliases_moving (new_jid=?)\n"
	movedTwice = "CORRELATED SCALAR SUBQUERY 1\nSEARCH o USING COVERING INDEX messages_platform_id (chat_jid=? AND platform_id=?)"
)

// movePlans has the expected plan of every statement in queries_move.go. All of
// chat_aliases is read at most once per wake-up: few chats are ever moved.
func movePlans() map[string][2]string {
	return map[string][2]string{
		"queryAlias":    {queryAlias, aliasRow},
		"queryAnyAlias": {queryAnyAlias, exists + "SCAN chat_aliases"}, // as far as the first row
		"queryMovingTo": {queryMovingTo, "SEARCH chat_aliases USING COVERING INDEX chat_aliases_moving (new_jid=?)"},
		"putAlias":      {putAlias, noRead},
		"deleteAlias":   {deleteAlias, aliasRow},
		"updateMoving":  {updateMoving, aliasRow},

		"queryAliases": {queryAliases, "SCAN chat_aliases"},
		"queryUnmoved": {queryUnmoved, "SCAN a\n" +
			"CORRELATED SCALAR SUBQUERY 1\nSEARCH messages USING COVERING INDEX messages_chat (chat_jid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\nSEARCH turns USING COVERING INDEX turns_chat (chat_jid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\nSEARCH chats USING PRIMARY KEY (jid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 4\nSEARCH chat_reply_state USING PRIMARY KEY (jid=?)"},

		"queryUndecidedIDs":    {queryUndecidedIDs, "SEARCH messages USING INDEX messages_undecided (chat_jid=?)"},
		"queryUnsettledIDs":    {queryUnsettledIDs, "SEARCH messages USING INDEX messages_outbox (platform=? AND chat_jid=?)"},
		"queryMessageIDs":      {queryMessageIDs, "SEARCH messages USING COVERING INDEX messages_chat (chat_jid=?)"},
		"queryOpenTurnIDs":     {queryOpenTurnIDs, "SEARCH turns USING INDEX turns_open (chat_jid=?)"},
		"queryTurnIDs":         {queryTurnIDs, "SEARCH turns USING COVERING INDEX turns_chat (chat_jid=?)"},
		"queryMovedBefore":     {queryMovedBefore, messageRow + "\n" + movedTwice},
		"updateMoveMessage":    {updateMoveMessage, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)\n" + movedTwice},
		"updateMoveDeliveries": {updateMoveDeliveries, "SEARCH deliveries USING PRIMARY KEY (message_id=?)"},
		"updateMoveTurn":       {updateMoveTurn, turnRow},
		"updateMovePreviews":   {updateMovePreviews, "SEARCH previews USING INDEX previews_turn (turn_id=?)"},
		"updateMoveRuns":       {updateMoveRuns, "SCAN runs USING INDEX runs_unended"}, // the whole of a small partial index
	}
}
