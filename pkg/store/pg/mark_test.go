package pg

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The server refuses the first mark, as with a full disk. A commit after that whose end is lost is still found.
func TestWriter_MarkRefusedOnce_LostCommitIsFound(t *testing.T) {
	url := os.Getenv("ARIZUKO_TEST_POSTGRES")
	if url == "" {
		t.Skip("needs a Postgres server: make test DB=postgres")
	}
	ctx := t.Context()
	admin, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	run := func(statements string) {
		t.Helper()
		if _, err := admin.Exec(ctx, statements); err != nil {
			t.Fatal(err)
		}
	}
	run(`CREATE TABLE counters (name text PRIMARY KEY, value bigint NOT NULL)`)
	defer run(`DROP TABLE counters; DROP FUNCTION full_disk()`)
	db, err := Open(ctx, url, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$;
		CREATE TRIGGER full_disk BEFORE INSERT ON counters FOR EACH ROW EXECUTE FUNCTION full_disk()`)
	w := db.Writers()[1]
	if _, err := w.Begin(time.Minute, 0, []string{"a"}, func() {}); !errors.Is(err, ErrNoRoom) {
		t.Fatalf("a writer without a mark: %v", err)
	}
	run(`DROP TRIGGER full_disk ON counters`)
	w.waits = time.Time{}
	p, err := w.Begin(time.Minute, 0, []string{"a"}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if tag, err := p.commit(""); err != nil || tag != "COMMIT" {
		t.Fatal(tag, err)
	}
	if err := w.resolve(errors.New("connection lost")); err != nil {
		t.Errorf("a commit that the server has done: %v", err)
	}
}
