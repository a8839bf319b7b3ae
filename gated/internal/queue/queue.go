// Package queue decides which turn runs next. A group answers its chats one after
// another, in one lane; a web chat has a lane per topic. Lanes share a limited
// number of running agents. The queue is a copy in memory: it is filled from the
// turns table at start.
package queue

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"arizuko/pkg/msg"
)

// maxPiped bounds the unanswered turns of one run: more than a user types ahead,
// few enough that an agent that reads nothing holds little.
const maxPiped = 16

// quantum is how long a lane may keep its agent for further turns while other
// lanes wait. Starting an agent costs some milliseconds, so a quick agent is kept
// for a moment; for a slow one it makes no difference.
const quantum = 100 * time.Millisecond

// Key is what one agent process serves: one session that answers in one place.
type Key struct {
	Folder, ChatJID, Topic, ThreadID string
}

// laneKey names a lane: the folder's, or one for a topic of its web chat.
type laneKey struct {
	folder string
	web    bool
	topic  string
}

// session is what at most one process works on, in whatever lane.
type session struct{ folder, topic string }

func (k Key) session() session { return session{k.Folder, k.Topic} }

// Turn is a queued turn. Alone marks one that shares no run with others.
type Turn struct {
	ID int64
	Key
	Backoff time.Duration // counted from the moment it is queued
	Alone   bool
}

// entry is a turn in its lane.
type entry struct {
	Turn
	ready time.Time // end of the backoff, by the monotonic clock
}

// lane is where a turn waits. A delegated turn waits in the folder's lane,
// wherever it answers.
func (t Turn) lane() laneKey {
	if platform, _ := msg.SplitJID(t.ChatJID); platform == msg.PlatformWeb && !t.Alone {
		return laneKey{t.Folder, true, t.Topic}
	}
	return laneKey{folder: t.Folder}
}

// KeyOf is the key of a stored turn.
func KeyOf(t *msg.Turn) Key { return Key{t.Folder, t.ChatJID, t.Topic, t.ThreadID} }

// TurnOf is the queue's view of a stored turn, which may run at once.
func TurnOf(t *msg.Turn) Turn {
	return Turn{ID: t.ID, Key: KeyOf(t), Alone: t.Kind == msg.Delegated}
}

// Piped is a queued turn for a live run.
type Piped struct {
	RunID int64
	Turn  Turn
}

// Actions are what the caller must do now, in any order.
type Actions struct {
	Start []Turn  // start a run for the turn; then call Started or StartFailed
	Pipe  []Piped // hand the turn to the run
	Close []int64 // let the idle run finish; then call Exited
}

// GroupQueue is the scheduler. Its methods do nothing themselves: they return Actions.
type GroupQueue struct {
	mu    sync.Mutex
	limit int
	now   func() time.Time
	lanes map[laneKey]*lane
	runs  map[int64]*run
	holds map[session]*lane // the lane whose process has the session
	ring  []*lane           // lanes that wait for a slot, longest first
	busy  int               // lanes with an unanswered turn
	acts  Actions
}

type lane struct {
	key      laneKey
	waiting  []entry // by ID
	run      *run
	starting bool
	inRing   bool
}

type run struct {
	id      int64
	key     Key
	lane    *lane
	alone   bool
	closing bool
	wanted  bool      // another lane waits for its session
	open    int       // turns it has not answered
	busyAt  time.Time // when its lane last got a slot
	idleAt  time.Time
}

// New makes a queue for at most limit busy agents.
func New(limit int, now func() time.Time) *GroupQueue {
	return &GroupQueue{limit: limit, now: now, lanes: map[laneKey]*lane{}, runs: map[int64]*run{}, holds: map[session]*lane{}}
}

// Push queues turns.
func (q *GroupQueue) Push(turns ...Turn) Actions {
	return q.update(func() {
		for _, t := range turns {
			q.refresh(q.wait(t))
		}
	})
}

// Remove removes cancelled turns.
func (q *GroupQueue) Remove(ids ...int64) Actions {
	return q.update(func() {
		for _, l := range q.lanes {
			n := len(l.waiting)
			l.waiting = slices.DeleteFunc(l.waiting, func(t entry) bool { return slices.Contains(ids, t.ID) })
			if len(l.waiting) != n {
				q.refresh(l)
			}
		}
	})
}

// Offer returns the live run that a turn about to be stored can be piped to, 0 if
// it must queue, and counts the turn as the run's. Call Answered if the turn does
// not reach the run.
func (q *GroupQueue) Offer(k Key) (runID int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[Turn{Key: k}.lane()]
	if l == nil || l.run == nil || !l.run.accepts(Turn{Key: k}) || l.blocks(k, q.now()) {
		return 0
	}
	switch idle := l.run.open == 0; {
	case len(q.ring) > 0 && (idle || !q.inQuantum(l.run)), idle && q.busy >= q.limit:
		return 0
	case idle:
		q.occupy(l.run)
	}
	l.run.open++
	return l.run.id
}

// Started reports that the run for a turn of Actions.Start exists.
func (q *GroupQueue) Started(t Turn, runID int64) Actions {
	return q.update(func() {
		l := q.lane(t.lane())
		l.starting = false
		l.run = &run{id: runID, key: t.Key, lane: l, alone: t.Alone, open: 1, busyAt: q.now()}
		q.runs[runID] = l.run
		q.refreshContenders(l, t.session())
		q.refresh(l)
	})
}

// StartFailed reports that a turn of Actions.Start got no run. Push it again if
// it is still queued.
func (q *GroupQueue) StartFailed(t Turn) Actions {
	return q.update(func() {
		l := q.lane(t.lane())
		l.starting = false
		q.busy--
		delete(q.holds, t.session())
		q.refreshContenders(l, t.session())
		q.refresh(l)
	})
}

// Answered reports that n of a run's turns have ended or did not reach it.
func (q *GroupQueue) Answered(runID int64, n int) Actions {
	return q.update(func() {
		r := q.runs[runID]
		if r == nil || r.open == 0 || n == 0 {
			return
		}
		if r.open = max(r.open-n, 0); r.open == 0 {
			q.busy--
			r.idleAt = q.now()
			if r.wanted {
				q.close(r)
			}
		}
		q.refresh(r.lane)
	})
}

// Drain takes a run out of use: it answers its turns and gets no more.
func (q *GroupQueue) Drain(runID int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r := q.runs[runID]; r != nil {
		r.closing = true
	}
}

// Exited reports that a run's process has ended. The turns it left are queued
// before a newer turn of their conversation can start.
func (q *GroupQueue) Exited(runID int64, left ...Turn) Actions {
	return q.update(func() {
		for _, t := range left {
			q.wait(t)
		}
		r := q.runs[runID]
		if r == nil {
			return
		}
		delete(q.runs, runID)
		if r.open > 0 {
			q.busy--
		}
		r.lane.run = nil
		delete(q.holds, r.key.session())
		q.refreshContenders(r.lane, r.key.session())
		q.refresh(r.lane)
	})
}

// Tick starts turns whose backoff has passed, and closes runs that have been idle
// for the time that idle returns.
func (q *GroupQueue) Tick(idle func(runID int64) time.Duration) Actions {
	return q.update(func() {
		for _, l := range q.lanes {
			if len(l.waiting) > 0 {
				q.refresh(l)
			}
		}
		for _, r := range q.runs {
			if r.open == 0 && q.now().Sub(r.idleAt) >= idle(r.id) {
				q.close(r)
			}
		}
	})
}

// Depth returns how many turns wait and how many agents are busy.
func (q *GroupQueue) Depth() (waiting, running int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		waiting += len(l.waiting)
	}
	return waiting, q.busy
}

// wait inserts a turn into its lane.
func (q *GroupQueue) wait(t Turn) *lane {
	l := q.lane(t.lane())
	at, found := slices.BinarySearchFunc(l.waiting, t.ID, func(w entry, id int64) int { return cmp.Compare(w.ID, id) })
	if !found {
		l.waiting = slices.Insert(l.waiting, at, entry{t, q.now().Add(t.Backoff)})
	}
	return l
}

func (q *GroupQueue) lane(k laneKey) *lane {
	l := q.lanes[k]
	if l == nil {
		l = &lane{key: k}
		q.lanes[k] = l
	}
	return l
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

// refresh updates one lane: it pipes turns to the lane's run, closes a run that
// serves another key, and puts the lane in the ring if it needs a slot.
func (q *GroupQueue) refresh(l *lane) {
	t, ready := l.head(q.now())
	switch {
	case len(l.waiting) == 0 && l.run == nil && !l.starting && !l.inRing:
		delete(q.lanes, l.key)
	case !ready || l.starting || l.inRing || l.run != nil && l.run.closing:
	case l.run == nil && !q.mayStart(l, t.session()):
	case l.run == nil:
		q.enter(l)
	case l.run.open == 0 && l.run.accepts(t):
		if q.busy < q.limit && q.inQuantum(l.run) {
			q.busy++ // the slot that it has just given up
			q.pipe(l, t)
			q.refresh(l)
			return
		}
		q.enter(l)
	case l.run.open == 0:
		q.close(l.run)
	case l.run.accepts(t) && (len(q.ring) == 0 || q.inQuantum(l.run)):
		q.pipe(l, t)
		q.refresh(l)
	}
}

// inQuantum reports whether a run may go on although other lanes wait.
func (q *GroupQueue) inQuantum(r *run) bool { return q.now().Sub(r.busyAt) < quantum }

// occupy gives an idle run's lane a slot.
func (q *GroupQueue) occupy(r *run) {
	q.busy++
	r.busyAt = q.now()
}

// mayStart reports whether a lane may start on a session. If another lane's process
// has it, that process gets no more turns and is closed when it is idle.
func (q *GroupQueue) mayStart(l *lane, s session) bool {
	holder := q.holds[s]
	if holder == nil || holder == l {
		return true
	}
	if r := holder.run; r != nil {
		if r.wanted = true; r.open == 0 {
			q.close(r)
		}
	}
	return false
}

// refreshContenders refreshes the other lanes that may wait for a session.
func (q *GroupQueue) refreshContenders(l *lane, s session) {
	for _, k := range []laneKey{{folder: s.folder}, {s.folder, true, s.topic}} {
		if rival := q.lanes[k]; rival != nil && rival != l {
			q.refresh(rival)
		}
	}
}

func (q *GroupQueue) enter(l *lane) {
	l.inRing = true
	q.ring = append(q.ring, l)
}

// fill gives free slots to the lanes that have waited longest. If some still
// wait, idle runs are closed.
func (q *GroupQueue) fill() {
	for len(q.ring) > 0 && q.busy < q.limit {
		l := q.ring[0]
		q.ring = q.ring[1:]
		l.inRing = false
		q.begin(l)
	}
	if len(q.ring) > 0 {
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
		} else if r.open == 0 {
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
	t, ready := l.head(q.now())
	switch {
	case !ready || l.starting || l.run != nil && (l.run.closing || l.run.open > 0):
		q.refresh(l)
	case l.run == nil && !q.mayStart(l, t.session()):
	case l.run == nil:
		q.busy++
		l.starting = true
		q.holds[t.session()] = l
		l.take(t)
		q.acts.Start = append(q.acts.Start, t)
	case l.run.accepts(t):
		q.occupy(l.run)
		q.pipe(l, t)
		q.refresh(l)
	default:
		q.close(l.run)
	}
}

func (q *GroupQueue) pipe(l *lane, t Turn) {
	l.take(t)
	l.run.open++
	q.acts.Pipe = append(q.acts.Pipe, Piped{l.run.id, t})
}

func (q *GroupQueue) close(r *run) {
	if !r.closing {
		r.closing = true
		q.acts.Close = append(q.acts.Close, r.id)
	}
}

// accepts reports whether a turn may be piped to the run.
func (r *run) accepts(t Turn) bool {
	return !r.closing && !r.wanted && !r.alone && !t.Alone && r.key == t.Key && r.open < maxPiped
}

// head returns the lane's oldest turn that may run now: neither in backoff nor
// after a turn of the same conversation in backoff.
func (l *lane) head(now time.Time) (Turn, bool) {
	var held map[conversation]bool
	for _, t := range l.waiting {
		switch {
		case held[t.conversation()]:
		case !t.ready.After(now):
			return t.Turn, true
		default:
			if held == nil {
				held = map[conversation]bool{}
			}
			held[t.conversation()] = true
		}
	}
	return Turn{}, false
}

// conversation is what keeps its order through retries.
type conversation struct{ chatJID, topic string }

func (k Key) conversation() conversation { return conversation{k.ChatJID, k.Topic} }

// blocks reports whether a new turn of the key must wait for others.
func (l *lane) blocks(k Key, now time.Time) bool {
	_, ready := l.head(now)
	return ready || slices.ContainsFunc(l.waiting, func(t entry) bool { return t.conversation() == k.conversation() })
}

func (l *lane) take(t Turn) {
	l.waiting = slices.DeleteFunc(l.waiting, func(w entry) bool { return w.ID == t.ID })
}
