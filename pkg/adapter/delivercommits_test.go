package adapter

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestDeliver_CancelledBeforeClaim_IsNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		var ids []int64
		for i := range 3 {
			m := &msg.Message{ChatJID: room, Direction: msg.Out, OutState: msg.OutQueued, TurnID: int64(i + 1), Content: fmt.Sprint(i)}
			r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
			ids = append(ids, m.ID)
		}
		cancel := func(turnID int64) {
			r.write(func(tx *store.Tx) error { return gatedtest.CancelReplies(tx, turnID) })
		}
		cancel(1)
		r.platform.cut = func(m *msg.Message) ([]Part, error) { // the shell has seen the row, and not claimed it
			if m.ID == ids[1] {
				cancel(2)
			}
			return pieces(m.Content), nil
		}
		r.start()
		synctest.Wait() // and no time passes
		r.expect(ids[0], "cancelled:")
		r.expect(ids[1], "cancelled:")
		r.expect(ids[2], "sent: sent")
		r.expectSent("2")
		if len(r.settled) != 1 {
			t.Errorf("settled %+v", r.settled)
		}
	})
}

// One kind of write fails for a minute.
func TestDeliver_WritesFail_AreRetried(t *testing.T) {
	tests := []struct {
		name, trigger string
		during        string // the row's states meanwhile
		sends         []string
	}{
		{"claims", `BEFORE INSERT ON deliveries`, "queued:", nil},
		{"outcomes", `BEFORE UPDATE OF state ON deliveries WHEN new.state = 'sent'`, "sending: sending queued", []string{"a"}},
		{"beginnings", `BEFORE UPDATE OF state ON deliveries WHEN new.state = 'sending'`, "sending: sent queued", []string{"a"}},
		{"ends", `BEFORE UPDATE OF out_state ON messages WHEN new.out_state = 'sent'`, "sending: sent sending", []string{"a", "b"}},
	}
	for _, tt := range tests {
		runInBubble(t, tt.name, func(t *testing.T, r *fixture) {
			id, next := r.out("", "a|b"), r.out("", "next")
			r.exec(`CREATE TRIGGER no ` + tt.trigger + ` BEGIN SELECT raise(ABORT, 'refused'); END`)
			r.start()
			pass(time.Minute)
			r.expect(id, tt.during)
			r.expectSent(tt.sends...)
			r.exec(`DROP TRIGGER no`)
			pass(retryDelay)
			r.expect(id, "sent: sent sent")
			r.expect(next, "sent: sent")
			r.expectSent("a", "b", "next")
			if len(r.settled) != 2 {
				t.Errorf("settled %+v", r.settled)
			}
		})
	}
}

func TestDeliver_StopWhileWritesFail_LosesResultAndLogs(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		id := r.out("", "a|b")
		r.exec(`CREATE TRIGGER no BEFORE UPDATE OF state ON deliveries BEGIN SELECT raise(ABORT, 'refused'); END`)
		stop := r.start()
		pass(time.Minute)
		begin := time.Now()
		stop()
		if took := time.Since(begin); took != 0 {
			t.Errorf("the stop took %v", took)
		}
		r.expect(id, "sending: sending queued")
		r.exec(`DROP TRIGGER no`)
		r.start()
		synctest.Wait()
		r.expect(id, "ambiguous: ambiguous sent")
		r.expectSent("a", "b")
	})
}

// The sqlite3 shell holds the lock when the result of a part has to be recorded.
func TestDeliver_DatabaseLocked_RecordsLater(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		db, err := sql.Open("sqlite3", r.path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		exec := func(query string) {
			if _, err := db.Exec(query); err != nil {
				t.Error(err)
			}
		}
		locked := make(chan struct{})
		r.platform.script("a", func(context.Context) error {
			exec("BEGIN IMMEDIATE")
			close(locked)
			return nil
		})
		id := r.out("", "a|b")
		r.start()
		<-locked
		r.expect(id, "sending: sending queued")
		exec("COMMIT")
		synctest.Wait()
		r.expect(id, "sent: sent sent")
		r.expectSent("a", "b")
	})
}

func TestDeliver_PlatformIDOfAnotherRow(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		first, second := r.out("", "same"), r.out("", "same")
		r.start()
		synctest.Wait()
		r.expect(second, "sent: sent")
		if a, b := r.row(first).PlatformID, r.row(second).PlatformID; a != idOf("same") || b != "" {
			t.Errorf("platform ids %q, %q", a, b)
		}
	})
}
