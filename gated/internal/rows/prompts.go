package rows

import (
	"context"
	"encoding/json"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// PutProgress stores the progress that an agent reports of a turn, in place of the one before, and pokes the adapter
// that shows it. It returns ErrStale if the turn is not the run's, or has ended.
func PutProgress(tx *store.Tx, run msg.Run, turnID int64, p *store.Progress) error {
	const query = `INSERT INTO turn_progress (turn_id, state, text, plan, tools, updated_at)
		SELECT id, ?3, ?4, ?5, ?6, ?7 FROM turns WHERE id = ?1 AND run_id = ?2 AND state = 'running'
		ON CONFLICT (turn_id) DO UPDATE SET state = excluded.state, text = excluded.text, plan = excluded.plan, tools = excluded.tools,
		updated_at = excluded.updated_at`
	tx.Note(failpoint.PutProgress)
	plan, err := json.Marshal(orEmpty(p.Plan))
	if err != nil {
		return err
	}
	tools, err := json.Marshal(orEmpty(p.Tools))
	if err != nil {
		return err
	}
	err = change(tx, "progress of turn", turnID, query, turnID, run.ID, p.State, p.Text, string(plan), string(tools),
		p.UpdatedAt)
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

// SystemMessage is a line for a folder's next prompt.
type SystemMessage struct {
	ID     int64
	Origin string
	Event  string
	Body   string
}

// ClaimSystemMessages assigns every unclaimed line of a folder to a turn: its
// prompt carries them, also when the turn is retried.
func ClaimSystemMessages(tx *store.Tx, folder string, turnID int64) error {
	const query = `UPDATE system_messages SET turn_id = ?1 WHERE folder = ?2 AND turn_id IS NULL
		AND EXISTS (SELECT 1 FROM turns WHERE id = ?1 AND ended_at IS NULL)`
	tx.Note(failpoint.TakeSystem)
	return tx.Exec(query, turnID, folder)
}

// PromptFacts says what else to read for a turn's prompt.
type PromptFacts struct {
	SystemWaits  bool            // the folder has unclaimed lines
	HasSystem    bool            // the turn has claimed some
	LastDecision int64           // the highest decision_seq of the folder's rows
	Groups       int64           // version of the groups' configuration, and of the routes
	Kind         msg.ChatKind    // of the turn's chat, "" if no adapter has described it
	Title        string          // of the turn's chat, its first 256 characters
	Unseen       bool            // the chat has rows that are neither of the turn nor shown to its run
	Running      bool            // the run still has the turn
	Elsewhere    bool            // Observed may find rows that the run was not shown
	Operators    map[string]bool // those who became ones by a code
}

// ReadPromptFacts returns the facts for the prompt of a turn, as of one moment. The turn's
// run has been shown the rows of the chat up to shownUpto, and wrote its own answers. It has been shown rows of other
// chats up to the decision shownThrough; 0: no prompt yet.
func ReadPromptFacts(ctx context.Context, r store.Reader, t *msg.Turn, runID, shownUpto,
	shownThrough int64) (f PromptFacts, err error) {
	// The last but two: whether the chat has a row after ?4 that is neither of the turn nor an answer of its run. The
	// last is as in observedRows.
	const query = `SELECT EXISTS (SELECT 1 FROM system_messages WHERE folder = ?1 AND turn_id IS NULL),
		EXISTS (SELECT 1 FROM system_messages WHERE turn_id = ?2), ifnull((SELECT max(decision_seq) FROM messages INDEXED BY messages_routed WHERE routed_to = ?1), 0),
		(SELECT value FROM counters WHERE name = 'routing'), ifnull(c.kind, ''), ifnull(substr(c.title, 1, 256), ''),
		EXISTS (SELECT 1 FROM messages m INDEXED BY messages_chat WHERE m.chat_jid = ?3 AND m.id > ?4 AND m.turn_id IS DISTINCT FROM ?2
		AND NOT (m.direction = 'out' AND EXISTS (SELECT 1 FROM turns t WHERE t.id = m.turn_id AND t.run_id = ?5))),
		EXISTS (SELECT 1 FROM turns WHERE id = ?2 AND state = 'running' AND run_id = ?5),
		EXISTS (SELECT 1 FROM (SELECT chat_jid FROM messages INDEXED BY messages_routed WHERE ?6 > 0 AND routed_to = ?1 AND decision_seq > ?6
		ORDER BY decision_seq DESC LIMIT 10000) e WHERE e.chat_jid <> ?3)` + operatorColumns + `
		FROM (SELECT 1) one LEFT JOIN chats c ON c.jid = ?3` + joinOperators
	f.Operators, _, err = getWithOperators(ctx, r, []any{&f.SystemWaits, &f.HasSystem, &f.LastDecision, &f.Groups,
		&f.Kind, &f.Title, &f.Unseen, &f.Running, &f.Elsewhere}, query, t.Folder, t.ID, t.ChatJID, shownUpto, runID,
		shownThrough)
	f.Elsewhere = f.Elsewhere || shownThrough == 0
	return f, err
}

// TurnSystemMessages returns the lines that a turn's prompt carries.
func TurnSystemMessages(ctx context.Context, r store.Reader, turnID int64) ([]SystemMessage, error) {
	return store.All(ctx, r, func(scan store.Scan) (m SystemMessage, err error) {
		err = scan(&m.ID, &m.Origin, &m.Event, &m.Body)
		return m, err
	}, `SELECT id, origin, event, body FROM system_messages WHERE turn_id = ? ORDER BY id`, turnID)
}
