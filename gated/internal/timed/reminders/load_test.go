package reminders

import (
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"arizuko/gated/internal/rows"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// firedSlot is a row of reminder_slots.
type firedSlot struct{ reminder, slot, message int64 }

// firedSlots are the slots that have fired, in the order of their messages.
func firedSlots(t *testing.T, path string) (all []firedSlot) {
	t.Helper()
	db := storetest.Must(sql.Open("sqlite3", path))(t)
	defer db.Close()
	rows := storetest.Must(db.Query("SELECT reminder_id, slot, ifnull(message_id, 0) FROM reminder_slots ORDER BY message_id"))(t)
	defer rows.Close()
	for rows.Next() {
		var f firedSlot
		if err := rows.Scan(&f.reminder, &f.slot, &f.message); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// firedTimes are the times of those slots.
func firedTimes(t *testing.T, path string) (all []string) {
	t.Helper()
	for _, f := range firedSlots(t, path) {
		all = append(all, time.UnixMilli(f.slot).UTC().Format(time.RFC3339))
	}
	return all
}

// harnessAt is a harness on a file of the test, whose commits are observed.
func harnessAt(t *testing.T, path string, committed func(err error)) *harness {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{
		Path: path, Autocheckpoint: store.DefaultAutocheckpoint,
		Observer: store.Observer{Committed: func(_ time.Duration, err error) { committed(err) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return harnessOn(t, st)
}

// TestScheduler_TenThousandDue covers a start after a long time: pages stay small, other processes write between them.
func TestScheduler_TenThousandDue_EachOnceInOrderPageByPage(t *testing.T) {
	t.Parallel()
	const count, prompts = 10_000, 100
	path := storetest.Path(t)
	var commits atomic.Int64
	var other *store.Store
	h := harnessAt(t, path, func(error) {
		if commits.Add(1)%50 == 0 && other != nil { // the lock is free now: a write of another process does not wait
			if err := other.Write(t.Context(), func(tx *store.Tx) error { return tx.EnsureChat("telegram:9", 1) }); err != nil {
				t.Error(err)
			}
		}
	})
	due := h.now.UnixMilli()
	h.write(func(tx *store.Tx) error {
		if err := tx.EnsureChat(chatJID, 1); err != nil {
			return err
		}
		for i := range int64(count) {
			r := msg.Reminder{Folder: "main", ChatJID: chatJID, Kind: msg.ReminderText, Body: "stand up", TimeZone: "UTC", Missed: msg.MissedOne}
			if i%(count/prompts) == 0 {
				r.Kind = msg.ReminderPrompt
			}
			r.DueAt = due + i*7919%count // no order but that of the slots
			r.NextSlot = r.DueAt
			if err := rows.PutReminder(tx, &r); err != nil {
				return err
			}
		}
		return nil
	})
	h.now = h.now.Add(time.Hour)
	other = storetest.OpenAt(t, path, nil)
	commits.Store(0)
	pages := 0
	for wait := time.Duration(0); wait == 0; pages++ {
		var err error
		if wait, err = h.s.fireDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pages-- // the last call found none
	if want := (count + page - 1) / page; pages != want || commits.Load() != int64(want) {
		t.Errorf("%d pages in %d commits, want %d of at most %d reminders", pages, commits.Load(), want, page)
	}
	fired := firedSlots(t, path)
	seen := map[int64]bool{}
	for i, f := range fired {
		if seen[f.reminder] || f.message == 0 || i > 0 && f.slot < fired[i-1].slot {
			t.Fatalf("slot %d of reminder %d is out of order, or fired twice, or made no message", f.slot, f.reminder)
		}
		seen[f.reminder] = true
	}
	turns := map[int64]bool{}
	for _, turn := range h.turns() {
		turns[turn.ID] = true
	}
	if len(fired) != count || len(h.turns()) != prompts || len(turns) != prompts {
		t.Errorf("%d of %d reminders fired; %d turns dispatched, %d of them different, want %d", len(fired), count, len(h.turns()), len(turns), prompts)
	}
}
