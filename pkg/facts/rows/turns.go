package rows

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// FoldedInto returns the turns that were answered with a turn's answer, oldest first.
func FoldedInto(ctx context.Context, r store.Reader, turnID int64) ([]*msg.Turn, error) {
	return r.ReadTurns(ctx, `SELECT `+store.TurnColumns+` FROM turns t WHERE t.answered_with = ? ORDER BY t.id`, turnID)
}

// MinFailures is how many turns of a group must fail alike, one after another,
// before its other turns wait and one a minute is tried.
const MinFailures = 3

// GroupFailures is a group whose turns fail alike.
type GroupFailures struct {
	Folder  string
	Problem string
	Count   int
	Since   int64
	ProbeAt int64 // when the next turn is tried
}

// FailingGroups returns the groups whose turns wait because they fail alike.
func FailingGroups(ctx context.Context, r store.Reader) ([]GroupFailures, error) {
	return store.All(ctx, r, func(scan store.Scan) (f GroupFailures, err error) {
		err = scan(&f.Folder, &f.Problem, &f.Count, &f.Since, &f.ProbeAt)
		return f, err
		// an empty table, but for seconds
	}, `SELECT folder, problem, count, since, probe_at FROM group_failures WHERE count >= ? ORDER BY folder`, MinFailures)
}

// Usage returns the usage of a turn; zero if its agent said nothing.
func Usage(ctx context.Context, r store.Reader, turnID int64) (u agentproto.Usage, err error) {
	_, err = r.Get(ctx, []any{&u.Input, &u.Output, &u.CostUSD, &u.ContextUsed, &u.ContextSize}, `SELECT ifnull(input_tokens, 0), ifnull(output_tokens, 0), ifnull(cost_usd, 0), ifnull(context_used, 0), ifnull(context_size, 0)
		FROM turns WHERE id = ?`,
		turnID)
	return u, err
}

// ToolCall is a tool call that has acted.
type ToolCall struct {
	Tool      string
	Result    json.RawMessage
	CreatedAt int64 // unix ms
}

// ToolCalls returns the calls of a turn that have acted, oldest first.
func ToolCalls(ctx context.Context, r store.Reader, turnID int64) ([]ToolCall, error) {
	return store.All(ctx, r, func(scan store.Scan) (c ToolCall, err error) {
		var result string
		err = scan(&c.Tool, &result, &c.CreatedAt)
		c.Result = json.RawMessage(result)
		return c, err
	}, `SELECT tool, result, created_at FROM tool_calls WHERE turn_id = ? ORDER BY created_at`, turnID)
}

// Session is the stored session of a folder's topic, "" if there is none.
func Session(ctx context.Context, r store.Reader, folder, topic string) (string, error) {
	return store.Value[string](ctx, r, `SELECT session_id FROM sessions WHERE group_folder = ? AND topic = ?`, folder, topic)
}

// AgentModels are the models that an agent has offered to a group last; none if it has not offered any. agent is its
// name in AGENTS, "" for the default one.
func AgentModels(ctx context.Context, r store.Reader, folder, agent string) (m agentproto.Models, err error) {
	var list []byte
	found, err := r.Get(ctx, []any{&list, &m.Current}, `SELECT models, current FROM agent_models WHERE folder = ? AND agent = ?`,
		folder, agent)
	if err != nil || !found {
		return m, err
	}
	if err := json.Unmarshal(list, &m.Models); err != nil {
		return m, fmt.Errorf("models of agent %q of group %s: %w", agent, folder, err)
	}
	return m, nil
}

// TurnMessages returns the rows of a turn in the order they were written; a
// derived row is sorted as the row it is derived from.
func TurnMessages(ctx context.Context, r store.Reader, turnID int64) ([]*msg.Message, error) {
	rows, err := r.Messages(ctx, `SELECT `+store.MessageColumns+
		` FROM messages m WHERE m.turn_id = ? AND m.direction = 'in' ORDER BY m.id`, turnID)
	written := func(m *msg.Message) int64 {
		if m.Source == msg.SourcePrefix || m.Source == msg.SourceCommand {
			return m.DerivedFrom
		}
		return m.ID
	}
	slices.SortStableFunc(rows, func(a, b *msg.Message) int { return cmp.Compare(written(a), written(b)) })
	return rows, err
}

// TurnReplies returns the outbound rows of a turn, oldest first.
func TurnReplies(ctx context.Context, r store.Reader, turnID int64) ([]*msg.Message, error) {
	return r.Messages(ctx, `SELECT `+store.MessageColumns+
		` FROM messages m WHERE m.turn_id = ? AND m.direction = 'out' AND m.source <> 'waiting' ORDER BY m.id`, turnID)
}

// ChatAsks returns the open questions that are shown in a thread of a chat, "" for outside of one, oldest first, at
// most 20. Those about failed turns are only answered by their buttons and by replies, so they are left out.
func ChatAsks(ctx context.Context, r store.Reader, chatJID, threadID string) ([]*msg.Ask, error) {
	return r.ReadAsks(ctx, `SELECT `+store.AskColumns+
		` FROM asks a INDEXED BY asks_open CROSS JOIN messages m ON m.id = a.message_id
			WHERE a.state = 'open' AND m.chat_jid = ? AND m.thread_id = ? AND substr(a.ask_id, 1, 11) <> 'gated:retry' ORDER BY a.id LIMIT 20`,
		chatJID, threadID)
}
