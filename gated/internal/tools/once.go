package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"arizuko/pkg/store"
)

// maxActing bounds the calls of a turn that act: a loop of the model must end.
const maxActing = 200

// once acts, and stores the result in the same transaction. If an earlier attempt at the
// turn made the same call, counting calls with equal arguments, nothing is done and its
// result is returned. in are the call's arguments. It returns a refusal if the turn is
// cancelled or has ended, and the error of effect, which undoes everything. Calls of one
// run that act do so one after another.
func once[In, Out any](ctx context.Context, c *Caller, in In, effect func(tx *store.Tx) (Out, error)) (out Out, err error) {
	hash, err := hashCall(c.Tool, in)
	if err != nil {
		return out, err
	}
	select {
	case c.access.acting <- struct{}{}:
		defer func() { <-c.access.acting }()
	case <-ctx.Done():
		return out, ctx.Err()
	}
	call := hash + "." + strconv.Itoa(c.access.actedBefore(c.Turn.ID, hash))
	err = c.Services.Store.Write(ctx, func(tx *store.Tx) error {
		if err := c.checkOpen(ctx, tx.Reader); err != nil {
			return err
		}
		stored, found, err := tx.ToolCall(ctx, c.Turn.ID, call)
		if err != nil {
			return err
		}
		if found {
			return json.Unmarshal(stored, &out)
		}
		return c.act(tx, call, func() (any, error) {
			var err error
			out, err = effect(tx)
			return out, err
		})
	})
	if err == nil {
		c.access.noteActed(c.Turn.ID, hash)
	}
	return out, err
}

// act carries out a call that is not stored, and stores its result.
func (c *Caller) act(tx *store.Tx, call string, effect func() (any, error)) error {
	n, err := tx.CountToolCalls(context.Background(), c.Turn.ID)
	if err != nil {
		return err
	}
	if n >= maxActing {
		return refuse("this turn has acted %d times, which is the limit: finish your answer without further tools", n)
	}
	out, err := effect()
	if err != nil {
		return err
	}
	result, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("encode the result of %s: %w", c.Tool, err)
	}
	return tx.PutToolCall(c.Turn.ID, call, c.Tool, result, c.Services.now())
}

// hashCall is the same for calls of a tool with equal arguments. The arguments are
// encoded from the decoded struct, so that neither order nor white space matters.
func hashCall(tool string, in any) (string, error) {
	arguments, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("encode the arguments of %s: %w", tool, err)
	}
	sum := sha256.Sum256(append([]byte(tool+"\n"), arguments...))
	return hex.EncodeToString(sum[:16]), nil
}
