package store

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
)

const (
	queryTurns = `SELECT ` + TurnColumns +
		` FROM turns t WHERE (?1 = '' OR t.state = ?1) AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`
	queryOpenState = `SELECT ` + TurnColumns +
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running') AND t.state = ?1||''
		AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`
	queryFailedState = `SELECT ` + TurnColumns +
		` FROM turns t INDEXED BY turns_state WHERE t.state IN ('failed', 'cancelled') AND t.state = ?1||''
		AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`
	// an empty table, but for seconds
	queryFailing = `SELECT folder, problem, count, since, probe_at FROM group_failures WHERE count >= ? ORDER BY folder`
)

const TurnColumns = `t.id, ifnull(t.run_id,0), t.kind, t.folder, t.chat_jid, t.topic, t.thread_id, t.place,
	ifnull(t.reply_to,''), t.trigger_message_id, t.claims_engagement, t.surface, t.ceiling, t.state, t.reason,
	t.attempts, t.not_before, t.waits_for, t.row_count, t.row_bytes, t.observed_upto, t.frames, t.depth,
	ifnull(t.root_turn_id,0), ifnull(t.answered_with,0), t.error, t.error_kind, t.created_at, ifnull(t.started_at,0), ifnull(t.ended_at,0)`

func scanTurn(scan Scan) (*msg.Turn, error) {
	var t msg.Turn
	err := scan(&t.ID, &t.RunID, &t.Kind, &t.Folder, &t.ChatJID, &t.Topic, &t.ThreadID, &t.Place,
		&t.ReplyTo, &t.TriggerMessageID, &t.ClaimsEngagement, &t.Surface, &t.Ceiling, &t.State, &t.Reason,
		&t.Attempts, &t.NotBefore, &t.WaitsFor, &t.RowCount, &t.RowBytes, &t.ObservedUpto, &t.Frames, &t.Depth,
		&t.RootTurnID, &t.AnsweredWith, &t.Error, &t.ErrorKind, &t.CreatedAt, &t.StartedAt, &t.EndedAt)
	return &t, err
}

func (r Reader) ReadTurns(ctx context.Context, query string, args ...any) ([]*msg.Turn, error) {
	return All(ctx, r, scanTurn, query, args...)
}

// Turn returns a turn by id, nil if there is none.
func (r Reader) Turn(ctx context.Context, id int64) (*msg.Turn, error) {
	return First(r.ReadTurns(ctx, `SELECT `+TurnColumns+` FROM turns t WHERE t.id = ?`, id))
}

// OpenTurns returns every turn that has not ended, oldest first.
func (r Reader) OpenTurns(ctx context.Context) ([]*msg.Turn, error) {
	return r.ReadTurns(ctx, `SELECT `+TurnColumns+
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running') ORDER BY t.id`)
}

// TurnList is which turns Turns lists. Of State, ChatJID and Folder what is "" does not count.
type TurnList struct {
	State   msg.TurnState
	ChatJID string
	Folder  string // only turns that have started; not together with the others
	Before  int64  // only those with a smaller id, 0 for all
	Limit   int
}

// Turns lists turns, newest first.
func (r Reader) Turns(ctx context.Context, l TurnList) ([]*msg.Turn, error) {
	before := OrNewest(l.Before)
	switch {
	case l.ChatJID != "":
		return r.ReadTurns(ctx, `SELECT `+TurnColumns+
			` FROM turns t INDEXED BY turns_chat WHERE t.chat_jid = ?1 AND (?2 = '' OR t.state = ?2)
				AND t.id < ?3 ORDER BY t.id DESC LIMIT ?4+0`,
			l.ChatJID, l.State, before, l.Limit)
	case l.Folder != "":
		return r.ReadTurns(ctx, `SELECT `+TurnColumns+
			` FROM turns t INDEXED BY turns_folder WHERE t.folder = ?1 AND t.started_at IS NOT NULL
				AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`,
			l.Folder, before, l.Limit)
	}
	query := queryTurns // most turns are done: it stops when the page is full
	switch l.State {
	case msg.TurnQueued, msg.TurnRunning:
		query = queryOpenState
	case msg.TurnFailed, msg.TurnCancelled:
		query = queryFailedState
	}
	return r.ReadTurns(ctx, query, l.State, before, l.Limit)
}

// FoldedInto returns the turns that were answered with a turn's answer, oldest first.
func (r Reader) FoldedInto(ctx context.Context, turnID int64) ([]*msg.Turn, error) {
	return r.ReadTurns(ctx, `SELECT `+TurnColumns+` FROM turns t WHERE t.answered_with = ? ORDER BY t.id`, turnID)
}

const RunColumns = `r.id, r.folder, r.topic, r.chat_jid, r.thread_id, r.runtime, ifnull(r.pid,0), ifnull(r.pid_start,0),
	ifnull(r.label,''), r.started_at, r.draining, ifnull(r.closed_at,0), ifnull(r.ended_at,0), r.owner`

func ScanRun(scan Scan) (*msg.Run, error) {
	var r msg.Run
	err := scan(&r.ID, &r.Folder, &r.Topic, &r.ChatJID, &r.ThreadID, &r.Runtime, &r.PID, &r.PIDStart,
		&r.Label, &r.StartedAt, &r.Draining, &r.ClosedAt, &r.EndedAt, &r.Owner)
	return &r, err
}

// UnendedRuns returns the runs whose process may still be running.
func (r Reader) UnendedRuns(ctx context.Context) ([]*msg.Run, error) {
	return All(ctx, r, ScanRun, `SELECT `+RunColumns+` FROM runs r INDEXED BY runs_unended WHERE r.ended_at IS NULL`)
}

// OutStateOf is the initial state of a chat's outbound rows. Between groups there
// is not a delivery: a row is sent once it is written.
func OutStateOf(chatJID string) msg.OutState {
	if platform, _ := msg.SplitJID(chatJID); platform == msg.PlatformGroup {
		return msg.OutSent
	}
	return msg.OutQueued
}

// minFailures is how many turns of a group must fail alike, one after another,
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
func (r Reader) FailingGroups(ctx context.Context) ([]GroupFailures, error) {
	return All(ctx, r, func(scan Scan) (f GroupFailures, err error) {
		err = scan(&f.Folder, &f.Problem, &f.Count, &f.Since, &f.ProbeAt)
		return f, err
	}, queryFailing, MinFailures)
}

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
	found, err := r.Get(ctx, []any{&p.State, &p.Text, &plan, &tools, &p.UpdatedAt}, `SELECT state, text, plan, tools, updated_at FROM turn_progress WHERE turn_id = ?`,
		turnID)
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
func (r Reader) ToolCalls(ctx context.Context, turnID int64) ([]ToolCall, error) {
	return All(ctx, r, func(scan Scan) (c ToolCall, err error) {
		var result string
		err = scan(&c.Tool, &result, &c.CreatedAt)
		c.Result = json.RawMessage(result)
		return c, err
	}, `SELECT tool, result, created_at FROM tool_calls WHERE turn_id = ? ORDER BY created_at`, turnID)
}

// ChatFileBytes is the size of the stored files of a chat's messages since a time, in unix ms, in both
// directions together, in bytes.
func (r Reader) ChatFileBytes(ctx context.Context, chatJID string, since int64) (int64, error) {
	// Of attachments that are stored. Other daemons may have written JSON of another shape.
	return Value[int64](ctx, r, `SELECT ifnull(sum(CASE WHEN a.type = 'object' AND json_extract(a.value, '$.path') <> '' AND CAST(json_extract(a.value, '$.size') AS INTEGER) > 0
		THEN CAST(json_extract(a.value, '$.size') AS INTEGER) END), 0) FROM messages m INDEXED BY messages_files CROSS JOIN json_each(m.attachments) a ON TRUE
		WHERE m.attachments IS NOT NULL AND m.chat_jid = ? AND m.received_at > ?`,
		chatJID, since)
}

// Session is the stored session of a folder's topic, "" if there is none.
func (r Reader) Session(ctx context.Context, folder, topic string) (string, error) {
	return Value[string](ctx, r, `SELECT session_id FROM sessions WHERE group_folder = ? AND topic = ?`, folder, topic)
}

// PutSystemMessage queues a line for a folder's next prompt.
func (tx *Tx) PutSystemMessage(folder, origin, event, body string, now int64) error {
	return tx.Exec(`INSERT INTO system_messages (folder, origin, event, body, created_at) VALUES (?,?,?,?,?)`,
		folder, origin, event, body, now)
}

// AgentModels are the models that an agent has offered to a group last; none if it has not offered any. agent is its
// name in AGENTS, "" for the default one.
func (r Reader) AgentModels(ctx context.Context, folder, agent string) (m agentproto.Models, err error) {
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
