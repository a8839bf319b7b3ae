package queue

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
)

// clock is the time of a test, moved by hand.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.UnixMilli(1_000_000)} }

func (c *clock) time() time.Time { return c.now }

func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

// fakeRows are queued turns in memory.
type fakeRows struct {
	queued map[int64]Turn
	until  map[int64]int64 // turn → when it may start, unix ms
	reads  int
}

func newFakeRows() *fakeRows {
	return &fakeRows{queued: map[int64]Turn{}, until: map[int64]int64{}}
}

func (f *fakeRows) put(t Turn) { f.queued[t.ID] = t }

// remove takes a turn that runs or has ended.
func (f *fakeRows) remove(id int64) {
	delete(f.queued, id)
	delete(f.until, id)
}

// Next looks at every turn of the lane.
func (f *fakeRows) Next(lane string, after, now int64) (next Next, err error) {
	f.reads++
	next.Through = after
	for _, id := range slices.Sorted(maps.Keys(f.queued)) {
		t := f.queued[id]
		if t.Lane != lane || id <= after {
			continue
		}
		if f.until[id] <= now && !f.behind(t) {
			next.Turn, next.Found = t, true
			return next, nil
		}
		next.Through = id
		if !f.behind(t) {
			next.Until = earlier(next.Until, f.until[id])
		}
	}
	return next, nil
}

func (f *fakeRows) behind(t Turn) bool {
	for id, older := range f.queued {
		if id < t.ID && older.Conversation() == t.Conversation() {
			return true
		}
	}
	return false
}

// fixture is a queue with its rows. The test does the manager's part.
type fixture struct {
	*GroupQueue
	rows  *fakeRows
	clock *clock
}

func newFixture(limit int) *fixture {
	c, rows := newClock(), newFakeRows()
	return &fixture{New(limit, c.time, rows), rows, c}
}

// read makes the searches of actions, and returns all actions but these.
func (f *fixture) read(acts Actions) Actions {
	for searches := acts.Search; len(searches) > 0; {
		more := f.Found(f.Search(searches[0]))
		searches = append(searches[1:], more.Search...)
		acts.Start, acts.Pipe = append(acts.Start, more.Start...), append(acts.Pipe, more.Pipe...)
		acts.Close = append(acts.Close, more.Close...)
	}
	acts.Search = nil
	return acts
}

func (f *fixture) Stored(lanes ...string) Actions  { return f.read(f.GroupQueue.Stored(lanes...)) }
func (f *fixture) Changed(lanes ...string) Actions { return f.read(f.GroupQueue.Changed(lanes...)) }
func (f *fixture) Resume(folder string, lanes ...string) Actions {
	return f.read(f.GroupQueue.Resume(folder, lanes...))
}
func (f *fixture) Started(t Turn, run int64) Actions { return f.read(f.GroupQueue.Started(t, run)) }
func (f *fixture) StartFailed(t Turn, until int64) Actions {
	return f.read(f.GroupQueue.StartFailed(t, until))
}
func (f *fixture) Took(run int64, open int, taken bool) Actions {
	return f.read(f.GroupQueue.Took(run, open, taken))
}
func (f *fixture) Holds(run int64, open int) Actions   { return f.read(f.GroupQueue.Holds(run, open)) }
func (f *fixture) Folds(run int64, folds bool) Actions { return f.read(f.GroupQueue.Folds(run, folds)) }
func (f *fixture) Waits(run int64, waits bool) Actions { return f.read(f.GroupQueue.Waits(run, waits)) }
func (f *fixture) Kept(run int64) Actions              { return f.read(f.GroupQueue.Kept(run)) }
func (f *fixture) Exited(run int64) Actions            { return f.read(f.GroupQueue.Exited(run)) }
func (f *fixture) Tick(idle func(int64) time.Duration) Actions {
	return f.read(f.GroupQueue.Tick(idle))
}

// push stores queued turns.
func (f *fixture) push(turns ...Turn) Actions {
	var lanes []string
	for _, t := range turns {
		f.rows.put(t)
		lanes = append(lanes, t.Lane)
	}
	return f.Stored(lanes...)
}

// later stores a turn that waits.
func (f *fixture) later(t Turn, wait time.Duration) Actions {
	f.rows.until[t.ID] = f.clock.now.Add(wait).UnixMilli()
	return f.push(t)
}

func (f *fixture) started(t Turn, run int64) Actions {
	f.rows.remove(t.ID)
	return f.Started(t, run)
}

// took reports that a piped turn has reached its run, which has so many now.
func (f *fixture) took(run int64, t Turn, open int) Actions {
	f.rows.remove(t.ID)
	return f.Took(run, open, true)
}

// exited reports the end of a run that leaves turns.
func (f *fixture) exited(run int64, left ...Turn) Actions {
	for _, t := range left {
		f.rows.put(t)
	}
	return f.Exited(run)
}

// run has a live run for a turn.
func (f *fixture) run(t Turn, run int64) {
	f.push(t)
	f.started(t, run)
}

func at(folder, chat, topic string) msg.Address {
	return msg.Address{Folder: folder, ChatJID: chat, Topic: topic}
}

func turn(id int64, a msg.Address) Turn {
	return Turn{ID: id, Address: a, Lane: a.Lane(msg.Conversation)}
}

func alone(t Turn) Turn {
	t.Alone, t.Lane = true, t.Address.Lane(msg.Delegated)
	return t
}

func expect(t *testing.T, what string, got, want Actions) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func starts(all ...Turn) Actions { return Actions{Start: all} }

func pipes(run int64, t Turn) Actions { return Actions{Pipe: []Piped{{run, t}}} }

func closes(runs ...int64) Actions { return Actions{Close: runs} }

var none Actions

var (
	alice = at("main", "telegram:1", "")
	bob   = at("main", "telegram:2", "")
	other = at("other", "telegram:3", "")
)

// idleFor keeps every run warm for the same time.
func idleFor(d time.Duration) func(int64) time.Duration {
	return func(int64) time.Duration { return d }
}
