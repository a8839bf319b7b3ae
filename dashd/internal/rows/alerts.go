package rows

import (
	"context"

	"arizuko/pkg/facts"
	"arizuko/pkg/store"
)

// Alert is a problem that operators are notified of. Times are unix ms.
type Alert struct {
	ID        int64
	Text, Fix string
	Since     int64
	EndedAt   int64 // 0 while it lasts
}

// LookAlerts stores what a look has found. A problem counts as open once two looks in a row have found it, and ends
// once two have not. Those that ended before a time are deleted.
func LookAlerts(tx *store.Tx, found []facts.Fact, now, keep int64) error {
	var err error
	do := func(statement string, args ...any) {
		if err == nil {
			err = tx.Exec(statement, args...)
		}
	}
	for _, f := range found {
		do(`INSERT INTO alerts (key, text, fix, since, seen_at) VALUES (?1, ?2, ?3, ?4, ?4)
			ON CONFLICT (key) WHERE ended_at IS NULL DO UPDATE SET text = excluded.text, fix = excluded.fix,
			seen_at = excluded.seen_at, missed_at = NULL`, f.Key(), f.Text, f.Fix, now)
	}
	do(`DELETE FROM alerts WHERE ended_at IS NULL AND seen_at <> ? AND since = seen_at`, now)
	do(`UPDATE alerts SET ended_at = missed_at WHERE ended_at IS NULL AND seen_at <> ? AND missed_at IS NOT NULL`, now)
	do(`UPDATE alerts SET missed_at = ?1 WHERE ended_at IS NULL AND seen_at <> ?1`, now)
	do(`DELETE FROM alert_notices WHERE alert_id IN (SELECT id FROM alerts WHERE ended_at < ?)`, keep)
	do(`DELETE FROM alerts WHERE ended_at < ?`, keep)
	return err
}

func scanAlert(scan store.Scan) (a Alert, err error) {
	return a, scan(&a.ID, &a.Text, &a.Fix, &a.Since, &a.EndedAt)
}

// OpenAlerts are the problems that last, the oldest first.
func OpenAlerts(ctx context.Context, r store.Reader) ([]Alert, error) {
	return store.All(ctx, r, scanAlert, queryOpenAlerts)
}

// PendingAlerts are the problems that the look at the time now has found and an operator was not notified of, and those
// the operator was notified of and that ended after a time, unless the operator was notified of that, too.
func PendingAlerts(ctx context.Context, r store.Reader, operator string, now, since int64) ([]Alert, error) {
	return store.All(ctx, r, scanAlert, queryPendingAlerts, operator, now, since)
}

// PutAlertNotice stores that a message notifies an operator of a problem, or of its end.
func PutAlertNotice(tx *store.Tx, operator string, a *Alert, messageID, now int64) error {
	return tx.Exec(`INSERT INTO alert_notices (operator, alert_id, ended, message_id, at) VALUES (?, ?, ?, ?, ?)`,
		operator, a.ID, a.EndedAt != 0, messageID, now)
}

// AlertMessages counts the messages that notified an operator of problems after a time.
func AlertMessages(ctx context.Context, r store.Reader, operator string, since int64) (int, error) {
	return store.Value[int](ctx, r, queryAlertMessages, operator, since)
}
