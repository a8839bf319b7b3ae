package agents

import (
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// reread does what the rows say about the run and no signal did.
func (r *run) reread() {
	turns, err := rows.RunTurns(r.env.ctx, r.env.st.Reader, r.row.ID)
	if err != nil {
		return // the next sweep looks again
	}
	open, err := rows.RunTakes(r.env.ctx, r.env.st.Reader, r.row.ID)
	if err != nil {
		return
	}
	for _, t := range turns {
		r.accept(t)
	}
	r.report()
	r.interruptCancelled()
	r.noteChanges()
	if !open && !r.agent.ending() { // it was closed, or a /stop cancelled a turn that it has just answered
		r.drain()
	}
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
