package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/testkit/need"
)

// copier is a gated that replays as gated does, in one transaction a request. At request number killAt it is killed once its transaction is
// committed, before it answers.
type copier struct {
	*httptest.Server
	requests, killAt int
}

func newCopier(t *testing.T, data string, killAt int) *copier {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(data, "arizuko.db")+"?_txlock=immediate&_busy_timeout=10000&_synchronous=OFF")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	g := &copier{killAt: killAt}
	g.Server = peer("gated", func(w http.ResponseWriter, r *http.Request) {
		g.requests++
		var request struct{ IDs []int64 }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.IDs) > 200 {
			t.Errorf("%d ids, %v", len(request.IDs), err)
		}
		answer, err := copyRows(db, request.IDs)
		if err != nil {
			t.Error(err)
		}
		if g.requests == g.killAt {
			panic(http.ErrAbortHandler)
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"messages": answer}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(g.Close)
	return g
}

type copiedRow struct {
	ID      int64  `json:"id"`
	Copy    int64  `json:"copy,omitempty"`
	Skipped string `json:"skipped,omitempty"`
}

func copyRows(db *sql.DB, ids []int64) (answer []copiedRow, err error) {
	tx, err := db.Begin()
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	for _, id := range ids {
		res, err := tx.Exec(`INSERT INTO messages (chat_jid, direction, content, timestamp, received_at, source, out_state, derived_from)
			SELECT chat_jid, 'out', content, 9, 9, 'agent', 'queued', id FROM messages m WHERE id = ? AND NOT EXISTS (SELECT 1 FROM messages c WHERE c.derived_from = m.id)`, id)
		if err != nil {
			return nil, err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			answer = append(answer, copiedRow{ID: id, Skipped: "replayed already"})
			continue
		}
		copied, err := res.LastInsertId()
		if err != nil {
			return nil, err
		}
		answer = append(answer, copiedRow{ID: id, Copy: copied})
	}
	return answer, tx.Commit()
}

// failedRows stores n answers that failed for good.
func failedRows(t *testing.T, data string, n int) {
	t.Helper()
	shell(t, data, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO messages (chat_jid, direction, sender, content, timestamp, received_at, source, out_state) SELECT 'telegram:-7', 'out', 'agent:main', 'answer ' || i, i, i, 'agent', 'failed' FROM n`, n)
	shell(t, data, `INSERT INTO deliveries (message_id, part, state, attempts, error_class, error, updated_at) SELECT id, 0, 'failed', 1, 'permanent', 'no', 9 FROM messages`)
}

func (p *process) number(query string) (n int) {
	p.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(p.data, "arizuko.db")+"?_busy_timeout=10000")
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		p.t.Fatal(err)
	}
	return n
}

// TestLost_ReplayAllKilledInTheMiddle_CopiesEachOnce replays 10,000 messages by the button, while gated dies between a commit and its
// answer. Copies that fail again meanwhile are not copied.
func TestLost_ReplayAllKilledInTheMiddle_CopiesEachOnce(t *testing.T) {
	need.Verify(t)
	const n = 10_000
	data := dataFolder(t)
	failedRows(t, data, n)
	shell(t, data, `CREATE TRIGGER fails_again AFTER INSERT ON messages BEGIN UPDATE messages SET out_state = 'failed' WHERE id = NEW.id;
		INSERT INTO deliveries (message_id, part, state, attempts, error_class, error, updated_at) VALUES (NEW.id, 0, 'failed', 1, 'permanent', 'no', 9); END`)
	g := newCopier(t, data, 7)
	p := serve(t, data, "GATED_URL="+g.URL)
	b := p.operator()
	contains(t, b.must(200, "GET", "/lost/confirm?reason=failed.permanent", "").body, "There are more: these are the newest ones", "Send again these and all older ones")

	form := url.Values{"all": {"true"}, "reason": {"failed.permanent"}}
	a := b.submit("/lost/replay", form)
	died := false
	for range n { // presses of the page's button, as many as the time of one takes
		died = died || strings.Contains(a.body, "Then it failed; press the button to continue. gated does not answer")
		_, rest, more := strings.Cut(a.body, `name="before" value="`)
		if !more {
			break
		}
		before, _, _ := strings.Cut(rest, `"`)
		form.Set("before", before)
		a = b.submit("/lost/replay", form)
	}
	if !died {
		t.Error("no page says that gated died")
	}
	contains(t, a.body, "That was all.")
	copies, originals := p.number(`SELECT count(*) FROM messages WHERE derived_from IS NOT NULL`), p.number(`SELECT count(DISTINCT derived_from) FROM messages WHERE derived_from <= 10000`)
	if copies != n || originals != n {
		t.Errorf("%d copies of %d messages", copies, originals)
	}
}

// TestLost_NewestWereReplayed_GoesOn has more replayed messages than one step looks at before one that is left.
func TestLost_NewestWereReplayed_GoesOn(t *testing.T) {
	data := dataFolder(t)
	failedRows(t, data, 2301)
	shell(t, data, `INSERT INTO messages (chat_jid, direction, content, timestamp, received_at, source, out_state, derived_from)
		SELECT chat_jid, 'out', content, 9, 9, 'agent', 'sent', id FROM messages WHERE id > 1`)
	b := serve(t, data).operator()
	page := b.must(200, "GET", "/lost/confirm?reason=failed.permanent", "").body
	contains(t, page, "All of these were replayed before", `href="/lost/confirm?before=302&amp;reason=failed.permanent"`)
	contains(t, b.must(200, "GET", "/lost/confirm?before=302&reason=failed.permanent", "").body, "Send again 1 message?", `name="ids" value="1"`)
	contains(t, b.must(200, "GET", "/lost/confirm?before=1&reason=failed.permanent", "").body, "There are no older ones left to replay")
	contains(t, b.must(400, "GET", "/lost/confirm?before=x&reason=failed.permanent", "").body, "not valid")
	contains(t, b.submit("/lost/replay", url.Values{"all": {"true"}, "reason": {"failed.permanent"}, "before": {"-1"}}).body, "not valid")
	contains(t, b.submit("/lost/replay", url.Values{"all": {"true"}, "reason": {"odd"}}).body, "There are none left")
	contains(t, b.submit("/lost/replay", url.Values{"all": {"true"}, "reason": {"parked"}}).body, "There are none left")
}

// TestLost_RowsThatDoNotMatch_GoesOn has a failed part in messages that did not fail as a whole, more than one page looks at.
func TestLost_RowsThatDoNotMatch_GoesOn(t *testing.T) {
	data := dataFolder(t)
	failedRows(t, data, 2301)
	shell(t, data, `UPDATE messages SET out_state = 'ambiguous' WHERE id > 1`)
	b := serve(t, data).operator()
	page := b.must(200, "GET", "/lost?reason=failed.permanent", "").body
	contains(t, page, "None of the messages checked so far has this state", "Continue with older ones", `href="/lost?before=302&amp;reason=failed.permanent"`)
	page = b.must(200, "GET", "/lost?reason=failed.permanent&before=302", "").body
	contains(t, page, "answer 1", fmt.Sprintf(`aria-label="Send again message %d"`, 1))
	if strings.Contains(page, "Continue with") {
		t.Error("the last page goes on")
	}
}
