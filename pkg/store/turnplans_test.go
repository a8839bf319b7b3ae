package store

// turnPlans has the expected plan of every statement in queries_turns.go.
const chatOfRow = "\nSEARCH o USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\nSEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN"

func turnPlans() map[string][2]string {
	const failuresRow = "SEARCH group_failures USING PRIMARY KEY (folder=?)"
	return map[string][2]string{
		"queryTurn": {queryTurn, "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
		// Once at start, over a partial index of open turns.
		"queryOpenTurns": {queryOpenTurns, "SCAN t USING INDEX turns_open\nUSE TEMP B-TREE FOR ORDER BY"},
		// The turns that agents work on, then the oldest ones of a chat, up to a limit.
		"queryCountOpen": {queryCountOpen, "CO-ROUTINE r\nSCAN t USING INDEX turns_run\nSCAN r\n" +
			"SCALAR SUBQUERY 2\nCO-ROUTINE o\nSEARCH t USING INDEX turns_open (chat_jid=?)\nSCAN o\n" +
			"SCALAR SUBQUERY 3\nSEARCH t USING INDEX turns_open (chat_jid=?)"},
		// All of a partial index: as many as agents work on.
		"queryRunningPlaces": {queryRunningPlaces, "SCAN t USING INDEX turns_run\nUSE TEMP B-TREE FOR DISTINCT"},
		"queryWebWorking":    {queryWebWorking, "SCAN t USING INDEX turns_run\nUSE TEMP B-TREE FOR DISTINCT"},
		"queryChatWork":      {queryChatWork, "SCAN t USING INDEX turns_run\nSEARCH p USING INTEGER PRIMARY KEY (rowid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryWebWork":       {queryWebWork, "SCAN t USING INDEX turns_run\nSEARCH p USING INTEGER PRIMARY KEY (rowid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryRunningTurns":  {queryRunningTurns, "SCAN t USING INDEX turns_run\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryRunningCount":  {queryRunningCount, "SCAN turns USING COVERING INDEX turns_run"},
		// The index is read to its end, the turns are not.
		"queryQueuedTurns": {queryQueuedTurns, "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)\nLIST SUBQUERY 1\n" +
			"SCAN turns USING COVERING INDEX turns_queued\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryRunTurns": {queryRunTurns, "SEARCH t USING INDEX turns_run (run_id=?)"},
		// A list for operators, newest first: it stops when the page is full.
		"queryTurns":        {queryTurns, "SEARCH t USING INTEGER PRIMARY KEY (rowid<?)"},
		"queryChatTurns":    {queryChatTurns, "SEARCH t USING INDEX turns_chat (chat_jid=? AND id<?)"},
		"queryFolderTurns":  {queryFolderTurns, "SEARCH t USING INDEX turns_folder (folder=? AND id<?)"},
		"queryLastAnswered": {queryLastAnswered, "SEARCH turns USING INDEX turns_session (folder=? AND topic=? AND id<?)"},
		// of at most 1,000 rows
		"queryLastHome":   {queryLastHome, "CO-ROUTINE n\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\nSCAN n"},
		"queryLastUser":   {queryLastUser, "CO-ROUTINE n\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\nSCAN n"},
		"queryLastTurnAt": {queryLastTurnAt, "SEARCH turns USING INDEX turns_folder (folder=?)"},
		"queryWaits": {queryWaits, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 3\nSEARCH t USING INTEGER PRIMARY KEY (rowid=?)\nCORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH o USING COVERING INDEX turns_run (run_id=? AND id<?)\nCORRELATED SCALAR SUBQUERY 2\nSEARCH p USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryMark":           {queryMark, "SEARCH m USING INDEX messages_turn (turn_id=?)"},
		"updateCancelMark":    {updateCancelMark, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryMarkOf":         {queryMarkOf, "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"queryReacted":        {queryReacted, exists + "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid>?)"},
		"queryMarkable":       {queryMarkable, "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)" + chatOfRow},
		"queryMarkableOfTurn": {queryMarkableOfTurn, "SEARCH m USING INDEX messages_turn (turn_id=?)" + chatOfRow},
		// Of the rows that wait.
		"queryAsleep": {queryAsleep, "SEARCH m USING INDEX messages_undecided (chat_jid>? AND chat_jid<?)\nCORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH k USING INDEX messages_target (chat_jid=? AND target_id=?)\nSEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryFoldedInto":  {queryFoldedInto, "SEARCH t USING INDEX turns_answered_with (answered_with=?)"},
		"queryDelegated":   {queryDelegated, "SEARCH t USING INDEX turns_root (root_turn_id=?)"},
		"queryDelegations": {queryDelegations, "SEARCH turns USING INDEX turns_root (root_turn_id=?)"},
		"insertTurn":       {insertTurn, noRead},
		"updateRevive":     {updateRevive, turnRow},
		"updateFrame":      {updateFrame, turnRow},
		"updateEndTurn":    {updateEndTurn, turnRow},

		// All of a partial index: one row per process.
		"queryUnended":    {queryUnended, "SCAN r USING INDEX runs_unended"},
		"queryRunIsLive":  {queryRunIsLive, exists + runRow},
		"insertRun":       {insertRun, noRead},
		"updateProcess":   {updateProcess, runRow},
		"updateCloseRun":  {updateCloseRun, runRow},
		"updateEndRun":    {updateEndRun, runRow},
		"updateCloseLive": {updateCloseLive, "SEARCH runs USING INDEX runs_live (folder=? AND topic=?)"},

		// For one message that an operator asks about.
		"queryRunsDuring": {queryRunsDuring, "SEARCH l USING INDEX session_log_topic (folder=? AND topic=?)\nSEARCH r USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryParts":      {queryParts, "SEARCH deliveries USING PRIMARY KEY (message_id=?)"},
		"queryOwnReplies": {queryOwnReplies, "SEARCH m USING INDEX messages_chat (chat_jid=? AND id>? AND id<?)"},

		// At gated's first start after an update, once in the life of an instance.
		"queryFoldersEver": {queryFoldersEver, "MERGE (UNION)\nLEFT\nMERGE (UNION)\nLEFT\nSCAN registered_groups\nRIGHT\nSCAN sessions\nRIGHT\nSCAN turns\n" +
			"USE TEMP B-TREE FOR ORDER BY"},

		"queryFolderUsed": {queryFolderUsed, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 1\nSEARCH registered_groups USING PRIMARY KEY (folder=?)\nSCALAR SUBQUERY 2\n" +
			"SEARCH sessions USING PRIMARY KEY (group_folder=?)\nSCALAR SUBQUERY 3\nSEARCH turns USING INDEX turns_folder (folder=?)"},
		"querySession":       {querySession, sessionRow},
		"putSession":         {putSession, noRead},
		"queryAgentSession":  {queryAgentSession, "COMPOUND QUERY\nLEFT-MOST SUBQUERY\n" + sessionRow + "\nUNION ALL\n" + keptRow},
		"putKeptSession":     {putKeptSession, sessionRow},
		"deleteSession":      {deleteSession, sessionRow},
		"deleteAgentSession": {deleteAgentSession, sessionRow},
		"deleteKeptSessions": {deleteKeptSessions, "SEARCH kept_sessions USING PRIMARY KEY (group_folder=? AND topic=?)"},
		"deleteAgentKept":    {deleteAgentKept, keptRow},
		"queryLastAgent":     {queryLastAgent, "SEARCH session_log USING INDEX session_log_topic (folder=? AND topic=?)"},
		"queryAgentModels":   {queryAgentModels, "SEARCH agent_models USING PRIMARY KEY (folder=? AND agent=?)"},
		"putAgentModels":     {putAgentModels, noRead},
		"insertLog":          {insertLog, noRead},
		"updateLog":          {updateLog, logRow + "\n" + subquery + "SEARCH messages USING INDEX messages_turn (turn_id=?)"},
		"updateEndLog":       {updateEndLog, logRow},
		"queryPastSessions":  {queryPastSessions, "SEARCH session_log USING INDEX session_log_topic (folder=? AND topic=?)"},

		"queryPromptFacts": {queryPromptFacts, "CO-ROUTINE one\nSCAN CONSTANT ROW\nSCAN one\nSEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN\nSCALAR SUBQUERY 1\nSEARCH system_messages USING INDEX system_messages_folder (folder=?)\n" +
			"SCALAR SUBQUERY 2\nSEARCH system_messages USING COVERING INDEX system_messages_turn (turn_id=?)\n" +
			"SCALAR SUBQUERY 3\nSEARCH router_state USING PRIMARY KEY (key=?)\nSCALAR SUBQUERY 4\nSEARCH counters USING PRIMARY KEY (name=?)\n" +
			"SCALAR SUBQUERY 6\nSEARCH m USING INDEX messages_chat (chat_jid=? AND id>?)\nCORRELATED SCALAR SUBQUERY 5\n" + "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
		"querySystemOfTurn":   {querySystemOfTurn, "SEARCH system_messages USING INDEX system_messages_turn (turn_id=?)"},
		"insertSystem":        {insertSystem, noRead},
		"updateClaimSystem":   {updateClaimSystem, "SEARCH system_messages USING INDEX system_messages_folder (folder=?)\nSCALAR SUBQUERY 1\nSEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryUnreadSystem":   {queryUnreadSystem, "CO-ROUTINE s\nSEARCH system_messages USING INDEX system_messages_folder (folder=?)\nSCAN s"},
		"updateReleaseSystem": {updateReleaseSystem, "SEARCH system_messages USING INDEX system_messages_turn (turn_id=?)"},
		"deleteSystem":        {deleteSystem, "SEARCH system_messages USING INDEX system_messages_turn (turn_id=?)"},
		"queryLastTurnID":     {queryLastTurnID, "SEARCH turns"},
		// A list for operators.
		"queryOpenState":   {queryOpenState, "SCAN t USING INDEX turns_open\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryFailedState": {queryFailedState, "SEARCH t USING INDEX turns_state (state=? AND id<?)"},
		"updateJoin":       {updateJoin, turnRow},
		"updateTake":       {updateTake, turnRow},
		"updateRequeue":    {updateRequeue, turnRow},
		// One step per lane with queued turns.
		"queryQueuedLanes": {queryQueuedLanes, "CO-ROUTINE lanes\nSETUP\nSEARCH turns USING INDEX turns_queued\nRECURSIVE STEP\nSCAN lanes\n" +
			"CORRELATED SCALAR SUBQUERY 2\nSEARCH turns USING INDEX turns_queued (lane>?)\nSCAN lanes\n" +
			"CORRELATED SCALAR SUBQUERY 4\nSEARCH turns USING INDEX turns_queued (lane=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		// As far as the first turn that may start.
		"queryNextQueued": {queryNextQueued, "SEARCH t USING INDEX turns_queued (lane=? AND id>?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\nSEARCH o USING INDEX turns_conversation (lane=? AND chat_jid=? AND topic=? AND id<?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\nSCAN s"},
		"queryNewestQueued": {queryNewestQueued, "SEARCH t USING INDEX turns_conversation (lane=? AND chat_jid=? AND topic=?)"},
		// For a metric.
		"queryQueuedCount": {queryQueuedCount, "SCAN turns USING COVERING INDEX turns_queued"},
		// One row per process.
		"queryBusyRuns": {queryBusyRuns, "SCAN b USING INDEX runs_unended\nCORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH t USING COVERING INDEX turns_run (run_id=?)\nSEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)\nSEARCH t EXISTS USING COVERING INDEX turns_run (run_id=?)"},
		// The plan of a process's turns.
		"queryRunFor": {queryRunFor, "SEARCH r USING INDEX runs_live (folder=? AND topic=?)\nSCALAR SUBQUERY 1\nSEARCH w USING INDEX turns_queued (lane=?)\n" +
			"SCALAR SUBQUERY 2\nSEARCH group_failures USING PRIMARY KEY (folder=?)\nCORRELATED SCALAR SUBQUERY 3\nSEARCH o USING COVERING INDEX turns_run (run_id=?)\n" +
			"SCALAR SUBQUERY 4\nSCAN u USING INDEX runs_unended\nSCALAR SUBQUERY 7\nSCAN b USING INDEX runs_unended\nCORRELATED SCALAR SUBQUERY 6\nSEARCH t USING COVERING INDEX turns_run (run_id=?)\nSEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)\nSEARCH t EXISTS USING COVERING INDEX turns_run (run_id=?)"},
		// Once a day.
		"queryOldRequests": {queryOldRequests, "SCAN s\nCORRELATED SCALAR SUBQUERY 1\nSCAN t USING INDEX turns_open"},
		"querySaid": {querySaid, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 1\nSEARCH turns USING INDEX turns_session (folder=? AND topic=?)\n" +
			"SCALAR SUBQUERY 2\nSEARCH m USING INDEX messages_turn (turn_id=?)"},
		"queryRunLoad":  {queryRunLoad, "SEARCH turns USING INDEX turns_run (run_id=?)"},
		"queryRunTakes": {queryRunTakes, exists + runRow},
		// All of a small partial index.
		"queryFilesReady": {queryFilesReady, "SCAN t USING INDEX turns_files\nCORRELATED SCALAR SUBQUERY 2\nSEARCH m USING INDEX messages_turn (turn_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\nSEARCH a USING INDEX messages_platform_id (chat_jid=? AND platform_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\nSEARCH x USING COVERING INDEX transcripts_wanted (turn_id=?)"},
		"updateWaitOver": {updateWaitOver, turnRow},
		// At most sixteen turns per process.
		"queryRunningOfChat":    {queryRunningOfChat, "SCAN t USING INDEX turns_run\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryQueuedOfChat":     {queryQueuedOfChat, "SEARCH t USING INDEX turns_open (chat_jid=? AND id>? AND id<?)"},
		"queryOpenBetween":      {queryOpenBetween, "SEARCH t USING INDEX turns_open (chat_jid>? AND chat_jid<?)"},
		"queryUndecidedBetween": {queryUndecidedBetween, "SEARCH m USING INDEX messages_undecided (chat_jid>? AND chat_jid<?)"},
		"queryStoppedRows":      {queryStoppedRows, "SEARCH m USING INDEX messages_undecided (chat_jid=? AND id>? AND id<?)"},
		// Empty, but for the seconds of a /stop.
		"queryStops":       {queryStops, "SCAN s\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryStopsOfChat": {queryStopsOfChat, "SCAN s\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"insertStop":       {insertStop, noRead},
		"updateStop":       {updateStop, "SEARCH stops USING INTEGER PRIMARY KEY (rowid=?)"},
		"deleteStop":       {deleteStop, "SEARCH stops USING INTEGER PRIMARY KEY (rowid=?)"},
		// At start.
		"queryFailing":     {queryFailing, "SCAN group_failures"},
		"queryProbeAt":     {queryProbeAt, failuresRow},
		"putFailures":      {putFailures, noRead},
		"updateProbeAt":    {updateProbeAt, failuresRow},
		"deleteFailures":   {deleteFailures, failuresRow},
		"updateProbed":     {updateProbed, "SEARCH turns USING COVERING INDEX turns_probe (folder=?)"},
		"queryAddressed":   {queryAddressed, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryNotifiedOf":  {queryNotifiedOf, exists + "SEARCH turns USING INDEX turns_failed (chat_jid=? AND ended_at>?)"},
		"queryNoticedText": {queryNoticedText, exists + "SEARCH messages USING INDEX messages_turn (turn_id=?)"},
		"queryNoticed":     {queryNoticed, exists + "SEARCH messages USING INDEX messages_turn (turn_id=?)"},
		"updateDrain":      {updateDrain, runRow},
		"updateDrainIdle":  {updateDrainIdle, runRow + "\n" + subquery + "SEARCH turns USING COVERING INDEX turns_run (run_id=?)"},
	}
}
