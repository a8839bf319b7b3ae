package queue

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"arizuko/pkg/msg"
)

// model carries out the queue's actions, as the manager of the agents does, and
// checks each step against the rules.
type model struct {
	t interface{ Fatalf(string, ...any) }
	*fixture
	limit int

	turns    map[int64]Turn
	where    map[int64]place
	runs     map[int64]*process
	toStart  []Turn
	toPipe   []Piped
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
	first   Turn
	open    []int64 // stored for it
	closing bool
	waits   bool // for a user's answer
	beside  bool // another run may be in its lane: it waits, or has waited
}

func newModel(t interface{ Fatalf(string, ...any) }, limit int) *model {
	return &model{
		t: t, fixture: newFixture(limit), limit: limit,
		turns: map[int64]Turn{}, where: map[int64]place{}, runs: map[int64]*process{},
	}
}

// push makes a turn and queues it.
func (w *model) push(t Turn) int64 {
	w.nextTurn++
	t.ID = w.nextTurn
	w.turns[t.ID] = t
	w.where[t.ID] = waiting
	w.take(w.fixture.push(t))
	return t.ID
}

// steer stores a turn for a live run, as the gateway does, if its lane has no queued
// turn.
func (w *model) steer(a msg.Address) {
	t := turn(w.nextTurn+1, a)
	for _, q := range w.rows.queued {
		if q.Lane == t.Lane {
			return
		}
	}
	for _, p := range w.sorted() {
		if p.first.Address == a && !p.closing && len(p.open) == 0 && w.busyRuns() < w.limit {
			w.nextTurn++
			w.turns[t.ID], w.where[t.ID] = t, atRun
			p.open = append(p.open, t.ID)
			w.take(w.Holds(p.id, len(p.open)))
			return
		}
	}
}

// busyRuns is the number of runs that have turns by the rows.
func (w *model) busyRuns() (n int) {
	for _, p := range w.runs {
		if len(p.open) > 0 && !p.waits {
			n++
		}
	}
	return n
}

// take notes actions, which are carried out when obeyed.
func (w *model) take(all ...Actions) {
	for _, a := range all {
		for _, t := range a.Start {
			w.begin(t, nil)
			w.where[t.ID] = starting
			w.toStart = append(w.toStart, t)
		}
		for _, p := range a.Pipe {
			w.piped(p)
		}
		w.toClose = append(w.toClose, a.Close...)
	}
	w.check()
}

func (w *model) piped(p Piped) {
	run := w.runs[p.RunID]
	if run == nil {
		w.t.Fatalf("turn %d piped to run %d, which is gone", p.Turn.ID, p.RunID)
		return
	}
	if run.first.Address != p.Turn.Address || p.Turn.Alone || run.closing {
		w.t.Fatalf("turn %+v piped to run %+v", p.Turn, run)
	}
	w.begin(p.Turn, run)
	w.where[p.Turn.ID] = starting
	w.toPipe = append(w.toPipe, p)
	if len(run.open) >= msg.MaxRunTurns {
		w.t.Fatalf("run %d has %d turns", p.RunID, len(run.open)+1)
	}
}

// begin checks that a turn's time has come: it waits, its backoff is over, and
// everything older in its conversation has ended or is at the same run.
func (w *model) begin(t Turn, to *process) {
	if w.where[t.ID] != waiting {
		w.t.Fatalf("turn %d begins a second time", t.ID)
	}
	if w.rows.until[t.ID] > w.clock.now.UnixMilli() {
		w.t.Fatalf("turn %d begins before its backoff is over", t.ID)
	}
	for id, older := range w.turns {
		if id >= t.ID || w.where[id] == ended || older.Conversation() != t.Conversation() {
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
	busy, lanes, sessions := len(w.toStart), map[string]bool{}, map[msg.Address]bool{}
	claim := func(t Turn, beside bool) {
		if lanes[t.Lane] && !beside || sessions[t.Session()] {
			w.t.Fatalf("a second run in lane %q or session %+v", t.Lane, t.Session())
		}
		lanes[t.Lane], sessions[t.Session()] = lanes[t.Lane] || !beside, true
	}
	for _, t := range w.toStart {
		claim(t, false)
	}
	for _, p := range w.runs {
		claim(p.first, p.beside)
		if p.waits {
			continue
		}
		if len(p.open) > 0 || slices.ContainsFunc(w.toPipe, func(q Piped) bool { return q.RunID == p.id }) {
			busy++
		}
	}
	over := w.busyRuns() > w.limit && !slices.ContainsFunc(w.sorted(), func(p *process) bool { return p.beside })
	if running := w.Busy(); over || running != busy {
		w.t.Fatalf("%d busy, by the rows %d of %d; the queue says %d", busy, w.busyRuns(), w.limit, running)
	}
}

// start carries out the i-th start.
func (w *model) start(i int, fails bool) {
	t := w.toStart[i]
	w.toStart = slices.Delete(w.toStart, i, i+1)
	if w.busyRuns() >= w.limit { // a turn was stored for an idle run meanwhile
		w.where[t.ID] = waiting
		w.take(w.StartFailed(t, w.unixNow()+1))
		return
	}
	if fails { // as when it was cancelled meanwhile
		w.where[t.ID] = ended
		w.rows.remove(t.ID)
		w.take(w.StartFailed(t, 0))
		return
	}
	w.nextRun++
	w.runs[w.nextRun] = &process{id: w.nextRun, first: t, open: []int64{t.ID}}
	w.where[t.ID] = atRun
	w.take(w.started(t, w.nextRun))
}

// pipe carries out the i-th pipe; the run may have ended.
func (w *model) pipe(i int, fails bool) {
	p := w.toPipe[i]
	w.toPipe = slices.Delete(w.toPipe, i, i+1)
	run := w.runs[p.RunID]
	switch {
	case run == nil:
		w.where[p.Turn.ID] = waiting
	case fails, len(run.open) == 0 && w.busyRuns() >= w.limit:
		w.where[p.Turn.ID] = waiting
		w.take(w.Took(p.RunID, len(run.open), false))
	default:
		run.open = append(run.open, p.Turn.ID)
		w.where[p.Turn.ID] = atRun
		w.take(w.took(p.RunID, p.Turn, len(run.open)))
	}
}

// close carries out the i-th close: a run that is closed gets no more, one that has
// got a turn goes on.
func (w *model) close(i int) {
	id := w.toClose[i]
	w.toClose = slices.Delete(w.toClose, i, i+1)
	p := w.runs[id]
	switch {
	case p == nil:
	case len(p.open) > 0:
		w.take(w.Kept(id))
	default:
		p.closing = true
	}
}

func (w *model) answer(p *process) {
	var next Turn
	var takes bool
	if len(p.open) == 1 && !p.closing {
		next, takes = w.Next(p.id, 1)
	}
	w.where[p.open[0]] = ended
	p.open = p.open[1:]
	if !takes {
		w.take(w.Holds(p.id, len(p.open)))
		return
	}
	w.begin(next, p)
	p.open = append(p.open, next.ID)
	w.where[next.ID] = atRun
	w.take(w.took(p.id, next, len(p.open)))
}

// exit ends a process; its unanswered turns go back, the oldest with a
// backoff.
func (w *model) exit(p *process, backoff time.Duration) {
	delete(w.runs, p.id)
	w.toPipe = slices.DeleteFunc(w.toPipe, func(q Piped) bool {
		if q.RunID == p.id {
			w.where[q.Turn.ID] = waiting
		}
		return q.RunID == p.id
	})
	var left []Turn
	for i, id := range p.open {
		if i == 0 {
			w.rows.until[id] = w.clock.now.Add(backoff).UnixMilli()
		}
		w.where[id] = waiting
		left = append(left, w.turns[id])
	}
	w.take(w.exited(p.id, left...))
}

func (w *model) retire(p *process) {
	p.closing = true
	w.Drain(p.id)
}

func (w *model) remove(id int64) {
	if w.where[id] == waiting {
		w.where[id] = ended
		w.rows.remove(id)
		w.take(w.Changed(w.turns[id].Lane))
	}
}

func (w *model) obey() {
	for len(w.toStart)+len(w.toPipe) > 0 {
		if len(w.toStart) > 0 {
			w.start(0, false)
		} else {
			w.pipe(0, false)
		}
	}
	for len(w.toClose) > 0 {
		w.close(0)
	}
}

// wait makes a run wait for a user's answer, or go on.
func (w *model) wait(p *process) {
	p.waits = !p.waits
	p.beside = true
	w.take(w.Waits(p.id, p.waits))
}

func (w *model) answerAll() {
	for _, p := range w.sorted() {
		if p.waits {
			w.wait(p)
		}
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
		w.take(w.Tick(idleFor(time.Hour)))
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
		if len(w.lanes)+len(w.GroupQueue.runs)+len(w.holds)+len(w.ring) != 0 {
			t.Fatalf("the empty queue still holds %+v", w.GroupQueue)
		}
	})
}

func drawAddress(t *rapid.T) msg.Address {
	folder := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "folder")
	return msg.Address{
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
	switch what := choose(16, "step"); {
	case what <= 2:
		w.push(turn(0, drawAddress(t)))
	case what == 3: // delegated work has a topic of its own
		a := drawAddress(t)
		a.Topic = fmt.Sprintf("#d%d", w.nextTurn)
		w.push(alone(turn(0, a)))
	case what <= 5:
		w.steer(drawAddress(t))
	case what <= 7 && len(w.toStart) > 0:
		w.start(choose(len(w.toStart), "start"), choose(4, "start fails") == 0)
	case what == 14 && len(w.toPipe) > 0:
		w.pipe(choose(len(w.toPipe), "pipe"), choose(4, "pipe fails") == 0)
	case what == 8 && len(w.toClose) > 0:
		w.close(choose(len(w.toClose), "close"))
	case what == 9 && len(busy) > 0:
		if p := busy[choose(len(busy), "answer")]; !p.waits {
			w.answer(p)
		}
	case what == 15 && len(busy) > 0:
		w.wait(busy[choose(len(busy), "wait")])
	case what == 10 && len(runs) > 0:
		w.exit(runs[choose(len(runs), "exit")], time.Duration(choose(3, "backoff"))*time.Second)
	case what == 11 && len(runs) > 0:
		w.retire(runs[choose(len(runs), "retire")])
	case what == 12 && w.nextTurn > 0:
		w.remove(1 + int64(choose(int(w.nextTurn), "remove")))
	case what == 13:
		w.clock.advance(time.Duration(choose(2000, "ms")) * time.Millisecond)
		w.take(w.Tick(idleFor(time.Duration(choose(5, "idle")) * time.Second)))
	}
}
