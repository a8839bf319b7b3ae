package rows_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	adapterrows "arizuko/pkg/adapter/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestRuns(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	if got := storetest.Turn(t, s, first.ID); got.State != msg.TurnRunning || got.RunID != run.ID || got.StartedAt != run.StartedAt {
		t.Errorf("its turn: %+v", got)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.RecordProcess(tx, run.ID, 4321, 99, "label") })
	run.PID, run.PIDStart, run.Label = 4321, 99, "label"
	differ(t, "unended", storetest.Must(factrows.UnendedRuns(t.Context(), s.Reader))(t), []*msg.Run{run})
	if !storetest.Must(rows.RunIsLive(t.Context(), s.Reader, run.ID))(t) || storetest.Must(rows.RunIsLive(t.Context(), s.Reader, 4711))(t) {
		t.Error("the run is not live, or a run that does not exist is")
	}

	for _, now := range []int64{400, 500} { // closed once and for all
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.CloseRun(tx, run.ID, now) })
	}
	run.ClosedAt = 400
	differ(t, "closed, process running", storetest.Must(factrows.UnendedRuns(t.Context(), s.Reader))(t), []*msg.Run{run})
	if storetest.Must(rows.RunIsLive(t.Context(), s.Reader, run.ID))(t) {
		t.Error("closed and live")
	}
	for now, problem := range []string{"broke", ""} { // ended once and for all
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndRun(tx, run.ID, problem, 600+int64(now)) })
	}
	if got := storetest.Value[int64](t, s, `SELECT ended_at FROM runs WHERE id = ?`, run.ID); got != 600 {
		t.Errorf("ended at %d", got)
	}
	if got := storetest.Must(factrows.UnendedRuns(t.Context(), s.Reader))(t); len(got) != 0 {
		t.Errorf("ended: %+v", got)
	}
	want := []rows.PastSession{{StartedAt: 200, EndedAt: 600, Result: "error", Error: "broke"}}
	differ(t, "log", storetest.Must(rows.PastSessions(t.Context(), s.Reader, storetest.Folder, "", run.ID+1, 5))(t), want)
}

func TestStartRun_SecondOfATopic_IsRefused(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first, second := gatedtest.Queued(t, s), gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	start := func(turnID int64, topic string) error {
		return s.Write(t.Context(), func(tx *store.Tx) error {
			return rows.StartRun(tx, &msg.Run{Folder: storetest.Folder, Topic: topic, ChatJID: storetest.Chat, Runtime: "process", StartedAt: 300}, turnID)
		})
	}
	if err := start(second.ID, ""); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a second run of the topic: %v", err)
	}
	if err := start(first.ID, "#other"); !errors.Is(err, store.ErrStale) {
		t.Errorf("a run for a running turn: %v", err)
	}
	if err := start(second.ID, "#other"); err != nil {
		t.Errorf("a run of another topic: %v", err)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CloseRun(tx, run.ID, 400) })
	third := gatedtest.Queued(t, s)
	if err := start(third.ID, ""); err != nil {
		t.Errorf("a run after the last was closed: %v", err)
	}
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM runs`); n != 3 {
		t.Errorf("%d runs", n)
	}
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM session_log`); n != 3 {
		t.Errorf("%d log entries", n)
	}
}

func TestTakeTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	next := gatedtest.Queued(t, s)
	take := func(id, runID int64) func(*store.Tx) error {
		return func(tx *store.Tx) error { return rows.TakeTurn(tx, id, runID, 250) }
	}
	storetest.Write(t, s, take(next.ID, run.ID))
	if got := storetest.Turn(t, s, next.ID); got.State != msg.TurnRunning || got.RunID != run.ID || got.StartedAt != 250 {
		t.Errorf("%+v", got)
	}
	other := gatedtest.Queued(t, s)
	refused(t, s, "no such run", take(other.ID, 4711))
	retried := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.RequeueTurn(tx, retried.ID, rows.Requeue{Attempt: true}) })
	refused(t, s, "it is retried alone", take(retried.ID, run.ID))
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.DrainRun(tx, run.ID) })
	refused(t, s, "the run drains", take(other.ID, run.ID))
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CloseRun(tx, run.ID, 300) })
	refused(t, s, "closed run", take(other.ID, run.ID))
	differ(t, "a refusal changed the turn", storetest.Turn(t, s, other.ID), other)
}

func TestDrainIdleRun(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	drain := func() (drained bool) {
		t.Helper()
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			drained, err = rows.DrainIdleRun(tx, run.ID)
			return err
		})
		return drained
	}
	if drain() {
		t.Error("a run with a turn drains")
	}
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, first, "ok"), 300)
	if !drain() {
		t.Error("an idle run does not drain")
	}
	if got := gatedtest.Piped(t, s, run); got.State != msg.TurnQueued {
		t.Errorf("a draining run took turn %+v", got)
	}
}

func TestFreeSlot_RunThatWaitsForAnAnswer_UsesNone(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	_, turn := working(t, s)
	free := func() (ok bool) {
		storetest.Write(t, s, func(tx *store.Tx) (err error) { ok, err = rows.FreeSlot(tx, 1); return err })
		return ok
	}
	if free() {
		t.Error("the busy run uses no slot")
	}
	a := asked(t, s, turn, permission(), 1000)
	if !free() {
		t.Error("the run that waits for an answer uses a slot")
	}
	showAsk(t, s, a.MessageID, "77")
	if err := answered(s, t, a.ID, 2, 2000); err != nil {
		t.Fatal(err)
	}
	if free() {
		t.Error("the run that has its answer uses no slot")
	}
}

func TestRunsDuring(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	// run starts a run at 10·n and ends it 5 later, with an error where n is odd.
	run := func(n int64) int64 {
		turn := gatedtest.Queued(t, s)
		r := &msg.Run{Folder: turn.Folder, Topic: turn.Topic, ChatJID: turn.ChatJID, Runtime: "process", StartedAt: 10 * n}
		storetest.Write(t, s, func(tx *store.Tx) error {
			if err := rows.StartRun(tx, r, turn.ID); err != nil {
				return err
			}
			return rows.EndRun(tx, r.ID, strings.Repeat("x", int(n%2)), 10*n+5)
		})
		return r.ID
	}
	ids := []int64{run(1), run(2), run(3), run(4)}
	for _, tt := range []struct {
		name        string
		folder      string
		from, until int64
		limit       int
		want        []int64
	}{
		{"all", storetest.Folder, 0, 100, 9, ids},
		{"those within", storetest.Folder, 20, 35, 9, ids[1:3]},
		{"those that reach into it", storetest.Folder, 15, 30, 9, ids[:3]},
		{"the newest", storetest.Folder, 0, 100, 2, ids[2:]},
		{"another folder's", "other", 0, 100, 9, nil},
	} {
		var got []int64
		for _, r := range storetest.Must(factrows.RunsDuring(t.Context(), s.Reader, tt.folder, "", tt.from, tt.until, tt.limit))(t) {
			got = append(got, r.ID)
			if failed := r.StartedAt/10%2 == 1; failed != (r.Result == "error" && r.Error == "x") {
				t.Errorf("%s: run %d is %q, %q", tt.name, r.ID, r.Result, r.Error)
			}
		}
		differ(t, tt.name, got, tt.want)
	}
}

func TestActiveLanes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if lanes := storetest.Must(adapterrows.ActiveLanes(t.Context(), s.Reader, "telegram"))(t); lanes != nil {
		t.Errorf("in an empty table: %v", lanes)
	}
	in := func(chatJID, thread, topic string) func(*msg.Turn) {
		return func(turn *msg.Turn) { turn.ChatJID, turn.ThreadID, turn.Topic = chatJID, thread, topic }
	}
	var runs []*msg.Run
	var turns []*msg.Turn
	for i, set := range []func(*msg.Turn){
		in("telegram:1", "", "#a"), in("telegram:1", "7", "#b"), in("telegram:1", "7", "#c"), in("telegram:-1", "", "#d"),
		in("telegrams:1", "", "#e"), in("tele:gram", "", "#g"), in("web:telegram:1", "", "#h"),
	} {
		turns = append(turns, gatedtest.Queued(t, s, set))
		runs = append(runs, gatedtest.Begun(t, s, turns[i]))
	}
	gatedtest.Queued(t, s, in("telegram:2", "", "#i"))  // not started yet
	gatedtest.Queued(t, s, in("telegram:-1", "", "#d")) // after the one that runs
	expect := func(want ...store.Lane) {
		t.Helper()
		got := storetest.Must(adapterrows.ActiveLanes(t.Context(), s.Reader, "telegram"))(t)
		slices.SortFunc(got, func(a, b store.Lane) int {
			return strings.Compare(a.ChatJID+" "+a.ThreadID, b.ChatJID+" "+b.ThreadID)
		})
		differ(t, "got", got, want)
	}
	expect(store.Lane{ChatJID: "telegram:-1"}, store.Lane{ChatJID: "telegram:1"}, store.Lane{ChatJID: "telegram:1", ThreadID: "7"})
	gatedtest.StoreReply(t, s, gatedtest.Answer(runs[0], turns[0], "done"), 300)
	gatedtest.StoreReply(t, s, gatedtest.Answer(runs[1], turns[1], "done"), 300)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, turns[3].ID, msg.ReasonCancelled, 300) })
	expect(store.Lane{ChatJID: "telegram:1", ThreadID: "7"}) // the other turn of it
}
