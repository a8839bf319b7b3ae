package rows

import (
	"context"
	"strconv"
	"strings"

	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// RunAtWork returns the group of a run and the turn that it works on, 0 for none. The group is "" if the run has ended.
func RunAtWork(ctx context.Context, r store.Reader, runID int64) (folder string, turn int64, err error) {
	const query = `SELECT r.folder, ifnull((SELECT min(t.id) FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.run_id = r.id), 0)
		FROM runs r WHERE r.id = ? AND r.ended_at IS NULL`
	_, err = r.Get(ctx, []any{&folder, &turn}, query, runID)
	return folder, turn, err
}

// allowAlways makes the rule of a question about a request of an agent that was answered with EgressAlways. The rules
// that have not decided about the request come before it: one that forbids a part of what it allows goes on to.
func allowAlways(tx *store.Tx, a *msg.Ask, by string, now int64) error {
	id, err := strconv.ParseInt(a.AskID[strings.LastIndexByte(a.AskID, ':')+1:], 10, 64)
	if err != nil {
		return err
	}
	r, err := egressrows.Receipt(store.Uncancelled(), tx.Reader, id)
	if err != nil || r == nil { // it was removed meanwhile
		return err
	}
	rule, ok := egress.Always(r.ForRules())
	all, err := egressrows.Rules(store.Uncancelled(), tx.Reader)
	if err != nil || !ok {
		return err
	}
	if asks := all.For(r.ForRules()); asks != nil && asks.Action == egress.Ask {
		rule.Seq = asks.Seq
	} else if len(all) > 0 {
		rule.Seq = all[len(all)-1].Seq + 1
	}
	rule.Author, rule.CreatedAt = by, now
	return egressrows.PutRule(tx, rule)
}
