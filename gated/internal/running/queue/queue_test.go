package queue

import (
	"fmt"
	"testing"
	"time"

	"arizuko/pkg/msg"
)

func TestPipe_FollowingTurns(t *testing.T) {
	f := newFixture(2)
	expect(t, "first", f.push(turn(1, alice)), starts(turn(1, alice)))
	expect(t, "while it starts", f.push(turn(2, alice)), none)
	expect(t, "it gets the next turn once it has answered", f.started(turn(1, alice), 10), none)
	expect(t, "unless it takes turns in", f.Folds(10, true), pipes(10, turn(2, alice)))
	expect(t, "one at a time", f.push(turn(3, alice)), none)
	expect(t, "taken", f.took(10, turn(2, alice), 2), pipes(10, turn(3, alice)))
	expect(t, "all taken", f.took(10, turn(3, alice), 3), none)
	expect(t, "all answered", f.Holds(10, 0), none)
	expect(t, "to the warm run", f.push(turn(4, alice)), pipes(10, turn(4, alice)))
}

func TestPipe_OtherAddresses_AreQueued(t *testing.T) {
	threaded := alice
	threaded.ThreadID = "t1"
	tests := []struct {
		name        string
		first, next Turn
	}{
		{"another chat", turn(1, alice), turn(2, bob)},
		{"another topic", turn(1, alice), turn(2, at("main", "telegram:1", "#x"))},
		{"another thread", turn(1, alice), turn(2, threaded)},
		{"one that runs alone", turn(1, alice), alone(turn(2, alice))},
		{"both alone", alone(turn(1, alice)), alone(turn(2, alice))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(5)
			f.run(tt.first, 10)
			expect(t, "push", f.push(tt.next), none)
			expect(t, "answered", f.Holds(10, 0), closes(10))
			expect(t, "exited", f.exited(10), starts(tt.next))
		})
	}
}

// TestPipe_RunRetriesTurn_AfterItsAnswer: no other turn shares the run of one that is retried.
func TestPipe_RunRetriesTurn_AfterItsAnswer(t *testing.T) {
	f := newFixture(5)
	f.run(alone(turn(1, alice)), 10)
	expect(t, "beside it", f.push(turn(2, alice)), none)
	if _, ok := f.Next(10, 1); ok {
		t.Error("it takes the next turn with its answer")
	}
	expect(t, "answered", f.Holds(10, 0), pipes(10, turn(2, alice)))
}

func TestPipe_IsBounded(t *testing.T) {
	f := newFixture(1)
	f.run(turn(1, alice), 10)
	f.Folds(10, true)
	f.Holds(10, msg.MaxRunTurns)
	next := turn(msg.MaxRunTurns+1, alice)
	expect(t, "at the bound", f.push(next), none)
	expect(t, "room again", f.Holds(10, msg.MaxRunTurns-1), pipes(10, next))
}

func TestPipe_Refused_IsTriedAtNextTick(t *testing.T) {
	f := newFixture(1)
	f.run(turn(1, alice), 10)
	f.Folds(10, true)
	expect(t, "piped", f.push(turn(2, alice)), pipes(10, turn(2, alice)))
	expect(t, "refused", f.Took(10, 1, false), none)
	expect(t, "tick", f.Tick(idleFor(time.Hour)), pipes(10, turn(2, alice)))
}

func TestNext_RunTakesTurnWithItsAnswer(t *testing.T) {
	f := newFixture(1)
	f.run(turn(1, alice), 10)
	f.push(turn(2, alice))
	f.Took(10, 1, false)
	next, ok := f.Next(10, 1)
	if !ok || next.ID != 2 {
		t.Fatalf("next %+v, %t", next, ok)
	}
	if _, again := f.Next(10, 1); again {
		t.Error("a second turn was reserved")
	}
	expect(t, "taken", f.took(10, next, 1), none)
	if f.Busy() != 1 {
		t.Errorf("%d busy", f.Busy())
	}
	if _, ok := f.Next(10, 1); ok {
		t.Error("an empty lane has a next turn")
	}
}

func TestNext_OtherLaneWaits_OnlyWithinTheQuantum(t *testing.T) {
	for _, late := range []bool{false, true} {
		f := newFixture(1)
		f.run(turn(1, alice), 10)
		f.push(turn(2, alice), turn(3, other))
		f.Took(10, 1, false)
		if late {
			f.clock.advance(quantum)
		}
		if _, ok := f.Next(10, 1); ok == late {
			t.Errorf("after the quantum %t: next %t", late, ok)
		}
	}
}

// Additions to a question reach an agent that folds them, although others wait; not for ever.
func TestFolds_OtherLaneWaits_RunTakesMore(t *testing.T) {
	f := newFixture(1)
	f.run(turn(1, alice), 10)
	f.clock.advance(quantum)
	f.push(turn(2, other))
	expect(t, "a run that folds nothing", f.push(turn(3, alice)), none)
	acts, open := f.Folds(10, true), 1
	for id := int64(3); id < 3+maxAhead; id++ {
		expect(t, "a run that folds", acts, pipes(10, turn(id, alice)))
		open++
		expect(t, "taken", f.took(10, turn(id, alice), open), none)
		acts = f.push(turn(id+1, alice))
	}
	expect(t, "enough", acts, none)
}

func TestNext_AfterSeveralAnswers_RunTakesTurn(t *testing.T) {
	f := newFixture(1)
	f.run(turn(1, alice), 10)
	f.push(turn(2, alice))
	f.took(10, turn(2, alice), 2)
	f.push(turn(3, alice))
	f.Took(10, 2, false)
	if _, ok := f.Next(10, 1); ok {
		t.Error("a turn for a run that has another one")
	}
	if next, ok := f.Next(10, 2); !ok || next.ID != 3 {
		t.Errorf("got %+v, %v", next, ok)
	}
}

func TestLanes(t *testing.T) {
	web := func(topic string) Turn { return turn(2, at("main", "web:main", topic)) }
	tests := []struct {
		name     string
		a, b     Turn
		parallel bool
	}{
		{"two groups", turn(1, alice), turn(2, other), true},
		{"two chats of a group", turn(1, alice), turn(2, bob), false},
		{"web topics", turn(1, at("main", "web:main", "#a")), web("#b"), true},
		{"web and chat, two sessions", turn(1, alice), web("#a"), true},
		{"web and chat, one session", turn(1, alice), web(""), false},
		{"delegated web turns wait with the chats", turn(1, alice), alone(web("#d2")), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(5)
			want := starts(tt.a)
			if tt.parallel {
				want = starts(tt.a, tt.b)
			}
			got := f.push(tt.a)
			got.Start = append(got.Start, f.push(tt.b).Start...)
			expect(t, "push", got, want)
		})
	}
}

func TestSession_HasOneRun(t *testing.T) {
	web := at("main", "web:main", "")
	f := newFixture(5)
	f.run(turn(1, alice), 10)
	expect(t, "the session is taken", f.push(turn(2, web)), none)
	expect(t, "its run gets no more", f.push(turn(3, alice)), none)
	expect(t, "answered", f.Holds(10, 0), closes(10))
	expect(t, "the waiting lane is first", f.exited(10), starts(turn(2, web)))
	expect(t, "started", f.started(turn(2, web), 11), none)
	expect(t, "and the other comes next", f.Holds(11, 0), closes(11))
	expect(t, "exited", f.exited(11), starts(turn(3, alice)))
}

func TestSession_StartFailed_IsFree(t *testing.T) {
	web := at("main", "web:main", "")
	f := newFixture(5)
	f.push(turn(1, alice))
	expect(t, "taken", f.push(turn(2, web)), none)
	f.rows.remove(1)
	expect(t, "free", f.StartFailed(turn(1, alice), 0), starts(turn(2, web)))
}

func TestIdle_RunsMakeRoom(t *testing.T) {
	t.Run("in their lane", func(t *testing.T) {
		f := newFixture(5)
		f.run(turn(1, alice), 10)
		expect(t, "idle and warm", f.Holds(10, 0), none)
		expect(t, "another chat", f.push(turn(2, bob)), closes(10))
		expect(t, "exited", f.exited(10), starts(turn(2, bob)))
	})
	t.Run("when every place is taken", func(t *testing.T) {
		f := newFixture(1)
		f.run(turn(1, alice), 10)
		f.Holds(10, 0)
		expect(t, "a warm run counts for nothing", f.push(turn(2, other)), starts(turn(2, other)))
		expect(t, "but one process too many is closed", f.started(turn(2, other), 11), closes(10))
	})
	t.Run("after a while", func(t *testing.T) {
		f := newFixture(5)
		f.run(turn(1, alice), 10)
		f.clock.advance(time.Hour)
		expect(t, "busy", f.Tick(idleFor(time.Minute)), none)
		f.Holds(10, 0)
		f.clock.advance(59 * time.Second)
		expect(t, "warm", f.Tick(idleFor(time.Minute)), none)
		f.clock.advance(time.Second)
		expect(t, "cold", f.Tick(idleFor(time.Minute)), closes(10))
		expect(t, "once", f.Tick(idleFor(time.Minute)), none)
		expect(t, "a closing run takes nothing", f.push(turn(2, alice)), none)
		expect(t, "exited", f.exited(10), starts(turn(2, alice)))
	})
}

// TestKept_ClosedRunHasTurn_GoesOn: a turn was stored for the run before it could be
// closed.
func TestKept_ClosedRunHasTurn_GoesOn(t *testing.T) {
	f := newFixture(5)
	f.run(turn(1, alice), 10)
	f.Holds(10, 0)
	expect(t, "another chat", f.push(turn(2, bob)), closes(10))
	f.Holds(10, 1)
	expect(t, "kept", f.Kept(10), none)
	expect(t, "answered", f.Holds(10, 0), closes(10))
}

func TestBackoff(t *testing.T) {
	f := newFixture(5)
	held := turn(1, alice)
	expect(t, "in backoff", f.later(held, time.Second), none)
	expect(t, "newer ones of its conversation wait", f.push(turn(2, alice)), none)
	expect(t, "others go on", f.push(turn(3, bob)), starts(turn(3, bob)))
	expect(t, "started", f.started(turn(3, bob), 10), none)
	f.clock.advance(time.Second)
	expect(t, "the lane is busy", f.Tick(idleFor(time.Hour)), none)
	expect(t, "answered", f.Holds(10, 0), closes(10))
	expect(t, "over", f.exited(10), starts(held))
	expect(t, "in order", f.started(held, 11), none)
	expect(t, "the next", f.Holds(11, 0), pipes(11, turn(2, alice)))
}

// TestStored_BacklogIsBlocked_ReadsEachTurnOnce: a new turn costs one look at the
// new ones, however many turns wait.
func TestStored_BacklogIsBlocked_ReadsEachTurnOnce(t *testing.T) {
	f := newFixture(5)
	f.later(turn(1, alice), time.Hour)
	for id := int64(2); id <= 10; id++ {
		f.push(turn(id, alice))
		if l := f.lanes["main"]; l.through != id {
			t.Fatalf("looked through turn %d, want %d", l.through, id)
		}
	}
	reads := f.rows.reads
	for range 10 {
		f.Tick(idleFor(time.Hour))
	}
	if f.rows.reads != reads {
		t.Errorf("%d reads without a change", f.rows.reads-reads)
	}
	f.rows.remove(1)
	expect(t, "cancelled", f.Changed("main"), starts(turn(2, alice)))
}

func TestStartFailed_LaneIsPaused(t *testing.T) {
	f := newFixture(5)
	soon := f.clock.now.Add(time.Minute).UnixMilli()
	expect(t, "push", f.push(turn(1, alice)), starts(turn(1, alice)))
	expect(t, "paused", f.StartFailed(turn(1, alice), soon), none)
	expect(t, "another chat of the lane", f.push(turn(2, bob)), none)
	expect(t, "another group", f.push(turn(3, other)), starts(turn(3, other)))
	expect(t, "too early", f.Tick(idleFor(time.Hour)), none)
	expect(t, "resumed", f.Resume("main"), starts(turn(1, alice)))
	expect(t, "paused again", f.StartFailed(turn(1, alice), soon), none)
	f.clock.advance(time.Minute)
	expect(t, "over", f.Tick(idleFor(time.Hour)), starts(turn(1, alice)))
}

// TestTick_ClockSetBack_WaitsAreOver: times by the old clock are in a far future.
func TestTick_ClockSetBack_WaitsAreOver(t *testing.T) {
	f := newFixture(5)
	f.clock.advance(72 * time.Hour)
	expect(t, "in backoff", f.later(turn(1, alice), time.Minute), none)
	f.clock.advance(-24 * time.Hour)
	f.rows.until[1] = 0 // as the rows decide too
	expect(t, "over", f.Tick(idleFor(time.Hour)), starts(turn(1, alice)))
	expect(t, "paused", f.StartFailed(turn(1, alice), f.clock.now.Add(time.Minute).UnixMilli()), none)
	f.clock.advance(-24 * time.Hour)
	expect(t, "the pause is over", f.Tick(idleFor(time.Hour)), starts(turn(1, alice)))
}

func TestExited_TurnsLeft_ComeBeforeNewerOnes(t *testing.T) {
	f := newFixture(5)
	f.run(turn(1, alice), 10)
	f.Drain(10)
	expect(t, "newer", f.push(turn(2, alice)), none)
	left := turn(1, alice)
	f.rows.until[1] = f.clock.now.Add(time.Second).UnixMilli()
	expect(t, "exited", f.exited(10, left), none)
	f.clock.advance(time.Second)
	expect(t, "backoff over", f.Tick(idleFor(time.Hour)), starts(left))
	expect(t, "started", f.started(left, 11), none)
	expect(t, "answered", f.Holds(11, 0), pipes(11, turn(2, alice)))
}

// TestQuantum_OtherLaneWaits_PlaceIsGivenUpAfterIt: a lane keeps its agent within
// the quantum although another lane waits, and no longer.
func TestQuantum_OtherLaneWaits_PlaceIsGivenUpAfterIt(t *testing.T) {
	f := newFixture(1)
	f.run(turn(1, alice), 10)
	f.Folds(10, true)
	f.push(turn(2, other))
	expect(t, "piped while at work", f.push(turn(3, alice)), pipes(10, turn(3, alice)))
	f.took(10, turn(3, alice), 2)
	expect(t, "another chat of the lane is not", f.push(turn(4, bob)), none)
	f.clock.advance(quantum)
	expect(t, "nor anything after it", f.push(turn(5, alice)), none)
	expect(t, "the last answer", f.Holds(10, 0), Actions{Start: []Turn{turn(2, other)}, Close: []int64{10}})
}

// TestHolds_TurnWasStoredForRun_IsCounted: the rows give a turn to a run before the
// queue knows.
func TestHolds_TurnWasStoredForRun_IsCounted(t *testing.T) {
	f := newFixture(1)
	f.run(turn(1, alice), 10)
	f.Holds(10, 0)
	expect(t, "stored for the run", f.Holds(10, 1), none)
	expect(t, "the only place is taken again", f.push(turn(2, other)), none)
	if f.Busy() != 1 {
		t.Errorf("%d busy", f.Busy())
	}
	expect(t, "answered", f.Holds(10, 0), Actions{Start: []Turn{turn(2, other)}})
}

func TestDrain(t *testing.T) {
	f := newFixture(5)
	f.run(turn(1, alice), 10)
	f.Drain(10)
	expect(t, "queued", f.push(turn(2, alice)), none)
	expect(t, "its owner closes it", f.Holds(10, 0), none)
	expect(t, "exited", f.exited(10), starts(turn(2, alice)))
	f.Drain(99) // of no run
}

func TestChanged_QueuedTurnIsCancelled(t *testing.T) {
	t.Run("waiting", func(t *testing.T) {
		f := newFixture(1)
		f.push(turn(1, alice))
		f.push(turn(2, bob), turn(3, other))
		f.rows.remove(2)
		expect(t, "removed", f.Changed("main"), none)
		f.started(turn(1, alice), 10)
		expect(t, "the other is next", f.Holds(10, 0), Actions{Start: []Turn{turn(3, other)}})
	})
	t.Run("a lane that waits for a place keeps it", func(t *testing.T) {
		f := newFixture(1)
		f.run(turn(1, other), 10)
		f.push(turn(2, alice))
		f.rows.remove(2)
		f.Changed("main")
		f.push(turn(3, alice), turn(4, bob))
		expect(t, "place", f.Holds(10, 0), Actions{Start: []Turn{turn(3, alice)}})
		expect(t, "exit of the other", f.exited(10), none)
		f.started(turn(3, alice), 11)
		expect(t, "answered", f.Holds(11, 0), closes(11))
		expect(t, "exited", f.exited(11), starts(turn(4, bob)))
	})
}

func TestLateReports_AreIgnored(t *testing.T) {
	f := newFixture(1)
	f.run(turn(1, alice), 10)
	f.exited(10)
	expect(t, "holds", f.Holds(10, 1), none)
	expect(t, "took", f.Took(10, 1, true), none)
	expect(t, "kept", f.Kept(10), none)
	expect(t, "exited", f.exited(10), none)
	if f.Busy() != 0 || len(f.lanes) != 0 {
		t.Errorf("%d busy, lanes %v", f.Busy(), f.lanes)
	}
}

// failingRows cannot be read for some time.
type failingRows struct {
	*fakeRows
	down   bool
	panics bool // while it is down
}

func (f *failingRows) Next(lane string, after, now int64) (Next, error) {
	if f.down {
		f.reads++
		if f.panics {
			panic("index out of range")
		}
		return Next{}, fmt.Errorf("disk I/O error")
	}
	return f.fakeRows.Next(lane, after, now)
}

func TestRows_CannotBeRead_AreReadLater(t *testing.T) {
	c := newClock()
	rows := &failingRows{fakeRows: newFakeRows(), down: true}
	q := &fixture{New(1, c.time, rows), rows.fakeRows, c}
	rows.put(turn(1, alice))
	expect(t, "down", q.Stored("main"), none)
	reads := rows.reads
	expect(t, "not at every tick", q.Tick(idleFor(time.Hour)), none)
	if rows.reads != reads {
		t.Errorf("read %d times more", rows.reads-reads)
	}
	rows.down = false
	c.advance(readRetry)
	expect(t, "up", q.Tick(idleFor(time.Hour)), starts(turn(1, alice)))
}

// TestFairness_OneGroupFloods_OthersStart: one group always has more turns. Every
// other lane's turn starts before the group has had more than one turn per place.
func TestFairness_OneGroupFloods_OthersStart(t *testing.T) {
	for _, tt := range []struct {
		name  string
		chats int // of the flooding group; with one its turns would be piped
		limit int
	}{{"one chat, one place", 1, 1}, {"many chats, one place", 50, 1}, {"one chat, three places", 1, 3}, {"many chats, three places", 50, 3}} {
		t.Run(tt.name, func(t *testing.T) {
			w := newModel(t, tt.limit)
			flood := func() Turn {
				return turn(0, at("flood", fmt.Sprintf("telegram:%d", w.nextTurn%int64(tt.chats)), ""))
			}
			for range 100 {
				w.push(flood())
			}
			var quiet []int64
			for i := range 7 {
				quiet = append(quiet, w.push(turn(0, at(fmt.Sprintf("quiet%d", i), "telegram:9", ""))))
			}
			begun := len(w.begun)
			for rounds := 0; !w.allBegun(quiet); rounds++ {
				if rounds > 50 {
					t.Fatal("the quiet groups never had their turn")
				}
				w.push(flood())
				w.obey()
				w.clock.advance(quantum)
				w.answerAll()
				w.obey()
				w.exitAll()
			}
			floods := 0
			for _, id := range w.begun[begun:] {
				if w.turns[id].Folder == "flood" {
					floods++
				}
			}
			if most := msg.MaxRunTurns + len(quiet); floods > most {
				t.Errorf("the flood had %d turns, want at most %d, before 7 others had one", floods, most)
			}
		})
	}
}

// BenchmarkWaiting has five places for 500 lanes with turns.
func BenchmarkWaiting(b *testing.B) {
	const lanes, limit = 500, 5
	f := newFixture(limit)
	lane := func(id int64) Turn { return turn(id, at(fmt.Sprintf("group%d", id%lanes), "telegram:1", "")) }
	var pending []Turn
	id := int64(0)
	for ; id < lanes; id++ {
		pending = append(pending, f.push(lane(id)).Start...)
	}
	b.ReportAllocs()
	for b.Loop() {
		t := pending[0]
		pending = append(pending[1:], f.started(t, t.ID+1).Start...)
		pending = append(pending, f.Holds(t.ID+1, 0).Start...)
		pending = append(pending, f.exited(t.ID+1).Start...)
		pending = append(pending, f.push(lane(id)).Start...)
		id++
	}
}

// Changes of a lane cost it no place, however often they come.
func TestRing_LaneChanges_KeepsItsPlace(t *testing.T) {
	f := newFixture(1)
	f.run(turn(1, at("g0", "telegram:0", "")), 1)
	old := turn(2, at("old", "telegram:9", ""))
	f.push(old)
	f.Changed("old")
	f.push(turn(3, at("g3", "telegram:3", "")))
	f.Changed("old", "g3")
	expect(t, "the oldest", f.exited(1), starts(old))
}

// A free slot needs the turns of the first lane alone.
func TestRing_ManyLanesChange_FirstIsRead(t *testing.T) {
	f := newFixture(1)
	f.run(turn(1, at("g0", "telegram:0", "")), 1)
	var lanes []string
	for id := int64(2); id < 302; id++ {
		waits := turn(id, at(fmt.Sprintf("g%d", id), fmt.Sprintf("telegram:%d", id), ""))
		f.push(waits)
		lanes = append(lanes, waits.Lane)
	}
	f.Changed(lanes...)
	before := f.rows.reads
	f.exited(1)
	if reads := f.rows.reads - before; reads > 2 {
		t.Errorf("%d lanes were read for a slot", reads)
	}
}

func TestSearch_Panics_IsRepeated(t *testing.T) {
	c := newClock()
	rows := &failingRows{fakeRows: newFakeRows(), down: true}
	rows.panics = true
	q := &fixture{New(1, c.time, rows), rows.fakeRows, c}
	rows.put(turn(1, alice))
	expect(t, "panic", q.Stored("main"), none)
	rows.down = false
	c.advance(readRetry)
	expect(t, "later", q.Tick(idleFor(time.Hour)), starts(turn(1, alice)))
}
