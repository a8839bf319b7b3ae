// Package rows has the statements on the rules and receipts of requests that agents send out of their sandboxes.
package rows

import (
	"context"
	"fmt"
	"slices"

	"arizuko/pkg/egress"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/store"
)

// stateVersion is the key of router_state that counts changes of rules.
const stateVersion = "egress_version"

// Version grows with each change of the rules.
func Version(ctx context.Context, r store.Reader) (int64, error) {
	return store.Value[int64](ctx, r, `SELECT value FROM router_state WHERE key = ?`, stateVersion)
}

// Rules returns the rules in their order.
func Rules(ctx context.Context, r store.Reader) (egress.Rules, error) {
	return store.All(ctx, r, func(scan store.Scan) (*egress.Rule, error) {
		e := new(egress.Rule)
		err := scan(&e.ID, &e.Seq, &e.Folder, &e.Host, &e.Method, &e.Path, &e.Action, &e.Secret, &e.Author, &e.CreatedAt)
		return e, err
	}, `SELECT id, seq, folder, host, method, path, action, secret, author, created_at FROM egress_rules ORDER BY seq, id`)
}

// PutRule adds a rule and sets its ID. The rules with its Seq, or a greater one, come after it. The caller has checked
// the rule.
func PutRule(tx *store.Tx, r *egress.Rule) (err error) {
	if err := tx.Exec(`UPDATE egress_rules SET seq = seq + 1 WHERE seq >= ?`, r.Seq); err != nil {
		return err
	}
	const query = `INSERT INTO egress_rules (seq, folder, host, method, path, action, secret, author, created_at) VALUES (?,?,?,?,?,?,?,?,?)`
	if r.ID, err = tx.Insert(query, r.Seq, r.Folder, r.Host, r.Method, r.Path, string(r.Action), r.Secret, r.Author,
		r.CreatedAt); err != nil {
		return err
	}
	return tx.Exec(store.BumpState, stateVersion)
}

// RemoveRule deletes a rule and returns it, nil if there was none.
func RemoveRule(tx *store.Tx, id int64) (*egress.Rule, error) {
	all, err := Rules(store.Uncancelled(), tx.Reader)
	at := slices.IndexFunc(all, func(r *egress.Rule) bool { return r.ID == id })
	if err != nil || at < 0 {
		return nil, err
	}
	if err := tx.Exec(`DELETE FROM egress_rules WHERE id = ?`, id); err != nil {
		return nil, err
	}
	return all[at], tx.Exec(store.BumpState, stateVersion)
}

// PutReceipt stores a request that is Asked, Sending or Refused, and sets its ID. One that is refused has ended.
func PutReceipt(tx *store.Tx, r *egress.Receipt) (err error) {
	tx.Note(failpoint.PutReceipt)
	if r.State == egress.Refused && r.EndedAt == 0 {
		r.EndedAt = r.At
	}
	const query = `INSERT INTO egress_receipts (at, run_id, turn_id, folder, method, host, port, path, body_hash, bytes_out, bytes_in, status,
		state, rule_id, rule, reason, decided_by, ask_id, secret, ended_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	r.ID, err = tx.Insert(query, r.At, r.RunID, r.TurnID, r.Folder, store.CleanText(r.Method), store.CleanText(r.Host),
		r.Port, store.CleanText(r.Path), r.BodyHash, r.BytesOut, r.BytesIn, r.Status, string(r.State), r.RuleID, r.Rule,
		store.CleanText(r.Reason), r.By, r.AskID, r.Secret, r.EndedAt)
	return err
}

// EndReceipt stores what has become of a request: its state with all that is known only then, while it is under way
// too. It returns an ErrStale for one that has ended, and for a state that cannot follow: what was asked about is sent
// before it is answered, and what is being sent is not asked about.
func EndReceipt(tx *store.Tx, r *egress.Receipt) error {
	const query = `UPDATE egress_receipts SET state = ?2, status = ?3, bytes_out = ?4, bytes_in = ?5, reason = ?6, decided_by = ?7, secret = ?8,
		ask_id = ?9, rule_id = ?10, rule = ?11, body_hash = ?12, ended_at = ?13
		WHERE id = ?1 AND ended_at = 0 AND (state = 'asked' OR ?2 <> 'asked') AND (state = 'sending' OR ?2 <> 'sent')`
	tx.Note(failpoint.EndReceipt)
	n, err := tx.Change(query, r.ID, string(r.State), r.Status, r.BytesOut, r.BytesIn, store.CleanText(r.Reason), r.By,
		r.Secret, r.AskID, r.RuleID, r.Rule, r.BodyHash, r.EndedAt)
	if err == nil && n == 0 {
		err = fmt.Errorf("end receipt %d: %w", r.ID, store.ErrStale)
	}
	return err
}

const selectReceipts = `SELECT id, at, run_id, turn_id, folder, method, host, port, path, body_hash, bytes_out, bytes_in, status, state,
	rule_id, rule, reason, decided_by, ask_id, secret, ended_at FROM egress_receipts`

// Few may match a host and a state: the first id since a time ends the search.
const (
	receiptsSince = ` AND id >= (SELECT id FROM egress_receipts INDEXED BY egress_receipts_at WHERE at >= ?3 ORDER BY at, id LIMIT 1)
		AND (?4 = '' OR host = ?4) AND (?5 = '' OR state = ?5) ORDER BY id DESC LIMIT ?6+0`
	queryReceipts       = selectReceipts + ` WHERE ?1 = '' AND id < ?2` + receiptsSince
	queryFolderReceipts = selectReceipts + ` INDEXED BY egress_receipts_folder WHERE folder = ?1 AND id < ?2` + receiptsSince
)

func scanReceipt(scan store.Scan) (*egress.Receipt, error) {
	r := new(egress.Receipt)
	err := scan(&r.ID, &r.At, &r.RunID, &r.TurnID, &r.Folder, &r.Method, &r.Host, &r.Port, &r.Path, &r.BodyHash,
		&r.BytesOut, &r.BytesIn, &r.Status, &r.State, &r.RuleID, &r.Rule, &r.Reason, &r.By, &r.AskID, &r.Secret, &r.EndedAt)
	return r, err
}

// Receipt returns one by its ID, nil if there is none.
func Receipt(ctx context.Context, r store.Reader, id int64) (*egress.Receipt, error) {
	return store.First(store.All(ctx, r, scanReceipt, selectReceipts+` WHERE id = ?`, id))
}

// ReceiptsOfTurn returns the newest receipts of a turn, the oldest of them first.
func ReceiptsOfTurn(ctx context.Context, r store.Reader, turnID int64, limit int) ([]*egress.Receipt, error) {
	const query = selectReceipts + ` INDEXED BY egress_receipts_turn WHERE turn_id = ? ORDER BY id DESC LIMIT ?+0`
	all, err := store.All(ctx, r, scanReceipt, query, turnID, limit)
	slices.Reverse(all)
	return all, err
}

// Filter selects receipts.
type Filter struct {
	Folder, Host string // "" for any
	State        egress.State
	Since        int64 // unix ms
	Before       int64 // only those with a lower ID, 0 for all
	Limit        int
}

// ListReceipts returns receipts, the newest first.
func ListReceipts(ctx context.Context, r store.Reader, f Filter) ([]*egress.Receipt, error) {
	query := queryReceipts
	if f.Folder != "" {
		query = queryFolderReceipts
	}
	return store.All(ctx, r, scanReceipt, query, f.Folder, store.OrNewest(f.Before), f.Since, f.Host, string(f.State),
		f.Limit)
}

// EndFormer ends the requests that a killed proxy has left: those of a run, or with 0 those of all runs that are not at
// work for another process of the database. What users were asked about was not sent, the others may have been.
func EndFormer(tx *store.Tx, run, now int64) error {
	const query = `UPDATE egress_receipts INDEXED BY egress_receipts_open SET ended_at = ?3,
		reason = CASE state WHEN 'asked' THEN 'the proxy ended before it was sent' ELSE reason END,
		state = CASE state WHEN 'asked' THEN 'refused' ELSE state END
		WHERE ended_at = 0 AND (run_id = ?1 OR ?1 = 0 AND NOT EXISTS (SELECT 1 FROM runs r
			WHERE r.id = run_id AND r.ended_at IS NULL AND r.owner <> ?2))`
	return tx.Exec(query, run, tx.OwnProcess(), now)
}

// DeleteReceiptsBefore deletes at most limit receipts of requests from before a time, in unix ms, that have ended.
func DeleteReceiptsBefore(tx *store.Tx, at int64, limit int) (deleted int, err error) {
	const query = `DELETE FROM egress_receipts WHERE id IN (SELECT id FROM egress_receipts INDEXED BY egress_receipts_at
		WHERE at < ?1 AND ended_at > 0 ORDER BY at, id LIMIT ?2+0)`
	n, err := tx.Change(query, at, limit)
	return int(n), err
}
