// Package turn is a turn of an agent that runs a program. One goroutine handles the program's lines, the words of users
// and the end of the turn, so nothing else may block it or end the turn.
package turn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"arizuko/pkg/agentproto"
)

// TextInterval is how often the text is shown while the model writes it: as often as gated stores it for the web chat,
// which shows the most. Each event has all of the text.
const TextInterval = 250 * time.Millisecond

// Turn is a turn that the program works on. An interruption is no error of its methods: the turn ends where its context
// does.
type Turn struct {
	*agentproto.Turn
	// Decided passes on answers of users, as calls for the goroutine that has the program.
	Decided chan func() error

	ctx   context.Context //nolint:containedctx // of its questions
	asked map[string]int
}

// New returns a turn whose questions end with ctx, or with end.
func New(ctx context.Context, t *agentproto.Turn) (turn *Turn, end context.CancelFunc) {
	ctx, end = context.WithCancel(ctx)
	return &Turn{Turn: t, Decided: make(chan func() error), ctx: ctx, asked: map[string]int{}}, end
}

// Emit writes an event.
func (t *Turn) Emit(e agentproto.Event) error { return unlessInterrupted(t.Turn.Emit(e)) }

// Alive is a sign of life without an event.
func (t *Turn) Alive() error { return unlessInterrupted(t.Turn.Alive()) }

// Fold makes another turn a part of this one.
func (t *Turn) Fold(newer *agentproto.Turn) error { return unlessInterrupted(t.Turn.Fold(newer)) }

func unlessInterrupted(err error) error {
	if errors.Is(err, agentproto.ErrInterrupted) {
		return nil
	}
	return err
}

// Count returns how often the turn has asked about something, this time included.
func (t *Turn) Count(about string) int {
	t.asked[about]++
	return t.asked[about]
}

// Ask calls dialog in a goroutine of its own, and passes on the call that it returns. ask asks users a question and
// waits for their answer; if they cannot be asked, the answer has the problem and no reason. Questions of a turn that
// was interrupted end with it.
func (t *Turn) Ask(dialog func(ask func(agentproto.Ask) agentproto.Answer) (decide func() error)) {
	go func() {
		interrupted := false
		decide := dialog(func(question agentproto.Ask) agentproto.Answer {
			answer, err := t.Turn.Ask(t.ctx, question)
			if err != nil {
				interrupted = errors.Is(err, agentproto.ErrInterrupted)
				answer = agentproto.Answer{Problem: fmt.Sprintf("users cannot be asked: %v", err)}
			}
			return answer
		})
		if interrupted {
			return
		}
		select {
		case t.Decided <- decide:
		case <-t.ctx.Done():
		}
	}()
}
