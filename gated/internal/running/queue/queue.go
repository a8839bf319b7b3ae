// Package queue decides which turn runs next. A group answers its chats one after
// another, in one lane; a web chat has a lane per topic. Lanes share a limited
// number of running agents. The turns themselves stay in the turns table: in memory
// are the lanes that have queued turns, and the live runs.
package queue

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"arizuko/pkg/msg"
)

// quantum is how long a lane may keep its agent for further turns while other
// lanes wait. Starting an agent costs some milliseconds, so a quick agent is kept
// for a moment; for a slow one it makes no difference.
const quantum = 100 * time.Millisecond

// maxAhead is how many turns a busy run that folds them takes although other lanes wait: additions to a
// question belong to it, and a user who never stops does not keep the agent for ever.
const maxAhead = 8

// maxWait is how long a lane that waits is left alone: then its turns are read again. A wait that seems longer is over:
// the clock was set back.
const maxWait = time.Minute

// readRetry is when a lane is looked at again whose turns could not be read.
const readRetry = time.Second

// Turn is a queued turn. Alone marks one that shares no run with others.
type Turn struct {
	ID int64
	msg.Address
	Lane  string
	Alone bool
}

// TurnOf is the queue's view of a stored turn.
func TurnOf(t *msg.Turn) Turn {
	return Turn{ID: t.ID, Address: t.Address(), Lane: t.Lane(), Alone: t.Alone()}
}

// Next is the result of a search for a lane's next turn.
type Next struct {
	Turn  Turn
	Found bool
	// Through is the id up to which no turn may start before Until, in unix ms, unless
	// one of them changes. Until is 0 if none waits.
	Through int64
	Until   int64
}

// Rows finds queued turns.
type Rows interface {
	// Next looks for the oldest turn of a lane, of those after an id, that may start at
	// the time now, in unix ms.
	Next(lane string, after, now int64) (Next, error)
}

// Piped is a queued turn for a live run.
type Piped struct {
	RunID int64
	Turn  Turn
}

// Actions are what the caller must do now, in any order.
type Actions struct {
	Start []Turn  // start a run for the turn; then call Started or StartFailed
	Pipe  []Piped // give the turn to the run; then call Took
	Close []int64 // let the idle run finish; then call Exited, or Kept if it has got a turn
	// Search, which reads the rows and may take its time; then call Found.
	Search []Search
}

// Search is for a lane's next turn.
type Search struct {
	Lane    string
	after   int64
	changes int // of the lane, before the rows are read
}

// Found is the result of a search.
type Found struct {
	Search
	next Next
	err  error
}

// GroupQueue is the scheduler. Its methods, but for Search and Next, do nothing themselves: they return Actions.
//
// Its view of runs may be out of date: a new turn may have been stored for
// a run already. So every start, pipe and close may be refused.
type GroupQueue struct {
	mu    sync.Mutex
	limit int
	now   func() time.Time
	rows  Rows
	lanes map[string]*lane
	runs  map[int64]*run
	holds map[msg.Address]*run // session → the process that has it, nil while that starts
	ring  []*lane              // lanes that wait for a slot, longest first
	busy  int                  // lanes with an unanswered turn, but for runs that wait for a user's answer
	acts  Actions
}

// New makes a queue for at most limit busy agents.
func New(limit int, now func() time.Time, rows Rows) *GroupQueue {
	return &GroupQueue{
		limit: limit, now: now, rows: rows, lanes: map[string]*lane{}, runs: map[int64]*run{},
		holds: map[msg.Address]*run{},
	}
}

// Stored reports that new turns were stored in lanes.
func (q *GroupQueue) Stored(lanes ...string) Actions {
	return q.update(func() {
		for _, name := range lanes {
			l := q.lane(name)
			l.unread = true
			l.changes++
			q.refresh(l)
		}
	})
}

// Search reads the rows of a lane.
func (q *GroupQueue) Search(s Search) (f Found) {
	f.Search = s
	defer func() {
		if cause := recover(); cause != nil { // the lane must be searched again
			f.err = fmt.Errorf("panic: %v", cause)
		}
	}()
	f.next, f.err = q.rows.Next(s.Lane, s.after, q.unixNow())
	return f
}

// Found reports the result of a search of Actions.Search.
func (q *GroupQueue) Found(f Found) Actions {
	return q.update(func() {
		l, more := q.learn(f)
		switch {
		case more:
			q.refresh(l)
		case l != nil && l.inRing: // a tick looks again
			q.leave(l)
		}
	})
}

// Changed reports that queued turns of lanes have changed: they may start earlier,
// or are queued no more.
func (q *GroupQueue) Changed(lanes ...string) Actions {
	return q.update(func() {
		for _, name := range lanes {
			l := q.lane(name)
			l.reread()
			q.refresh(l)
		}
	})
}

// Resume ends the pauses of a folder's lanes; turns of lanes have changed by it.
func (q *GroupQueue) Resume(folder string, lanes ...string) Actions {
	return q.update(func() {
		for _, name := range lanes {
			q.lane(name).reread()
		}
		for _, l := range q.lanes {
			if l.folder() == folder {
				l.paused = 0
				q.refresh(l)
			}
		}
	})
}

// Started reports that the run for a turn of Actions.Start exists.
func (q *GroupQueue) Started(t Turn, runID int64) Actions {
	return q.update(func() {
		l := q.lane(t.Lane)
		l.starting = false
		l.run = &run{id: runID, address: t.Address, lane: l, single: t.Alone, open: 1, busyAt: q.now()}
		q.runs[runID], q.holds[t.Session()] = l.run, l.run
		q.refreshContenders(l, t.Address)
		q.refresh(l)
	})
}

// StartFailed reports that a turn of Actions.Start got no run. The lane starts none
// before the time until, in unix ms, 0 for at once; ticks look at the time.
func (q *GroupQueue) StartFailed(t Turn, until int64) Actions {
	return q.update(func() {
		l := q.lane(t.Lane)
		l.starting = false
		q.busy--
		delete(q.holds, t.Session())
		l.reread()
		l.paused = q.within(until)
		q.refreshContenders(l, t.Address)
		q.refresh(l)
	})
}

// Took reports that a turn of Actions.Pipe or Next has reached its run, or, if not
// taken, that it did not: then the lane waits for the next tick. open is how many
// unanswered turns the run has now.
func (q *GroupQueue) Took(runID int64, open int, taken bool) Actions {
	return q.updateRun(runID, func(r *run) {
		q.setLoad(r, open, nil)
		if !taken {
			r.lane.reread()
			return
		}
		q.refresh(r.lane)
	})
}

// Holds reports how many unanswered turns a run has.
func (q *GroupQueue) Holds(runID int64, open int) Actions {
	return q.updateRun(runID, func(r *run) {
		q.setLoad(r, open, r.taking)
		q.refresh(r.lane)
	})
}

// Folds reports whether a run takes in turns while it works on one. Another one gets its next turn once it has
// answered.
func (q *GroupQueue) Folds(runID int64, folds bool) Actions {
	return q.updateRun(runID, func(r *run) {
		r.folds = folds
		q.refresh(r.lane)
	})
}

// Waits reports whether a run waits for a user's answer. It uses no slot meanwhile, and its lane goes on with turns
// of other sessions, by a run beside it; when it goes on, more runs may be busy than the limit, until one has
// answered.
func (q *GroupQueue) Waits(runID int64, waits bool) Actions {
	return q.updateRun(runID, func(r *run) {
		if r.waiting == waits {
			return
		}
		wasBusy := r.busy()
		r.waiting = waits
		q.recount(r, wasBusy)
		switch l := r.lane; {
		case waits && l.run == r:
			l.run = nil
			l.beside++
		case !waits && l.run == nil && !l.starting && !l.inRing: // else it is closed once it has answered
			l.run = r
			l.beside--
			l.reread()
		}
		q.refresh(r.lane)
	})
}

// Next returns the queued turn that a run may take when it answers its last ones, as many as answers, and
// reserves it for the run until Took. It may read the rows. Holds or Took must follow.
func (q *GroupQueue) Next(runID int64, answers int) (Turn, bool) {
	t, ok, search := q.reserve(runID, answers)
	for search != nil {
		found := q.Search(*search)
		q.mu.Lock()
		_, more := q.learn(found)
		q.mu.Unlock()
		if !more {
			return Turn{}, false
		}
		t, ok, search = q.reserve(runID, answers)
	}
	return t, ok
}

// reserve is Next, or returns the search that it needs.
func (q *GroupQueue) reserve(runID int64, answers int) (t Turn, ok bool, needs *Search) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.runs[runID]
	if r == nil || r.lane.run != r || r.load() != answers || r.lane.inRing || len(q.ring) > 0 && !q.inQuantum(r) {
		return Turn{}, false, nil
	}
	t, ready := q.head(r.lane)
	if search := q.acts.Search; len(search) > 0 {
		q.acts.Search = nil
		return Turn{}, false, &search[0]
	}
	if !ready || !r.accepts(t) {
		return Turn{}, false, nil
	}
	r.lane.take(t)
	r.taking = &t
	return t, true, nil
}

// Drain takes a run out of use: it answers its turns and gets no more.
func (q *GroupQueue) Drain(runID int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r := q.runs[runID]; r != nil {
		r.closing = true
	}
}

// Kept reports that a run of Actions.Close goes on: it has got a turn.
func (q *GroupQueue) Kept(runID int64) Actions {
	return q.updateRun(runID, func(r *run) {
		r.closing = false
		q.refresh(r.lane)
	})
}

// Exited reports that a run's process has ended. The turns it left are queued again
// by then.
func (q *GroupQueue) Exited(runID int64) Actions {
	return q.updateRun(runID, func(r *run) {
		delete(q.runs, runID)
		if r.busy() {
			q.busy--
		}
		if r.lane.run == r {
			r.lane.run = nil
		} else {
			r.lane.beside--
		}
		r.lane.reread()
		delete(q.holds, r.address.Session())
		q.refreshContenders(r.lane, r.address)
		q.refresh(r.lane)
	})
}

// Tick starts turns whose time has come, and closes runs that have been idle for the
// time that idle returns.
func (q *GroupQueue) Tick(idle func(runID int64) time.Duration) Actions {
	return q.update(func() {
		for _, l := range q.lanes {
			if l.next != nil || l.unread && l.until == 0 || l.until != 0 && q.over(l.until) || l.paused != 0 {
				q.refresh(l)
			}
		}
		for _, r := range q.runs {
			if r.load() == 0 && q.now().Sub(r.idleAt) >= idle(r.id) {
				q.close(r)
			}
		}
	})
}

// Busy returns how many agents are busy.
func (q *GroupQueue) Busy() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy
}

func (q *GroupQueue) unixNow() int64 { return q.now().UnixMilli() }

// setLoad changes the turns of a run, and with them the number of busy lanes.
func (q *GroupQueue) setLoad(r *run, open int, taking *Turn) {
	wasBusy, hadTurns := r.busy(), r.load() > 0
	r.open, r.taking = open, taking
	q.recount(r, wasBusy)
	if hadTurns && r.load() == 0 {
		r.idleAt = q.now()
		r.single = false
		if r.wanted || r.lane.run != r {
			q.close(r)
		}
	}
}

// recount changes the number of busy lanes with a run that was busy before, or was not.
func (q *GroupQueue) recount(r *run, wasBusy bool) {
	switch {
	case r.busy() && !wasBusy:
		q.busy++
		r.busyAt, r.ahead = q.now(), 0
	case wasBusy && !r.busy():
		q.busy--
	}
}

// update makes one change and returns the actions that follow from it.
func (q *GroupQueue) update(change func()) Actions {
	q.mu.Lock()
	defer q.mu.Unlock()
	change()
	q.fill()
	acts := q.acts
	q.acts = Actions{}
	return acts
}

// updateRun changes a run. A report about one that has exited changes nothing.
func (q *GroupQueue) updateRun(id int64, change func(*run)) Actions {
	return q.update(func() {
		if r := q.runs[id]; r != nil {
			change(r)
		}
	})
}

// refresh updates one lane: it pipes a turn to the lane's run, closes a run that
// serves another address, and puts the lane in the ring if it needs a slot.
func (q *GroupQueue) refresh(l *lane) {
	if l.starting || l.inRing || l.run != nil && (l.run.closing || l.run.taking != nil) {
		return
	}
	t, ready := q.head(l)
	switch {
	case !ready:
		if l.run == nil && l.beside == 0 && l.until == 0 && !l.unread && q.over(l.paused) {
			delete(q.lanes, l.name)
		}
	case l.run == nil && !q.mayStart(l, t.Session()):
	case l.run == nil:
		q.enter(l)
	case l.run.load() == 0 && l.run.accepts(t):
		if q.busy < q.limit && q.inQuantum(l.run) {
			at := l.run.busyAt // the slot is the one that it has just given up
			q.pipe(l, t)
			l.run.busyAt = at
			return
		}
		q.enter(l)
	case l.run.load() == 0:
		q.close(l.run)
	case !l.run.folds || !l.run.accepts(t): // it waits for the answer
	case len(q.ring) == 0 || q.inQuantum(l.run):
		q.pipe(l, t)
	case l.run.ahead < maxAhead:
		l.run.ahead++
		q.pipe(l, t)
	}
}

// inQuantum reports whether a run may go on although other lanes wait.
func (q *GroupQueue) inQuantum(r *run) bool { return q.now().Sub(r.busyAt) < quantum }

// mayStart reports whether a lane may start on a session. If another lane's process
// has it, that process gets no more turns and is closed when it is idle.
func (q *GroupQueue) mayStart(l *lane, session msg.Address) bool {
	r, held := q.holds[session]
	if r != nil && r.lane != l {
		if r.wanted = true; r.load() == 0 {
			q.close(r)
		}
	}
	return !held
}

// refreshContenders refreshes the other lanes that may wait for the session of an
// address.
func (q *GroupQueue) refreshContenders(l *lane, a msg.Address) {
	for _, name := range []string{a.Folder, a.Folder + " " + a.Topic} {
		if rival := q.lanes[name]; rival != nil && rival != l {
			q.refresh(rival)
		}
	}
}

func (q *GroupQueue) enter(l *lane) {
	l.inRing = true
	q.ring = append(q.ring, l)
}

func (q *GroupQueue) leave(l *lane) {
	l.inRing = false
	q.ring = slices.DeleteFunc(q.ring, func(other *lane) bool { return other == l })
}

// fill gives free slots to the lanes that have waited longest: one whose turns are being read keeps its place, and a
// slot is kept for it. If some still wait, idle runs are closed.
func (q *GroupQueue) fill() {
	kept := 0
	for kept < len(q.ring) && q.busy+kept < q.limit {
		l := q.ring[kept]
		if _, ready := q.head(l); !ready && l.searched {
			kept++
			continue
		}
		q.leave(l)
		q.begin(l)
	}
	if len(q.ring) > kept {
		q.closeIdle(len(q.runs))
	} else if over := len(q.runs) - q.limit; over > 0 {
		q.closeIdle(over)
	}
}

// closeIdle closes up to n idle processes, those idle longest first.
func (q *GroupQueue) closeIdle(n int) {
	var idle []*run
	for _, r := range q.runs {
		if r.closing {
			n--
		} else if r.load() == 0 {
			idle = append(idle, r)
		}
	}
	slices.SortFunc(idle, func(a, b *run) int { return a.idleAt.Compare(b.idleAt) })
	for _, r := range idle[:max(0, min(n, len(idle)))] {
		q.close(r)
	}
}

// begin gives a lane of the ring a slot, if it still needs one.
func (q *GroupQueue) begin(l *lane) {
	t, ready := q.head(l)
	switch {
	case !ready || l.starting || l.run != nil && (l.run.closing || l.run.load() > 0):
		q.refresh(l)
	case l.run == nil && !q.mayStart(l, t.Session()):
	case l.run == nil:
		q.busy++
		l.starting = true
		q.holds[t.Session()] = nil
		l.take(t)
		q.acts.Start = append(q.acts.Start, t)
	case l.run.accepts(t):
		q.pipe(l, t)
	default:
		q.close(l.run)
	}
}

func (q *GroupQueue) pipe(l *lane, t Turn) {
	l.take(t)
	q.setLoad(l.run, l.run.open, &t)
	q.acts.Pipe = append(q.acts.Pipe, Piped{l.run.id, t})
}

func (q *GroupQueue) close(r *run) {
	if !r.closing {
		r.closing = true
		q.acts.Close = append(q.acts.Close, r.id)
	}
}
