package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// Where the server allows few connections, writes of all chats share one, and others can connect.
func TestServer_FewConnections_OneWriterForAll(t *testing.T) {
	t.Parallel()
	onServer(t)
	path := storetest.Path(t)
	admin := storetest.Must(pgx.Connect(t.Context(), path))(t)
	defer admin.Close(t.Context())
	var database string
	if err := admin.QueryRow(t.Context(), `SELECT current_database()`).Scan(&database); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]int64{3: 1, 200: 2} {
		if _, err := admin.Exec(t.Context(), fmt.Sprintf(`ALTER DATABASE %q CONNECTION LIMIT %d`, database, limit)); err != nil {
			t.Fatal(err)
		}
		s := storetest.OpenAt(t, path, nil)
		for i := range 20 {
			jid := fmt.Sprint("telegram:", i)
			err := s.WriteIn(t.Context(), store.Scope{jid}, func(tx *store.Tx) error {
				_, _, err := tx.PutMessage(&msg.Message{ChatJID: jid, Direction: msg.In})
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		marks := storetest.Value[int64](t, s, `SELECT count(*) FROM counters WHERE name LIKE 'writer/%'`)
		if marks < want || limit == 3 && marks > want {
			t.Errorf("%d writers of a database with %d connections", marks, limit)
		}
		if err := s.Close(); err != nil && !strings.Contains(err.Error(), "closed") {
			t.Error(err)
		}
	}
}

// Each writer has a connection of its own, and notices before it writes that the server has ended it.
func TestServer_ConnectionsEnded_NoWriteFails(t *testing.T) {
	t.Parallel()
	onServer(t)
	path := storetest.Path(t)
	s := storetest.OpenAt(t, path, nil)
	write := func() {
		for i := range 40 {
			jid := fmt.Sprint("telegram:", i)
			if err := s.WriteIn(t.Context(), store.Scope{jid}, func(tx *store.Tx) error { return tx.EnsureChat(jid, 1) }); err != nil {
				t.Errorf("%s: %v", jid, err)
			}
		}
	}
	write()
	<-time.After(6 * time.Second) // writers ask only after a pause
	admin := storetest.Must(pgx.Connect(t.Context(), path))(t)
	defer admin.Close(t.Context())
	if _, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	write()
}
