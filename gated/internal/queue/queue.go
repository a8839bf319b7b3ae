// Package queue decides which turn runs next. A group answers its chats one
// after another in one lane, a web chat has a lane per topic; lanes take turns
// at a bounded number of running agents. The queue holds no truth: it is
// refilled from the turns table at start.
package queue

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"arizuko/pkg/msg"
)

// maxPiped bounds how many turns wait unanswered at one run. More than a
// person types ahead; few enough that an agent that reads nothing holds little.
const maxPiped = 16

// quantum is how long a lane may go on with turns for the agent it has while
// other lanes wait. Starting an agent costs some milliseconds: quick ones are
// worth keeping for a moment, and to slow ones it makes no difference.
const quantum = 100 * time.Millisecond

// Key says what one agent process serves: one session, answering in one place.
type Key struct {
	Folder, ChatJID, Topic, ThreadID string
}

// laneKey names a lane: the folder's, or one for a topic of its web chat.
type laneKey struct {
	folder string
	web    bool
	topic  string
}

// session is what at most one process may work on, whatever the lane.
type session struct{ folder, topic string }

func (k Key) session() session { return session{k.Folder, k.Topic} }

// Turn is a queued turn. Alone marks one that shares no run with others.
type Turn struct {
	ID int64
	Key
	Backoff time.Duration // how long it waits from the moment it is queued
	Alone   bool
}

// entry is a turn in its lane.
type entry struct {
	Turn
	ready time.Time // the end of its backoff, wherever the clock is set meanwhile
}

// lane is where a turn waits. Work that other groups hand over waits with the
// folder's chats, wherever it answers.
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

// Piped is a queued turn to be handed to a live run.
type Piped struct {
	RunID int64
	Turn  Turn
}

// Actions are what the caller is to do now, in any order.
type Actions struct {
	Start []Turn  // start a run for the turn; then call Started or StartFailed
	Pipe  []Piped // hand the turn to the run
	Close []int64 // let the idle run finish; then call Exited
}

// GroupQueue is the scheduler. Its methods only think: they return what to do.
type GroupQueue struct {
	mu    sync.Mutex
	limit int
	now   func() time.Time
	lanes map[laneKey]*lane
	runs  map[int64]*run
	holds map[session]*lane // which lane's process has a session
	ring  []*lane           // lanes that want to become busy, longest waiting first
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
	busyAt  time.Time // when its lane last got a place
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

// Remove forgets queued turns that were cancelled.
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

// Offer names the live run that a turn about to be stored may be piped to, 0
// if it has to queue, and counts the turn as the run's. If it does not get
// there, call Answered.
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

// Started tells that the run for a turn of Actions.Start exists.
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

// StartFailed tells that a turn of Actions.Start got no run. Push it again if
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

// Answered tells that n of a run's turns have ended or never reached it.
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

// Retire takes a run out of use: it answers what it has and gets no more.
func (q *GroupQueue) Drain(runID int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r := q.runs[runID]; r != nil {
		r.closing = true
	}
}

// Exited tells that a run's process is gone. The turns it left are queued
// before anything newer of their conversation can start.
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

// Tick takes up turns whose backoff is over and closes runs idle for as long as
// idle says of each, or longer.
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

// Depth is how many turns wait, and Running how many agents are busy.
func (q *GroupQueue) Depth() (waiting, running int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		waiting += len(l.waiting)
	}
	return waiting, q.busy
}

// wait puts a turn in its place in its lane.
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

// update runs one change and returns the actions that follow from it.
func (q *GroupQueue) update(change func()) Actions {
	q.mu.Lock()
	defer q.mu.Unlock()
	change()
	q.fill()
	acts := q.acts
	q.acts = Actions{}
	return acts
}

// refresh looks at one lane: it pipes what its run takes, closes a run that is
// in the way, and puts the lane in the ring if it wants to become busy.
func (q *GroupQueue) refresh(l *lane) {
	t, ready := l.head(q.now())
	switch {
	case len(l.waiting) == 0 && l.run == nil && !l.starting && !l.inRing:
		delete(q.lanes, l.key)
	case !ready || l.starting || l.inRing || l.run != nil && l.run.closing:
	case l.run == nil && !q.claims(l, t.session()):
	case l.run == nil:
		q.enter(l)
	case l.run.open == 0 && l.run.accepts(t):
		if q.busy < q.limit && q.inQuantum(l.run) {
			q.busy++ // the place it has just given up
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

// inSlice says whether a run may go on although other lanes wait.
func (q *GroupQueue) inQuantum(r *run) bool { return q.now().Sub(r.busyAt) < quantum }

// occupy gives an idle run's lane a place.
func (q *GroupQueue) occupy(r *run) {
	q.busy++
	r.busyAt = q.now()
}

// claims says whether a lane may start on a session. If another lane's process
// has it, that process gets no more turns and is closed once it is idle.
func (q *GroupQueue) claims(l *lane, s session) bool {
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

// refreshRivals looks at the other lanes that may wait for a session.
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

// fill gives free places to the lanes that have waited longest. When some
// are left waiting, idle runs make room.
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

// closeIdle has at most n processes fewer soon, those idle longest first.
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

// begin makes a lane of the ring busy, if it still wants to.
func (q *GroupQueue) begin(l *lane) {
	t, ready := l.head(q.now())
	switch {
	case !ready || l.starting || l.run != nil && (l.run.closing || l.run.open > 0):
		q.refresh(l)
	case l.run == nil && !q.claims(l, t.session()):
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

// accepts says whether a turn may be piped to the run.
func (r *run) accepts(t Turn) bool {
	return !r.closing && !r.wanted && !r.alone && !t.Alone && r.key == t.Key && r.open < maxPiped
}

// head is the lane's oldest turn that may run now: not in backoff, and not
// behind a turn of the same conversation that is.
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

// conversation is what keeps its order whatever happens to one of its turns.
type conversation struct{ chatJID, topic string }

func (k Key) conversation() conversation { return conversation{k.ChatJID, k.Topic} }

// blocks says whether a new turn of the key has to queue behind others.
func (l *lane) blocks(k Key, now time.Time) bool {
	_, ready := l.head(now)
	return ready || slices.ContainsFunc(l.waiting, func(t entry) bool { return t.conversation() == k.conversation() })
}

func (l *lane) take(t Turn) {
	l.waiting = slices.DeleteFunc(l.waiting, func(w entry) bool { return w.ID == t.ID })
}
