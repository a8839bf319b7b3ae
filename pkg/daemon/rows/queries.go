// Package rows has the statements on daemons: what each reports of itself, and the processes and leases of those on several machines.
package rows

import (
	"arizuko/migrations"
)

const (
	queryProcesses = `SELECT ` + processColumns +
		`, ifnull((SELECT group_concat(l.name, ',') FROM leases l WHERE l.process = m.id), ''),
		ifnull((SELECT min(l.since) FROM leases l WHERE l.process = m.id), 0) FROM processes m ORDER BY m.daemon, m.id`
	queryLeaseHolder = `SELECT ` + processColumns +
		`, l.name, l.since FROM leases l CROSS JOIN processes m ON m.id = l.process WHERE l.name = ?`
	queryLeaseOf   = `SELECT l.process FROM leases l WHERE l.name = ?`
	updateReported = `UPDATE processes SET connection = ?2, detail = ?3 WHERE id = ?1`
	queryMoved     = migrations.QueryMoved
	insertProcess  = `INSERT INTO processes (daemon, place, addr, version, since, until) VALUES (?1, ?2, ?3, ?4, clock_ms(), clock_ms() + ?5+0)`
	deleteFormer   = `DELETE FROM processes WHERE daemon = ? AND place = ? RETURNING id`
	deleteProcess  = `DELETE FROM processes WHERE id = ?`
	deleteHolder   = `DELETE FROM processes WHERE until < clock_ms() AND id = (SELECT l.process FROM leases l WHERE l.name = ?)`
	putLease       = `INSERT INTO leases AS l (name, process, since) VALUES (?1, ?2, clock_ms())
		ON CONFLICT (name) DO UPDATE SET process = excluded.process, since = excluded.since
		WHERE l.process = excluded.process OR NOT EXISTS (SELECT 1 FROM processes m WHERE m.id = l.process)`
)
