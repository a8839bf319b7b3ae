package queue

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model carries out the queue's actions, as the manager of the agents does, and
// checks each step against the rules.
type model struct {
	t     interface{ Fatalf(string, ...any) }
	q     *GroupQueue
	clock *clock
	limit int

	turns    map[int64]Turn
	where    map[int64]place
	ready    map[int64]time.Time // when backoffs end
	runs     map[int64]*process
	toStart  []Turn
	toClose  []int64
	nextTurn int64
	nextRun  int64
	begun    []int64 // in order
}

// place is where a turn is.
type place int

const (
	waiting place = iota
	starting
	atRun
	ended
)

// process is a run as its owner sees it.
type process struct {
	id      int64
	key     Key
	alone   bool
	open    []int64
	closing bool
}

func newModel(t interface{ Fatalf(string, ...any) }, limit int) *model {
	c := newClock()
	return &model{
		t: t, clock: c, q: New(limit, c.time), limit: limit,
		turns: map[int64]Turn{}, where: map[int64]place{}, ready: map[int64]time.Time{}, runs: map[int64]*process{},
	}
}

// push makes a turn and queues it.
func (w *model) push(k Key) int64 { return w.pushTurn(Turn{Key: k}) }

func (w *model) pushTurn(t Turn) int64 {
	t.ID = w.newTurn(t)
	w.take(w.q.Push(t))
	return t.ID
}

func (w *model) newTurn(t Turn) int64 {
	w.nextTurn++
	t.ID = w.nextTurn
	w.turns[t.ID] = t
	w.where[t.ID] = waiting
	return t.ID
}

// offer does what the gateway does with a new turn.
func (w *model) offer(k Key, withdraw bool) {
	run := w.q.Offer(k)
	id := w.newTurn(Turn{Key: k})
	switch {
	case run == 0:
		w.take(w.q.Push(w.turns[id]))
	case withdraw:
		w.take(w.q.Answered(run, 1), w.q.Push(w.turns[id]))
	default:
		w.pipe(run, w.turns[id])
	}
	w.check()
}

// take notes actions. Pipes are carried out at once, the rest when obeyed.
func (w *model) take(all ...Actions) {
	for _, a := range all {
		for _, t := range a.Start {
			w.begin(t, nil)
			w.where[t.ID] = starting
			w.toStart = append(w.toStart, t)
		}
		for _, p := range a.Pipe {
			w.pipe(p.RunID, p.Turn)
		}
		w.toClose = append(w.toClose, a.Close...)
	}
	w.check()
}

func (w *model) pipe(run int64, t Turn) {
	p := w.runs[run]
	if p == nil {
		w.t.Fatalf("turn %d piped to run %d, which is gone", t.ID, run)
		return
	}
	if p.key != t.Key || p.alone || t.Alone || p.closing {
		w.t.Fatalf("turn %+v piped to run %+v", t, p)
	}
	w.begin(t, p)
	w.where[t.ID] = atRun
	p.open = append(p.open, t.ID)
	if len(p.open) > maxPiped {
		w.t.Fatalf("run %d has %d turns", run, len(p.open))
	}
}

// begin checks that a turn's time has come: it waits, its backoff is over, and
// everything older in its conversation has ended or is at the same run.
func (w *model) begin(t Turn, to *process) {
	if w.where[t.ID] != waiting {
		w.t.Fatalf("turn %d begins a second time", t.ID)
	}
	if w.ready[t.ID].After(w.clock.now) {
		w.t.Fatalf("turn %d begins before its backoff is over", t.ID)
	}
	for id, older := range w.turns {
		if id >= t.ID || w.where[id] == ended || older.Folder != t.Folder || older.conversation() != t.conversation() {
			continue
		}
		if to == nil || !slices.Contains(to.open, id) {
			w.t.Fatalf("turn %d begins before turn %d of its conversation", t.ID, id)
		}
	}
	w.begun = append(w.begun, t.ID)
}

// check compares the queue with the rules and with the model.
func (w *model) check() {
	busy, lanes, sessions := len(w.toStart), map[laneKey]bool{}, map[session]bool{}
	claim := func(t Turn) {
		if lanes[t.lane()] || sessions[t.session()] {
			w.t.Fatalf("a second run in lane %+v or session %+v", t.lane(), t.session())
		}
		lanes[t.lane()], sessions[t.session()] = true, true
	}
	for _, t := range w.toStart {
		claim(t)
	}
	for _, p := range w.runs {
		claim(Turn{Key: p.key, Alone: p.alone})
		if len(p.open) > 0 {
			busy++
		}
	}
	n := 0
	for _, where := range w.where {
		if where == waiting {
			n++
		}
	}
	if depth, running := w.q.Depth(); busy > w.limit || running != busy || depth != n {
		w.t.Fatalf("%d waiting and %d busy of %d; the queue says %d and %d", n, busy, w.limit, depth, running)
	}
}

// start carries out the i-th start.
func (w *model) start(i int, fails bool) {
	t := w.toStart[i]
	w.toStart = slices.Delete(w.toStart, i, i+1)
	if fails { // as when it was cancelled meanwhile
		w.where[t.ID] = ended
		w.take(w.q.StartFailed(t))
		return
	}
	w.nextRun++
	w.runs[w.nextRun] = &process{id: w.nextRun, key: t.Key, alone: t.Alone, open: []int64{t.ID}}
	w.where[t.ID] = atRun
	w.take(w.q.Started(t, w.nextRun))
}

// close carries out the i-th close: a run that is closed gets no more.
func (w *model) close(i int) {
	id := w.toClose[i]
	w.toClose = slices.Delete(w.toClose, i, i+1)
	if p := w.runs[id]; p != nil {
		if len(p.open) > 0 {
			w.t.Fatalf("run %d is closed with turns %v", id, p.open)
		}
		p.closing = true
	}
}

func (w *model) answer(p *process) {
	w.where[p.open[0]] = ended
	p.open = p.open[1:]
	w.take(w.q.Answered(p.id, 1))
}

// exit ends a process; what it has not answered goes back, the oldest with a
// backoff.
func (w *model) exit(p *process, backoff time.Duration) {
	delete(w.runs, p.id)
	var left []Turn
	for i, id := range p.open {
		t := w.turns[id]
		if i == 0 {
			t.Backoff = backoff
			w.ready[id] = w.clock.now.Add(backoff)
		}
		w.turns[id], w.where[id] = t, waiting
		left = append(left, t)
	}
	w.take(w.q.Exited(p.id, left...))
}

func (w *model) retire(p *process) {
	p.closing = true
	w.q.Drain(p.id)
}

func (w *model) remove(id int64) {
	if w.where[id] == waiting {
		w.where[id] = ended
		w.take(w.q.Remove(id))
	}
}

func (w *model) obey() {
	for len(w.toStart) > 0 {
		w.start(0, false)
	}
	for len(w.toClose) > 0 {
		w.close(0)
	}
}

func (w *model) answerAll() {
	for _, p := range w.sorted() {
		if len(p.open) > 0 {
			w.answer(p)
		}
	}
}

// exitAll ends every process that was closed and has answered.
func (w *model) exitAll() {
	for _, p := range w.sorted() {
		if p.closing && len(p.open) == 0 {
			w.exit(p, 0)
		}
	}
}

func (w *model) sorted() []*process {
	return slices.SortedFunc(maps.Values(w.runs), func(a, b *process) int { return int(a.id - b.id) })
}

func (w *model) allBegun(ids []int64) bool {
	return !slices.ContainsFunc(ids, func(id int64) bool { return w.where[id] == waiting })
}

// drain runs until all is done: agents answer and exit, backoffs pass. Every turn
// must end.
func (w *model) drain() {
	for rounds := 0; slices.ContainsFunc(slices.Collect(maps.Values(w.where)), func(p place) bool { return p != ended }); rounds++ {
		if rounds > 20*len(w.turns)+20 {
			w.t.Fatalf("stuck: %v, runs %+v", w.where, w.runs)
		}
		w.obey()
		w.answerAll()
		w.exitAll()
		w.clock.advance(time.Second)
		w.take(w.q.Tick(idleFor(time.Hour)))
	}
}

// TestQueue_RandomOperations_KeepOrderPerConversation drives the queue with all events in any order.
func TestQueue_RandomOperations_KeepOrderPerConversation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newModel(t, rapid.IntRange(1, 3).Draw(t, "limit"))
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			w.step(t)
		}
		w.drain()
		for _, p := range w.sorted() {
			w.exit(p, 0)
		}
		if len(w.q.lanes)+len(w.q.runs)+len(w.q.holds)+len(w.q.ring) != 0 {
			t.Fatalf("the empty queue still holds %+v", w.q)
		}
	})
}

func drawKey(t *rapid.T) Key {
	folder := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "folder")
	return Key{
		Folder:   folder,
		ChatJID:  rapid.SampledFrom([]string{"telegram:1", "telegram:2", "web:" + folder}).Draw(t, "chat"),
		Topic:    rapid.SampledFrom([]string{"", "", "#x"}).Draw(t, "topic"),
		ThreadID: rapid.SampledFrom([]string{"", "", "9"}).Draw(t, "thread"),
	}
}

// step does one thing that can happen now.
func (w *model) step(t *rapid.T) {
	choose := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) }
	runs := w.sorted()
	busy := slices.DeleteFunc(slices.Clone(runs), func(p *process) bool { return len(p.open) == 0 })
	switch what := choose(14, "step"); {
	case what <= 2:
		w.push(drawKey(t))
	case what == 3: // delegated work has a topic of its own
		k := drawKey(t)
		k.Topic = fmt.Sprintf("#d%d", w.nextTurn)
		w.pushTurn(Turn{Key: k, Alone: true})
	case what <= 5:
		w.offer(drawKey(t), rapid.Bool().Draw(t, "withdraw"))
	case what <= 7 && len(w.toStart) > 0:
		w.start(choose(len(w.toStart), "start"), choose(4, "start fails") == 0)
	case what == 8 && len(w.toClose) > 0:
		w.close(choose(len(w.toClose), "close"))
	case what == 9 && len(busy) > 0:
		w.answer(busy[choose(len(busy), "answer")])
	case what == 10 && len(runs) > 0:
		w.exit(runs[choose(len(runs), "exit")], time.Duration(choose(3, "backoff"))*time.Second)
	case what == 11 && len(runs) > 0:
		w.retire(runs[choose(len(runs), "retire")])
	case what == 12 && w.nextTurn > 0:
		w.remove(1 + int64(choose(int(w.nextTurn), "remove")))
	case what == 13:
		w.clock.advance(time.Duration(choose(2000, "ms")) * time.Millisecond)
		w.take(w.q.Tick(idleFor(time.Duration(choose(5, "idle")) * time.Second)))
	}
}
