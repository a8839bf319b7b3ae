package rows

import (
	"context"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/store"
)

// ProbeAt is when a group whose turns fail alike may try the next one, in unix ms,
// 0 for other groups.
func ProbeAt(ctx context.Context, r store.Reader, folder string) (int64, error) {
	const query = `SELECT max(probe_at, 1) FROM group_failures WHERE folder = ? AND count >= ?`
	return store.Value[int64](ctx, r, query, folder, factrows.MinFailures)
}

// CountFailure records that a turn of a group has failed, and reports whether the
// group's turns now fail alike: then the next one is tried at probeAt.
func CountFailure(tx *store.Tx, folder, problem string, now, probeAt int64) (alike bool, err error) {
	const query = `INSERT INTO group_failures (folder, problem, count, since, probe_at) VALUES (?,?,1,?,0)
		ON CONFLICT (folder) DO UPDATE SET count = CASE WHEN group_failures.problem = excluded.problem OR group_failures.count >= 3 THEN group_failures.count + 1 ELSE 1 END,
		since = CASE WHEN group_failures.problem = excluded.problem OR group_failures.count >= 3 THEN group_failures.since ELSE excluded.since END, problem = excluded.problem
		RETURNING count`
	var count int
	if _, err := tx.Find([]any{&count}, query, folder, problem, now); err != nil || count < factrows.MinFailures {
		return false, err
	}
	return true, SetProbe(tx, folder, probeAt)
}

// SetProbe sets when a failing group may try the next turn.
func SetProbe(tx *store.Tx, folder string, at int64) error {
	return tx.Exec(`UPDATE group_failures SET probe_at = ? WHERE folder = ?`, at, folder)
}

// ClearFailures records that a turn of a group was answered, and reports whether one
// had failed before. It returns the lanes whose turns waited because of that.
func ClearFailures(tx *store.Tx, folder string) (cleared bool, lanes []string, err error) {
	const query = `UPDATE turns INDEXED BY turns_probe SET waits_for = '', not_before = 0
		WHERE state = 'queued' AND waits_for = 'probe' AND folder = ? RETURNING lane`
	n, err := tx.Change(`DELETE FROM group_failures WHERE folder = ?`, folder)
	if err != nil || n == 0 {
		return false, nil, err
	}
	tx.PokePeers()
	lanes, err = store.All(store.Uncancelled(), tx.Reader, store.One[string], query, folder)
	return true, lanes, err
}
