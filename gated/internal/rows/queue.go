package rows

import (
	"context"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// QueueBacklog counts queued turns by the cause of their wait.
type QueueBacklog struct {
	Ready factrows.Backlog // for an agent, or for an older turn of their conversation
	Later int              // for a time to come: those of Files and Probe, a retry, or the machine
	Files int              // for the files of their rows
	Probe int              // for the next attempt of a group whose turns fail alike
}

// CountQueue counts queued turns at the time now, in unix ms. It runs at each scrape of the metrics: it counts entries
// of partial indexes, each up to the limit.
func CountQueue(ctx context.Context, r store.Reader, now int64, limit int) (b QueueBacklog, err error) {
	// Those that may start by ?1 with the oldest of them, then those that wait longer, by cause.
	const query = `SELECT q.n, ifnull((SELECT created_at FROM turns WHERE id = q.oldest), 0), q.later,
		(SELECT count(*) FROM (SELECT 1 FROM turns INDEXED BY turns_files WHERE state = 'queued' AND waits_for = 'files' LIMIT ?2+0) f),
		(SELECT count(*) FROM (SELECT 1 FROM turns INDEXED BY turns_probe WHERE state = 'queued' AND waits_for = 'probe' LIMIT ?2+0) p)
		FROM (SELECT count(*) FILTER (WHERE not_before <= ?1) AS n, count(*) FILTER (WHERE not_before > ?1) AS later,
			min(id) FILTER (WHERE not_before <= ?1) AS oldest
			FROM (SELECT id, not_before FROM turns INDEXED BY turns_queued WHERE state = 'queued' LIMIT ?2+0) w) q`
	_, err = r.Get(ctx, []any{&b.Ready.Count, &b.Ready.Oldest, &b.Later, &b.Files, &b.Probe}, query, now,
		limit)
	return b, err
}

// QueuedLanes returns the lanes with queued turns, the one with the oldest first.
func QueuedLanes(ctx context.Context, r store.Reader) ([]string, error) {
	// The lanes with queued turns: one step per lane, not per turn.
	const query = `WITH RECURSIVE lanes(lane) AS (
		SELECT min(lane) FROM turns INDEXED BY turns_queued WHERE state = 'queued'
		UNION ALL SELECT (SELECT min(lane) FROM turns INDEXED BY turns_queued WHERE state = 'queued' AND lane > lanes.lane)
		FROM lanes WHERE lanes.lane IS NOT NULL)
		SELECT lane FROM lanes WHERE lane IS NOT NULL
		ORDER BY (SELECT min(id) FROM turns INDEXED BY turns_queued WHERE state = 'queued' AND turns.lane = lanes.lane)`
	return store.All(ctx, r, store.One[string], query)
}

// NextQueued is the result of a search for a lane's next turn.
type NextQueued struct {
	Turn *msg.Turn // nil for none
	// Through is the id up to which no turn may start before Until, in unix ms, unless
	// one of them changes. Until is 0 if nothing was found to wait.
	Through int64
	Until   int64
}

// queuedPage is how many turns of a lane one read looks at.
const queuedPage = 1000

// FindQueued looks for the oldest turn of a lane, of those after an id, that may
// start at the time now: it does not wait for anything, and no older turn of its
// conversation is queued.
func FindQueued(ctx context.Context, r store.Reader, lane string, after, now int64) (next NextQueued, err error) {
	// The queued turns of a lane, with whether an older one of the conversation waits, whether a /stop covers it, and
	// of one that waits at the time ?4 whether it is of a time over a minute (maxSkew) later: the clock was set back.
	const query = `SELECT t.id, t.not_before, EXISTS (SELECT 1 FROM turns o INDEXED BY turns_conversation WHERE o.state = 'queued'
		AND o.lane = t.lane AND o.chat_jid = t.chat_jid AND o.topic = t.topic AND o.id < t.id),
		EXISTS (SELECT 1 FROM stops s WHERE s.chat_jid = t.chat_jid AND t.id <= s.through_turn AND (s.topic IS NULL OR s.topic = t.topic)),
		CASE WHEN t.not_before > ?4 THEN max(t.created_at, ifnull(t.started_at, 0)) > ?4 + 60000 ELSE FALSE END
		FROM turns t INDEXED BY turns_queued WHERE t.state = 'queued' AND t.lane = ?1 AND t.id > ?2 ORDER BY t.id LIMIT ?3+0`
	next.Through = after
	var found int64
	for rows := queuedPage; rows == queuedPage && found == 0; {
		rows = 0
		err = r.Each(ctx, func(scan store.Scan) (bool, error) {
			var id, notBefore int64
			var behind, stopped, later bool
			if err := scan(&id, &notBefore, &behind, &stopped, &later); err != nil {
				return false, err
			}
			rows++
			switch {
			case stopped, behind: // a stopped one never starts
				next.Through = id
				return true, nil
			case notBefore <= now || notBefore > now+MaxWait || later:
				found = id
				return false, nil
			}
			next.Through = id
			if next.Until == 0 || notBefore < next.Until {
				next.Until = notBefore
			}
			return true, nil
		}, query, lane, next.Through, queuedPage, now)
		if err != nil {
			return next, err
		}
	}
	if found != 0 {
		next.Turn, err = r.Turn(ctx, found)
	}
	return next, err
}

// FilesReady returns the queued turns, with their lanes, that wait for files of
// which none is pending any more.
func FilesReady(ctx context.Context, r store.Reader) (map[int64]string, error) {
	// A turn waits for the files of its rows, and for those of the posts that these answer, until none is pending or to
	// be transcribed.
	const query = `SELECT t.id, t.lane FROM turns t INDEXED BY turns_files WHERE t.state = 'queued' AND t.waits_for = 'files'
		AND NOT EXISTS (SELECT 1 FROM messages m INDEXED BY messages_turn WHERE m.turn_id = t.id AND (m.pending_files > 0
		OR EXISTS (SELECT 1 FROM messages a WHERE a.chat_jid = m.chat_jid AND a.platform_id = m.reply_to_id AND a.pending_files > 0 AND a.files_wanted = 1)))
		AND NOT EXISTS (SELECT 1 FROM transcripts x INDEXED BY transcripts_wanted WHERE x.state = 'wanted' AND x.turn_id = t.id)`
	ready := map[int64]string{}
	err := r.Each(ctx, func(scan store.Scan) (bool, error) {
		var id int64
		var lane string
		err := scan(&id, &lane)
		ready[id] = lane
		return true, err
	}, query)
	return ready, err
}

// FilesWait reports whether queued turns wait for files.
func FilesWait(ctx context.Context, r store.Reader) (bool, error) {
	const query = `SELECT EXISTS (SELECT 1 FROM turns INDEXED BY turns_files WHERE state = 'queued' AND waits_for = 'files')`
	return store.Value[bool](ctx, r, query)
}

// EndWait lets a queued turn start that waits for something.
func EndWait(tx *store.Tx, id int64, what msg.WaitsFor) error {
	const query = `UPDATE turns SET waits_for = '', not_before = 0 WHERE id = ? AND state = 'queued' AND waits_for = ?`
	tx.PokePeers()
	return tx.Exec(query, id, what)
}
