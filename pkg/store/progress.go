package store

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/agentproto"
)

// Progress is one row of turn_progress: what the agent says of its work on a turn before it answers.
type Progress struct {
	State     agentproto.Status
	Text      string // the answer so far, in markdown; "" once the turn is done
	Plan      []agentproto.Step
	Tools     []agentproto.Tool // in the order of their first events
	UpdatedAt int64             // unix ms
}

// Progress returns what the agent has said last of its work on a turn, nil if nothing.
func (r Reader) Progress(ctx context.Context, turnID int64) (*Progress, error) {
	var p Progress
	var plan, tools []byte
	found, err := r.Get(ctx, []any{&p.State, &p.Text, &plan, &tools, &p.UpdatedAt}, queryProgress, turnID)
	if err != nil || !found {
		return nil, err
	}
	if err := json.Unmarshal(plan, &p.Plan); err != nil {
		return nil, fmt.Errorf("plan of turn %d: %w", turnID, err)
	}
	if err := json.Unmarshal(tools, &p.Tools); err != nil {
		return nil, fmt.Errorf("tools of turn %d: %w", turnID, err)
	}
	return &p, nil
}

// Usage returns what a turn has used; zero if its agent said nothing.
func (r Reader) Usage(ctx context.Context, turnID int64) (u agentproto.Usage, err error) {
	_, err = r.Get(ctx, []any{&u.Input, &u.Output, &u.CostUSD, &u.ContextUsed, &u.ContextSize}, queryUsage, turnID)
	return u, err
}
