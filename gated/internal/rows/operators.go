package rows

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Keys of gated's cursors about operators who became ones by a code. The values are JSON.
const (
	operatorCode = "operator code" // the code that is open
)

// Names in the audit.
const (
	AuditOperatorCode   = "new operator code"
	AuditAddOperator    = "add operator"
	AuditRemoveOperator = "remove operator"
)

// OperatorCode is the code that is open. The code itself is not stored.
type OperatorCode struct {
	Hash      string         `json:"hash"`
	By        string         `json:"by"`         // who made it
	ExpiresAt int64          `json:"expires_at"` // unix ms
	Tries     map[string]int `json:"tries"`      // wrong codes, by sender
}

// Tried is how many wrong codes were written.
func (c *OperatorCode) Tried() (n int) {
	for tries := range maps.Values(c.Tries) {
		n += tries
	}
	return n
}

// FindOperatorCode returns the code that is open, which may have expired; nil if there is none.
func FindOperatorCode(ctx context.Context, r store.Reader) (*OperatorCode, error) {
	value, err := r.DaemonCursor(ctx, store.OperatorsDaemon, operatorCode)
	return parseCode(value), err
}

func parseCode(value string) *OperatorCode {
	code := &OperatorCode{}
	if value == "" || json.Unmarshal([]byte(value), code) != nil {
		return nil
	}
	return code
}

// The cursors about operators, joined to the one row of a query, whose last columns they are.
const (
	operatorColumns = `, ifnull(o.key, ''), ifnull(o.value, '')`
	joinOperators   = ` LEFT JOIN cursors o ON o.daemon = 'gated' AND substr(o.key, 1, 8) = 'operator'`
)

// getWithOperators scans the row of a query with joinOperators into dest. It returns those who became operators by a
// code, and the code that is open, nil for none.
func getWithOperators(ctx context.Context, r store.Reader, dest []any, query string,
	args ...any) (made map[string]bool, code *OperatorCode, err error) {
	var key, value string
	made, dest = map[string]bool{}, append(dest, &key, &value)
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		err := scan(dest...)
		if sender, is := strings.CutPrefix(key, store.OperatorPrefix); is {
			made[sender] = true
		} else if key == operatorCode {
			code = parseCode(value)
		}
		return true, err
	}, query, args...)
	return made, code, err
}

// PutOperatorCode stores a code in place of the one before.
func PutOperatorCode(tx *store.Tx, code *OperatorCode, now int64) error {
	if err := putJSONCursor(tx, operatorCode, code); err != nil {
		return err
	}
	return tx.PutAudit(code.By, AuditOperatorCode, "", now)
}

// putJSONCursor stores a value of gated's as JSON.
func putJSONCursor(tx *store.Tx, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return tx.PutCursor(store.OperatorsDaemon, key, string(text))
}

// NoteWrongOperatorCode counts a wrong code against the one that is open, which ends once limit of them were written.
func NoteWrongOperatorCode(tx *store.Tx, sender string, limit int) error {
	code, err := FindOperatorCode(store.Uncancelled(), tx.Reader)
	if err != nil || code == nil {
		return err
	}
	if code.Tried()+1 >= limit {
		return EndOperatorCode(tx)
	}
	if code.Tries == nil {
		code.Tries = map[string]int{}
	}
	code.Tries[sender]++
	return putJSONCursor(tx, operatorCode, code)
}

// EndOperatorCode makes the code that is open worthless.
func EndOperatorCode(tx *store.Tx) error { return tx.DeleteCursor(store.OperatorsDaemon, operatorCode) }

// AddOperator makes a sender an operator by the code with a hash, which ends. It returns ErrStale unless that one is
// open.
func AddOperator(tx *store.Tx, sender, hash string, now int64) error {
	code, err := FindOperatorCode(store.Uncancelled(), tx.Reader)
	if err != nil {
		return err
	}
	if code == nil || code.Hash != hash || now >= code.ExpiresAt {
		return fmt.Errorf("operator %s: the code is not open: %w", sender, store.ErrStale)
	}
	if err := EndOperatorCode(tx); err != nil {
		return err
	}
	if err := putJSONCursor(tx, store.OperatorPrefix+sender, store.MadeOperator{At: now, By: code.By}); err != nil {
		return err
	}
	if err := operatorMayAnswer(tx, sender, true); err != nil {
		return err
	}
	return tx.PutAudit(sender, AuditAddOperator, "with the code of "+code.By, now)
}

// RemoveOperator makes a sender an operator no more who became one by a code. It returns ErrStale if they are none.
func RemoveOperator(tx *store.Tx, sender, by string, now int64) error {
	value, err := tx.DaemonCursor(store.Uncancelled(), store.OperatorsDaemon, store.OperatorPrefix+sender)
	if err != nil {
		return err
	}
	if value == "" {
		return fmt.Errorf("operator %s: %w", sender, store.ErrStale)
	}
	if err := tx.DeleteCursor(store.OperatorsDaemon, store.OperatorPrefix+sender); err != nil {
		return err
	}
	if err := operatorMayAnswer(tx, sender, false); err != nil {
		return err
	}
	return tx.PutAudit(by, AuditRemoveOperator, sender, now)
}

// operatorMayAnswer adds a sender to those who may answer the open questions to operators of their platform, or removes
// them from these: who may answer was resolved when the question was asked.
func operatorMayAnswer(tx *store.Tx, sender string, may bool) error {
	// Open ones are few: each is asked of users, and ends within a day.
	const queryOpenAsks = `SELECT ` + store.AskColumns + ` FROM asks a INDEXED BY asks_open WHERE a.state = 'open' ORDER BY a.id`
	const updateAskWho = `UPDATE asks SET who = ? WHERE id = ? AND state = 'open'`
	asks, err := tx.ReadAsks(store.Uncancelled(), queryOpenAsks)
	if err != nil {
		return err
	}
	for _, a := range asks {
		first, _, _ := strings.Cut(a.Who.Label, " and ")
		if a.Who.Everyone || first != msg.WhoOperators && first != msg.WhoApprovers || may == a.Who.May(sender) {
			continue
		}
		row, err := tx.Message(store.Uncancelled(), a.MessageID)
		if err != nil {
			return err
		}
		if row == nil || msg.FamilyOf(row.ChatJID) != msg.FamilyOf(sender) {
			continue
		}
		if may {
			a.Who.Senders = append(a.Who.Senders, sender)
		} else {
			a.Who.Senders = slices.DeleteFunc(a.Who.Senders, func(s string) bool { return s == sender })
		}
		if _, err := tx.Change(updateAskWho, a.Who.JSON(), a.ID); err != nil {
			return err
		}
	}
	return nil
}
