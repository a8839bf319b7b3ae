package store

// searchPlans has the expected plan of every statement in queries_search.go.
func searchPlans() map[string][2]string {
	return map[string][2]string{
		// A table of one row.
		"querySearchState":     {querySearchState, "SCAN search_state"},
		"querySearchNext":      {querySearchNext, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)"},
		"updateSearchState":    {updateSearchState, "SCAN search_state"},
		"insertSearchRows":     {insertSearchRows, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		"querySearchDeleted":   {querySearchDeleted, "CO-ROUTINE d\nSCAN search_deleted\nSCAN d"},
		"deleteSearchRows":     {deleteSearchRows, "SCAN message_search VIRTUAL TABLE INDEX 1:\nLIST SUBQUERY 1\nSEARCH search_deleted USING INTEGER PRIMARY KEY (rowid<?)"},
		"deleteSearchTexts":    {deleteSearchTexts, "SEARCH search_deleted USING INTEGER PRIMARY KEY (rowid<?)"},
		"querySearchWaiting":   {querySearchWaiting, "CO-ROUTINE n\nSEARCH messages USING INTEGER PRIMARY KEY (rowid>?)\nSCAN n"},
		"querySearchHits":      {querySearchHits, "SCAN message_search VIRTUAL TABLE INDEX 393219:DESC"},
		"queryListAll":         {queryListAll, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		"queryListChat":        {queryListChat, "SEARCH messages USING COVERING INDEX messages_chat (chat_jid=? AND id>? AND id<?)"},
		"queryListSender":      {queryListSender, "SEARCH messages USING COVERING INDEX messages_sender (sender=? AND id>? AND id<?)"},
		"queryListFolder":      {queryListFolder, "SEARCH messages USING COVERING INDEX messages_routed (routed_to=? AND decision_seq<?)"},
		"queryListDropped":     {queryListDropped, "SEARCH messages USING COVERING INDEX messages_dropped (reason=? AND id>? AND id<?)"},
		"queryListUndelivered": {queryListUndelivered, "SEARCH messages USING COVERING INDEX messages_undelivered (out_state=? AND id>? AND id<?)"},
		// All of what waits: three partial indexes.
		"queryListUnsent":    {queryListUnsent, "SCAN messages USING INDEX messages_outbox\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryListUndecided": {queryListUndecided, "SCAN messages USING INDEX messages_undecided\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryListParked":    {queryListParked, "SCAN messages USING COVERING INDEX messages_parked\nUSE TEMP B-TREE FOR ORDER BY"},
		// Of rows with several failed parts.
		"queryListFailed":       {queryListFailed, "SEARCH deliveries USING COVERING INDEX deliveries_failed (error_class=? AND message_id>? AND message_id<?)\nUSE TEMP B-TREE FOR DISTINCT"},
		"queryListed":           {queryListed, "SCAN j VIRTUAL TABLE INDEX 1:\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nCORRELATED SCALAR SUBQUERY 1\nSEARCH d USING COVERING INDEX deliveries_failed (error_class=? AND message_id=?)"},
		"queryListedFound":      {queryListedFound, "SCAN j VIRTUAL TABLE INDEX 1:\nSEARCH h USING INTEGER PRIMARY KEY (rowid=?)\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nCORRELATED SCALAR SUBQUERY 1\nSEARCH o USING COVERING INDEX messages_platform_id (chat_jid=? AND platform_id=?)\nCORRELATED SCALAR SUBQUERY 2\nSEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\nCORRELATED SCALAR SUBQUERY 3\nSEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)\nCORRELATED SCALAR SUBQUERY 4\nSEARCH d USING COVERING INDEX deliveries_failed (error_class=? AND message_id=?)"},
		"queryMinutes":          {queryMinutes, "CO-ROUTINE n\nSEARCH messages USING INTEGER PRIMARY KEY (rowid>?)\nSCAN n\nUSE TEMP B-TREE FOR GROUP BY"},
		"queryIDAfter":          {queryIDAfter, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)"},
		"queryDroppedCount":     {queryDroppedCount, "CO-ROUTINE n\nSEARCH messages USING COVERING INDEX messages_dropped (reason=?)\nSCAN n"},
		"queryDroppedReasons":   {queryDroppedReasons, "CO-ROUTINE reasons\nSETUP\nSEARCH messages USING COVERING INDEX messages_dropped\nRECURSIVE STEP\nSCAN reasons\nCORRELATED SCALAR SUBQUERY 2\nSEARCH messages USING COVERING INDEX messages_dropped (reason>?)\nSCAN reasons"},
		"queryUndeliveredCount": {queryUndeliveredCount, "CO-ROUTINE n\nSEARCH messages USING COVERING INDEX messages_undelivered (out_state=?)\nSCAN n"},
		"queryFailedCount":      {queryFailedCount, "CO-ROUTINE n\nSEARCH deliveries USING COVERING INDEX deliveries_failed (error_class=?)\nSCAN n"},
		"queryParkedCount":      {queryParkedCount, "CO-ROUTINE n\nSCAN messages USING COVERING INDEX messages_parked\nSCAN n"},
		"queryCopyOf":           {queryCopyOf, "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nSEARCH n USING INDEX messages_derived (derived_from=?)"},
	}
}
