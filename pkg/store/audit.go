package store

import "errors"

// PutAudit records a change that an operator made.
func (tx *Tx) PutAudit(who, what, detail string, now int64) error {
	if who == "" || what == "" {
		return errors.New("an audit row needs who and what")
	}
	return tx.Exec(`INSERT INTO audit (at, who, what, detail) VALUES (?,?,?,?)`,
		now, CleanName(who), CleanName(what), CleanName(detail))
}
