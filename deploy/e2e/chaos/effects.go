package main

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"

	"arizuko/deploy/e2e/invariants"
	"arizuko/pkg/msg"
)

// checkToolMessages checks that each toolMessage was stored and answered once, and what its calls have done.
func (r *result) checkToolMessages(db *sql.DB, load *generator) error {
	for _, e := range load.toolMessages {
		refused, err := r.checkToolMessage(db, e)
		if err != nil {
			return err
		}
		for _, f := range e.effects {
			if refused {
				f.want = 0
			}
			if err := r.checkEffect(db, f, e.content); err != nil {
				return err
			}
		}
	}
	for _, f := range load.broadcasts {
		if err := r.checkEffect(db, f, "a broadcast"); err != nil {
			return err
		}
	}
	return r.checkEffect(db, effect{`SELECT count(*) FROM reminders WHERE state = 'active'`, nil, 0}, "reminders that should have fired")
}

func (r *result) checkEffect(db *sql.DB, f effect, of string) error {
	var got int
	if err := db.QueryRow(f.query, f.args...).Scan(&got); err != nil {
		return fmt.Errorf("%s: %w", f.query, err)
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

// checkToolMessage checks that an toolMessage was stored and answered once, and that only tools refused it that may. It reports
// whether the tool did of which the whole toolMessage depends.
func (r *result) checkToolMessage(db *sql.DB, e toolMessage) (refused bool, err error) {
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
	answers, err := invariants.Lines(db, `SELECT content FROM messages WHERE turn_id = ? AND source = ?`, turn.Int64, msg.SourceAgent)
	if err != nil {
		return false, err
	}
	if len(answers) == 0 {
		r.add(invariants.Lost, 1, "%q in %s has no answer in turn %d", e.content, e.chat, turn.Int64)
	}
	for _, answer := range answers {
		for _, m := range refusal.FindAllStringSubmatch(answer, -1) {
			switch {
			case m[1] == e.mayRefuse:
				refused = true
			case !slices.Contains(e.refuses, m[1]):
				r.add(invariants.Lost, 1, "%q in %s: turn %d: %s", e.content, e.chat, turn.Int64, m[0])
			}
		}
	}
	return refused, nil
}
