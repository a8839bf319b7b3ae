package suite

import "strings"

// invariants hold at the end of every history: each query finds what must not
// be. Order is that of arrival; a derived row stands where its original does,
// except the text behind /new, since commands overtake. Notes of edits ride
// along with whatever turn comes next.
var invariants = []struct{ broken, query string }{
	{"a routed row has no turn",
		`SELECT id, content FROM messages WHERE disposition = 'routed' AND reason <> 'daemon' AND turn_id IS NULL`},
	{"a prefixed row has not one derived row",
		`SELECT id, content FROM messages m WHERE disposition = 'prefix'
		AND (SELECT count(*) FROM messages d WHERE d.derived_from = m.id) <> 1`},
	{"a turn has not ended", `SELECT id, state FROM turns WHERE state NOT IN ('done', 'failed', 'cancelled')`},
	{"a turn ended without a reason", `SELECT id, state FROM turns WHERE reason = ''`},
	{"a turn was made of nothing",
		`SELECT id FROM turns t WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn_id = t.id AND m.direction = 'in')`},
	{"an answered turn has no answer",
		`SELECT id FROM turns t WHERE reason = 'answered'
		AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn_id = t.id AND m.direction = 'out')
		AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.forwarded_from ->> 'kind' = 'answer' AND m.forwarded_from ->> 'turn_id' = t.id)`},
	{"a turn says more than its agent did",
		`SELECT id, frames FROM turns t WHERE frames < (SELECT count(*) FROM messages m WHERE m.turn_id = t.id AND m.source = 'agent')`},
	{"a turn says the same twice",
		`SELECT turn_id, content FROM messages WHERE source = 'agent' GROUP BY turn_id, content HAVING count(*) > 1`},
	{"the rows of a conversation are answered out of order",
		`SELECT * FROM (SELECT t.id, first, lag(last) OVER conversation AS before FROM turns t JOIN (
			SELECT turn_id, min(ifnull(derived_from, id)) AS first, max(ifnull(derived_from, id)) AS last FROM messages
			WHERE direction = 'in' AND turn_id IS NOT NULL AND verb NOT IN ('edit', 'delete') AND source <> 'command'
			GROUP BY turn_id) ON turn_id = t.id
		WINDOW conversation AS (PARTITION BY folder, chat_jid, topic, thread_id, place ORDER BY t.id)) WHERE before > first`},
	{"the answers of a conversation are out of order",
		`SELECT * FROM (SELECT m.id, m.turn_id, lag(m.turn_id) OVER (PARTITION BY t.chat_jid, t.topic, t.thread_id, t.place ORDER BY m.id)
			AS before FROM messages m JOIN turns t ON t.id = m.turn_id WHERE m.source = 'agent') WHERE before > turn_id`},
	{"two agents worked on one session at once",
		`SELECT a.id, b.id FROM turns a JOIN turns b ON a.folder = b.folder AND a.topic = b.topic AND a.id < b.id
		WHERE a.state = 'done' AND b.state = 'done' AND a.run_id <> b.run_id AND a.started_at < b.ended_at AND b.started_at < a.ended_at`},
	{"a system message was left with a turn that has ended",
		`SELECT s.id, s.event FROM system_messages s JOIN turns t ON t.id = s.turn_id WHERE t.ended_at IS NOT NULL`},
	{"a run was left open", `SELECT id, folder, topic, pid FROM runs WHERE ended_at IS NULL`},
}

// checkEnd lets everything finish, stops the daemons and holds the database
// against the invariants.
func (s *Suite) checkEnd() {
	if s.t.Failed() || s.db == nil {
		return
	}
	if s.runs(Gated) && s.runs(Routd) {
		s.Settle()
	}
	for _, name := range []string{Gated, Routd} {
		if !s.runs(name) {
			continue
		}
		if code := s.Stop(name); code != 0 {
			s.t.Errorf("%s ended with %d", name, code)
		}
	}
	if left := s.strays(); len(left) > 0 {
		s.t.Errorf("agents are left running: %v", left)
	}
	undecided := s.lines(`SELECT id FROM messages WHERE direction = 'in' AND disposition IS NULL`)
	if !s.allWaiting(undecided) {
		s.t.Errorf("rows are undecided: %v", undecided)
	}
	for _, i := range invariants {
		if found := s.lines(i.query); len(found) > 0 {
			s.t.Errorf("%s:\n%s", i.broken, strings.Join(found[:min(len(found), 10)], "\n"))
		}
	}
}

func (s *Suite) runs(name string) bool {
	p := s.daemons[name]
	return p != nil && p.running()
}
