package store

import (
	"context"
	"encoding/json"
)

// ToolCall is a tool call that has acted.
type ToolCall struct {
	Tool      string
	Result    json.RawMessage
	CreatedAt int64 // unix ms
}

// ToolCalls returns the calls of a turn that have acted, oldest first.
func (r Reader) ToolCalls(ctx context.Context, turnID int64) ([]ToolCall, error) {
	return All(ctx, r, func(scan Scan) (c ToolCall, err error) {
		var result string
		err = scan(&c.Tool, &result, &c.CreatedAt)
		c.Result = json.RawMessage(result)
		return c, err
	}, queryToolCalls, turnID)
}

// ChatFileBytes is the size of the stored files of a chat's messages since a time, in unix ms, in both
// directions together, in bytes.
func (r Reader) ChatFileBytes(ctx context.Context, chatJID string, since int64) (int64, error) {
	return Value[int64](ctx, r, queryChatFileBytes, chatJID, since)
}
