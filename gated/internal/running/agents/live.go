package agents

import (
	"maps"
	"slices"
	"sync"

	"arizuko/gated/internal/running/queue"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// liveRuns are the runs that Stop, Cancel, Drain and the queue reach. The mutex guards them; it is held for moments
// only, never while the scheduler's or the queue's is acquired.
type liveRuns struct {
	wg sync.WaitGroup // of their goroutines

	mu      sync.Mutex
	byID    map[int64]*run
	closing bool // no further run starts
}

// get returns a run, nil if it is not live.
func (l *liveRuns) get(id int64) *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[id]
}

func (l *liveRuns) signal(c control) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.byID {
		r.inbox.control(c)
	}
}

func (l *liveRuns) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byID)
}

func (l *liveRuns) add(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byID[r.row.ID] = r
	if l.closing {
		r.inbox.control(ctlShutdown)
	}
}

func (l *liveRuns) remove(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, id)
}

// shutdown lets no further run start, and makes those there are end.
func (l *liveRuns) shutdown() {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	l.signal(ctlShutdown)
}

// reread makes the runs of changed turns look in their rows, and adds the lanes of queued ones to lanes. The turns are
// given as they were before.
func (l *liveRuns) reread(changed []*msg.Turn, lanes map[string]bool) {
	for _, t := range changed {
		if t.State == msg.TurnQueued {
			lanes[t.Lane()] = true
		} else if r := l.get(t.RunID); r != nil {
			r.inbox.control(ctlReread)
		}
	}
}

// carryOut carries out the actions of the queue. start starts a run.
func (l *liveRuns) carryOut(a queue.Actions, start func(queue.Turn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range a.Start {
		if !l.closing {
			l.wg.Go(func() { start(t) })
		}
	}
	for _, p := range a.Pipe {
		if r := l.byID[p.RunID]; r != nil {
			r.inbox.pipe(p.Turn)
		}
	}
	for _, id := range a.Close {
		if r := l.byID[id]; r != nil {
			r.inbox.control(ctlClose)
		}
	}
}

// scheduler makes the decisions of the queue and carries each out before the next one: those of two goroutines must
// reach a run in their order. The queue has a mutex of its own.
type scheduler struct {
	queue *queue.GroupQueue
	live  *liveRuns
	start func(queue.Turn)
	st    *store.Store

	mu sync.Mutex // held from a decision until it is carried out
}

func (s *scheduler) do(decide func(*queue.GroupQueue) queue.Actions) {
	searches := s.step(decide)
	s.st.AllAtOnce(len(searches), func(i int) {
		for left := searches[i : i+1 : i+1]; len(left) > 0; {
			found := s.queue.Search(left[0])
			left = append(left[1:], s.step(func(q *queue.GroupQueue) queue.Actions { return q.Found(found) })...)
		}
	})
}

// step carries one decision out, and returns the searches that it needs.
func (s *scheduler) step(decide func(*queue.GroupQueue) queue.Actions) []queue.Search {
	s.mu.Lock()
	defer s.mu.Unlock()
	acts := decide(s.queue)
	s.live.carryOut(acts, s.start)
	return acts.Search
}

// changed makes the queue read lanes again.
func (s *scheduler) changed(lanes map[string]bool) {
	if len(lanes) > 0 {
		s.do(func(q *queue.GroupQueue) queue.Actions { return q.Changed(slices.Collect(maps.Keys(lanes))...) })
	}
}

// freshLanes are lanes with new turns that the queue does not know of yet. The mutex guards the map.
type freshLanes struct {
	ready chan struct{} // there are some

	mu    sync.Mutex
	lanes map[string]bool
}

func (f *freshLanes) add(lane string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lanes[lane] = true
	notify(f.ready)
}

// receive empties them.
func (f *freshLanes) receive() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	lanes := slices.Collect(maps.Keys(f.lanes))
	clear(f.lanes)
	return lanes
}
