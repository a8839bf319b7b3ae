package queue

import "arizuko/pkg/msg"

// lane is answered in order: a folder, or a topic of its web chat.
type lane struct {
	name     string
	run      *run
	beside   int // further runs, which wait for users' answers, or have since it went on
	starting bool
	inRing   bool
	paused   int64 // when it may start a run again, unix ms, 0 for at once

	// Its queued turns as far as they are known. Those up to through wait until the time until.
	unread   bool // there may be turns after through
	searched bool // they are being read
	changes  int  // how often something has changed that a read may not have seen
	next     *Turn
	through  int64
	until    int64 // unix ms, 0 for none
}

func (q *GroupQueue) lane(name string) *lane {
	l := q.lanes[name]
	if l == nil {
		l = &lane{name: name, unread: true}
		q.lanes[name] = l
	}
	return l
}

// folder is the group that the lane belongs to.
func (l *lane) folder() string {
	return msg.FolderOfLane(l.name)
}

// reread forgets the lane's turns.
func (l *lane) reread() {
	l.changes++
	l.unread, l.next, l.through, l.until = true, nil, 0, 0
}

// take removes the lane's next turn.
func (l *lane) take(t Turn) { l.next, l.unread, l.through = nil, true, t.ID }

// head returns the lane's oldest turn that may run now. It is not ready while the lane's turns are being read.
func (q *GroupQueue) head(l *lane) (Turn, bool) {
	if !q.over(l.paused) {
		return Turn{}, false
	}
	if l.until != 0 && q.over(l.until) {
		l.reread()
	}
	for {
		if l.next == nil && l.unread && !l.searched {
			l.searched = true
			q.acts.Search = append(q.acts.Search, Search{Lane: l.name, after: l.through, changes: l.changes})
		}
		if l.next == nil {
			return Turn{}, false
		}
		if r := q.holds[l.next.Session()]; r == nil || r.lane != l || r == l.run {
			return *l.next, true
		}
		l.take(*l.next) // its session waits for a user's answer; Waits and Exited read the lane again
	}
}

// over reports whether a time, in unix ms, has passed.
func (q *GroupQueue) over(at int64) bool {
	now := q.unixNow()
	return at <= now || at > now+maxWait.Milliseconds()
}

// within is a time, at the latest maxWait from now; 0 stays 0.
func (q *GroupQueue) within(at int64) int64 { return min(at, q.unixNow()+maxWait.Milliseconds()) }

// learn takes the result of a search, unless the lane has changed since, and reports whether a read may say more now.
func (q *GroupQueue) learn(f Found) (l *lane, more bool) {
	l = q.lanes[f.Lane]
	if l == nil {
		return nil, false
	}
	l.searched = false
	switch {
	case l.changes != f.changes:
	case f.err != nil:
		l.until = q.unixNow() + readRetry.Milliseconds()
		return l, false
	default:
		l.unread, l.through, l.until = false, f.next.Through, earlier(l.until, q.within(f.next.Until))
		if f.next.Found {
			l.next = &f.next.Turn
		}
	}
	return l, true
}

// earlier is the earlier of two times; 0 is no time.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
