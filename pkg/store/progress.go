package store

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// Progress is one row of turn_progress: what the agent says of its work on a turn before it answers.
type Progress struct {
	State     agentproto.Status
	Text      string // the answer so far, in markdown; "" once the turn is done
	Plan      []agentproto.Step
	Tools     []agentproto.Tool // in the order of their first events
	UpdatedAt int64             // unix ms
}

// PutProgress stores what an agent says of its work on a turn, in place of what was stored before, and pokes who shows
// it. It returns ErrStale if the turn is not the run's, or has ended.
func (tx *Tx) PutProgress(run msg.Run, turnID int64, p *Progress) error {
	tx.note(failpoint.PutProgress)
	plan, err := json.Marshal(orEmpty(p.Plan))
	if err != nil {
		return err
	}
	tools, err := json.Marshal(orEmpty(p.Tools))
	if err != nil {
		return err
	}
	n, err := tx.change(upsertProgress, turnID, run.ID, p.State, p.Text, string(plan), string(tools), p.UpdatedAt)
	if err == nil && n == 0 {
		err = fmt.Errorf("progress of turn %d: %w", turnID, ErrStale)
	}
	tx.Poke(msg.DaemonOf(run.ChatJID))
	return err
}

// orEmpty makes JSON of nothing an empty list.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Progress returns what the agent has said last of its work on a turn, nil if nothing.
func (r Reader) Progress(ctx context.Context, turnID int64) (*Progress, error) {
	var p Progress
	var plan, tools []byte
	found, err := r.get(ctx, []any{&p.State, &p.Text, &plan, &tools, &p.UpdatedAt}, queryProgress, turnID)
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

// Work is a running turn whose agent has said something of its work.
type Work struct {
	TurnID    int64
	Place     string
	StartedAt int64 // unix ms
	UpdatedAt int64 // of its progress, unix ms
}

// ChatWork returns the work of agents on the turns of a chat, in the order of the turns.
func (r Reader) ChatWork(ctx context.Context, chatJID string) ([]Work, error) {
	return collect(ctx, r, func(scan scanner) (w Work, err error) {
		err = scan(&w.TurnID, &w.Place, &w.StartedAt, &w.UpdatedAt)
		return w, err
	}, queryChatWork, chatJID)
}

// WebWork returns when the progress of each running turn was stored, in unix ms, by web chat and turn. Turns whose
// agents have said nothing of their work have none.
func (r Reader) WebWork(ctx context.Context) (updated map[string]map[int64]int64, err error) {
	updated = map[string]map[int64]int64{}
	err = r.each(ctx, func(scan scanner) (bool, error) {
		var turn, at int64
		var jid string
		err := scan(&turn, &jid, &at)
		if updated[jid] == nil {
			updated[jid] = map[int64]int64{}
		}
		updated[jid][turn] = at
		return true, err
	}, queryWebWork)
	return updated, err
}

// Usage returns what a turn has used; zero if its agent said nothing.
func (r Reader) Usage(ctx context.Context, turnID int64) (u agentproto.Usage, err error) {
	_, err = r.get(ctx, []any{&u.Input, &u.Output, &u.CostUSD, &u.ContextUsed, &u.ContextSize}, queryUsage, turnID)
	return u, err
}
