// Package rows has the statements that gated alone needs.
package rows

import (
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
	queryNewMessages = `SELECT id, chat_jid, direction = 'in' AND disposition IS NULL, received_at
		FROM messages WHERE id > ? ORDER BY id LIMIT ?+0`
	// A skip scan: a seek per chat, however many rows of it wait.
	queryUndecidedChats = `WITH RECURSIVE waiting(jid) AS (
		SELECT min(chat_jid) FROM messages INDEXED BY messages_undecided WHERE direction = 'in' AND disposition IS NULL
		UNION ALL SELECT (SELECT min(chat_jid) FROM messages INDEXED BY messages_undecided
			WHERE direction = 'in' AND disposition IS NULL AND chat_jid > waiting.jid)
		FROM waiting WHERE waiting.jid IS NOT NULL)
		SELECT jid FROM waiting WHERE jid IS NOT NULL`
	// Rows of a chat's former address are not decided there, and before those of its
	// present one.
	queryUndecided = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_undecided
		WHERE m.direction = 'in' AND m.disposition IS NULL AND m.chat_jid = ?1 AND m.id > ?2
		AND NOT EXISTS (SELECT 1 FROM chat_aliases WHERE old_jid = ?1) AND NOT EXISTS (` + movingIn + ` AND a.new_jid = ?1)
		ORDER BY m.id LIMIT ?3+0`
	// The first of a group: an album has ten, a text of the longest size 256 pieces.
	queryGroupRows = `SELECT ` + store.FoundColumns + ` FROM messages m INDEXED BY messages_groups
		WHERE m.group_key <> '' AND m.chat_jid = ? AND m.group_key = ? ORDER BY m.id LIMIT 256`
	// directMessages is the condition of a row m of a direct message. A chat that no adapter has described is judged by
	// its address, as msg.KindOfJID does.
	directMessages = `ifnull((SELECT c.kind = 'dm' FROM chats c WHERE c.jid = m.chat_jid),
		glob('telegram:[^-]*', m.chat_jid) OR glob('telegram+*:[^-]*', m.chat_jid) OR glob('discord:dm-*', m.chat_jid) OR glob('discord+*:dm-*', m.chat_jid)
		OR glob('slack:D*', m.chat_jid) OR glob('slack+*:D*', m.chat_jid))`
	observedRows = `(SELECT id, decision_seq, chat_jid FROM messages INDEXED BY messages_routed
		WHERE routed_to = ?1 AND decision_seq > ?2 AND decision_seq <= ?6 ORDER BY decision_seq DESC LIMIT 10000) o
		JOIN messages m ON m.id = o.id
		WHERE o.chat_jid <> ?3 AND m.received_at >= ?4 AND m.is_bot_message = 0
		AND (m.content <> '' OR m.attachments IS NOT NULL)
		AND m.disposition IN ('routed', 'observed') AND m.verb NOT IN ('edit', 'delete')
		AND NOT (?5 AND ` + directMessages + `)`
	queryObserved = `SELECT ` + store.MessageColumns + ` FROM ` + observedRows +
		` ORDER BY o.decision_seq DESC LIMIT ?7+0`
	queryObservedCount = `SELECT count(*) FROM ` + observedRows
	queryLastStaleAt   = `SELECT received_at FROM messages INDEXED BY messages_stale WHERE chat_jid = ? AND reason = 'stale'
		ORDER BY id DESC LIMIT 1`
	// Of the newest 500 rows of the chat: a loop of bots is faster than users.
	queryBotTurns = `SELECT count(DISTINCT turn_id) FROM (SELECT turn_id, sender, is_bot_message, received_at FROM messages
		WHERE chat_jid = ?1 ORDER BY id DESC LIMIT 500) n WHERE is_bot_message = 1 AND sender = ?2 AND turn_id IS NOT NULL AND received_at > ?3`
	// Newest first; the reader stops at the first that is too old.
	queryRecentTurns = `SELECT CASE WHEN m.on_behalf_of = '' THEN m.sender ELSE m.on_behalf_of END, ifnull(m.turn_id, 0), ifnull(m.decided_at, 0),
		m.disposition = 'routed' AND (m.forwarded_from IS NULL OR m.on_behalf_of <> '')
		FROM messages m INDEXED BY messages_routed WHERE m.routed_to = ? ORDER BY m.decision_seq DESC LIMIT 100000`
	// Of the newest 1000 rows of the chat.
	queryLastRateLimit = `SELECT ifnull(max(decided_at), 0) FROM (SELECT CASE WHEN on_behalf_of = '' THEN sender ELSE on_behalf_of END AS payer, verb, reason, decided_at
		FROM messages INDEXED BY messages_chat WHERE chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE reason = 'rate_limit' AND payer = ? AND verb <> 'reaction'`
	// Likewise.
	queryCommandsOf = `SELECT received_at, reason = 'command_limit' FROM (SELECT sender, disposition, reason, received_at FROM messages INDEXED BY messages_chat
		WHERE chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE sender = ? AND (disposition = 'sticky' OR reason IN ('command', 'pin_denied', 'command_limit'))`
	queryFoldersOfSender = `SELECT DISTINCT sender = ?2, routed_to FROM (SELECT sender, routed_to, turn_id FROM messages INDEXED BY messages_chat
		WHERE chat_jid = ?1 ORDER BY id DESC LIMIT 1000) n WHERE turn_id IS NOT NULL AND routed_to IS NOT NULL`
	queryFiredEdit = `SELECT ` + store.MessageColumns + ` FROM messages m WHERE m.chat_jid = ? AND m.target_id = ?
		AND m.disposition = 'routed' AND m.reason = 'edit_addressed' ORDER BY m.id DESC LIMIT 1`
	queryDeleted    = `SELECT EXISTS (SELECT 1 FROM messages WHERE chat_jid = ? AND target_id = ? AND verb = 'delete' AND direction = 'in' AND id < ?)`
	queryLatestEdit = `SELECT ` + store.MessageColumns + ` FROM messages m WHERE m.chat_jid = ? AND m.target_id = ?
		AND m.reason IN ('edit_note', 'edit_superseded', 'edit_addressed') AND m.verb = 'edit' ORDER BY m.id DESC LIMIT 1`
	updateContent     = `UPDATE messages SET content = ?, addressed = ?, verb = ? WHERE id = ? AND disposition IS NULL`
	updateAttachNotes = `UPDATE messages SET turn_id = ?1 WHERE id IN (SELECT id FROM messages INDEXED BY messages_notes
		WHERE chat_jid = ?2 AND reason = 'edit_note' AND turn_id IS NULL AND routed_to = ?3 AND thread_id = ?4
		AND (thread_id <> '' OR topic = ?5) ORDER BY id LIMIT 20)`
	queryNote = `SELECT id FROM messages INDEXED BY messages_notes
		WHERE chat_jid = ?1 AND reason = 'edit_note' AND turn_id IS NULL AND routed_to = ?2 AND thread_id = ?3
		AND (thread_id <> '' OR topic = ?4) ORDER BY id LIMIT 1`
	updateReleaseNotes = `UPDATE messages SET turn_id = NULL WHERE turn_id = ? AND reason = 'edit_note'`
	updateTurnNotes    = `UPDATE messages SET turn_id = NULL, reason = 'edit_superseded' WHERE turn_id = ? AND reason = 'edit_note' AND target_id = ?`
	updateTurnContent  = `UPDATE messages SET content = ?, addressed = ?, verb = ? WHERE id = ?`
	updateWithdraw     = `UPDATE messages SET disposition = 'dropped', reason = ?, routed_to = NULL, turn_id = NULL, files_wanted = 0, decided_at = ?, decision_seq = ? WHERE id = ?`
	updateUndecide     = `UPDATE messages SET disposition = NULL, reason = NULL, routed_to = NULL, turn_id = NULL, decided_at = NULL, decision_seq = NULL WHERE id = ?`
	updateOldNotes     = `UPDATE messages INDEXED BY messages_note_targets SET reason = 'edit_superseded'
		WHERE chat_jid = ? AND reason = 'edit_note' AND turn_id IS NULL AND target_id = ?`
	updateCancelReplies = `UPDATE messages SET out_state = 'cancelled'
		WHERE turn_id = ? AND direction = 'out' AND out_state = 'queued'`
	updateWantFiles = `UPDATE messages SET files_wanted = 1 WHERE id = ? AND pending_files > 0 AND files_wanted = 0 RETURNING chat_jid`
	putState        = `INSERT INTO router_state (key, value) VALUES (?,?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
	addState        = `INSERT INTO router_state (key, value) VALUES (?,?) ON CONFLICT (key) DO UPDATE SET value = router_state.value + excluded.value`
)

// Statements about questions of agents.
const (
	queryFolderOpenAsks = `SELECT ` + store.AskColumns +
		` FROM asks a INDEXED BY asks_open CROSS JOIN turns t ON t.id = a.turn_id
		WHERE a.state = 'open' AND t.folder = ? ORDER BY a.id`
	// Those that were asked over a minute (maxSkew) later than now are due as well: the clock was set back.
	queryAsksDue = `SELECT ` + store.AskColumns + ` FROM asks a INDEXED BY asks_open
		WHERE a.state = 'open' AND (a.expires_at <= ?1 OR a.created_at > ?1 + 60000
			OR EXISTS (SELECT 1 FROM messages m WHERE m.id = a.message_id AND m.out_state = 'failed')) ORDER BY a.id LIMIT 100`
	// Open ones are few: each is asked of users, and ends within a day.
	queryOpenAsks    = `SELECT ` + store.AskColumns + ` FROM asks a INDEXED BY asks_open WHERE a.state = 'open' ORDER BY a.id`
	updateAskWho     = `UPDATE asks SET who = ? WHERE id = ? AND state = 'open'`
	queryRunOpenAsks = `SELECT DISTINCT t.id FROM turns t INDEXED BY turns_run CROSS JOIN asks a ON a.turn_id = t.id
		WHERE t.state = 'running' AND t.run_id = ? AND a.state = 'open' AND substr(a.ask_id, 1, 6) <> 'budget' ORDER BY 1`
	querySaidSince = `SELECT EXISTS (SELECT 1 FROM messages m INDEXED BY messages_chat WHERE m.chat_jid = ?1 AND m.id > ?2 AND m.id < ?3
		AND m.kind IN ('message', 'file', 'poll') AND m.direction = 'out' AND m.source IN ('agent', 'tool', 'reminder', 'broadcast')
		AND m.out_state NOT IN ('failed', 'cancelled') AND m.thread_id = ?4 AND (m.platform <> 'web' OR m.topic = ?5))`
	insertAsk = `INSERT INTO asks (turn_id, ask_id, message_id, question, options, payload_hash, who, state, created_at, expires_at)
		VALUES (?,?,?,?,?,?,?,'open',?,?)`
	updateAnswerAsk = `UPDATE asks SET state = 'answered', option = ?, answered_by = ?, ended_at = ? WHERE id = ? AND state = 'open'`
	updateExpireAsk = `UPDATE asks SET state = 'expired', ended_at = ? WHERE id = ? AND state = 'open'`
	// A question that no adapter has begun to send is not sent any more.
	updateCancelAsk = `UPDATE messages SET out_state = 'cancelled' WHERE id = ? AND out_state = 'queued'`
	upsertAsking    = `INSERT INTO turn_progress (turn_id, state, updated_at) SELECT id, 'requires_action', ?2 FROM turns WHERE id = ?1 AND state = 'running'
		ON CONFLICT (turn_id) DO UPDATE SET state = 'requires_action', updated_at = excluded.updated_at`
	updateAsked = `UPDATE turn_progress SET state = 'running', updated_at = ?2 WHERE turn_id = ?1 AND state = 'requires_action'
		AND NOT EXISTS (SELECT 1 FROM asks a WHERE a.turn_id = ?1 AND a.state = 'open')`
)

// The statements on lists of chats, windows and what a group has; see queries.go.
const (
	// Threads of all other chats have other kinds.
	queryIsForum = `SELECT EXISTS (SELECT 1 FROM platform_threads WHERE chat_jid = ? AND kind = 'forum_post')`
)

// Statements about active context objects. A chat has about a hundred of them.
const (
	contextColumns = `SELECT chat_id, object_id, kind, topic_id, ifnull(source_message_id, 0), label, url, created_at, last_touched_at,
		activation_reasons, ifnull(created_by_user_id, ''), created_by_bot, ifnull(closed_at, 0), ifnull(due_at, 0), active_until
		FROM context_objects`
	queryContextOfChat   = contextColumns + ` WHERE chat_id = ? AND active_until+0 > ? ORDER BY object_id`
	queryContextObject   = contextColumns + ` WHERE chat_id = ? AND object_id = ?`
	queryContextOfSource = contextColumns +
		` WHERE chat_id = ?1 AND kind = ?2 AND source_message_id = ?3 AND active_until > ?4
		ORDER BY last_touched_at DESC LIMIT 1`
	deleteContextOfSource = `DELETE FROM context_objects WHERE chat_id = ? AND source_message_id = ?`
	// Those of a chat beyond a number, open polls last.
	deleteContextExcess = `DELETE FROM context_objects WHERE chat_id = ?1 AND object_id IN
		(SELECT object_id FROM context_objects WHERE chat_id = ?1 AND object_id <> ?2 AND active_until > ?3
		ORDER BY active_until = 9223372036854775807 DESC, last_touched_at DESC, object_id LIMIT 9223372036854775807 OFFSET ?4+0)`
	putContextObject = `INSERT INTO context_objects (chat_id, object_id, kind, topic_id, source_message_id, label, url, created_at,
		last_touched_at, activation_reasons, created_by_user_id, created_by_bot, closed_at, due_at, active_until, ttl_class)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT (chat_id, object_id) DO UPDATE SET kind = excluded.kind, topic_id = excluded.topic_id,
		source_message_id = excluded.source_message_id, label = excluded.label, url = excluded.url, created_at = excluded.created_at,
		last_touched_at = excluded.last_touched_at, activation_reasons = excluded.activation_reasons,
		created_by_user_id = excluded.created_by_user_id, created_by_bot = excluded.created_by_bot, closed_at = excluded.closed_at,
		due_at = excluded.due_at, active_until = excluded.active_until, ttl_class = excluded.ttl_class`
	deleteContextObject = `DELETE FROM context_objects WHERE chat_id = ? AND object_id = ?`
	deleteEndedContext  = `DELETE FROM context_objects WHERE (chat_id, object_id) IN
		(SELECT chat_id, object_id FROM context_objects INDEXED BY context_objects_active WHERE active_until <= ? LIMIT ?+0)`
	// Threads of the platform or bound ones, else a topic of one of the last turns; the topic of a
	// delegated turn is none of the chat's.
	queryChatHasTopics = `SELECT EXISTS (SELECT 1 FROM platform_threads WHERE chat_jid = ?1)
		OR EXISTS (SELECT 1 FROM topic_threads WHERE chat_jid = ?1)
		OR EXISTS (SELECT 1 FROM (SELECT topic, kind FROM turns INDEXED BY turns_chat WHERE chat_jid = ?1 ORDER BY id DESC LIMIT 100) t
			WHERE topic <> '' AND kind <> 'delegated' AND NOT (glob('#d[0-9]*', topic) AND NOT glob('#d*[^0-9]*', topic)))`
)

// Statements of the dashboard's pages of routes and of changes.
const (
	// Ids are handed out without gaps.
	deleteOldAudit = `DELETE FROM audit WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT ?3+0)
		AND (at < ?1 OR id <= (SELECT max(id) FROM audit) - ?2)`
	queryDecidedInbound = `SELECT ` + store.MessageColumns +
		` FROM messages m WHERE m.direction = 'in' AND m.disposition IS NOT NULL AND m.decided_at >= ?1
		AND m.id > (SELECT max(id) FROM messages) - ?3 ORDER BY m.id DESC LIMIT ?2+0`
)

// Statements for `dashd doctor`, see queries.go. It runs at any time on any amount of rows: each reads an
// index of the rows in question, or a bounded number of the newest rows.
const (
	// Of the parts, the first one that did not arrive says why.
	queryLostRows = `SELECT m.id, m.chat_jid, m.thread_id, m.topic, m.kind, m.source, substr(m.content, 1, 200), m.out_state,
		ifnull(d.error_class,''), ifnull(d.error,''), (SELECT count(*) FROM deliveries p WHERE p.message_id = m.id),
		(SELECT count(*) FROM deliveries p WHERE p.message_id = m.id AND p.state IN ('sent', 'ambiguous')), m.received_at,
		ifnull((SELECT max(p.updated_at) FROM deliveries p WHERE p.message_id = m.id), m.received_at),
		ifnull((SELECT max(n.id) FROM messages n INDEXED BY messages_derived WHERE n.derived_from = m.id AND n.direction = 'out' AND n.source = 'notice'), 0),
		ifnull((SELECT max(n.id) FROM messages n INDEXED BY messages_derived WHERE n.derived_from = m.id AND n.direction = 'out' AND n.source <> 'notice'
			AND n.kind = m.kind), 0)
		FROM messages m INDEXED BY messages_lost LEFT JOIN deliveries d ON d.message_id = m.id
		AND d.part = (SELECT min(f.part) FROM deliveries f WHERE f.message_id = m.id AND f.state = m.out_state)
		WHERE m.out_state IN ('failed', 'ambiguous') AND m.received_at >= ?1 AND m.source <> 'waiting' AND (?2 = '' OR m.chat_jid = ?2)
		ORDER BY m.received_at DESC, m.id DESC LIMIT ?3+0`
)

// The statements on forks of topics.
const (
	queryOpenForks = `SELECT topic FROM forks INDEXED BY forks_open WHERE chat_jid = ? AND folder = ? AND ended_at IS NULL ORDER BY created_at, topic LIMIT ?+0`
	// A tab of a web chat stays one when its fork has ended. A topic with a session that never was a fork is one of
	// users.
	queryForkTaken = `SELECT EXISTS (SELECT 1 FROM forks WHERE chat_jid = ?2 AND topic = ?3)
		OR EXISTS (SELECT 1 FROM forks WHERE folder = ?1 AND topic = ?3 AND (ended_at IS NULL OR chat_jid LIKE 'web:%'))
		OR EXISTS (SELECT 1 FROM topic_threads WHERE chat_jid = ?2 AND topic = ?3)
		OR EXISTS (SELECT 1 FROM sessions WHERE group_folder = ?1 AND topic = ?3 AND NOT EXISTS (SELECT 1 FROM forks WHERE folder = ?1 AND topic = ?3))`
	// The first is <topic>#fix, the others end in a number.
	queryLastFork = `SELECT ifnull(max(CASE WHEN topic = ?2 THEN 1 ELSE CAST(substr(topic, length(?2) + 1) AS INTEGER) END), 0)
		FROM forks WHERE chat_jid = ?1 AND topic >= ?2 AND topic < ?2 || ':' AND NOT glob('*[^0-9]*', substr(topic, length(?2) + 1))`
	insertFork = `INSERT INTO forks (chat_jid, topic, folder, thread_id, own_thread, message_id, created_at) VALUES (?,?,?,?,?,?,?)`
	// Of the newest 1,000 spoken rows of the chat.
	queryLastAnswer = `SELECT id FROM (SELECT id, direction, source, topic, turn_id FROM messages INDEXED BY messages_chat
		WHERE ` + store.Spoken + ` AND chat_jid = ?1 ORDER BY id DESC LIMIT 1000) m
		WHERE m.direction = 'out' AND m.source IN ('agent', 'tool') AND m.topic = ?2
		AND (SELECT folder FROM turns t WHERE t.id = m.turn_id) = ?3 ORDER BY id DESC LIMIT 1`
)

// The statements of metrics, which read rows at a scrape. Each counts entries of a partial index, up to a limit.
const (
	// Those that may start by ?1 with the oldest of them, then those that wait longer, by what for.
	queryQueueBacklog = `SELECT q.n, ifnull((SELECT created_at FROM turns WHERE id = q.oldest), 0), q.later,
		(SELECT count(*) FROM (SELECT 1 FROM turns INDEXED BY turns_files WHERE state = 'queued' AND waits_for = 'files' LIMIT ?2+0) f),
		(SELECT count(*) FROM (SELECT 1 FROM turns INDEXED BY turns_probe WHERE state = 'queued' AND waits_for = 'probe' LIMIT ?2+0) p)
		FROM (SELECT count(*) FILTER (WHERE not_before <= ?1) AS n, count(*) FILTER (WHERE not_before > ?1) AS later,
			min(id) FILTER (WHERE not_before <= ?1) AS oldest
			FROM (SELECT id, not_before FROM turns INDEXED BY turns_queued WHERE state = 'queued' LIMIT ?2+0) w) q`
	queryLiveRuns = `SELECT runtime, count(*) FROM runs INDEXED BY runs_unended WHERE ended_at IS NULL GROUP BY runtime`
)

// Statements about chats that were moved.
const (
	// Moves that have not reached all rows that wait to be decided or delivered.
	movingIn = `SELECT a.new_jid FROM chat_aliases a INDEXED BY chat_aliases_moving WHERE a.moving = 1
		AND EXISTS (SELECT 1 FROM messages o INDEXED BY messages_undecided
			WHERE o.direction = 'in' AND o.disposition IS NULL AND o.chat_jid = a.old_jid)`
	queryMoving = `SELECT old_jid FROM chat_aliases INDEXED BY chat_aliases_moving WHERE moving = 1`
)

// Statements about rows that wait for an approval.
const (
	// A skip scan: a seek per chat.
	queryParkedChats = `WITH RECURSIVE parked(jid) AS (
		SELECT min(chat_jid) FROM messages INDEXED BY messages_parked WHERE disposition = 'onboarding'
		UNION ALL SELECT (SELECT min(chat_jid) FROM messages INDEXED BY messages_parked
			WHERE disposition = 'onboarding' AND chat_jid > parked.jid)
		FROM parked WHERE parked.jid IS NOT NULL)
		SELECT jid, EXISTS (SELECT 1 FROM onboarding_requests INDEXED BY onboarding_pending WHERE state = 'pending' AND chat_jid = parked.jid)
		FROM parked WHERE jid IS NOT NULL`
	queryParked = `SELECT m.id, ifnull(m.platform_id,''), m.sender, ` + store.ShortName +
		`, m.is_bot_message, m.verb, m.topic, m.thread_id, m.addressed, m.received_at
		FROM messages m INDEXED BY messages_parked WHERE m.disposition = 'onboarding' AND m.chat_jid = ? ORDER BY m.id LIMIT ?+0`
	updateTakeUp = `UPDATE messages INDEXED BY messages_parked SET disposition = NULL, reason = NULL, decided_at = NULL, decision_seq = NULL
		WHERE disposition = 'onboarding' AND chat_jid = ?`
	updateTakeUpRow = `UPDATE messages SET disposition = NULL, reason = NULL, decided_at = NULL, decision_seq = NULL
		WHERE id = ? AND disposition = 'onboarding'`
	updateDropParked = `UPDATE messages SET disposition = 'dropped', reason = ?, decided_at = ?, decision_seq = ? WHERE id = ? AND disposition = 'onboarding'`
)

// Statements about polls and their votes.
const (
	queryPollsInState = `SELECT ` + store.PollColumns + ` FROM polls p INDEXED BY polls_list
		WHERE p.chat_jid = ? AND p.folder = ? AND p.state = ? AND p.id < ? ORDER BY p.id DESC LIMIT ?+0`
	queryPollsDue = `SELECT ` + store.PollColumns + ` FROM polls p INDEXED BY polls_due
		WHERE p.state = 'open' AND p.closes_at IS NOT NULL AND p.closes_at <= ? ORDER BY p.closes_at LIMIT ?+0`
	queryPollsEnding = `SELECT ` + store.PollColumns + ` FROM polls p INDEXED BY polls_ending
		WHERE p.end_pending = 1 AND p.id > ? ORDER BY p.id LIMIT ?+0`
	queryPollsUndelivered = `SELECT ` + store.PollColumns +
		` FROM polls p INDEXED BY polls_open CROSS JOIN messages m ON m.id = p.message_id
		WHERE p.state = 'open' AND p.id > ? AND m.out_state IN ('failed', 'cancelled') ORDER BY p.id LIMIT ?+0`
	queryPollVoters = `SELECT option, voter, name FROM (SELECT o.value AS option, v.voter, v.name,
		row_number() OVER (PARTITION BY o.value ORDER BY v.at, v.voter) AS place ` + store.CountedOptions + `) p WHERE place <= ?3 ORDER BY option, place`
	queryVotesWaiting = `SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_undecided
		WHERE direction = 'in' AND disposition IS NULL AND chat_jid = ? AND min(received_at, timestamp) <= ? AND verb IN ('vote', 'reaction'))`
	insertPoll = `INSERT INTO polls (message_id, folder, chat_jid, topic, question, options, multiple, closes_at, state, created_at)
		VALUES (?,?,?,?,?,?,?,?,'open',?)`
	updateClosePoll = `UPDATE polls SET state = 'closed', closed_at = ?, end_pending = 1 WHERE id = ? AND state = 'open'`
	updateEndedPoll = `UPDATE polls SET state = 'closed', closed_at = ifnull(closed_at, ?1), end_pending = 0,
		result = ifnull(?2, result) WHERE id = ?3`
)

// The statements about processes and leases, of a database that several machines share.
const (
	deleteExpired   = `DELETE FROM processes WHERE daemon = ?1 AND until < clock_ms() AND id <> ?2 RETURNING id`
	queryExpired    = `SELECT count(*) FROM processes WHERE daemon = ? AND until < clock_ms() AND id <> ?`
	queryRunsOfGone = `SELECT ` + store.RunColumns + ` FROM runs r INDEXED BY runs_unended WHERE r.ended_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM processes m WHERE m.id = r.owner)`
	queryFolderOwner = `SELECT r.owner FROM runs r INDEXED BY runs_unended WHERE r.ended_at IS NULL AND r.folder = ? AND r.owner <> ? ORDER BY r.id LIMIT 1`
	queryBusyRunsOf  = queryBusyRuns + ` AND b.owner = ?`
)

// Statements about reminders and broadcasts.
const (
	queryNextSlot       = `SELECT next_slot FROM reminders INDEXED BY reminders_due WHERE state = 'active' AND next_slot IS NOT NULL ORDER BY next_slot LIMIT 1`
	queryCountReminders = `SELECT (SELECT count(*) FROM reminders INDEXED BY reminders_folder WHERE folder = ?1 AND state = 'active'),
		(SELECT count(*) FROM reminders INDEXED BY reminders_chat WHERE chat_jid = ?2 AND state = 'active')`
	queryPlannedPrompts = `SELECT next_slot FROM reminders INDEXED BY reminders_chat WHERE chat_jid = ? AND state = 'active' AND kind = 'prompt'
		AND cron IS NULL AND next_slot IS NOT NULL AND id <> ? ORDER BY next_slot`
	queryNotifiedOfLimit = `SELECT EXISTS (SELECT 1 FROM (SELECT source, on_behalf_of, timestamp FROM messages INDEXED BY messages_chat
		WHERE chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE source = 'notice' AND on_behalf_of = ? AND timestamp > ?)`
	queryCountActive = `SELECT count(*) FROM reminders INDEXED BY reminders_active WHERE state = 'active'`
	// A slot's row is the text itself, or the prompt of a turn.
	queryRefusedSlots = `SELECT CASE WHEN EXISTS (SELECT 1 FROM messages o WHERE o.turn_id = m.turn_id AND o.direction = 'out' AND o.out_state IN ('sent', 'ambiguous')) THEN ''
		ELSE ifnull((SELECT max(d.error) FROM messages o CROSS JOIN deliveries d ON d.message_id = o.id WHERE (o.id = m.id OR o.turn_id = m.turn_id)
			AND o.out_state = 'failed' AND d.state = 'failed' AND d.error_class = 'permanent'), '') END
		FROM reminder_slots s JOIN messages m ON m.id = s.message_id WHERE s.reminder_id = ? ORDER BY s.slot DESC LIMIT ?+0`
	insertReminder = `INSERT INTO reminders (folder, chat_jid, thread_id, topic, kind, body, due_at, cron, time_zone, missed, state, next_slot,
		created_by, updated_by, created_at, updated_at, root_turn_id, depth) VALUES (?,?,?,?,?,?,?,?,?,?,'active',?,?,?,?,?,?,?)`
	updateReminder = `UPDATE reminders SET topic = ?, kind = ?, body = ?, due_at = ?, cron = ?, time_zone = ?, missed = ?, next_slot = ?,
		updated_by = ?, root_turn_id = ?, depth = ?, updated_at = max(?, updated_at + 1) WHERE id = ? AND state = 'active'`
	updateEndReminder = `UPDATE reminders SET state = ?, next_slot = NULL, error = ?, updated_by = ?, updated_at = max(?, updated_at + 1) WHERE id = ? AND state = 'active'`
	// Only as it was when its slot was computed.
	updateFireReminder = `UPDATE reminders SET state = ?, next_slot = ? WHERE id = ? AND state = 'active' AND next_slot IS NOT DISTINCT FROM ? AND updated_at = ?`
	insertSlot         = `INSERT INTO reminder_slots (reminder_id, slot) VALUES (?,?) ON CONFLICT DO NOTHING`
	updateSlot         = `UPDATE reminder_slots SET message_id = ? WHERE reminder_id = ? AND slot = ?`
	insertBroadcast    = `INSERT INTO broadcasts (key, text, created_by, chats, created_at) VALUES (?,?,?,?,?) ON CONFLICT (key) DO NOTHING`
	updateBroadcast    = `UPDATE broadcasts SET message_ids = ?, ended_at = ? WHERE id = ? AND ended_at IS NULL`
	queryChatsPage     = `SELECT jid, kind, title, ifnull(sticky_topic,''), ifnull(sticky_group,''), ifnull(sticky_at,0)
		FROM chats WHERE jid > ? ORDER BY jid LIMIT ?+0`
)

// Statements that delete history. ?1 is a row's id, ?2 the time before which rows
// are deleted, in unix ms. A page of rows is read outside a transaction, then each
// row is checked in the one that deletes it.
const (
	queryTurnsPage    = `SELECT id, created_at < ?2 FROM turns WHERE id > ?1 ORDER BY id LIMIT ?3+0`
	queryMessagesPage = `SELECT id, received_at < ?2 FROM messages WHERE id > ?1 ORDER BY id LIMIT ?3+0`
	queryRunsPage     = `SELECT id, started_at < ?2 FROM runs WHERE id > ?1 ORDER BY id LIMIT ?3+0`
	// A turn has ended, as has all that belongs to it, and nothing is to be sent back to it.
	queryTurnIsOld = `SELECT EXISTS (SELECT 1 FROM turns t WHERE t.id = ?1 AND t.created_at < ?2 AND t.ended_at < ?2
		AND t.state IN ('done', 'failed', 'cancelled')
		AND NOT EXISTS (SELECT 1 FROM turns c WHERE c.root_turn_id = ?1 AND c.id <> ?1)
		AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn_id = ?1 AND (m.received_at >= ?2 OR m.decided_at >= ?2
			OR m.direction = 'in' AND m.disposition IS NULL OR m.disposition = 'onboarding' OR m.out_state IN ('queued', 'sending')))
		AND NOT EXISTS (SELECT 1 FROM system_messages s WHERE s.turn_id = ?1)
		AND NOT EXISTS (SELECT 1 FROM asks a WHERE a.turn_id = ?1 AND (a.state = 'open' OR a.ended_at >= ?2))
		AND NOT EXISTS (SELECT 1 FROM messages f INDEXED BY messages_returning
			WHERE f.direction = 'in' AND f.disposition IS NULL AND f.forwarded_from IS NOT NULL
			AND ?1 IN (CAST(json_extract(f.forwarded_from, '$.turn_id') AS INTEGER), CAST(json_extract(f.forwarded_from, '$.root_turn_id') AS INTEGER))))`
	deleteToolCalls    = `DELETE FROM tool_calls WHERE turn_id = ?1`
	deleteTurnProgress = `DELETE FROM turn_progress WHERE turn_id = ?1`
	deletePreviews     = `DELETE FROM previews WHERE turn_id = ?1`
	deleteAsks         = `DELETE FROM asks WHERE turn_id = ?1`
	deleteTurn         = `DELETE FROM turns WHERE id = ?1`
	// A message is decided or delivered, its turn is gone, and no row that is left was
	// made from it, answers it, or is about to change it.
	queryMessageIsOld = `SELECT EXISTS (SELECT 1 FROM messages m WHERE m.id = ?1 AND m.received_at < ?2 AND ifnull(m.decided_at, 0) < ?2
		AND (m.direction = 'out' OR m.disposition IS NOT NULL) AND m.disposition IS DISTINCT FROM 'onboarding'
		AND ifnull(m.out_state, '') NOT IN ('queued', 'sending')
		AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = m.turn_id)
		AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.trigger_message_id = ?1)
		AND NOT EXISTS (SELECT 1 FROM messages c WHERE c.derived_from = ?1)
		AND NOT EXISTS (SELECT 1 FROM messages e WHERE e.chat_jid = m.chat_jid AND e.target_id = m.platform_id
			AND e.direction = 'in' AND e.disposition IS NULL)
		AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = ?1 AND (d.updated_at >= ?2 OR d.state IN ('queued', 'sending')))
		AND NOT EXISTS (SELECT 1 FROM polls p WHERE p.message_id = ?1 AND (p.state = 'open' OR p.end_pending = 1 OR p.closed_at >= ?2))
		AND NOT EXISTS (SELECT 1 FROM asks a WHERE a.message_id = ?1)
		AND NOT EXISTS (SELECT 1 FROM chat_reply_state r WHERE r.jid = m.chat_jid AND r.last_reply_id = ?1))`
	deleteTranscripts = `DELETE FROM transcripts WHERE message_id = ?1`
	deleteForks       = `DELETE FROM forks WHERE message_id = ?1`
	deleteDeliveries  = `DELETE FROM deliveries WHERE message_id = ?1`
	deletePollVotes   = `DELETE FROM poll_votes WHERE poll_id IN (SELECT id FROM polls WHERE message_id = ?1)`
	deletePollRefs    = `DELETE FROM poll_refs WHERE message_id = ?1`
	deletePolls       = `DELETE FROM polls WHERE message_id = ?1`
	// A reminder's last slot says that it has fired.
	deleteSlots = `DELETE FROM reminder_slots WHERE message_id = ?1
		AND slot < (SELECT max(slot) FROM reminder_slots l WHERE l.reminder_id = reminder_slots.reminder_id)`
	updateLastSlot = `UPDATE reminder_slots SET message_id = NULL WHERE message_id = ?1`
	deleteMessage  = `DELETE FROM messages WHERE id = ?1`
	queryRunIsOld  = `SELECT EXISTS (SELECT 1 FROM runs r WHERE r.id = ?1 AND r.started_at < ?2 AND r.ended_at < ?2
		AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.run_id = ?1))`
	deleteRunLog        = `DELETE FROM session_log WHERE run_id = ?1`
	deleteRun           = `DELETE FROM runs WHERE id = ?1`
	queryBroadcastsPage = `SELECT id, created_at < ?2 FROM broadcasts WHERE id > ?1 ORDER BY id LIMIT ?3+0`
	queryBroadcastIsOld = `SELECT EXISTS (SELECT 1 FROM broadcasts WHERE id = ?1 AND ended_at < ?2)`
	deleteBroadcast     = `DELETE FROM broadcasts WHERE id = ?1`
	queryRunExists      = `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?)`
)

// The statements on what agents have used; see queries.go.
const (
	// A turn counts on the day on which its first usage is said.
	upsertSpend = `INSERT INTO spend (day, folder, chat_jid, turns, input_tokens, output_tokens, cost_usd)
		SELECT ?2, folder, chat_jid, CASE WHEN input_tokens IS NULL THEN 1 ELSE 0 END, ?3, ?4, ?5 FROM turns WHERE id = ?1
		ON CONFLICT (day, folder, chat_jid) DO UPDATE SET turns = spend.turns + excluded.turns, input_tokens = spend.input_tokens + excluded.input_tokens,
		output_tokens = spend.output_tokens + excluded.output_tokens, cost_usd = spend.cost_usd + excluded.cost_usd`
)

// The turns of a group that were ended since a budget was used up, by the beginning of their error, and not asked
// again: of all that were cancelled, when an operator raises it.
const queryOverBudget = `SELECT id FROM turns t INDEXED BY turns_state WHERE t.state IN ('failed', 'cancelled') AND t.state = 'cancelled'
	AND t.reason = 'over_budget' AND t.folder = ?1 AND substr(t.error, 1, length(?2)) = ?2 ORDER BY id LIMIT ?3+0`

// The statements on the tool calls of agents.
const (
	queryToolCall      = `SELECT result FROM tool_calls WHERE turn_id = ? AND call = ?`
	queryToolCallCount = `SELECT count(*), ifnull(sum(CAST(json_extract(result, '$.stored_bytes') AS INTEGER)), 0) FROM tool_calls WHERE turn_id = ?`
	queryGroupCalls    = `SELECT count(*) FROM tool_calls WHERE tool = ?2 AND created_at > ?3
		AND turn_id IN (SELECT id FROM turns INDEXED BY turns_folder WHERE folder = ?1 AND started_at IS NOT NULL ORDER BY id DESC LIMIT 1000)`
	insertToolCall = `INSERT INTO tool_calls (turn_id, call, tool, result, created_at) VALUES (?,?,?,?,?)`
	// Calls of three tools in the turns of one root, itself included.
	queryCallsOfRoot = `SELECT count(*) FROM tool_calls WHERE tool IN (?2, ?3, ?4)
		AND turn_id IN (SELECT id FROM turns INDEXED BY turns_root WHERE root_turn_id = ?1 UNION ALL SELECT ?1)`
	queryThreadOfTopic = `SELECT thread_id FROM topic_threads WHERE chat_jid = ? AND topic = ? ORDER BY thread_id LIMIT 1`
	// A thread that the platform has described, or in which a message was written.
	queryHasThread = `SELECT EXISTS (SELECT 1 FROM platform_threads WHERE chat_jid = ?1 AND thread_id = ?2)
		OR EXISTS (SELECT 1 FROM messages INDEXED BY messages_thread WHERE thread_id <> '' AND ` + store.Spoken + ` AND chat_jid = ?1 AND thread_id = ?2)`
	// foundRows is the condition of what users and bots wrote, as of row ?2, and was not deleted. What senders wrote
	// whom a group ignores or does not admit is left out. e is the last edit or deletion of the row.
	foundRows = `(m.content <> '' OR m.attachments IS NOT NULL)
		AND (m.out_state IS NULL OR m.out_state NOT IN ('failed', 'cancelled')) AND (m.disposition IS NULL OR m.disposition NOT IN ('prefix', 'onboarding'))
		AND ifnull(m.reason, '') NOT IN ('builtin_drop', 'no_access', 'pin_denied', 'duplicate', 'bad_row', 'deleted')
		AND (e.id IS NULL OR e.verb <> 'delete' AND e.kind <> 'delete')`
	spokenHere     = `m.verb IN ('', 'message', 'mention', 'reply') AND m.kind IN ('message', 'file', 'poll')`
	withChangeHere = ` LEFT JOIN messages e ON e.id = ` + store.LastChange
	withChange     = ` JOIN messages m ON m.id = o.id` + withChangeHere
	// foundText is what is searched: a message as its last edit left it, a poll's question and options.
	foundText = `CASE WHEN m.kind = 'poll' AND json_valid(m.content) THEN json_extract(m.content, '$.question')
		|| ' ' || (SELECT group_concat(value, ' ') FROM json_each(json_extract(m.content, '$.options'))) ELSE ifnull(e.content, m.content) END`
	// The next rows to search, each with the bytes that this reads.
	querySearchChatPage = `SELECT id, octet_length(content) FROM messages INDEXED BY messages_chat WHERE ` + store.Spoken +
		` AND chat_jid = ?1 AND id < ?2
		ORDER BY id DESC LIMIT ?3+0`
	querySearchRoutedPage = `SELECT decision_seq, octet_length(content) FROM messages INDEXED BY messages_routed
		WHERE routed_to = ?1 AND decision_seq < ?2 ORDER BY decision_seq DESC LIMIT ?3+0`
	querySearchChat = `SELECT ` + store.FoundColumns + ` FROM messages m INDEXED BY messages_chat` + withChangeHere + `
		WHERE ` + spokenHere + ` AND m.chat_jid = ?1 AND m.id >= ?3 AND m.id < ?4 AND ` + foundRows + ` AND ` + foundText + ` LIKE ?5 ESCAPE '\'
		ORDER BY m.id DESC LIMIT ?6+0`
	querySearchRouted = `SELECT ` + store.FoundColumns + ` FROM messages m INDEXED BY messages_routed` + withChangeHere + `
		WHERE m.routed_to = ?1 AND m.decision_seq >= ?3 AND m.decision_seq < ?4 AND m.chat_jid <> ?5 AND ` + spokenHere + ` AND ` + foundRows + `
		AND ` + foundText + ` LIKE ?6 ESCAPE '\' AND NOT (?7 AND ` + directMessages + `) ORDER BY m.decision_seq DESC LIMIT ?8+0`
	// Of the 1,000 rows of the chat before and after. A thread begins with the row that it was opened from.
	queryBeforeMessage = `SELECT ` + store.FoundColumns + ` FROM (SELECT id FROM messages INDEXED BY messages_chat WHERE ` +
		store.Spoken + ` AND chat_jid = ?1 AND id <= ?3
		ORDER BY id DESC LIMIT 1000) o` + withChange + ` WHERE (m.thread_id = ?4 OR m.platform_id = ?4) AND ` + foundRows + ` ORDER BY o.id DESC LIMIT ?5+0`
	queryAfterMessage = `SELECT ` + store.FoundColumns + ` FROM (SELECT id FROM messages INDEXED BY messages_chat WHERE ` +
		store.Spoken + ` AND chat_jid = ?1 AND id > ?3
		ORDER BY id LIMIT 1000) o` + withChange + ` WHERE m.thread_id = ?4 AND ` + foundRows + ` ORDER BY o.id LIMIT ?5+0`
)

const (
	insertTranscript = `INSERT INTO transcripts (message_id, n, turn_id, folder, state, updated_at) VALUES (?,?,?,?,'wanted',?) ON CONFLICT (message_id, n) DO NOTHING`
	// Few are wanted at once. A row is of a turn that waits, or of one that has started or ended meanwhile.
	queryWantedTranscripts = `SELECT x.id, x.message_id, x.n, x.turn_id, x.folder, x.until, m.attachments, m.pending_files, ifnull(t.created_at, 0),
		CASE WHEN t.state = 'queued' AND t.waits_for = 'files' THEN 1 ELSE 0 END
		FROM transcripts x INDEXED BY transcripts_wanted CROSS JOIN messages m ON m.id = x.message_id LEFT JOIN turns t ON t.id = x.turn_id
		WHERE x.state = 'wanted' ORDER BY x.id LIMIT ?+0`
	updateTranscriptUntil   = `UPDATE transcripts SET until = ?2, updated_at = ?3 WHERE id = ?1 AND state = 'wanted' AND until = 0`
	updateHeldTurn          = `UPDATE turns SET not_before = max(not_before, ?2) WHERE id = ?1 AND state = 'queued' AND waits_for = 'files'`
	deleteWantedTranscripts = `DELETE FROM transcripts WHERE message_id = ? AND state = 'wanted'`
	updateTranscriptEnd     = `UPDATE transcripts SET state = ?2, text = ?3, error = ?4, updated_at = ?5 WHERE id = ?1 AND state = 'wanted'`
)

// The statements on turns, runs, sessions and what belongs to them; see queries.go.
const (
	queryLastTurnID = `SELECT ifnull(max(id), 0) FROM turns`
	queryRunTurns   = `SELECT ` + store.TurnColumns +
		` FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.run_id = ? ORDER BY t.id`
	queryLastAnswered = `SELECT observed_upto, ifnull(ended_at, 0) FROM turns INDEXED BY turns_session WHERE folder = ? AND topic = ? AND state = 'done'
		AND id < ? ORDER BY id DESC LIMIT 1`
	queryLastTurnAt = `SELECT started_at FROM turns INDEXED BY turns_folder WHERE folder = ? AND id <> ? AND started_at IS NOT NULL
		ORDER BY id DESC LIMIT 1`
	queryDelegations = `SELECT count(*) FROM turns WHERE root_turn_id = ? AND kind = 'delegated'`
	// Whether a turn is open and no agent works on it.
	queryWaits = `SELECT EXISTS (SELECT 1 FROM turns t WHERE t.id = ?1 AND (t.state = 'queued' OR t.state = 'running'
		AND EXISTS (SELECT 1 FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = t.run_id AND o.id < t.id)
		AND NOT EXISTS (SELECT 1 FROM turn_progress p WHERE p.turn_id = t.id)))`
	// Whether a turn, or an earlier one of its topic, has said anything.
	querySaid = `SELECT EXISTS (SELECT 1 FROM turns INDEXED BY turns_session WHERE folder = ?1 AND topic = ?2 AND state = 'done' AND frames > 0)
		OR EXISTS (SELECT 1 FROM messages m INDEXED BY messages_turn WHERE m.turn_id = ?3 AND m.direction = 'out' AND m.source <> 'waiting')`
	// Sessions of requests between groups; ':' comes after the digits.
	queryOldRequests = `SELECT s.group_folder, s.topic FROM sessions s WHERE s.topic >= '#d0' AND s.topic < '#d:' AND s.updated_at < ?1
		AND NOT EXISTS (SELECT 1 FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running') AND t.folder = s.group_folder AND t.topic = s.topic)`
	insertTurn = `INSERT INTO turns (run_id, kind, folder, chat_jid, topic, thread_id, place, reply_to,
		trigger_message_id, claims_engagement, surface, ceiling, state, not_before, waits_for, row_count, row_bytes,
		depth, root_turn_id, created_at, started_at)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	updateJoin = `UPDATE turns SET reply_to = ?, trigger_message_id = ?, claims_engagement = ?, surface = ?, ceiling = ?, not_before = ?,
		waits_for = ?, row_count = ?, row_bytes = ? WHERE id = ? AND state = 'queued'`
	updateTake = `UPDATE turns SET state = 'running', run_id = ?, started_at = ?, waits_for = '', not_before = 0
		WHERE id = ? AND state = 'queued'`
	updateRequeue = `UPDATE turns SET state = 'queued', run_id = NULL, attempts = attempts + ?, waits_for = ?, not_before = ?,
		error = ?, error_kind = ? WHERE id = ? AND state IN ('queued', 'running')`
	updateRevive = `UPDATE turns SET state = 'queued', run_id = NULL, attempts = 0, not_before = 0, waits_for = '', frames = 0,
		reason = '', error = '', error_kind = '', started_at = NULL, ended_at = NULL, answered_with = NULL
		WHERE id = ? AND (state IN ('failed', 'cancelled') OR state = 'queued' AND not_before > 0)`
	updateFrame   = `UPDATE turns SET frames = frames + ?, observed_upto = ? WHERE id = ?`
	updateEndTurn = `UPDATE turns SET state = ?1, reason = ?2, error = ?3, error_kind = ?4, ended_at = ?5, attempts = attempts + CASE ?1 WHEN 'failed' THEN 1 ELSE 0 END,
		frames = frames + ?7, observed_upto = max(observed_upto, ?8), answered_with = ?9 WHERE id = ?6 AND state IN ('queued', 'running')`
	upsertProgress = `INSERT INTO turn_progress (turn_id, state, text, plan, tools, updated_at)
		SELECT id, ?3, ?4, ?5, ?6, ?7 FROM turns WHERE id = ?1 AND run_id = ?2 AND state = 'running'
		ON CONFLICT (turn_id) DO UPDATE SET state = excluded.state, text = excluded.text, plan = excluded.plan, tools = excluded.tools,
		updated_at = excluded.updated_at`
	updateEndProgress = `UPDATE turn_progress SET text = '' WHERE turn_id = ?`
	updateUsage       = `UPDATE turns SET input_tokens = ifnull(input_tokens, 0) + ?, output_tokens = ifnull(output_tokens, 0) + ?,
		cost_usd = ifnull(cost_usd, 0) + ?, context_used = coalesce(nullif(?, 0), context_used), context_size = coalesce(nullif(?, 0), context_size)
		WHERE id = ?`
	// The lanes with queued turns: one step per lane, not per turn.
	queryQueuedLanes = `WITH RECURSIVE lanes(lane) AS (
		SELECT min(lane) FROM turns INDEXED BY turns_queued WHERE state = 'queued'
		UNION ALL SELECT (SELECT min(lane) FROM turns INDEXED BY turns_queued WHERE state = 'queued' AND lane > lanes.lane)
		FROM lanes WHERE lanes.lane IS NOT NULL)
		SELECT lane, (SELECT min(id) FROM turns INDEXED BY turns_queued WHERE state = 'queued' AND turns.lane = lanes.lane)
		FROM lanes WHERE lane IS NOT NULL ORDER BY 2`
	// The queued turns of a lane, with whether an older one of the conversation waits, whether a /stop covers it, and
	// of one that waits at the time ?4 whether it is of a time over a minute (maxSkew) later: the clock was set back.
	queryNextQueued = `SELECT t.id, t.not_before, EXISTS (SELECT 1 FROM turns o INDEXED BY turns_conversation WHERE o.state = 'queued'
		AND o.lane = t.lane AND o.chat_jid = t.chat_jid AND o.topic = t.topic AND o.id < t.id),
		EXISTS (SELECT 1 FROM stops s WHERE s.chat_jid = t.chat_jid AND t.id <= s.through_turn AND (s.topic IS NULL OR s.topic = t.topic)),
		CASE WHEN t.not_before > ?4 THEN max(t.created_at, ifnull(t.started_at, 0)) > ?4 + 60000 ELSE FALSE END
		FROM turns t INDEXED BY turns_queued WHERE t.state = 'queued' AND t.lane = ?1 AND t.id > ?2 ORDER BY t.id LIMIT ?3+0`
	queryNewestQueued = `SELECT ` + store.TurnColumns + ` FROM turns t INDEXED BY turns_conversation
		WHERE t.state = 'queued' AND t.lane = ? AND t.chat_jid = ? AND t.topic = ? ORDER BY t.id DESC LIMIT 1`
	// A run that waits for the answer to a question is not busy.
	queryBusyRuns = `SELECT count(*) FROM runs b INDEXED BY runs_unended WHERE b.ended_at IS NULL
		AND EXISTS (SELECT 1 FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.run_id = b.id)
		AND NOT EXISTS (SELECT 1 FROM turns t INDEXED BY turns_run CROSS JOIN asks a ON a.turn_id = t.id
			WHERE t.state = 'running' AND t.run_id = b.id AND a.state = 'open' AND substr(a.ask_id, 1, 6) <> 'budget')`
	// The idle run of an address that may take a turn of lane ?5 and folder ?1 at once: no turn of the lane waits, the
	// group is not probed, and a slot is free. One is where there are no more runs than slots, which is the usual case
	// and needs no look at every run's turns.
	queryRunFor = `SELECT r.id FROM runs r INDEXED BY runs_live
		WHERE r.closed_at IS NULL AND r.folder = ?1 AND r.topic = ?2 AND r.chat_jid = ?3 AND r.thread_id = ?4 AND r.draining = 0
		AND NOT EXISTS (SELECT 1 FROM turns w INDEXED BY turns_queued WHERE w.state = 'queued' AND w.lane = ?5)
		AND NOT EXISTS (SELECT 1 FROM group_failures WHERE folder = ?1 AND count >= ?6)
		AND NOT EXISTS (SELECT 1 FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = r.id)
		AND ((SELECT count(*) FROM runs u INDEXED BY runs_unended WHERE u.ended_at IS NULL) <= ?7 OR (` + queryBusyRuns + `) < ?7)`
	queryRunLoad = `SELECT count(*), ifnull(max(CASE WHEN attempts > 0 OR kind = 'delegated' THEN 1 ELSE 0 END), 0) FROM turns INDEXED BY turns_run
		WHERE state = 'running' AND run_id = ?`
	// A turn waits for the files of its rows, and for those of the posts that these answer, until none is pending or to
	// be transcribed.
	queryFilesReady = `SELECT t.id, t.lane FROM turns t INDEXED BY turns_files WHERE t.state = 'queued' AND t.waits_for = 'files'
		AND NOT EXISTS (SELECT 1 FROM messages m INDEXED BY messages_turn WHERE m.turn_id = t.id AND (m.pending_files > 0
		OR EXISTS (SELECT 1 FROM messages a WHERE a.chat_jid = m.chat_jid AND a.platform_id = m.reply_to_id AND a.pending_files > 0 AND a.files_wanted = 1)))
		AND NOT EXISTS (SELECT 1 FROM transcripts x INDEXED BY transcripts_wanted WHERE x.state = 'wanted' AND x.turn_id = t.id)`
	updateWaitOver     = `UPDATE turns SET waits_for = '', not_before = 0 WHERE id = ? AND state = 'queued' AND waits_for = ?`
	queryRunningOfChat = `SELECT ` + store.TurnColumns +
		` FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.chat_jid = ? ORDER BY t.id`
	queryQueuedOfChat = `SELECT ` + store.TurnColumns +
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running')
		AND t.state = 'queued' AND t.chat_jid = ? AND t.id > ? AND t.id <= ? ORDER BY t.id LIMIT ?+0`
	// Between groups, ';' comes after ':'.
	queryOpenBetween = `SELECT ` + store.TurnColumns +
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running')
		AND t.chat_jid >= 'group:' AND t.chat_jid < 'group;' LIMIT ?+0`
	queryUndecidedBetween = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_undecided
		WHERE m.direction = 'in' AND m.disposition IS NULL AND m.chat_jid >= 'group:' AND m.chat_jid < 'group;' LIMIT ?+0`
	queryStoppedRows = `SELECT m.id, m.sender, m.topic, m.thread_id FROM messages m INDEXED BY messages_undecided
		WHERE m.direction = 'in' AND m.disposition IS NULL AND m.chat_jid = ? AND m.id > ? AND m.id < ? ORDER BY m.id LIMIT ?+0`
	queryStops = `SELECT ` + stopColumns +
		` FROM stops s LEFT JOIN messages m ON m.id = s.before_message ORDER BY s.id`
	queryStopsOfChat = `SELECT ` + stopColumns + ` FROM stops s LEFT JOIN messages m ON m.id = s.before_message
		WHERE s.chat_jid = ? ORDER BY s.id`
	insertStop   = `INSERT INTO stops (chat_jid, topic, sender, before_message, through_turn, after_message, after_turn, except_rows, created_at) VALUES (?,?,?,?,?,?,?,?,?)`
	updateStop   = `UPDATE stops SET after_message = ?, after_turn = ? WHERE id = ?`
	deleteStop   = `DELETE FROM stops WHERE id = ?`
	queryProbeAt = `SELECT max(probe_at, 1) FROM group_failures WHERE folder = ? AND count >= ?`
	putFailures  = `INSERT INTO group_failures (folder, problem, count, since, probe_at) VALUES (?,?,1,?,0)
		ON CONFLICT (folder) DO UPDATE SET count = CASE WHEN group_failures.problem = excluded.problem OR group_failures.count >= 3 THEN group_failures.count + 1 ELSE 1 END,
		since = CASE WHEN group_failures.problem = excluded.problem OR group_failures.count >= 3 THEN group_failures.since ELSE excluded.since END, problem = excluded.problem
		RETURNING count`
	updateProbeAt  = `UPDATE group_failures SET probe_at = ? WHERE folder = ?`
	deleteFailures = `DELETE FROM group_failures WHERE folder = ?`
	updateProbed   = `UPDATE turns INDEXED BY turns_probe SET waits_for = '', not_before = 0
		WHERE state = 'queued' AND waits_for = 'probe' AND folder = ? RETURNING lane`
	queryAddressed  = `SELECT verb IN ('mention', 'reply') FROM messages WHERE id = ?`
	queryNotifiedOf = `SELECT EXISTS (SELECT 1 FROM turns INDEXED BY turns_failed WHERE state = 'failed' AND chat_jid = ? AND ended_at > ?
		AND error_kind = ? AND reason = 'agent_error')`
	queryNoticed     = `SELECT EXISTS (SELECT 1 FROM messages WHERE turn_id = ? AND direction = 'out' AND source = 'notice')`
	queryNoticedText = `SELECT EXISTS (SELECT 1 FROM messages WHERE turn_id = ? AND direction = 'out' AND source = 'notice' AND content = ?)`
	queryRunIsLive   = `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ? AND closed_at IS NULL)`
	queryRunTakes    = `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ? AND closed_at IS NULL AND draining = 0)`
	insertRun        = `INSERT INTO runs (folder, topic, chat_jid, thread_id, runtime, owner, started_at) VALUES (?,?,?,?,?,?,?)`
	updateDrain      = `UPDATE runs SET draining = 1 WHERE id = ? AND closed_at IS NULL`
	updateDrainIdle  = `UPDATE runs SET draining = 1 WHERE id = ?1 AND closed_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM turns INDEXED BY turns_run WHERE state = 'running' AND run_id = ?1)`
	updateProcess    = `UPDATE runs SET pid = ?, pid_start = ?, label = ? WHERE id = ?`
	updateCloseRun   = `UPDATE runs SET closed_at = ? WHERE id = ? AND closed_at IS NULL`
	updateEndRun     = `UPDATE runs SET ended_at = ? WHERE id = ? AND ended_at IS NULL`
	updateCloseLive  = `UPDATE runs SET closed_at = ? WHERE folder = ? AND topic = ? AND closed_at IS NULL RETURNING id`
	queryFoldersEver = `SELECT folder FROM registered_groups UNION SELECT group_folder FROM sessions
		UNION SELECT folder FROM turns ORDER BY 1`
	// The session of one agent: it is the topic's, or kept while another agent answers.
	queryAgentSession = `SELECT session_id FROM sessions WHERE group_folder = ?1 AND topic = ?2 AND agent = ?3
		UNION ALL SELECT session_id FROM kept_sessions WHERE group_folder = ?1 AND topic = ?2 AND agent = ?3 LIMIT 1`
	putSession = `INSERT INTO sessions (group_folder, topic, agent, session_id, updated_at) VALUES (?,?,?,?,?)
		ON CONFLICT (group_folder, topic) DO UPDATE SET agent = excluded.agent, session_id = excluded.session_id, updated_at = excluded.updated_at`
	putKeptSession = `INSERT INTO kept_sessions (group_folder, topic, agent, session_id, updated_at)
		SELECT group_folder, topic, agent, session_id, updated_at FROM sessions WHERE group_folder = ? AND topic = ? AND agent <> ?
		ON CONFLICT (group_folder, topic, agent) DO UPDATE SET session_id = excluded.session_id, updated_at = excluded.updated_at`
	deleteSession      = `DELETE FROM sessions WHERE group_folder = ? AND topic = ?`
	deleteAgentSession = `DELETE FROM sessions WHERE group_folder = ? AND topic = ? AND agent = ?`
	deleteKeptSessions = `DELETE FROM kept_sessions WHERE group_folder = ? AND topic = ?`
	deleteAgentKept    = `DELETE FROM kept_sessions WHERE group_folder = ? AND topic = ? AND agent = ?`
	queryLastAgent     = `SELECT agent FROM session_log WHERE folder = ? AND topic = ? AND run_id < ? AND message_count > 0 ORDER BY id DESC LIMIT 1`
	insertLog          = `INSERT INTO session_log (run_id, started_at, folder, topic, agent, session_id) VALUES (?1,?2,?3,?4,?5,?6)`
	updateLog          = `UPDATE session_log SET session_id = CASE WHEN ?1 <> '' THEN ?1 ELSE session_id END,
		message_count = message_count + CASE WHEN ?2 THEN (SELECT count(*) FROM messages WHERE turn_id = ?3 AND direction = 'in') ELSE 0 END
		WHERE run_id = ?4`
	updateEndLog = `UPDATE session_log SET ended_at = ?1, error = ?2,
		result = CASE WHEN ?2 <> '' THEN 'error' ELSE 'ok' END WHERE run_id = ?3 AND ended_at IS NULL`
	queryPastSessions = `SELECT started_at, ifnull(ended_at,0), agent, session_id, result, error, message_count FROM session_log
		WHERE folder = ? AND topic = ? AND run_id < ? ORDER BY id DESC LIMIT ?+0`
	putAgentModels = `INSERT INTO agent_models (folder, agent, models, current, updated_at) VALUES (?,?,?,?,?)
		ON CONFLICT (folder, agent) DO UPDATE SET models = excluded.models, current = excluded.current, updated_at = excluded.updated_at`
	// The last: whether the chat has a row after ?4 that is neither of the turn nor an answer of its run.
	queryPromptFacts = `SELECT EXISTS (SELECT 1 FROM system_messages WHERE folder = ?1 AND turn_id IS NULL),
		EXISTS (SELECT 1 FROM system_messages WHERE turn_id = ?2), ifnull((SELECT value FROM router_state WHERE key = 'decision_seq'), 0),
		(SELECT value FROM counters WHERE name = 'routing'), ifnull(c.kind, ''), ifnull(substr(c.title, 1, 256), ''),
		EXISTS (SELECT 1 FROM messages m INDEXED BY messages_chat WHERE m.chat_jid = ?3 AND m.id > ?4 AND m.turn_id IS DISTINCT FROM ?2
		AND NOT (m.direction = 'out' AND EXISTS (SELECT 1 FROM turns t WHERE t.id = m.turn_id AND t.run_id = ?5)))
		FROM (SELECT 1) one LEFT JOIN chats c ON c.jid = ?3`
	querySystemOfTurn = `SELECT id, origin, event, body FROM system_messages WHERE turn_id = ? ORDER BY id`
	updateClaimSystem = `UPDATE system_messages SET turn_id = ?1 WHERE folder = ?2 AND turn_id IS NULL
		AND EXISTS (SELECT 1 FROM turns WHERE id = ?1 AND ended_at IS NULL)`
	updateReleaseSystem = `UPDATE system_messages SET turn_id = NULL WHERE turn_id = ?`
	deleteSystem        = `DELETE FROM system_messages WHERE turn_id = ? AND (? OR event = 'new_session')`
)

// The statements on the recent lines of a chat.
const (
	// What users and bots said, and the bot's own messages, as of row ?2. Not: commands and tokens, their answers,
	// notices, reactions, joins, rows made from others, what was cancelled or failed, and what senders wrote whom a
	// group ignores or does not admit. e is the last edit or deletion of the row.
	said = `((m.direction = 'in' AND m.derived_from IS NULL
		AND ifnull(m.disposition, '') NOT IN ('sticky', 'command')
		AND ifnull(m.reason, '') NOT IN ('builtin_drop', 'no_access', 'pin_denied', 'duplicate', 'bad_row', 'deleted'))
		OR (m.direction = 'out' AND m.source NOT IN ('notice', 'command')
		AND ifnull(m.out_state, '') NOT IN ('failed', 'cancelled')))
		AND (m.content <> '' OR m.attachments IS NOT NULL)
		AND (e.id IS NULL OR e.verb <> 'delete' AND e.kind <> 'delete')`
	// Of the newest 1000 spoken rows of the chat, thread or topic, the newest 100 that count. A poll is read whole.
	recentColumns = `SELECT m.id, m.turn_id, ifnull(m.platform_id, ''), ifnull(m.reply_to_id, ''), m.thread_id, m.timestamp, m.direction = 'out', ifnull(m.reason, '') = 'quoted', m.kind,
		m.sender, ` + store.ShortName + `, substr(ifnull(e.content, m.content), 1, CASE m.kind WHEN 'poll' THEN 65536 ELSE 2048 END), octet_length(ifnull(e.content, m.content)),
		CASE WHEN octet_length(m.attachments) <= 65536 THEN m.attachments END
		FROM (SELECT id FROM messages `
	recentRows = ` AND id <= ?2 ORDER BY id DESC LIMIT 1000) r JOIN messages m ON m.id = r.id
		LEFT JOIN messages e ON e.id = ` + store.LastChange + ` WHERE ` + said + ` ORDER BY r.id DESC LIMIT 100`
	queryRecent       = recentColumns + `INDEXED BY messages_chat WHERE ` + store.Spoken + ` AND chat_jid = ?1` + recentRows
	queryRecentThread = recentColumns + `INDEXED BY messages_thread WHERE thread_id <> '' AND ` + store.Spoken +
		` AND chat_jid = ?1 AND thread_id = ?3` + recentRows
	// The row that a thread was opened from, which is none of the thread.
	queryRecentOpening = recentColumns + `WHERE id = ?3 AND ` + store.Spoken + ` AND chat_jid = ?1 AND thread_id <> ?4` +
		recentRows
	queryRecentTopic = recentColumns + `INDEXED BY messages_web WHERE platform = 'web' AND ` + store.Spoken +
		` AND chat_jid = ?1 AND topic = ?3` + recentRows
	queryRecentParts = `SELECT d.platform_id, d.message_id FROM json_each(?) own CROSS JOIN deliveries d ON d.message_id = CAST(own.value AS INTEGER)
		WHERE d.platform_id IS NOT NULL`
)

const (
	queryPoll     = `SELECT ` + store.PollColumns + ` FROM polls p WHERE p.id = ?`
	queryPollVote = `SELECT options FROM poll_votes WHERE poll_id = ? AND voter = ?`
	putPollVote   = `INSERT INTO poll_votes (poll_id, voter, name, options, at) VALUES (?,?,?,?,?)
		ON CONFLICT (poll_id, voter) DO UPDATE SET name = excluded.name, options = excluded.options, at = excluded.at`
	deletePollVote = `DELETE FROM poll_votes WHERE poll_id = ? AND voter = ?`
)

const (
	queryBroadcastByKey = `SELECT id, key, text, created_by, chats, message_ids, created_at, ifnull(ended_at, 0) FROM broadcasts WHERE key = ?`
	queryOpenBroadcast  = `SELECT id, key, text, created_by, chats, message_ids, created_at, 0 FROM broadcasts INDEXED BY broadcasts_open
		WHERE ended_at IS NULL ORDER BY id LIMIT 1`
)
