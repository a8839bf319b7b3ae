package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"arizuko/pkg/msg"
)

// Keys of gated's cursors about operators who became ones by a code. The values are JSON.
const (
	operatorsDaemon = "gated"
	operatorPrefix  = "operator:"     // and the sender
	operatorCode    = "operator code" // the code that is open
)

// What the audit calls it.
const (
	AuditOperatorCode   = "new operator code"
	AuditAddOperator    = "add operator"
	AuditRemoveOperator = "remove operator"
)

// MadeOperator is a sender who became an operator by a code.
type MadeOperator struct {
	Sender string `json:"-"`
	At     int64  `json:"at"` // unix ms
	By     string `json:"by"` // who made the code
}

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

// MadeOperators returns those who became operators by a code, sorted by their ids.
func (r Reader) MadeOperators(ctx context.Context) ([]MadeOperator, error) {
	rows, err := r.DaemonCursors(ctx, operatorsDaemon, operatorPrefix)
	all := make([]MadeOperator, 0, len(rows))
	for key, value := range rows {
		o := MadeOperator{}
		_ = json.Unmarshal([]byte(value), &o) // the key says who it is
		o.Sender = strings.TrimPrefix(key, operatorPrefix)
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b MadeOperator) int { return cmp.Compare(a.Sender, b.Sender) })
	return all, err
}

// Operators returns the operators of now: those whom OPERATORS names, and those who became ones by a code.
func (r Reader) Operators(ctx context.Context, named map[string]bool) (map[string]bool, error) {
	made, err := r.MadeOperators(ctx)
	if err != nil || len(made) == 0 {
		return named, err
	}
	all := make(map[string]bool, len(named)+len(made))
	maps.Copy(all, named)
	for _, o := range made {
		all[o.Sender] = true
	}
	return all, nil
}

// OperatorCode returns the code that is open, which may have expired; nil if there is none.
func (r Reader) OperatorCode(ctx context.Context) (*OperatorCode, error) {
	value, err := r.DaemonCursor(ctx, operatorsDaemon, operatorCode)
	code := &OperatorCode{}
	if err != nil || value == "" || json.Unmarshal([]byte(value), code) != nil {
		return nil, err
	}
	return code, nil
}

// PutOperatorCode stores a code in place of the one before.
func (tx *Tx) PutOperatorCode(code *OperatorCode, now int64) error {
	if err := tx.putJSONCursor(operatorCode, code); err != nil {
		return err
	}
	return tx.PutAudit(code.By, AuditOperatorCode, "", now)
}

// putJSONCursor stores a value of gated's as JSON.
func (tx *Tx) putJSONCursor(key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return tx.PutCursor(operatorsDaemon, key, string(text))
}

// NoteWrongOperatorCode counts a wrong code against the one that is open, which ends once limit of them were written.
func (tx *Tx) NoteWrongOperatorCode(sender string, limit int) error {
	code, err := tx.OperatorCode(uncancelled())
	if err != nil || code == nil {
		return err
	}
	if code.Tried()+1 >= limit {
		return tx.EndOperatorCode()
	}
	if code.Tries == nil {
		code.Tries = map[string]int{}
	}
	code.Tries[sender]++
	return tx.putJSONCursor(operatorCode, code)
}

// EndOperatorCode makes the code that is open worthless.
func (tx *Tx) EndOperatorCode() error { return tx.DeleteCursor(operatorsDaemon, operatorCode) }

// AddOperator makes a sender an operator by the code with a hash, which ends. It returns ErrStale unless that one is
// open.
func (tx *Tx) AddOperator(sender, hash string, now int64) error {
	code, err := tx.OperatorCode(uncancelled())
	if err != nil {
		return err
	}
	if code == nil || code.Hash != hash || now >= code.ExpiresAt {
		return fmt.Errorf("operator %s: the code is not open: %w", sender, ErrStale)
	}
	if err := tx.EndOperatorCode(); err != nil {
		return err
	}
	if err := tx.putJSONCursor(operatorPrefix+sender, MadeOperator{At: now, By: code.By}); err != nil {
		return err
	}
	if err := tx.operatorMayAnswer(sender, true); err != nil {
		return err
	}
	return tx.PutAudit(sender, AuditAddOperator, "with the code of "+code.By, now)
}

// RemoveOperator makes a sender an operator no more who became one by a code. It returns ErrStale if they are none.
func (tx *Tx) RemoveOperator(sender, by string, now int64) error {
	value, err := tx.DaemonCursor(uncancelled(), operatorsDaemon, operatorPrefix+sender)
	if err != nil {
		return err
	}
	if value == "" {
		return fmt.Errorf("operator %s: %w", sender, ErrStale)
	}
	if err := tx.DeleteCursor(operatorsDaemon, operatorPrefix+sender); err != nil {
		return err
	}
	if err := tx.operatorMayAnswer(sender, false); err != nil {
		return err
	}
	return tx.PutAudit(by, AuditRemoveOperator, sender, now)
}

// operatorMayAnswer adds a sender to those who may answer the open questions to operators of their platform, or removes
// them from these: who may answer was resolved when the question was asked.
func (tx *Tx) operatorMayAnswer(sender string, may bool) error {
	asks, err := tx.asks(uncancelled(), queryOpenAsks)
	if err != nil {
		return err
	}
	for _, a := range asks {
		if a.Who.Everyone || a.Who.Label != msg.WhoOperators && a.Who.Label != msg.WhoApprovers ||
			may == a.Who.May(sender) {
			continue
		}
		row, err := tx.Message(uncancelled(), a.MessageID)
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
		if _, err := tx.change(updateAskWho, a.Who.JSON(), a.ID); err != nil {
			return err
		}
	}
	return nil
}
