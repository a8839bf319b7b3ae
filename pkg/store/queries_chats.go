package store

// The statements on lists of chats, windows and what a group has; see queries.go.
const (
	queryChats = `SELECT jid, kind, title, ifnull(sticky_topic,''), ifnull(sticky_group,''), ifnull(sticky_at,0), platform, last_seen_at
		FROM chats INDEXED BY chats_seen WHERE (last_seen_at, jid) < (?1, ?2) ORDER BY last_seen_at DESC, jid DESC LIMIT ?3+0`
	queryChatTitles = `SELECT c.jid, c.title FROM json_each(?) j CROSS JOIN chats c ON c.jid = j.value WHERE c.title <> ''`
	// ';' comes after ':'.
	queryPlatforms = `WITH RECURSIVE platforms(jid) AS (SELECT min(jid) FROM chats
		UNION ALL SELECT (SELECT min(jid) FROM chats WHERE jid > substr(p.jid, 1, instr(p.jid, ':') - 1) || ';') FROM platforms p WHERE p.jid IS NOT NULL)
		SELECT substr(jid, 1, instr(jid, ':') - 1) FROM platforms WHERE jid IS NOT NULL LIMIT 100`
	// Answers of commands have no turn. Retention deletes turns and their answers, but not what engagement knows of the
	// last one.
	queryAnswered = `SELECT EXISTS (SELECT 1 FROM json_each(?1) j CROSS JOIN chat_reply_state e ON e.jid > j.value AND e.jid < j.value || ';'
			WHERE e.last_reply_id IS NOT NULL)
		OR EXISTS (SELECT 1 FROM json_each(?1) j CROSS JOIN chats c ON c.jid > j.value AND c.jid < j.value || ';'
		CROSS JOIN turns t INDEXED BY turns_chat ON t.chat_jid = c.jid CROSS JOIN messages m INDEXED BY messages_turn ON m.turn_id = t.id
		WHERE m.out_state = 'sent')`
	queryOpenTurnCount = `SELECT count(*) FROM (SELECT 1 FROM turns INDEXED BY turns_open WHERE state IN ('queued', 'running') AND chat_jid = ?1 LIMIT ?2+0) o`
	queryOpenWindows   = `SELECT e.jid, e.topic, e.engaged_folder, e.engaged_until, e.engaged_at, ifnull(e.last_reply_id,0), ifnull(e.ended_at,0), ifnull(c.title,'')
		FROM chat_reply_state e INDEXED BY chat_reply_state_open LEFT JOIN chats c ON c.jid = e.jid
		WHERE e.engaged_until IS NOT NULL AND (e.engaged_until, e.jid, e.topic) > (?1, ?2, ?3)
		AND e.engaged_at > max(ifnull(e.ended_at,0), ifnull(c.sticky_at,0)) ORDER BY e.engaged_until, e.jid, e.topic LIMIT ?4+0`
	queryFolderSessions = `SELECT topic, session_id, updated_at FROM sessions WHERE group_folder = ?1 AND topic >= ?2 ORDER BY topic LIMIT ?3+0`
	// Of the runs of the last 200 turns that began.
	queryFolderRuns = `SELECT ` + runColumns +
		`, ifnull(l.result,''), ifnull(l.error,'') FROM runs r LEFT JOIN session_log l ON l.run_id = r.id
		WHERE r.id IN (SELECT run_id FROM (SELECT run_id FROM turns INDEXED BY turns_folder WHERE folder = ?1 AND started_at IS NOT NULL
		ORDER BY id DESC LIMIT 200) t) ORDER BY r.id DESC LIMIT ?2+0`
	// Threads of all other chats have other kinds.
	queryIsForum        = `SELECT EXISTS (SELECT 1 FROM platform_threads WHERE chat_jid = ? AND kind = 'forum_post')`
	queryLastFolderTurn = `SELECT id, started_at FROM turns INDEXED BY turns_folder WHERE folder = ? AND started_at IS NOT NULL ORDER BY id DESC LIMIT 1`
)
