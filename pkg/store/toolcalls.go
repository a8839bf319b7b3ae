package store

import (
	"context"
	"encoding/json"

	"arizuko/pkg/failpoint"
)

// ToolCall returns the stored result of a turn's tool call, JSON; found is false for a
// call that has not acted yet.
func (r Reader) ToolCall(ctx context.Context, turnID int64, call string) (result json.RawMessage, found bool,
	err error) {
	var text string
	found, err = r.get(ctx, []any{&text}, queryToolCall, turnID, call)
	return json.RawMessage(text), found, err
}

// ToolCall is a tool call that has acted.
type ToolCall struct {
	Tool      string
	Result    json.RawMessage
	CreatedAt int64 // unix ms
}

// ToolCalls returns the calls of a turn that have acted, oldest first.
func (r Reader) ToolCalls(ctx context.Context, turnID int64) ([]ToolCall, error) {
	return collect(ctx, r, func(scan scanner) (c ToolCall, err error) {
		var result string
		err = scan(&c.Tool, &result, &c.CreatedAt)
		c.Result = json.RawMessage(result)
		return c, err
	}, queryToolCalls, turnID)
}

// StoredBytes is the field of a call's result that says how much the call has stored, in bytes.
const StoredBytes = "stored_bytes"

// CountToolCalls is the number of a turn's tool calls that have acted, and how much they have stored, in bytes.
func (r Reader) CountToolCalls(ctx context.Context, turnID int64) (n, bytes int, err error) {
	_, err = r.get(ctx, []any{&n, &bytes}, queryToolCallCount, turnID)
	return n, bytes, err
}

// CountGroupCalls is the number of calls of a tool that have acted since a time, in unix ms, in the last 1,000 turns of
// a group.
func (r Reader) CountGroupCalls(ctx context.Context, folder, tool string, since int64) (int, error) {
	return value[int](ctx, r, queryGroupCalls, folder, tool, since)
}

// CountCallsOfRoot is the number of calls of three tools that have acted in a turn, or in
// those that came of it.
func (r Reader) CountCallsOfRoot(ctx context.Context, root int64, tools [3]string) (int, error) {
	return value[int](ctx, r, queryCallsOfRoot, root, tools[0], tools[1], tools[2])
}

// PutToolCall stores the first result of a turn's tool call, in the transaction of its
// effect. A second one for the same call is an ErrRefused.
func (tx *Tx) PutToolCall(turnID int64, call, tool string, result json.RawMessage, now int64) error {
	tx.note(failpoint.PutToolCall)
	return tx.exec(insertToolCall, turnID, call, tool, string(result), now)
}

// ChatFileBytes is the size of the stored files of a chat's messages since a time, in unix ms, in both
// directions together, in bytes.
func (r Reader) ChatFileBytes(ctx context.Context, chatJID string, since int64) (int64, error) {
	return value[int64](ctx, r, queryChatFileBytes, chatJID, since)
}

// ThreadOfTopic is a thread of a chat that is bound to a named topic, "" for none.
func (r Reader) ThreadOfTopic(ctx context.Context, chatJID, topic string) (string, error) {
	return value[string](ctx, r, queryThreadOfTopic, chatJID, topic)
}

// HasThread reports whether a chat is known to have a thread.
func (r Reader) HasThread(ctx context.Context, chatJID, thread string) (bool, error) {
	return value[bool](ctx, r, queryHasThread, chatJID, thread)
}
