package turncontext

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// Now is the moment of a prompt that is made at a time.
func Now(at time.Time) Moment {
	return Moment{At: at, BeforeTurn: math.MaxInt64, Through: math.MaxInt64}
}

// Again makes the prompt of a turn that has started from the rows, as the first prompt of a
// run: rows do not tell what the run was shown before. Defaults are for the settings that the
// group's own configuration lacks. It returns an error if the turn does not exist or has not started.
func (r Reader) Again(ctx context.Context, turnID int64, defaults groupconfig.Config) (string, error) {
	t, err := r.Store.Turn(ctx, turnID)
	switch {
	case err != nil:
		return "", err
	case t == nil:
		return "", fmt.Errorf("no turn %d: `gated why MESSAGE` prints the turn of a message", turnID)
	case t.StartedAt == 0:
		return "", fmt.Errorf("turn %d has not started (%s): its prompt is made when an agent takes it", t.ID, t.State)
	}
	q := Request{Turn: t, Moment: Moment{
		At: time.UnixMilli(t.StartedAt), BeforeTurn: t.ID, Through: cmp.Or(t.ObservedUpto, math.MaxInt64),
	}}
	if q.Group, err = r.group(ctx, t.Folder, defaults); err != nil {
		return "", err
	}
	if q.Facts, err = rows.ReadPromptFacts(ctx, r.Store, t, 0, 0); err != nil {
		return "", err
	}
	if q.NewSession, err = r.beganFork(ctx, t); err != nil {
		return "", err
	}
	p, err := r.Read(ctx, q)
	return p.Text, err
}

// group is the configuration of a group as it is now.
func (r Reader) group(ctx context.Context, folder string, defaults groupconfig.Config) (groupconfig.Config, error) {
	stored, err := r.Store.Group(ctx, folder)
	if err != nil || stored == nil {
		return groupconfig.Config{}.Over(defaults), err
	}
	own, err := groupconfig.Parse(stored.Config)
	if err != nil { // agents run with the defaults meanwhile, too
		return groupconfig.Config{}.Over(defaults), nil //nolint:nilerr // see above
	}
	return own.Over(defaults), nil
}

// beganFork reports whether a turn began the session of a fork: it is the only use of a new
// session that rows tell.
func (r Reader) beganFork(ctx context.Context, t *msg.Turn) (bool, error) {
	fork, err := r.Store.Fork(ctx, t.ChatJID, t.Topic)
	if err != nil || fork == nil {
		return false, err
	}
	before, err := rows.LastAnswered(ctx, r.Store, t.Folder, t.Topic, t.ID)
	return before.EndedAt < fork.CreatedAt, err
}
