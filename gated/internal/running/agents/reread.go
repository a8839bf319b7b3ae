package agents

import (
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// takeTurns takes the turns that are stored for the run, and reports whether their rows could be read.
func (r *run) takeTurns() bool {
	var turns []*msg.Turn
	err := r.env.retryDB(r.env.ctx, "read the turns of a run", func() (err error) {
		turns, err = rows.RunTurns(r.env.ctx, r.env.st.Reader, r.row.ID)
		return err
	})
	for _, t := range turns {
		r.accept(t)
	}
	r.report()
	return err == nil // else gated is stopping
}

// reread carries out everything that the rows say about the run.
func (r *run) reread() {
	if !r.takeTurns() {
		return
	}
	r.interruptCancelled()
	r.noteChanges()
	open, err := rows.RunTakes(r.env.ctx, r.env.st.Reader, r.row.ID)
	if err == nil && !open && !r.agent.ending() { // it was closed, or a /stop cancelled a turn that it has just answered
		r.drain()
	}
	r.checkAsks() // the next sweep looks again for anything that could not be read
}

// interruptCancelled interrupts the agent if the turn at work was cancelled.
func (r *run) interruptCancelled() {
	if len(r.turns.unanswered) == 0 {
		return
	}
	oldest, err := r.env.st.Turn(r.env.ctx, r.turns.unanswered[0].ID)
	if err == nil && oldest != nil && oldest.State == msg.TurnCancelled {
		r.agent.interrupt()
	}
}

// noteChanges gives an agent that folds a turn of the edits and deletions that came while it works. Another one reads
// of them in its next prompt.
func (r *run) noteChanges() {
	if !r.mayFold() || r.agent.ending() || len(r.turns.unanswered) == 0 {
		return
	}
	var notes *msg.Turn
	err := r.env.st.Write(r.env.ctx, func(tx *store.Tx) (err error) {
		notes, err = rows.PutNotes(tx, r.turns.unanswered[0], r.env.now())
		return err
	})
	if err == nil && notes != nil { // else the next prompt has them
		r.accept(notes)
		r.report()
	}
}
