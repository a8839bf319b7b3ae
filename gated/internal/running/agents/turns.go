package agents

import (
	"slices"
	"strconv"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
)

// turns are those that the agent of a run has, and has had. The run's goroutine owns them.
type turns struct {
	row        *msg.Run
	unanswered []*msg.Turn     // in the order in which the agent got them
	last       *msg.Turn       // the one answered last, nil if none was
	prompted   map[int64]int64 // all of them → the last decision in the prompt
	folds      bool            // the agent can take a turn in while it works on another one
	toldFolds  bool            // the queue knows that it does
}

func (ts *turns) index(id int64) int {
	return slices.IndexFunc(ts.unanswered, func(t *msg.Turn) bool { return t.ID == id })
}

// has reports whether a turn is unanswered.
func (ts *turns) has(id int64) bool { return ts.index(id) >= 0 }

// fold reports whether the agent may answer all of its turns together: users of one place have asked them.
func (ts *turns) fold() bool {
	if !ts.folds || len(ts.unanswered) < 2 {
		return false
	}
	return !slices.ContainsFunc(ts.unanswered[1:], func(t *msg.Turn) bool { return !t.Folds(ts.unanswered[0]) })
}

// remove removes turns that were answered together, the one that has the answer first, and returns those that were
// unanswered.
func (ts *turns) remove(all ...*msg.Turn) (removed []*msg.Turn) {
	for _, t := range all {
		if i := ts.index(t.ID); i >= 0 {
			ts.unanswered = slices.Delete(ts.unanswered, i, i+1)
			removed = append(removed, t)
		}
	}
	if len(removed) > 0 {
		ts.last = all[0]
	}
	return removed
}

// addressees returns the turns that a frame answers, oldest first: of several that it names those that are
// unanswered, or the last one if all are answered; else its addressee; none if it names no turn of the run.
func (ts *turns) addressees(f agentproto.Frame) []*msg.Turn {
	var open []*msg.Turn
	for _, t := range ts.unanswered {
		if slices.Contains(f.TurnIDs, strconv.FormatInt(t.ID, 10)) {
			open = append(open, t)
		}
	}
	if len(open) > 0 {
		return open
	}
	named := f.TurnID
	if n := len(f.TurnIDs); n > 0 {
		named = f.TurnIDs[n-1]
	}
	if t := ts.addressee(named); t != nil {
		return []*msg.Turn{t}
	}
	return nil
}

// addressee returns the turn that a frame or an event is about: the one it names, else the
// oldest unanswered, else the last answered one; nil if there is none.
func (ts *turns) addressee(turnID string) *msg.Turn {
	if turnID == "" {
		if len(ts.unanswered) > 0 {
			return ts.unanswered[0]
		}
		return ts.last
	}
	id, err := strconv.ParseInt(turnID, 10, 64)
	if err != nil {
		return nil
	}
	if i := ts.index(id); i >= 0 {
		return ts.unanswered[i]
	}
	if _, ours := ts.prompted[id]; !ours {
		return nil
	}
	return &msg.Turn{ID: id, RunID: ts.row.ID, Folder: ts.row.Folder}
}
