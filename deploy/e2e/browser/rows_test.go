package browser_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"

	_ "github.com/mattn/go-sqlite3"
)

// unfinished finds what is still on its way.
var unfinished = []string{
	`SELECT id FROM messages WHERE direction = 'in' AND disposition IS NULL`,
	`SELECT id FROM turns WHERE ended_at IS NULL`,
	`SELECT id FROM messages WHERE out_state IN ('queued', 'sending')`,
}

// invariants hold at the end of every test: each query finds what must not be.
var invariants = []struct{ broken, query string }{
	{"a turn has not ended well", `SELECT id, state, reason FROM turns WHERE state NOT IN ('done', 'cancelled')`},
	{"a routed row has no turn", `SELECT id, content FROM messages WHERE disposition = 'routed' AND turn_id IS NULL`},
	{"a row of a page was not taken up", `SELECT id, content, disposition, reason FROM messages
		WHERE direction = 'in' AND disposition NOT IN ('routed', 'command', 'prefix', 'sticky')`},
	{"an answer was not sent", `SELECT id, out_state FROM messages WHERE direction = 'out' AND out_state IS NOT 'sent'`},
	{"an answer has not one delivery", `SELECT m.id, count(d.part) FROM messages m LEFT JOIN deliveries d ON d.message_id = m.id
		WHERE direction = 'out' GROUP BY m.id HAVING count(*) <> 1 OR ifnull(max(d.state), '') <> 'sent'`},
	{"a turn says the same twice",
		`SELECT turn_id, content FROM messages WHERE source = 'agent' GROUP BY turn_id, content HAVING count(*) > 1`},
	{"the answers of a topic are out of order", `SELECT * FROM (SELECT id, turn_id,
		lag(turn_id) OVER (PARTITION BY chat_jid, topic ORDER BY id) AS before FROM messages WHERE source = 'agent') WHERE before > turn_id`},
}

// settle waits until everything written is answered, and every answer sent.
func (i *instance) settle() {
	i.t.Helper()
	i.until("everything is answered", func() bool {
		for _, query := range unfinished {
			if len(i.rows(query)) > 0 {
				return false
			}
		}
		return true
	})
}

func (i *instance) checkRows() {
	for _, each := range invariants {
		if found := i.rows(each.query); len(found) > 0 {
			i.t.Errorf("%s:\n%s", each.broken, strings.Join(found[:min(len(found), 10)], "\n"))
		}
	}
}

func (i *instance) lastRows() []string {
	return i.rows(`SELECT id, chat_jid, direction, topic, substr(content, 1, 60), disposition, reason, turn_id, out_state
		FROM messages ORDER BY id DESC LIMIT 60`)
}

func (i *instance) database() *sql.DB {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(i.data, "arizuko.db")+"?_busy_timeout=20000&_txlock=immediate")
	if err != nil {
		i.t.Fatal(err)
	}
	return db
}

// change alters the database by hand.
func (i *instance) change(query string, args ...any) {
	i.t.Helper()
	db := i.database()
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		i.t.Fatalf("%s: %v", query, err)
	}
}

// rows is the answer to a query, the columns of each row joined by blanks.
func (i *instance) rows(query string, args ...any) (all []string) {
	i.t.Helper()
	db := i.database()
	defer db.Close()
	rows, err := db.Query(query, args...)
	if err != nil {
		i.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		i.t.Fatal(err)
	}
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for n := range values {
			into[n] = &values[n]
		}
		if err := rows.Scan(into...); err != nil {
			i.t.Fatal(err)
		}
		texts := make([]string, len(values))
		for n, value := range values {
			texts[n] = fmt.Sprint(value.String)
		}
		all = append(all, strings.Join(texts, " "))
	}
	if err := rows.Err(); err != nil {
		i.t.Fatal(err)
	}
	return all
}
