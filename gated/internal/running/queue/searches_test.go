package queue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// world carries out the actions of a queue in random order, and lets any time pass between a search and its result.
type world struct {
	t       *testing.T
	q       *fixture
	random  *rand.Rand
	starts  []Turn
	reads   []Search
	results []Found
	open    map[int64]int     // the turns of a run
	asks    map[int64]*Search // of runs in Next
	runs    int64
	turns   int64
	last    map[string]int64 // the turn that began last, by chat
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, q: newFixture(2), random: rand.New(rand.NewPCG(seed, 0)), open: map[int64]int{},
		asks: map[int64]*Search{}, last: map[string]int64{}}
}

func (w *world) obey(a Actions) {
	w.starts, w.reads = append(w.starts, a.Start...), append(w.reads, a.Search...)
	for _, p := range a.Pipe {
		w.begin(p.Turn)
		w.open[p.RunID]++
		w.obey(w.q.GroupQueue.Took(p.RunID, w.open[p.RunID], true))
	}
	for _, run := range a.Close {
		if w.open[run] > 0 || w.asks[run] != nil {
			w.obey(w.q.GroupQueue.Kept(run))
			continue
		}
		delete(w.open, run)
		w.obey(w.q.GroupQueue.Exited(run))
	}
}

func (w *world) begin(t Turn) {
	if _, queued := w.q.rows.queued[t.ID]; !queued {
		w.t.Fatalf("turn %d begins twice", t.ID)
	}
	if w.last[t.ChatJID] > t.ID {
		w.t.Fatalf("turn %d begins after %d", t.ID, w.last[t.ChatJID])
	}
	w.last[t.ChatJID] = t.ID
	w.q.rows.remove(t.ID)
}

// change makes something happen outside, or time pass.
func (w *world) change() {
	group := fmt.Sprintf("g%d", w.random.IntN(4))
	switch w.random.IntN(3) {
	case 0:
		w.turns++
		t := turn(w.turns, at(group, fmt.Sprintf("telegram:%s%d", group, w.random.IntN(2)), ""))
		w.q.rows.put(t)
		if w.random.IntN(4) == 0 {
			w.q.rows.until[t.ID] = w.q.clock.now.Add(time.Duration(w.random.IntN(900)) * time.Millisecond).UnixMilli()
		}
		w.obey(w.q.GroupQueue.Stored(t.Lane))
	case 1:
		w.obey(w.q.GroupQueue.Changed(group))
	case 2:
		w.q.clock.advance(time.Duration(w.random.IntN(60)) * time.Millisecond)
		w.obey(w.q.GroupQueue.Tick(idleFor(time.Second)))
	}
}

// pick removes a random one.
func pick[T any](w *world, from *[]T) T {
	i := w.random.IntN(len(*from))
	one := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return one
}

// work takes one thing that is under way a step further, if there is one of a random kind.
func (w *world) work() {
	switch k := w.random.IntN(4); {
	case k == 0 && len(w.reads) > 0:
		w.results = append(w.results, w.q.Search(pick(w, &w.reads)))
	case k == 1 && len(w.results) > 0:
		w.obey(w.q.Found(pick(w, &w.results)))
	case k == 2 && len(w.starts) > 0:
		w.start(pick(w, &w.starts))
	case k == 3:
		for _, run := range slices.Sorted(maps.Keys(w.open)) {
			if open := w.open[run]; open > 0 && w.random.IntN(2) == 0 {
				w.answer(run, open)
				return
			}
		}
	}
}

func (w *world) start(t Turn) {
	if w.random.IntN(5) == 0 {
		w.obey(w.q.GroupQueue.StartFailed(t, w.q.clock.now.UnixMilli()+1))
		return
	}
	w.runs++
	w.begin(t)
	w.open[w.runs] = 1
	w.obey(w.q.GroupQueue.Started(t, w.runs))
}

// answer lets a run answer its turns and take the next one, or takes that a step further: what Next does.
func (w *world) answer(run int64, open int) {
	if search := w.asks[run]; search != nil {
		found := w.q.Search(*search)
		w.change()
		w.q.mu.Lock()
		w.q.learn(found)
		w.q.mu.Unlock()
		delete(w.asks, run)
	}
	t, ok, search := w.q.reserve(run, open)
	switch {
	case search != nil:
		w.asks[run] = search
	case ok:
		w.begin(t)
		w.open[run] = 1
		w.obey(w.q.GroupQueue.Took(run, 1, true))
	default:
		w.open[run] = 0
		w.obey(w.q.GroupQueue.Holds(run, 0))
	}
}

// Whatever happens between a search and its result, each turn begins once, after the older ones of its chat, and none
// is forgotten.
func TestSearch_AnythingBetweenReadAndResult_EachTurnBegins(t *testing.T) {
	for seed := range uint64(1000) {
		w := newWorld(t, seed)
		for range 300 {
			if w.random.IntN(3) == 0 {
				w.change()
			}
			w.work()
		}
		for i := 0; i < 8000 && len(w.q.rows.queued) > 0; i++ {
			w.work()
			if i%20 == 0 {
				w.q.clock.advance(10 * time.Millisecond)
				w.obey(w.q.GroupQueue.Tick(idleFor(time.Second)))
			}
		}
		if len(w.q.rows.queued) > 0 {
			t.Fatalf("seed %d: turns %v never begin", seed, w.q.rows.queued)
		}
		busy := len(w.starts)
		for _, open := range w.open {
			busy += min(open, 1)
		}
		if w.q.Busy() != busy {
			t.Fatalf("seed %d: %d slots are used, want %d", seed, w.q.Busy(), busy)
		}
	}
}
