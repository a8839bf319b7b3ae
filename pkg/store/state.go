package store

import "context"

// Keys of router_state.
const (
	StateDecisionSeq = "decision_seq"

	StateDemoAgent = "demo_agent"
)

func (r Reader) State(ctx context.Context, key string) (int64, error) {
	return Value[int64](ctx, r, queryState, key)
}

// bump increments a counter and returns it.
func (tx *Tx) bump(key string) (int64, error) {
	return Value[int64](Uncancelled(), tx.Reader, BumpState, key)
}

// DemoAgent reports whether the demo agent answers where a group names no other one.
func (r Reader) DemoAgent(ctx context.Context) (bool, error) {
	value, err := r.State(ctx, StateDemoAgent)
	return value == 1, err
}
