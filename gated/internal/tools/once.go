package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/store"
)

const (
	// maxActing bounds the calls of a turn that act: a loop of the model must end.
	maxActing = 200
	// maxTurnBytes bounds what they store, by the size of their arguments, as often as these are stored. The frames of
	// a turn have as much.
	maxTurnBytes = 1 << 20
)

// once acts, and stores the result in the same transaction. If an earlier attempt at the
// turn made the same call, counting calls with equal arguments, nothing is done and its
// result is returned. in are the call's arguments. It returns a refusal if the turn is
// cancelled or has ended, and the error of effect, which undoes everything. Calls of one
// run that act do so one after another.
func once[In, Out any](ctx context.Context, c *Caller, in In, effect func(tx *store.Tx) (Out, error)) (out Out,
	err error) {
	return onceAfter(ctx, c, in, func() error { return nil }, effect)
}

// onceAfter is once for calls that need something outside of the transaction: a file, an answer of another daemon, a
// look at many rows. prepare does that, and only if no result is stored: the facts that it checks may have changed
// since. It must be harmless when repeated, since a kill may follow it.
func onceAfter[In, Out any](ctx context.Context, c *Caller, in In, prepare func() error,
	effect func(tx *store.Tx) (Out, error)) (out Out, err error) {
	hash, err := hashCall(c.Tool, in)
	if err != nil {
		return out, err
	}
	size, err := sizeOf(in)
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
	found, used, err := c.stored(ctx, call, &out)
	if err == nil && !found {
		if err = prepare(); err == nil {
			size *= max(c.copies, 1)
			err = checkBytes(used, size)
		}
		if err == nil { // calls of a turn that act follow one another: nothing else of it was stored since
			err = c.write(ctx, func(tx *store.Tx) (err error) {
				if out, err = effect(tx); err != nil {
					return err
				}
				return c.storeResult(tx, call, size, out)
			})
		}
	}
	if err == nil {
		c.access.noteActed(c.Turn.ID, hash)
	}
	return out, err
}

// stored decodes the result of a call into out, if it is stored; else used is what the turn's calls have stored, in
// bytes. It returns a refusal if the turn may act no more.
func (c *Caller) stored(ctx context.Context, call string, out any) (found bool, used int, err error) {
	r := c.Services.Store.Reader
	if err := c.checkOpen(ctx, r); err != nil {
		return false, 0, err
	}
	result, found, err := rows.ToolCall(ctx, r, c.Turn.ID, call)
	if err != nil {
		return false, 0, err
	}
	if found {
		return true, 0, json.Unmarshal(result, out)
	}
	n, used, err := rows.CountToolCalls(ctx, r, c.Turn.ID)
	if err == nil && n >= maxActing {
		err = refuse("this turn has acted %d times, which is the limit: finish your answer without further tools", n)
	}
	return false, used, err
}

// sizeOf is the size of a call's arguments, in bytes.
func sizeOf(in any) (int, error) {
	var b bytes.Buffer
	plain := json.NewEncoder(&b)
	plain.SetEscapeHTML(false)
	err := plain.Encode(in)
	return b.Len(), err
}

// checkBytes returns a refusal if a call that stores size bytes is too much for a turn whose calls have stored used
// bytes.
func checkBytes(used, size int) error {
	if used+size <= maxTurnBytes {
		return nil
	}
	return refuse("this call would store %d KiB, and the tools of this turn have stored %d of %d KiB: "+
		"shorten the text, name fewer chats, or finish your answer without further tools",
		(size+1023)>>10, used>>10, maxTurnBytes>>10)
}

// storeResult stores the result of a call that has acted, with its size.
func (c *Caller) storeResult(tx *store.Tx, call string, size int, out any) error {
	result, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("encode the result of %s: %w", c.Tool, err)
	}
	result = withField(result, rows.StoredBytes, []byte(strconv.Itoa(size)))
	if c.replaced != nil {
		before, err := json.Marshal(c.replaced)
		if err != nil {
			return fmt.Errorf("encode what %s has replaced: %w", c.Tool, err)
		}
		result = withField(result, rows.Replaced, before)
	}
	return rows.PutToolCall(tx, c.Turn.ID, call, c.Tool, result, c.Services.now())
}

// withField adds a field to a result, which the caller of the tool does not see. Those that are no objects, of tests,
// have none.
func withField(result json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	fields, isObject := bytes.CutSuffix(result, []byte("}"))
	if !isObject {
		return result
	}
	comma := ","
	if len(fields) == 1 {
		comma = ""
	}
	return fmt.Appendf(fields, `%s"%s":%s}`, comma, name, value)
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
