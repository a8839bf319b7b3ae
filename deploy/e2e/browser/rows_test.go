package browser_test

import "strings"

// invariants hold at the end of every test: each query finds rows that break one.
var invariants = []struct{ broken, query string }{
	{"a turn has failed or is open", `SELECT id, state, reason FROM turns WHERE state NOT IN ('done', 'cancelled')`},
	{"a routed row has no turn", `SELECT id, content FROM messages WHERE disposition = 'routed' AND turn_id IS NULL`},
	{"a row of a page was neither routed nor a command nor the answer to a question", `SELECT id, content, disposition, reason FROM messages
		WHERE direction = 'in' AND disposition NOT IN ('routed', 'command', 'prefix', 'sticky') AND NOT (verb = 'answer' AND reason = 'chosen')`},
	{"an answer was not sent", `SELECT id, out_state FROM messages WHERE direction = 'out' AND out_state IS NOT 'sent'`},
	{"an answer does not have exactly one delivery", `SELECT m.id, count(d.part) FROM messages m LEFT JOIN deliveries d ON d.message_id = m.id
		WHERE direction = 'out' GROUP BY m.id HAVING count(*) <> 1 OR ifnull(max(d.state), '') <> 'sent'`},
	{"a turn has the same answer twice",
		`SELECT turn_id, content FROM messages WHERE source = 'agent' GROUP BY turn_id, content HAVING count(*) > 1`},
	{"the answers of a topic are out of order", `SELECT * FROM (SELECT id, turn_id,
		lag(turn_id) OVER (PARTITION BY chat_jid, topic ORDER BY id) AS before FROM messages WHERE source = 'agent') WHERE before > turn_id`},
}

func (i *instance) checkRows() {
	i.T.Helper()
	for _, each := range invariants {
		if found := i.Query(each.query); len(found) > 0 {
			i.T.Errorf("%s:\n%s", each.broken, strings.Join(found[:min(len(found), 10)], "\n"))
		}
	}
}
