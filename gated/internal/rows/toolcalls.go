package rows

import (
	"context"
	"encoding/json"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/store"
)

// ToolCall returns the stored result of a turn's tool call, JSON; found is false for a
// call that has not acted yet.
func ToolCall(ctx context.Context, r store.Reader, turnID int64, call string) (result json.RawMessage, found bool,
	err error) {
	var text string
	found, err = r.Get(ctx, []any{&text}, `SELECT result FROM tool_calls WHERE turn_id = ? AND call = ?`, turnID, call)
	return json.RawMessage(text), found, err
}

// StoredBytes is the field of a call's result that says how much the call has stored, in bytes.
const StoredBytes = "stored_bytes"

// Replaced is the field of a call's result that says what the call has changed or ended, as it was before.
const Replaced = "replaced"

// CountToolCalls is the number of a turn's tool calls that have acted, and how much they have stored, in bytes.
func CountToolCalls(ctx context.Context, r store.Reader, turnID int64) (n, bytes int, err error) {
	const query = `SELECT count(*), ifnull(sum(CAST(json_extract(result, '$.stored_bytes') AS INTEGER)), 0) FROM tool_calls WHERE turn_id = ?`
	_, err = r.Get(ctx, []any{&n, &bytes}, query, turnID)
	return n, bytes, err
}

// CountGroupCalls is the number of calls of a tool that have acted since a time, in unix ms, in the last 1,000 turns of
// a group.
func CountGroupCalls(ctx context.Context, r store.Reader, folder, tool string, since int64) (int, error) {
	const query = `SELECT count(*) FROM tool_calls WHERE tool = ?2 AND created_at > ?3
		AND turn_id IN (SELECT id FROM turns INDEXED BY turns_folder WHERE folder = ?1 AND started_at IS NOT NULL ORDER BY id DESC LIMIT 1000)`
	return store.Value[int](ctx, r, query, folder, tool, since)
}

// CountCallsOfRoot is the number of calls of three tools that have acted in a turn, or in
// those that came of it.
func CountCallsOfRoot(ctx context.Context, r store.Reader, root int64, tools [3]string) (int, error) {
	// Calls of three tools in the turns of one root, itself included.
	const query = `SELECT count(*) FROM tool_calls WHERE tool IN (?2, ?3, ?4)
		AND turn_id IN (SELECT id FROM turns INDEXED BY turns_root WHERE root_turn_id = ?1 UNION ALL SELECT ?1)`
	return store.Value[int](ctx, r, query, root, tools[0], tools[1], tools[2])
}

// PutToolCall stores the first result of a turn's tool call, in the transaction of its
// effect. A second one for the same call is an ErrRefused.
func PutToolCall(tx *store.Tx, turnID int64, call, tool string, result json.RawMessage, now int64) error {
	const query = `INSERT INTO tool_calls (turn_id, call, tool, result, created_at) VALUES (?,?,?,?,?)`
	tx.Note(failpoint.PutToolCall)
	return tx.Exec(query, turnID, call, tool, string(result), now)
}
