package store

import "context"

// Keys of router_state.
const (
	stateCursor      = "cursor"
	stateDecisionSeq = "decision_seq"
	stateAnnounced   = "announced_schema"
	stateDemoAgent   = "demo_agent"
)

func (r Reader) state(ctx context.Context, key string) (int64, error) {
	return value[int64](ctx, r, queryState, key)
}

// Cursor is the id of the last row that gated has read. It is a hint: undecided
// rows are found without it.
func (r Reader) Cursor(ctx context.Context) (int64, error) { return r.state(ctx, stateCursor) }

// SetCursor stores the cursor.
func (tx *Tx) SetCursor(id int64) error {
	return tx.exec(putState, stateCursor, id)
}

// bump increments a counter and returns it.
func (tx *Tx) bump(key string) (int64, error) {
	return value[int64](uncancelled(), tx.Reader, bumpState, key)
}

// DemoAgent reports whether the demo agent answers where a group names no other one.
func (r Reader) DemoAgent(ctx context.Context) (bool, error) {
	value, err := r.state(ctx, stateDemoAgent)
	return value == 1, err
}

// SetDemoAgent stores that.
func (tx *Tx) SetDemoAgent(demo bool) error {
	value := 0
	if demo {
		value = 1
	}
	return tx.exec(putState, stateDemoAgent, value)
}
