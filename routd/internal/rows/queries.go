// Package rows has the statements that routd alone needs: who answers in which place, and who has written there.
package rows

import (
	"arizuko/pkg/store"
)

// routd reads these for each question.
const (
	queryClaimTurns = `SELECT id, ended FROM (SELECT id, ifnull(ended_at, 0) AS ended FROM turns INDEXED BY turns_claims
		WHERE claims_engagement = 1 AND chat_jid = ?1 AND place = ?2 ORDER BY id DESC LIMIT 32) n
		UNION ALL SELECT * FROM (SELECT id, 0 FROM turns INDEXED BY turns_open_claims
		WHERE claims_engagement = 1 AND ended_at IS NULL AND chat_jid = ?1 AND place = ?2 ORDER BY id DESC LIMIT 8) o`
	queryClaim = `SELECT o.folder,
		ifnull((SELECT min(r.received_at) FROM messages r WHERE r.turn_id = o.id AND ` + store.ClaimingRow + `), q.received_at),
		ifnull((SELECT max(r.received_at) FROM messages r WHERE r.turn_id = o.id AND ` + store.ClaimingRow + `), q.received_at),
		CASE WHEN t.ended_at IS NULL OR EXISTS (SELECT 1 FROM messages m
		WHERE m.turn_id = t.id AND m.received_at <= t.ended_at AND m.out_state IN ('queued', 'sending')
		AND m.source IN ('agent', 'tool')) THEN 0
		ELSE max(t.ended_at, ifnull((SELECT max(d.updated_at) FROM messages m JOIN deliveries d ON d.message_id = m.id
		WHERE m.turn_id = t.id AND m.received_at <= t.ended_at AND m.source IN ('agent', 'tool')), 0)) END, ifnull(t.ended_at, 0)
		FROM turns t LEFT JOIN turns p ON ` + store.RootHere + ` JOIN turns o ON o.id = ifnull(p.id, t.id) JOIN messages q ON q.id = o.trigger_message_id
		WHERE t.id = ?`
	queryDeliveriesRead = `SELECT ` + store.DeliveriesRead + `, ` + store.LastDelivery
)
