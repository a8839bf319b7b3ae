package store_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// join makes the store's process a process, at a place.
func join(t *testing.T, s *store.Store, daemon, place string) (id int64) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		id, _, err = rows.Join(tx, daemon, place, "127.0.0.1:80", "v1")
		return err
	})
	s.SetProcess(id)
	return id
}

// claim claims a lease for a process.
func claim(t *testing.T, s *store.Store, name string, process int64) (held bool) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		held, err = rows.Claim(tx, name, process)
		return err
	})
	return held
}

// expire makes a process's time pass.
func expire(t *testing.T, path string, process int64) {
	t.Helper()
	storetest.Exec(t, path, `UPDATE processes SET until = 1 WHERE id = ?`, process)
}

func holder(t *testing.T, s *store.Store, name string) int64 {
	t.Helper()
	m := storetest.Must(rows.LeaseHolder(t.Context(), s.Reader, name))(t)
	if m == nil {
		return 0
	}
	return m.ID
}

func TestClaim_HeldByAnother_IsRefusedUntilItsTimeHasPassed(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	a, b := storetest.OpenAt(t, path, nil), storetest.OpenAt(t, path, nil)
	first, second := join(t, a, "teled", "host1"), join(t, b, "teled", "host2")
	if !claim(t, a, "teled", first) || claim(t, b, "teled", second) || !claim(t, a, "teled", first) || holder(t, a, "teled") != first {
		t.Fatal("the lease is not the first one's alone")
	}
	expire(t, path, first)
	if !claim(t, b, "teled", second) || holder(t, a, "teled") != second {
		t.Fatal("not taken over")
	}
	err := a.Write(t.Context(), func(tx *store.Tx) error { return tx.PutCursor("gated", "key", "7") })
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("a write of the former holder: %v", err)
	}
	if got := storetest.Must(b.DaemonCursor(t.Context(), "gated", "key"))(t); got != "" {
		t.Error("it is stored")
	}
}

func TestRenewProcess_LateButNotTakenOver_GoesOn(t *testing.T) {
	onServer(t)
	t.Parallel()
	path := storetest.Path(t)
	s, other := storetest.OpenAt(t, path, nil), storetest.OpenAt(t, path, nil)
	process := join(t, s, "gated", "host1")
	expire(t, path, process)
	if err := s.RenewProcess(t.Context(), process); err != nil {
		t.Fatal(err)
	}
	all := storetest.Must(rows.Processes(t.Context(), s.Reader))(t)
	if len(all) != 1 || all[0].Until-all[0].Since < store.LeaseTime.Milliseconds() {
		t.Errorf("processes %+v", all)
	}
	expire(t, path, process)
	storetest.Write(t, other, func(tx *store.Tx) error { _, err := gatedtest.FenceExpired(tx, "gated", 0); return err })
	if err := s.RenewProcess(t.Context(), process); !errors.Is(err, store.ErrFenced) {
		t.Errorf("once fenced: %v", err)
	}
}

func TestRenewProcess_OthersWrite_DoesNotWait(t *testing.T) {
	onServer(t)
	t.Parallel()
	path := storetest.Path(t)
	s, busy := storetest.OpenAt(t, path, nil), storetest.OpenAt(t, path, nil)
	process := join(t, s, "gated", "host1")
	storetest.Write(t, busy, func(tx *store.Tx) error {
		if err := tx.PutCursor("gated", "key", "7"); err != nil {
			return err
		}
		return s.RenewProcess(t.Context(), process)
	})
}

func TestRenewProcess_File_Unsupported(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Options{Path: storetest.File(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.RenewProcess(t.Context(), 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a file: %v", err)
	}
}

func TestJoin_FormerAtTheSamePlace_IsFenced(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	var former []int64
	first, other := join(t, s, "gated", "host1"), join(t, s, "gated", "host2")
	claim(t, s, "gated", first)
	s.SetProcess(0)
	var second int64
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		second, former, err = rows.Join(tx, "gated", "host1", "127.0.0.1:80", "v1")
		return err
	})
	if diff := cmp.Diff([]int64{first}, former); diff != "" || second <= other {
		t.Errorf("process %d; former ones (-want +got):\n%s", second, diff)
	}
	if holder(t, s, "gated") != 0 || !claim(t, s, "gated", other) {
		t.Error("the lease of the former one is not free")
	}
}

func TestLeaveMember_LeasesAreFree(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	process := join(t, s, "teled", "host1")
	claim(t, s, "teled", process)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.LeaveProcess(tx, process) })
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.PutCursor("gated", "key", "7") }); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a write after it left: %v", err)
	}
	s.SetProcess(0)
	if !claim(t, s, "teled", join(t, s, "teled", "host2")) {
		t.Error("not free")
	}
}

func TestStartRun_FolderOfAnotherMember_IsRefused(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	a, b := storetest.OpenAt(t, path, nil), storetest.OpenAt(t, path, nil)
	first, second := join(t, a, "gated", "host1"), join(t, b, "gated", "host2")
	mine := gatedtest.Queued(t, a)
	run := gatedtest.Begun(t, a, mine)
	if run.Owner != first {
		t.Errorf("owner %d, want %d", run.Owner, first)
	}
	next := gatedtest.Queued(t, a)
	start := func() error {
		return b.Write(t.Context(), func(tx *store.Tx) error {
			return gatedtest.StartRun(tx, &msg.Run{Folder: next.Folder, Topic: "other", ChatJID: next.ChatJID, Runtime: "process", StartedAt: 300}, next.ID)
		})
	}
	if err := start(); !errors.Is(err, store.ErrStale) {
		t.Fatalf("a run beside that of another process: %v", err)
	}
	if owner := storetest.Must(gatedtest.FolderOwner(t.Context(), b.Reader, next.Folder, second))(t); owner != first {
		t.Errorf("the folder is of process %d", owner)
	}
	if gone := storetest.Must(gatedtest.RunsOfGone(t.Context(), b.Reader))(t); len(gone) != 0 {
		t.Errorf("gone: %+v", gone)
	}
	expire(t, path, first)
	var fenced []int64
	storetest.Write(t, b, func(tx *store.Tx) (err error) {
		fenced, err = gatedtest.FenceExpired(tx, "gated", second)
		return err
	})
	gone := storetest.Must(gatedtest.RunsOfGone(t.Context(), b.Reader))(t)
	if len(fenced) != 1 || fenced[0] != first || len(gone) != 1 || gone[0].ID != run.ID {
		t.Fatalf("fenced %v, runs of gone processes %+v", fenced, gone)
	}
	storetest.Write(t, b, func(tx *store.Tx) error { return gatedtest.EndRun(tx, run.ID, "gone", 400) })
	if err := start(); err != nil {
		t.Errorf("after the run has ended: %v", err)
	}
}

// Each gated reports for itself; the row of the daemon is that of the one that decides.
func TestHeartbeat_SeveralProcesses_EachHasARow(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	a, b := storetest.OpenAt(t, path, nil), storetest.OpenAt(t, path, nil)
	first, second := join(t, a, "gated", "host1"), join(t, b, "gated", "host2")
	beat := func(s *store.Store, connection, detail string) {
		t.Helper()
		storetest.Write(t, s, func(tx *store.Tx) error {
			return rows.Heartbeat(tx, rows.Daemon{Name: "gated", Version: "v1", StartedAt: 1, HeartbeatAt: 2, Connection: connection, Detail: detail})
		})
	}
	row := func() string {
		t.Helper()
		all := storetest.Must(rows.Daemons(t.Context(), a.Reader))(t)
		if len(all) != 1 {
			t.Fatalf("daemons %+v", all)
		}
		return all[0].Connection + " " + all[0].Detail
	}
	beat(b, "degraded", "no engine")
	if got := row(); got != "degraded no engine" {
		t.Errorf("while none decides: %q", got)
	}
	claim(t, a, "gated", first)
	beat(a, "connected", "")
	beat(b, "degraded", "still no engine")
	if got := row(); got != "connected " {
		t.Errorf("the row of the daemon: %q", got)
	}
	all := storetest.Must(rows.Processes(t.Context(), a.Reader))(t)
	for i := range all {
		p := &all[i]
		if p.Now < p.Since || p.Now > p.Until || p.Renewed() > p.Now || p.Version != "v1" || (p.Held >= p.Since) != (p.Holds == "gated") {
			t.Errorf("process %+v", p)
		}
		p.Now, p.Since, p.Until, p.Held = 0, 0, 0, 0
	}
	want := []rows.Process{
		{ID: first, Daemon: "gated", Place: "host1", Addr: "127.0.0.1:80", Version: "v1", Connection: "connected", Holds: "gated"},
		{ID: second, Daemon: "gated", Place: "host2", Addr: "127.0.0.1:80", Version: "v1", Connection: "degraded", Detail: "still no engine"},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
	storetest.Write(t, a, func(tx *store.Tx) error { return rows.LeaveProcess(tx, first) })
	claim(t, b, "gated", second)
	beat(b, "connected", "")
	if got := row(); got != "connected " {
		t.Errorf("of the next one that decides: %q", got)
	}
}

// A change of a turn pokes the gated of other machines, and none where there is only one.
func TestPokes_OfTurns_ReachPeers(t *testing.T) {
	t.Parallel()
	var pokes atomic.Int64 // of gated; they come after the answer to the write
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) {
		if daemon == "gated" {
			pokes.Add(1)
		}
	})
	settled := func() int64 { // what the next write finds done
		storetest.Write(t, s, func(*store.Tx) error { return nil })
		return pokes.Load()
	}
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	before := settled()
	storetest.Write(t, s, func(tx *store.Tx) error { return gatedtest.CancelTurn(tx, first.ID, msg.ReasonCancelled, 300) })
	if n := settled() - before; n != 0 {
		t.Errorf("alone: %d pokes", n)
	}
	join(t, s, "gated", "host1")
	for name, change := range map[string]func(tx *store.Tx) error{
		"queued": func(tx *store.Tx) error {
			_, err := gatedtest.PutTurn(tx, &msg.Turn{
				Kind: msg.Conversation, Folder: "f", ChatJID: "telegram:9", Surface: "dm", TriggerMessageID: first.TriggerMessageID, CreatedAt: 1,
			}, 1)
			return err
		},
		"reminded": func(tx *store.Tx) error {
			return gatedtest.PutReminder(tx, &msg.Reminder{Folder: "f", ChatJID: "telegram:9", Kind: msg.ReminderText, Body: "b", DueAt: 5, NextSlot: 5, TimeZone: "UTC", Missed: msg.MissedOne, CreatedBy: "a", CreatedAt: 1})
		},
		"revived": func(tx *store.Tx) error { return gatedtest.ReviveTurn(tx, first.ID) },
		"drained": func(tx *store.Tx) error { return gatedtest.DrainRun(tx, run.ID) },
		"ended":   func(tx *store.Tx) error { return gatedtest.EndRun(tx, run.ID, "", 500) },
	} {
		before := settled()
		storetest.Write(t, s, change)
		if n := settled() - before; n != 1 {
			t.Errorf("%s: %d pokes", name, n)
		}
	}
}
