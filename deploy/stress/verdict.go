package main

import (
	"database/sql"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"arizuko/deploy/invariants"
	"arizuko/deploy/stress/wire"
)

// verdict counts what must not have happened, by what it means for people.
type verdict struct {
	count map[invariants.Harm]int
	out   io.Writer // where each case is told
}

func (v *verdict) add(harm invariants.Harm, n int, format string, args ...any) {
	v.count[harm] += n
	fmt.Fprintf(v.out, "%s: %s\n", harm, fmt.Sprintf(format, args...))
}

// String is the line that everything ends with.
func (v *verdict) String() string {
	n := func(h invariants.Harm) int { return v.count[h] }
	return fmt.Sprintf("lost %d, doubled %d, reordered %d, stuck %d",
		n(invariants.Lost), n(invariants.Doubled), n(invariants.Reordered), n(invariants.Stuck))
}

func (v *verdict) good() bool { return len(v.count) == 0 }

// judge holds the rows, and what the world received, against what was written.
func (t *trial) judge(out io.Writer, skip func(invariants.Invariant) bool) (*verdict, error) {
	v := &verdict{count: map[invariants.Harm]int{}, out: out}
	all := slices.DeleteFunc(append(invariants.Path(), invariants.Whole()...), skip)
	found, err := invariants.Check(t.db, all)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		v.add(f.Harm, len(f.Rows), "%s", f)
	}
	if err := v.judgeAnswers(t.db, t.crowd.all); err != nil {
		return nil, err
	}
	return v, v.judgeSends(t.db, t.world.sent())
}

// row is a message of the database.
type row struct {
	id, turn                            int64
	chat, direction, source, content    string
	disposition, turnReason, platformID string
	derivedFrom                         int64
	replyTo                             string
}

func readRows(db *sql.DB) (all []row, err error) {
	rows, err := db.Query(`SELECT m.id, ifnull(m.turn_id, 0), m.chat_jid, m.direction, m.source, m.content, ifnull(m.disposition, ''),
		ifnull(t.reason, ''), ifnull(m.platform_id, ''), ifnull(m.derived_from, 0), ifnull(m.reply_to_id, '')
		FROM messages m LEFT JOIN turns t ON t.id = m.turn_id ORDER BY m.id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		err := rows.Scan(&r.id, &r.turn, &r.chat, &r.direction, &r.source, &r.content, &r.disposition, &r.turnReason,
			&r.platformID, &r.derivedFrom, &r.replyTo)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// key is a text in a chat. Texts are all different.
type key struct{ chat, text string }

// heard is a line of the demo agent's answer, which repeats what it was told.
var heard = regexp.MustCompile(`(?m)^(?:\d+/\d+ )?You said: (.*)$`)

// judgeAnswers looks for each message: stored once, decided, told to one agent, and answered in
// that one turn.
func (v *verdict) judgeAnswers(db *sql.DB, all []said) error {
	rows, err := readRows(db)
	if err != nil {
		return err
	}
	stored := map[key][]row{}
	derived := map[int64]row{}
	answers := map[key]map[int64]bool{} // turns that say so
	replies := map[key]int{}            // of commands, by what they reply to
	for _, r := range rows {
		switch {
		case r.direction == "out" && r.source == "command":
			replies[key{r.chat, r.replyTo}]++
		case r.direction == "out":
			for _, m := range heard.FindAllStringSubmatch(r.content, -1) {
				k := key{r.chat, m[1]}
				if answers[k] == nil {
					answers[k] = map[int64]bool{}
				}
				answers[k][r.turn] = true
			}
		case r.derivedFrom != 0:
			derived[r.derivedFrom] = r
		default:
			k := key{r.chat, r.content}
			stored[k] = append(stored[k], r)
		}
	}
	for _, s := range all {
		found := stored[key{s.chat, s.content}]
		if len(found) != 1 {
			harm := invariants.Lost
			if len(found) > 1 {
				harm = invariants.Doubled
			}
			v.add(harm, 1, "%q in %s is stored %d times", s.content, s.chat, len(found))
			continue
		}
		r := found[0]
		if s.told == "" {
			v.judgeReplies(s, replies[key{s.chat, r.platformID}])
			continue
		}
		if d, ok := derived[r.id]; ok {
			r = d
		}
		v.judgeAnswer(s, r, answers[key{s.chat, s.told}])
	}
	return nil
}

func (v *verdict) judgeReplies(s said, n int) {
	if n == 0 {
		v.add(invariants.Lost, 1, "%q in %s has no reply", s.content, s.chat)
	} else if n > 1 {
		v.add(invariants.Doubled, n-1, "%q in %s has %d replies", s.content, s.chat, n)
	}
}

func (v *verdict) judgeAnswer(s said, r row, turns map[int64]bool) {
	for turn := range turns {
		if turn != r.turn {
			v.add(invariants.Doubled, 1, "%q in %s is row %d of turn %d, and answered in turn %d", s.content, s.chat, r.id, r.turn, turn)
		}
	}
	switch {
	case r.turn == 0 && s.sure:
		v.add(invariants.Lost, 1, "%q in %s is %s", s.content, s.chat, r.disposition)
	case r.turnReason == "answered" && !turns[r.turn]:
		v.add(invariants.Lost, 1, "%q in %s is row %d of turn %d, which did not answer it", s.content, s.chat, r.id, r.turn)
	}
}

// part is a part of an outbound row.
type part struct {
	row  int64
	part int
}

// judgeSends holds what the world received against what the rows say of it.
func (v *verdict) judgeSends(db *sql.DB, sends []wire.Send) error {
	arrived := map[part]int{}
	last := map[[2]string]part{}
	for _, s := range sends {
		p := part{s.Row, s.Part}
		arrived[p]++
		lane := [2]string{s.Chat, s.Thread}
		if before := last[lane]; before.row > p.row || before.row == p.row && before.part > p.part {
			v.add(invariants.Reordered, 1, "part %d of row %d was sent behind part %d of row %d", p.part, p.row, before.part, before.row)
		}
		last[lane] = p
	}
	rows, err := db.Query(`SELECT d.message_id, d.part, d.state, ifnull(d.error, '') FROM deliveries d JOIN messages m ON m.id = d.message_id
		WHERE m.platform = 'telegram'`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var p part
		var state, problem string
		if err := rows.Scan(&p.row, &p.part, &state, &problem); err != nil {
			return err
		}
		v.judgePart(p, state, problem, arrived[p])
		delete(arrived, p)
	}
	for p := range arrived {
		v.add(invariants.Doubled, 1, "part %d of row %d was sent and is not in the rows", p.part, p.row)
	}
	return rows.Err()
}

func (v *verdict) judgePart(p part, state, problem string, arrived int) {
	switch {
	case arrived > 1:
		v.add(invariants.Doubled, arrived-1, "part %d of row %d was sent %d times", p.part, p.row, arrived)
	case state == "sent" && arrived == 0:
		v.add(invariants.Lost, 1, "part %d of row %d is sent, and never arrived", p.part, p.row)
	case state == "failed" || state == "cancelled" && strings.TrimSpace(problem) != "":
		v.add(invariants.Lost, 1, "part %d of row %d is %s: %s", p.part, p.row, state, problem)
	}
}
