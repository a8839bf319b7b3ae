package main

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"arizuko/deploy/e2e/invariants"
	"arizuko/pkg/msg"
)

// checkToolMessages checks that each toolMessage was stored and answered once, and the effects of its calls.
func (r *result) checkToolMessages(db *sql.DB, load *generator) error {
	for _, m := range load.toolMessages {
		late, err := r.checkToolMessage(db, m)
		if err != nil {
			return err
		}
		effects := slices.Clone(m.effects)
		if made, err := effects[0].count(db); err != nil {
			return err
		} else if late && m.late && made == 0 {
			for i := range effects {
				effects[i].want = 0
			}
		}
		for _, f := range effects {
			if err := r.checkEffect(db, f, m.content); err != nil {
				return err
			}
		}
	}
	for _, f := range load.broadcasts {
		if err := r.checkEffect(db, f, "a broadcast"); err != nil {
			return err
		}
	}
	active, err := effect{query: `SELECT count(*) FROM reminders WHERE state = 'active'`}.count(db)
	if active > 0 {
		r.add(invariants.Stuck, active, "%d reminders have not fired", active)
	}
	return err
}

// count is how many rows there are.
func (f effect) count(db *sql.DB) (n int, err error) {
	if err := db.QueryRow(f.query, f.args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("%s: %w", f.query, err)
	}
	return n, nil
}

func (r *result) checkEffect(db *sql.DB, f effect, of string) error {
	got, err := f.count(db)
	if err != nil {
		return err
	}
	switch {
	case got < f.want:
		r.add(invariants.Lost, f.want-got, "%q: %d rows of %q, want %d", of, got, f.args, f.want)
	case got > f.want:
		r.add(invariants.Doubled, got-f.want, "%q: %d rows of %q, want %d", of, got, f.args, f.want)
	}
	return nil
}

// refusal matches a line of an answer about a call that failed.
var refusal = regexp.MustCompile(`(?m)^(\w+) error .*$`)

// checkToolMessage checks that an toolMessage was stored and answered once, and that only tools refused calls that may.
// late reports that a reminder was refused, of this message or of another one that was answered with it.
func (r *result) checkToolMessage(db *sql.DB, e toolMessage) (late bool, err error) {
	var turn sql.NullInt64
	var n int
	err = db.QueryRow(`SELECT count(*), max(turn_id) FROM messages WHERE chat_jid = ? AND direction = 'in' AND content = ?`, e.chat, e.content).Scan(&n, &turn)
	if err != nil {
		return false, err
	}
	if n != 1 {
		harm := invariants.Lost
		if n > 1 {
			harm = invariants.Doubled
		}
		r.add(harm, 1, "%q in %s is stored %d times", e.content, e.chat, n)
		return false, nil
	}
	answers, err := invariants.Lines(db, `SELECT content FROM messages WHERE turn_id = ? AND source = ?`, turn.Int64,
		msg.SourceAgent)
	if err != nil {
		return false, err
	}
	if len(answers) == 0 {
		r.add(invariants.Lost, 1, "%q in %s has no answer in turn %d", e.content, e.chat, turn.Int64)
	}
	for _, answer := range answers {
		for _, m := range refusal.FindAllStringSubmatch(answer, -1) {
			switch {
			case m[1] == "reminder_create" && strings.Contains(m[0], "has passed"):
				late = true
			case !slices.Contains(e.refuses, m[1]):
				r.add(invariants.Lost, 1, "%q in %s: turn %d: %s", e.content, e.chat, turn.Int64, m[0])
			}
		}
	}
	return late, nil
}
