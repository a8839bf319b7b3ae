// Package rows has the statements that dashd alone needs: lists, filters and counts of the dashboard and the web chat.
package rows

import (
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/store"
)

// The statements that run for every message, turn or frame, and all others on
// the tables that grow with these. They are named so that a test can check the
// index that each uses.
//
// If a parameter alone is a LIMIT, or is compared with a column in a partial
// index's condition, SQLite plans the statement again at every call. Hence ?+0,
// a concatenation with an empty text, or a literal.
const (
	changes = `m.kind IN ('edit', 'reaction', 'delete')`
	visible = `m.platform = 'web' AND m.verb NOT IN ('vote', 'answer') AND (m.direction = 'in' OR ` +
		`m.out_state IS NULL ` +
		`OR m.out_state NOT IN ('cancelled', 'failed'))`
	notDerived = `(m.derived_from IS NULL OR m.direction = 'out' OR m.topic <> (SELECT topic FROM messages o WHERE o.id = m.derived_from))`
	readable   = visible + ` AND (` + changes + ` OR ` + notDerived + `)`
	delivered  = visible + ` AND NOT ` + changes + ` AND ` + notDerived +
		` AND (m.out_state IS NULL OR m.out_state NOT IN ('queued', 'sending'))`
	queryWebBefore = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_chat
		WHERE ` + delivered + ` AND m.chat_jid = ? AND m.id < ? ORDER BY m.id DESC LIMIT ?+0`
	queryWebTopicBefore = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_web
		WHERE ` + delivered + ` AND m.chat_jid = ? AND m.topic = ? AND m.id < ? ORDER BY m.id DESC LIMIT ?+0`
	queryWebAfter = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_chat
		WHERE ` + readable + ` AND m.chat_jid = ? AND m.id > ? ORDER BY m.id LIMIT ?+0`
	// By the row of an own message, and by the platform id of a user's.
	queryChangesOfRow = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_derived
		WHERE m.derived_from = ? AND m.direction = 'out' AND ` + changes + ` AND m.out_state IN ('sent', 'ambiguous') ORDER BY m.id`
	queryChangesOfPost = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_target
		WHERE m.chat_jid = ? AND m.target_id = ? AND m.direction = 'out' AND ` + changes + ` AND m.out_state IN ('sent', 'ambiguous') ORDER BY m.id`
	queryWebEnd = `SELECT ifnull((SELECT min(id) - 1 FROM messages INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = 'web' AND chat_jid = ?1), (SELECT ifnull(max(id), 0) FROM messages INDEXED BY messages_chat WHERE chat_jid = ?1))`
	queryNewRows        = `SELECT id, chat_jid FROM messages NOT INDEXED WHERE id > ? ORDER BY id LIMIT ?+0`
	queryWebUndelivered = `SELECT chat_jid, min(id) FROM messages INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = 'web' GROUP BY chat_jid`
	queryWebTopics = `WITH RECURSIVE topics(topic) AS (
		SELECT min(topic) FROM messages INDEXED BY messages_web WHERE platform = 'web' AND chat_jid = ?1
		UNION ALL SELECT (SELECT min(topic) FROM messages INDEXED BY messages_web
			WHERE platform = 'web' AND chat_jid = ?1 AND topic > topics.topic)
		FROM topics WHERE topics.topic IS NOT NULL)
		SELECT m.topic, m.id, m.received_at, ifnull(w.title, ''), CASE WHEN w.archived_through >= m.id THEN 1 ELSE 0 END
		FROM topics JOIN messages m ON m.id = (SELECT max(id) FROM messages INDEXED BY messages_web
			WHERE platform = 'web' AND chat_jid = ?1 AND topic = topics.topic)
		LEFT JOIN web_topics w ON w.chat_jid = ?1 AND w.topic = m.topic
		WHERE topics.topic IS NOT NULL`
	// One look-up per group.
	queryWebChats = `SELECT g.folder, g.name, ifnull((SELECT max(m.id) FROM messages m INDEXED BY messages_chat WHERE m.chat_jid = 'web:' || g.folder), 0) last
		FROM registered_groups g ORDER BY last DESC, g.folder`
	queryWebMoved = `SELECT m.topic FROM messages m INDEXED BY messages_derived
		WHERE m.derived_from = ? AND m.chat_jid = ? AND m.direction = 'in' AND m.topic <> ? ORDER BY m.id DESC LIMIT 1`
	queryQueuedBefore = `SELECT count(*) FROM turns INDEXED BY turns_queued WHERE state = 'queued' AND id < ?1 AND not_before <= ?2`
)

// The statements on lists of chats and windows, and on the sessions and runs of a group; see queries.go.
const (
	queryChats = `SELECT jid, kind, title, ifnull(sticky_topic,''), ifnull(sticky_group,''), ifnull(sticky_at,0), platform, last_seen_at
		FROM chats INDEXED BY chats_seen WHERE (last_seen_at, jid) < (?1, ?2) ORDER BY last_seen_at DESC, jid DESC LIMIT ?3+0`
	// ';' comes after ':'.
	queryPlatforms = `WITH RECURSIVE platforms(jid) AS (SELECT min(jid) FROM chats
		UNION ALL SELECT (SELECT min(jid) FROM chats WHERE jid > substr(p.jid, 1, instr(p.jid, ':') - 1) || ';') FROM platforms p WHERE p.jid IS NOT NULL)
		SELECT substr(jid, 1, instr(jid, ':') - 1) FROM platforms WHERE jid IS NOT NULL LIMIT 100`
	queryTitles = `SELECT jid, title FROM chats WHERE jid IN (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	// Each sender once, with the name in the newest message.
	querySenders = `WITH RECURSIVE senders(sender) AS (
		SELECT min(sender) FROM messages INDEXED BY messages_sender WHERE sender <> '' AND direction = 'in'
		UNION ALL SELECT (SELECT min(sender) FROM messages INDEXED BY messages_sender WHERE sender <> '' AND direction = 'in' AND sender > senders.sender)
		FROM senders WHERE senders.sender IS NOT NULL)
		SELECT m.sender, ` + store.ShortName + ` FROM senders JOIN messages m ON m.id = (SELECT max(id) FROM messages INDEXED BY messages_sender
			WHERE sender <> '' AND direction = 'in' AND sender = senders.sender)
		WHERE senders.sender IS NOT NULL LIMIT ?+0`
	// Answers of commands have no turn. Retention deletes turns and their answers, but not what engagement knows of the
	// last one.
	queryAnswered = `SELECT EXISTS (SELECT 1 FROM chat_reply_state e WHERE e.jid > ?1 AND e.jid < ?1 || ';' AND e.last_reply_id IS NOT NULL)
		OR EXISTS (SELECT 1 FROM chats c CROSS JOIN turns t INDEXED BY turns_chat ON t.chat_jid = c.jid
		CROSS JOIN messages m INDEXED BY messages_turn ON m.turn_id = t.id
		WHERE c.jid > ?1 AND c.jid < ?1 || ';' AND m.out_state = 'sent')`
	queryOpenWindows = `SELECT e.jid, e.topic, e.engaged_folder, e.engaged_until, e.engaged_at, ifnull(e.last_reply_id,0), ifnull(e.ended_at,0), ifnull(c.title,'')
		FROM chat_reply_state e INDEXED BY chat_reply_state_open LEFT JOIN chats c ON c.jid = e.jid
		WHERE e.engaged_until IS NOT NULL AND (e.engaged_until, e.jid, e.topic) > (?1, ?2, ?3)
		AND e.engaged_at > max(ifnull(e.ended_at,0), ifnull(c.sticky_at,0)) ORDER BY e.engaged_until, e.jid, e.topic LIMIT ?4+0`
	queryFolderSessions = `SELECT topic, session_id, updated_at FROM sessions WHERE group_folder = ?1 AND topic >= ?2 ORDER BY topic LIMIT ?3+0`
	// Of the runs of the last 200 turns that began.
	queryFolderRuns = `SELECT ` + factrows.RunColumns +
		`, ifnull(l.result,''), ifnull(l.error,'') FROM runs r LEFT JOIN session_log l ON l.run_id = r.id
		WHERE r.id IN (SELECT run_id FROM (SELECT run_id FROM turns INDEXED BY turns_folder WHERE folder = ?1 AND started_at IS NOT NULL
		ORDER BY id DESC LIMIT 200) t) ORDER BY r.id DESC LIMIT ?2+0`
	queryLastFolderTurn = `SELECT id, started_at FROM turns INDEXED BY turns_folder WHERE folder = ? AND started_at IS NOT NULL ORDER BY id DESC LIMIT 1`
)

// Statements of the dashboard's pages of routes and of changes.
const (
	// Each kind once: from one of them the index leads to the next.
	queryAuditWhats = `WITH RECURSIVE w (what) AS (
		SELECT * FROM (SELECT what FROM audit INDEXED BY audit_what ORDER BY what LIMIT 1) f
		UNION ALL SELECT (SELECT a.what FROM audit a INDEXED BY audit_what WHERE a.what > w.what ORDER BY a.what LIMIT 1) FROM w WHERE w.what IS NOT NULL)
		SELECT what FROM w WHERE what IS NOT NULL LIMIT ?+0`
	queryNewestInbound = `SELECT m.id, m.chat_jid, ifnull(c.kind, ''), ifnull(c.title, ''), ifnull(c.sticky_group, ''), m.topic, m.thread_id, m.sender,
		m.sender_name, m.verb, ifnull(m.platform_id, ''), m.received_at, m.kind IN ('edit', 'delete'),
		m.forwarded_from IS NOT NULL AND ifnull(json_extract(m.forwarded_from, '$.kind'), '') <> 'inject', ifnull(m.reason, ''), ifnull(m.routed_to, ''),
		substr(m.content, 1, 300)
		FROM messages m LEFT JOIN chats c ON c.jid = m.chat_jid
		WHERE m.direction = 'in' AND m.id > (SELECT max(id) FROM messages) - ?2 ORDER BY m.id DESC LIMIT ?1+0`
)

// Statements for `dashd doctor`, see queries.go. It runs at any time on any amount of rows: each reads an
// index of the rows in question, or a bounded number of the newest rows.
const (
	queryLastRuntimes = `SELECT folder, runtime FROM runs NOT INDEXED ORDER BY id DESC LIMIT ?+0`
)

// Statements about polls and their votes.
const (
	queryPolls   = `SELECT ` + factrows.PollColumns + ` FROM polls p WHERE p.id < ? ORDER BY p.id DESC LIMIT ?+0`
	queryAllOpen = `SELECT ` + factrows.PollColumns +
		` FROM polls p INDEXED BY polls_open WHERE p.state = 'open' AND p.id < ? ORDER BY p.id DESC LIMIT ?+0`
)

// Statements of the full-text index and of lists of messages.
const (
	querySearchWaiting = `SELECT count(*), ifnull(min(received_at), 0) FROM (SELECT received_at FROM messages WHERE id > ?1 ORDER BY id LIMIT ?2+0) n`
	// Where a list looks for rows: ids and positions, the newest first. ?2 is the position after which it continues, ?3
	// an id.
	queryListAll    = `SELECT id, id FROM messages WHERE ?1 = '' AND id < ?2 AND id >= ?3 ORDER BY id DESC LIMIT ?4+0`
	queryListChat   = `SELECT id, id FROM messages INDEXED BY messages_chat WHERE chat_jid = ?1 AND id < ?2 AND id >= ?3 ORDER BY id DESC LIMIT ?4+0`
	queryListSender = `SELECT id, id FROM messages INDEXED BY messages_sender WHERE sender <> '' AND direction = 'in' AND sender = ?1 AND id < ?2 AND id >= ?3
		ORDER BY id DESC LIMIT ?4+0`
	queryListFolder = `SELECT id, decision_seq FROM messages INDEXED BY messages_routed WHERE routed_to = ?1 AND decision_seq < ?2 AND id >= ?3
		ORDER BY decision_seq DESC LIMIT ?4+0`
	queryListDropped = `SELECT id, id FROM messages INDEXED BY messages_dropped WHERE disposition = 'dropped' AND reason = ?1 AND id < ?2 AND id >= ?3
		ORDER BY id DESC LIMIT ?4+0`
	queryListUndelivered = `SELECT id, id FROM messages INDEXED BY messages_undelivered
		WHERE out_state IN ('failed', 'ambiguous', 'cancelled') AND out_state = ?1 AND id < ?2 AND id >= ?3 ORDER BY id DESC LIMIT ?4+0`
	// All of three partial indexes, of the messages that wait.
	queryListUnsent = `SELECT id, id FROM messages INDEXED BY messages_outbox WHERE out_state IN ('queued', 'sending') AND ?1 = '' AND id < ?2 AND id >= ?3
		ORDER BY id DESC LIMIT ?4+0`
	queryListUndecided = `SELECT id, id FROM messages INDEXED BY messages_undecided WHERE direction = 'in' AND disposition IS NULL AND ?1 = ''
		AND id < ?2 AND id >= ?3 ORDER BY id DESC LIMIT ?4+0`
	queryListParked = `SELECT id, id FROM messages INDEXED BY messages_parked WHERE disposition = 'onboarding' AND ?1 = ''
		AND id < ?2 AND id >= ?3 ORDER BY id DESC LIMIT ?4+0`
	// The rows with a failed part of a class.
	queryListFailed = `SELECT DISTINCT message_id, message_id FROM deliveries INDEXED BY deliveries_failed WHERE state = 'failed' AND error_class = ?1
		AND message_id < ?2 AND message_id >= ?3 ORDER BY message_id DESC LIMIT ?4+0`
	queryIDAfter        = `SELECT id, received_at FROM messages WHERE id >= ? ORDER BY id LIMIT 1`
	queryDroppedReasons = `WITH RECURSIVE reasons(reason) AS (
		SELECT min(reason) FROM messages INDEXED BY messages_dropped WHERE disposition = 'dropped'
		UNION ALL SELECT (SELECT min(reason) FROM messages INDEXED BY messages_dropped WHERE disposition = 'dropped' AND reason > reasons.reason)
		FROM reasons WHERE reasons.reason IS NOT NULL) SELECT reason FROM reasons WHERE reason IS NOT NULL`
)

// The statements on the spend of agents; see queries.go.
const (
	queryChatSpend = `SELECT ifnull(sum(turns), 0), ifnull(sum(input_tokens), 0), ifnull(sum(output_tokens), 0), ifnull(sum(cost_usd), 0.0)
		FROM spend INDEXED BY spend_chat WHERE chat_jid = ? AND day >= ? AND day <= ?`
)

// The statements on senders, and on the polls of a chat; see queries.go.
const (
	// The newest 1,000 messages of a sender.
	ofSender = ` FROM (SELECT id FROM messages INDEXED BY messages_sender WHERE sender <> '' AND direction = 'in' AND sender = ?1
		ORDER BY id DESC LIMIT 1000) n CROSS JOIN `
	senderTurns      = ofSender + `turns t INDEXED BY turns_trigger ON t.trigger_message_id = n.id`
	querySenderChats = `SELECT m.chat_jid, ` + store.ShortName + ` AS name, count(*), max(m.received_at)` + ofSender +
		`messages m ON m.id = n.id GROUP BY m.chat_jid, name ORDER BY max(m.id) DESC LIMIT ?2+0`
	querySenderTurns = `SELECT ` + store.TurnColumns + senderTurns + ` ORDER BY n.id DESC LIMIT ?2+0`
	querySenderSpend = `SELECT count(*), ifnull(sum(t.input_tokens), 0), ifnull(sum(t.output_tokens), 0), ifnull(sum(t.cost_usd), 0.0),
		count(*) FILTER (WHERE t.created_at >= ?2)` + senderTurns
	queryChatPolls = `SELECT ` + factrows.PollColumns +
		` FROM polls p INDEXED BY polls_chat WHERE p.chat_jid = ? ORDER BY p.id DESC LIMIT ?+0`
)

// The statements on figures. They read the rows of a range of ids.
const (
	queryMessageCounts = `SELECT received_at / ?3, count(*) FILTER (WHERE direction = 'in'), count(*) FILTER (WHERE direction = 'out' AND ifnull(out_state, '') <> 'failed'),
		count(*) FILTER (WHERE out_state = 'failed') FROM messages WHERE id >= ?1 AND id < ?2 GROUP BY 1`
	queryTurnTimes = `SELECT t.created_at, m.received_at, ifnull(t.started_at, 0), ifnull(t.ended_at, 0), t.state, t.attempts
		FROM turns t JOIN messages m ON m.id = t.trigger_message_id WHERE t.id >= ?1 AND t.id < ?2 ORDER BY t.id`
	queryTurnAfter    = `SELECT id, created_at FROM turns WHERE id >= ? ORDER BY id LIMIT 1`
	queryLastTurn     = `SELECT ifnull(max(id), 0) FROM turns`
	queryGroupDollars = `SELECT day, folder, sum(cost_usd) FROM spend WHERE day >= ? GROUP BY day, folder ORDER BY day, folder`
)

// The statements on turns, runs and sessions; see queries.go.
const (
	// ?4 bounds the count; the oldest is found by the first match.
	queryCountOpen = `SELECT (SELECT count(*) FROM (SELECT 1 FROM turns t INDEXED BY turns_open WHERE ` + openAtPlace +
		` LIMIT ?4+0) o), r.running,
		ifnull(r.begun, 0), ifnull((SELECT t.id FROM turns t INDEXED BY turns_open WHERE ` + openAtPlace + ` ORDER BY t.id LIMIT 1), 0)
		FROM (SELECT count(*) AS running, min(nullif(t.started_at, 0)) AS begun FROM turns t INDEXED BY turns_run
			WHERE t.state = 'running' AND ` + atPlace + `) r`
	queryWebWorking = `SELECT DISTINCT t.chat_jid, t.place FROM turns t INDEXED BY turns_run
		WHERE t.state = 'running' AND t.chat_jid >= 'web:' AND t.chat_jid < 'web;' ORDER BY 1, 2`
	// Queued turns that wait for another attempt.
	queryWebWaits = `SELECT t.chat_jid, t.place, t.waits_for, t.not_before FROM turns t INDEXED BY turns_queued
		WHERE t.state = 'queued' AND t.chat_jid >= 'web:' AND t.chat_jid < 'web;' AND t.not_before > 0
		AND t.waits_for IN ('retry', 'machine', 'probe') ORDER BY t.id DESC`
	// Of running turns whose agents have said something of their work.
	queryChatWork = `SELECT t.id, t.place, ifnull(t.started_at, 0), p.updated_at FROM turns t INDEXED BY turns_run JOIN turn_progress p ON p.turn_id = t.id
		WHERE t.state = 'running' AND t.chat_jid = ? ORDER BY t.id`
	queryWebWork = `SELECT t.id, t.chat_jid, p.updated_at FROM turns t INDEXED BY turns_run JOIN turn_progress p ON p.turn_id = t.id
		WHERE t.state = 'running' AND t.chat_jid >= 'web:' AND t.chat_jid < 'web;' ORDER BY t.id`
)

// The statements on deliveries of hooks; see queries.go.
const (
	queryHookTurns = `SELECT count(DISTINCT turn_id) FROM (SELECT turn_id, thread_id, received_at, disposition, direction FROM messages
		INDEXED BY messages_chat WHERE ` + store.Spoken + ` AND chat_jid = ? ORDER BY id DESC LIMIT 1000) n
		WHERE direction = 'in' AND thread_id = ? AND received_at > ? AND disposition = 'routed'`
	// Operators' copies of deliveries have another source.
	queryLastHookDelivery = `SELECT received_at FROM messages INDEXED BY messages_chat
		WHERE chat_jid = ? AND source = 'dashd' AND direction = 'in' ORDER BY id DESC LIMIT 1`
)

// The statements on problems that operators are notified of.
const (
	queryOpenAlerts = `SELECT id, text, fix, since, 0 FROM alerts INDEXED BY alerts_open
		WHERE ended_at IS NULL AND since < seen_at ORDER BY id`
	queryPendingAlerts = `SELECT a.id, a.text, a.fix, a.since, 0 FROM alerts a INDEXED BY alerts_open
		WHERE a.ended_at IS NULL AND a.since < a.seen_at AND a.seen_at = ?2
		AND NOT EXISTS (SELECT 1 FROM alert_notices n WHERE n.operator = ?1 AND n.alert_id = a.id AND n.ended = 0)
		UNION ALL SELECT a.id, a.text, a.fix, a.since, a.ended_at FROM alerts a INDEXED BY alerts_ended WHERE a.ended_at > ?3
		AND EXISTS (SELECT 1 FROM alert_notices n WHERE n.operator = ?1 AND n.alert_id = a.id AND n.ended = 0)
		AND NOT EXISTS (SELECT 1 FROM alert_notices n WHERE n.operator = ?1 AND n.alert_id = a.id AND n.ended = 1) ORDER BY 1`
	queryAlertMessages = `SELECT count(DISTINCT message_id) FROM alert_notices INDEXED BY alert_notices_at
		WHERE operator = ? AND at > ?`
)

// The statements on notifications; see queries.go.
const (
	queryPushDevices = `SELECT id, login, endpoint, p256dh, auth, device, kinds, created_at, sent_at, failed_at, error
		FROM push_subscriptions ORDER BY id DESC`
	queryCountPushDevices = `SELECT count(*) FROM push_subscriptions WHERE login = ? AND endpoint <> ?`
	queryPushNotices      = `SELECT subscription_id, event, at FROM push_notices`
	queryForgetPushes     = `DELETE FROM push_notices WHERE at < ? AND event NOT IN (SELECT 'alert' || id FROM alerts
		INDEXED BY alerts_open WHERE ended_at IS NULL)`
	// Of turns that an agent has answered, of the questions that are open, and of the problems that last.
	queryPushEvents = `SELECT 'turn' || t.id, 'answer', substr(t.chat_jid, 5), ifnull(g.name, ''), o.received_at
		FROM turns t NOT INDEXED JOIN messages m ON m.id = t.trigger_message_id LEFT JOIN registered_groups g ON g.folder = substr(t.chat_jid, 5)
		JOIN messages o ON o.id = (SELECT max(a.id) FROM messages a INDEXED BY messages_turn
			WHERE a.turn_id = t.id AND a.direction = 'out' AND a.out_state = 'sent' AND a.kind IN ('message', 'file', 'poll'))
		WHERE t.id > (SELECT max(id) FROM turns) - 2000 AND t.state = 'done' AND t.chat_jid >= 'web:' AND t.chat_jid < 'web;'
		AND t.ended_at >= ?1 AND t.ended_at <= ?2 AND t.ended_at - m.received_at >= ?3
		UNION ALL SELECT 'ask' || a.id, 'question', substr(t.chat_jid, 5), ifnull(g.name, ''), a.created_at FROM asks a INDEXED BY asks_open
		JOIN turns t ON t.id = a.turn_id LEFT JOIN registered_groups g ON g.folder = substr(t.chat_jid, 5)
		WHERE a.state = 'open' AND a.message_id IS NOT NULL AND t.chat_jid >= 'web:' AND t.chat_jid < 'web;'
		AND a.created_at >= ?1 AND a.created_at <= ?2 AND substr(a.ask_id, 1, 11) <> 'gated:retry'
		UNION ALL SELECT 'alert' || id, 'problem', '', text, since FROM alerts INDEXED BY alerts_open
		WHERE ended_at IS NULL AND since < seen_at`
)
