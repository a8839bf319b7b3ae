package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// clock is the time of a test, moved by hand.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.UnixMilli(1_000_000)} }

func (c *clock) time() time.Time { return c.now }

func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

func at(folder, chat, topic string) Key { return Key{Folder: folder, ChatJID: chat, Topic: topic} }

func turn(id int64, k Key) Turn { return Turn{ID: id, Key: k} }

func later(t Turn, backoff time.Duration) Turn {
	t.Backoff = backoff
	return t
}

func alone(t Turn) Turn {
	t.Alone = true
	return t
}

func expect(t *testing.T, what string, got, want Actions) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func starts(all ...Turn) Actions { return Actions{Start: all} }

func pipes(run int64, all ...Turn) (a Actions) {
	for _, t := range all {
		a.Pipe = append(a.Pipe, Piped{run, t})
	}
	return a
}

func closes(runs ...int64) Actions { return Actions{Close: runs} }

var none Actions

var (
	alice = at("main", "telegram:1", "")
	bob   = at("main", "telegram:2", "")
	other = at("other", "telegram:3", "")
)

func TestPipe_FollowingTurns(t *testing.T) {
	q := New(2, newClock().time)
	expect(t, "first", q.Push(turn(1, alice)), starts(turn(1, alice)))
	expect(t, "while it starts", q.Push(turn(2, alice)), none)
	expect(t, "started", q.Started(turn(1, alice), 10), pipes(10, turn(2, alice)))
	expect(t, "live", q.Push(turn(3, alice)), pipes(10, turn(3, alice)))
	expect(t, "all answered", q.Answered(10, 3), none)
	if run := q.Offer(alice); run != 10 {
		t.Errorf("a warm run was not offered: %d", run)
	}
}

func TestPipe_OtherKeys_AreQueued(t *testing.T) {
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
		{"after one that runs alone", alone(turn(1, alice)), turn(2, alice)},
		{"both alone", alone(turn(1, alice)), alone(turn(2, alice))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := New(5, newClock().time)
			q.Push(tt.first)
			q.Started(tt.first, 10)
			expect(t, "push", q.Push(tt.next), none)
			if !tt.next.Alone {
				if run := q.Offer(tt.next.Key); run != 0 {
					t.Errorf("offered run %d", run)
				}
			}
			expect(t, "answered", q.Answered(10, 1), closes(10))
			expect(t, "exited", q.Exited(10), starts(tt.next))
		})
	}
}

func TestPipe_IsBounded(t *testing.T) {
	q := New(1, newClock().time)
	q.Push(turn(1, alice))
	q.Started(turn(1, alice), 10)
	for id := int64(2); id <= maxPiped; id++ {
		expect(t, "below the bound", q.Push(turn(id, alice)), pipes(10, turn(id, alice)))
	}
	next := turn(maxPiped+1, alice)
	expect(t, "at the bound", q.Push(next), none)
	if run := q.Offer(alice); run != 0 {
		t.Errorf("offered run %d past the bound", run)
	}
	expect(t, "room again", q.Answered(10, 1), pipes(10, next))
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
			q := New(5, newClock().time)
			want := starts(tt.a)
			if tt.parallel {
				want = starts(tt.a, tt.b)
			}
			got := q.Push(tt.a)
			got.Start = append(got.Start, q.Push(tt.b).Start...)
			expect(t, "push", got, want)
		})
	}
}

func TestSession_HasOneRun(t *testing.T) {
	web := at("main", "web:main", "")
	q := New(5, newClock().time)
	q.Push(turn(1, alice))
	q.Started(turn(1, alice), 10)
	expect(t, "the session is taken", q.Push(turn(2, web)), none)
	expect(t, "its run gets no more", q.Push(turn(3, alice)), none)
	if run := q.Offer(alice); run != 0 {
		t.Errorf("offered run %d while the web chat waits for its session", run)
	}
	expect(t, "answered", q.Answered(10, 1), closes(10))
	expect(t, "the waiting lane is first", q.Exited(10), starts(turn(2, web)))
	expect(t, "started", q.Started(turn(2, web), 11), none)
	expect(t, "and the other comes next", q.Answered(11, 1), closes(11))
	expect(t, "exited", q.Exited(11), starts(turn(3, alice)))
}

func TestSession_StartFailed_IsFree(t *testing.T) {
	web := at("main", "web:main", "")
	q := New(5, newClock().time)
	q.Push(turn(1, alice))
	expect(t, "taken", q.Push(turn(2, web)), none)
	expect(t, "free", q.StartFailed(turn(1, alice)), starts(turn(2, web)))
}

// idleFor keeps every run warm for the same time.
func idleFor(d time.Duration) func(int64) time.Duration {
	return func(int64) time.Duration { return d }
}

func TestIdle_RunsMakeRoom(t *testing.T) {
	t.Run("in their lane", func(t *testing.T) {
		q := New(5, newClock().time)
		q.Push(turn(1, alice))
		q.Started(turn(1, alice), 10)
		expect(t, "idle and warm", q.Answered(10, 1), none)
		expect(t, "another chat", q.Push(turn(2, bob)), closes(10))
		expect(t, "exited", q.Exited(10), starts(turn(2, bob)))
	})
	t.Run("when every place is taken", func(t *testing.T) {
		c := newClock()
		q := New(1, c.time)
		q.Push(turn(1, alice))
		q.Started(turn(1, alice), 10)
		q.Answered(10, 1)
		expect(t, "a warm run counts for nothing", q.Push(turn(2, other)), starts(turn(2, other)))
		expect(t, "but one process too many is closed", q.Started(turn(2, other), 11), closes(10))
	})
	t.Run("after a while", func(t *testing.T) {
		c := newClock()
		q := New(5, c.time)
		q.Push(turn(1, alice))
		q.Started(turn(1, alice), 10)
		c.advance(time.Hour)
		expect(t, "busy", q.Tick(idleFor(time.Minute)), none)
		q.Answered(10, 1)
		c.advance(59 * time.Second)
		expect(t, "warm", q.Tick(idleFor(time.Minute)), none)
		c.advance(time.Second)
		expect(t, "cold", q.Tick(idleFor(time.Minute)), closes(10))
		expect(t, "once", q.Tick(idleFor(time.Minute)), none)
		expect(t, "a closing run takes nothing", q.Push(turn(2, alice)), none)
		expect(t, "exited", q.Exited(10), starts(turn(2, alice)))
	})
}

func TestBackoff(t *testing.T) {
	c := newClock()
	q := New(5, c.time)
	held := later(turn(1, alice), time.Second)
	expect(t, "in backoff", q.Push(held), none)
	expect(t, "newer ones of its conversation wait", q.Push(turn(2, alice)), none)
	expect(t, "others go on", q.Push(turn(3, bob)), starts(turn(3, bob)))
	expect(t, "started", q.Started(turn(3, bob), 10), none)
	c.advance(time.Second)
	expect(t, "the lane is busy", q.Tick(idleFor(time.Hour)), none)
	expect(t, "answered", q.Answered(10, 1), closes(10))
	expect(t, "over", q.Exited(10), starts(held))
	expect(t, "in order", q.Started(held, 11), pipes(11, turn(2, alice)))
}

func TestOffer_TurnInBackoff_None(t *testing.T) {
	c := newClock()
	q := New(5, c.time)
	q.Push(turn(1, alice))
	q.Started(turn(1, alice), 10)
	q.Push(later(turn(2, alice), time.Second))
	if run := q.Offer(alice); run != 0 {
		t.Errorf("offered run %d while an older turn is in backoff", run)
	}
}

func TestExited_TurnsLeft_ComeBeforeNewerOnes(t *testing.T) {
	c := newClock()
	q := New(5, c.time)
	q.Push(turn(1, alice))
	q.Started(turn(1, alice), 10)
	q.Drain(10)
	expect(t, "newer", q.Push(turn(2, alice)), none)
	left := later(turn(1, alice), time.Second)
	expect(t, "exited", q.Exited(10, left), none)
	c.advance(time.Second)
	expect(t, "backoff over", q.Tick(idleFor(time.Hour)), starts(left))
	expect(t, "started", q.Started(left, 11), pipes(11, turn(2, alice)))
}

func TestOffer_OtherLanesWait_None(t *testing.T) {
	tests := []struct {
		name string
		next Turn
	}{
		{"in the same lane", turn(2, bob)},
		{"for a place", turn(2, other)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newClock()
			q := New(1, c.time)
			q.Push(turn(1, alice))
			q.Started(turn(1, alice), 10)
			if run := q.Offer(alice); run != 10 {
				t.Fatalf("offered run %d while no lane waits", run)
			}
			q.Push(tt.next)
			c.advance(quantum)
			if run := q.Offer(alice); run != 0 {
				t.Errorf("offered run %d while turn 2 waits", run)
			}
			expect(t, "nor by the queue", q.Push(turn(3, alice)), none)
		})
	}
}

// TestQuantum_OtherLaneWaits_PlaceIsGivenUpAfterIt: a lane keeps its agent within
// the quantum although another lane waits, and no longer.
func TestQuantum_OtherLaneWaits_PlaceIsGivenUpAfterIt(t *testing.T) {
	c := newClock()
	q := New(1, c.time)
	q.Push(turn(1, alice))
	q.Started(turn(1, alice), 10)
	q.Push(turn(2, other))
	expect(t, "piped while at work", q.Push(turn(3, alice)), pipes(10, turn(3, alice)))
	if run := q.Offer(alice); run != 10 {
		t.Errorf("offered run %d within the quantum", run)
	}
	expect(t, "another chat of the lane is not", q.Push(turn(4, bob)), none)
	c.advance(quantum)
	expect(t, "the last answer", q.Answered(10, 3), Actions{Start: []Turn{turn(2, other)}, Close: []int64{10}})
}

func TestOffer_IsCounted(t *testing.T) {
	q := New(1, newClock().time)
	if run := q.Offer(alice); run != 0 {
		t.Fatalf("offered run %d of an empty queue", run)
	}
	q.Push(turn(1, alice))
	q.Started(turn(1, alice), 10)
	q.Answered(10, 1)
	if run := q.Offer(alice); run != 10 {
		t.Fatalf("offered run %d, want 10", run)
	}
	expect(t, "the only place is taken again", q.Push(turn(2, other)), none)
	if _, busy := q.Depth(); busy != 1 {
		t.Errorf("%d busy", busy)
	}
	expect(t, "withdrawn", q.Answered(10, 1), Actions{Start: []Turn{turn(2, other)}})
	if run := q.Offer(alice); run != 0 {
		t.Errorf("offered run %d with every place taken", run)
	}
}

func TestDrain(t *testing.T) {
	q := New(5, newClock().time)
	q.Push(turn(1, alice))
	q.Started(turn(1, alice), 10)
	q.Drain(10)
	if run := q.Offer(alice); run != 0 {
		t.Errorf("offered retired run %d", run)
	}
	expect(t, "queued", q.Push(turn(2, alice)), none)
	expect(t, "its owner closes it", q.Answered(10, 1), none)
	expect(t, "exited", q.Exited(10), starts(turn(2, alice)))
	q.Drain(99) // of no run
}

func TestRemove(t *testing.T) {
	t.Run("waiting", func(t *testing.T) {
		q := New(1, newClock().time)
		q.Push(turn(1, alice))
		q.Push(turn(2, bob), turn(3, other))
		expect(t, "removed", q.Remove(2), none)
		expect(t, "unknown", q.Remove(77), none)
		q.Started(turn(1, alice), 10)
		expect(t, "the other is next", q.Answered(10, 1), Actions{Start: []Turn{turn(3, other)}})
	})
	t.Run("in backoff", func(t *testing.T) {
		c := newClock()
		q := New(1, c.time)
		q.Push(later(turn(1, alice), time.Second), turn(2, alice))
		expect(t, "frees the next one", q.Remove(1), starts(turn(2, alice)))
	})
	t.Run("a lane that waits for a place keeps it", func(t *testing.T) {
		q := New(1, newClock().time)
		q.Push(turn(1, other))
		q.Started(turn(1, other), 10)
		q.Push(turn(2, alice))
		q.Remove(2)
		q.Push(turn(3, alice), turn(4, bob))
		expect(t, "place", q.Answered(10, 1), Actions{Start: []Turn{turn(3, alice)}})
		expect(t, "exit of the other", q.Exited(10), none)
		q.Started(turn(3, alice), 11)
		expect(t, "answered", q.Answered(11, 1), closes(11))
		expect(t, "exited", q.Exited(11), starts(turn(4, bob)))
	})
}

func TestPush_Twice_QueuesOnce(t *testing.T) {
	q := New(1, newClock().time)
	q.Push(turn(1, other))
	q.Push(turn(2, alice), turn(2, alice))
	if waiting, _ := q.Depth(); waiting != 1 {
		t.Errorf("%d turns wait", waiting)
	}
}

func TestLateReports_AreIgnored(t *testing.T) {
	q := New(1, newClock().time)
	q.Push(turn(1, alice))
	q.Started(turn(1, alice), 10)
	q.Exited(10)
	expect(t, "answered", q.Answered(10, 1), none)
	expect(t, "exited", q.Exited(10), none)
	if waiting, busy := q.Depth(); waiting != 0 || busy != 0 {
		t.Errorf("%d waiting, %d busy", waiting, busy)
	}
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
			flood := func() Key { return at("flood", fmt.Sprintf("telegram:%d", w.nextTurn%int64(tt.chats)), "") }
			for range 100 {
				w.push(flood())
			}
			var quiet []int64
			for i := range 7 {
				quiet = append(quiet, w.push(at(fmt.Sprintf("quiet%d", i), "telegram:9", "")))
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
			if most := maxPiped + len(quiet); floods > most {
				t.Errorf("the flood had %d turns, want at most %d, before 7 others had one", floods, most)
			}
		})
	}
}

func BenchmarkPushAnswered(b *testing.B) {
	const lanes = 500
	q := New(lanes, time.Now)
	keys := make([]Key, lanes)
	for i := range keys {
		keys[i] = at(fmt.Sprintf("group%d", i), fmt.Sprintf("telegram:%d", i), "")
		q.Push(turn(int64(i), keys[i]))
		q.Started(turn(int64(i), keys[i]), int64(i)+1)
		q.Answered(int64(i)+1, 1)
	}
	b.ReportAllocs()
	id := int64(lanes)
	for b.Loop() {
		lane := id % lanes
		q.Push(turn(id, keys[lane]))
		q.Answered(lane+1, 1)
		id++
	}
}

// BenchmarkWaiting has five places for 500 lanes with turns.
func BenchmarkWaiting(b *testing.B) {
	const lanes, limit = 500, 5
	q := New(limit, time.Now)
	lane := func(id int64) Key { return at(fmt.Sprintf("group%d", id%lanes), "telegram:1", "") }
	var pending []Turn
	id := int64(0)
	for ; id < lanes; id++ {
		pending = append(pending, q.Push(turn(id, lane(id))).Start...)
	}
	b.ReportAllocs()
	for b.Loop() {
		t := pending[0]
		pending = append(pending[1:], q.Started(t, t.ID+1).Start...)
		pending = append(pending, q.Answered(t.ID+1, 1).Start...)
		pending = append(pending, q.Exited(t.ID+1).Start...)
		pending = append(pending, q.Push(turn(id, lane(t.ID))).Start...)
		id++
	}
}
