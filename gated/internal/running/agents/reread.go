package agents

import (
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// takeTurns takes the turns that are stored for the run. Without the rows it tries again later: frames, exits and time
// limits don't wait for the database.
func (r *run) takeTurns() error {
	turns, err := rows.RunTurns(r.env.ctx, r.env.st.Reader, r.row.ID)
	if err != nil {
		r.rereadLater()
		return err
	}
	for _, t := range turns {
		r.accept(t)
	}
	r.report()
	return nil
}

func (r *run) rereadLater() { time.AfterFunc(minRetryDelay, func() { r.inbox.control(ctlReread) }) }

// reread carries out everything that the rows say about the run.
func (r *run) reread() {
	if r.takeTurns() != nil {
		return
	}
	r.interruptCancelled()
	r.noteChanges()
	open, err := rows.RunTakes(r.env.ctx, r.env.st.Reader, r.row.ID)
	if err == nil && !open && !r.agent.ending() { // it was closed, or a /stop cancelled a turn that it just answered
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
	if err != nil {
		r.rereadLater()
	} else if oldest != nil && oldest.State == msg.TurnCancelled {
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
