package rows_test

import (
	"database/sql"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/dashd/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

func TestExamine_Rows(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	s := storetest.OpenAt(t, path, nil)
	change(t, path, `INSERT INTO messages (id, chat_jid, direction, timestamp, received_at, out_state) VALUES
		(1, 'telegram:1', 'out', 5, 5, 'queued'), (2, 'telegram:2', 'out', 6, 6, 'sending'), (3, 'web:main', 'out', 4, 4, 'queued'),
		(4, 'telegram:3', 'out', 7, 7, 'failed'), (5, 'telegram:3', 'out', 1, 1, 'ambiguous'), (6, 'telegram:3', 'out', 8, 8, 'ambiguous'),
		(7, 'telegram:3', 'out', 90, 90, 'sent');
		INSERT INTO deliveries (message_id, part, state, error_class, error) VALUES (4, 0, 'sent', NULL, NULL), (4, 1, 'failed', 'permanent', 'blocked'), (4, 2, 'failed', 'permanent', 'too');
		INSERT INTO messages (id, chat_jid, direction, timestamp, received_at, disposition, reason, decided_at, decision_seq) VALUES
		(10, 'telegram:4', 'in', 20, 20, 'onboarding', 'x', 1, 1), (11, 'telegram:5', 'in', 21, 21, 'onboarding', 'x', 1, 2), (12, 'telegram:5', 'in', 99, 99, 'onboarding', 'x', 1, 3);
		INSERT INTO messages (id, chat_jid, direction, timestamp, received_at, pending_files, files_wanted) VALUES
		(20, 'telegram:6', 'in', 30, 30, 1, 1), (21, 'telegram:6', 'in', 31, 31, 1, 0), (22, 'telegram:6', 'in', 70, 70, 1, 1);
		INSERT INTO onboarding_requests (code, chat_jid, state, created_at) VALUES ('A', 'telegram:4', 'pending', 9), ('B', 'telegram:9', 'pending', 8);
		INSERT INTO onboarding_requests (code, chat_jid, state, created_at, decided_at) VALUES ('C', 'telegram:5', 'rejected', 1, 2);
		INSERT INTO runs (folder, topic, chat_jid, runtime, started_at, closed_at) VALUES ('main', '', 'x:1', 'process', 1, 1), ('main', '', 'x:1', 'docker', 1, 1)`)
	waits := func(rows int, oldest int64, chat string, since int64) factrows.Waiting {
		return factrows.Waiting{Rows: rows, Oldest: oldest, ChatJID: chat, Since: since}
	}
	same(t, "by platform", storetest.Must(factrows.UnsentByPlatform(t.Context(), s.Reader))(t), []factrows.PlatformWaiting{
		{Platform: "telegram", Waiting: waits(2, 1, "telegram:1", 5)}, {Platform: "web", Waiting: waits(1, 3, "web:main", 4)},
	})
	same(t, "undelivered", storetest.Must(factrows.Undelivered(t.Context(), s.Reader, 2))(t), []factrows.UndeliveredRow{
		{ID: 6, ChatJID: "telegram:3", State: msg.OutAmbiguous}, {ID: 4, ChatJID: "telegram:3", State: msg.OutFailed, ErrorClass: "permanent", Error: "blocked"},
	})
	same(t, "parked", storetest.Must(factrows.ParkedWithoutRequest(t.Context(), s.Reader, 50))(t), waits(1, 11, "telegram:5", 21))
	same(t, "wanted", storetest.Must(factrows.WantedFiles(t.Context(), s.Reader, 50))(t), waits(1, 20, "telegram:6", 30))
	requests, code, err := factrows.WaitingRequests(t.Context(), s.Reader)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "requests", requests, waits(2, 0, "telegram:9", 8))
	same(t, "count of requests", storetest.Must(factrows.CountRequests(t.Context(), s.Reader))(t), 2)
	same(t, "code", code, "B")
	same(t, "arrivals", storetest.Must(factrows.Arrivals(t.Context(), s.Reader))(t), factrows.Times{Last: 99, LastID: 12, Step: 70, SteppedA: 7, SteppedB: 10, StepAt: 20})
	same(t, "runtimes", storetest.Must(rows.LastRuntimes(t.Context(), s.Reader))(t), map[string]string{"main": "docker"})
}

// change executes statements as a shell would.
func change(t *testing.T, path, statements string) {
	t.Helper()
	file, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	file.SetMaxOpenConns(1)
	if _, err := file.Exec(statements); err != nil {
		t.Fatal(err)
	}
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
