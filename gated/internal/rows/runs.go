package rows

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// LiveRuns counts the runs whose process has not ended, by runtime.
func LiveRuns(ctx context.Context, r store.Reader) (map[string]int, error) {
	live := map[string]int{}
	err := r.Each(ctx, func(scan store.Scan) (bool, error) {
		var runtime string
		var n int
		err := scan(&runtime, &n)
		live[runtime] = n
		return true, err
	}, `SELECT runtime, count(*) FROM runs INDEXED BY runs_unended WHERE ended_at IS NULL GROUP BY runtime`)
	return live, err
}

// FenceExpired fences the other processes of a daemon whose time has passed, and returns their ids.
func FenceExpired(tx *store.Tx, daemon string, except int64) ([]int64, error) {
	const query = `DELETE FROM processes WHERE daemon = ?1 AND until < clock_ms() AND id <> ?2 RETURNING id`
	return store.All(store.Uncancelled(), tx.Reader, store.One[int64], query, daemon, except)
}

// ExpiredProcesses counts the other processes of a daemon whose time has passed.
func ExpiredProcesses(ctx context.Context, r store.Reader, daemon string, except int64) (int, error) {
	const query = `SELECT count(*) FROM processes WHERE daemon = ? AND until < clock_ms() AND id <> ?`
	return store.Value[int](ctx, r, query, daemon, except)
}

// FolderOwner returns the process whose agents work in a folder, unless it is the one excepted; 0 if none do. Only the
// agents of one process work in a folder at a time.
func FolderOwner(ctx context.Context, r store.Reader, folder string, except int64) (int64, error) {
	const query = `SELECT r.owner FROM runs r INDEXED BY runs_unended WHERE r.ended_at IS NULL AND r.folder = ? AND r.owner <> ? ORDER BY r.id LIMIT 1`
	return store.Value[int64](ctx, r, query, folder, except)
}

// RunsOfGone returns the runs whose owner is fenced or has left: another gated queues their turns again.
func RunsOfGone(ctx context.Context, r store.Reader) ([]*msg.Run, error) {
	const query = `SELECT ` + factrows.RunColumns + ` FROM runs r INDEXED BY runs_unended WHERE r.ended_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM processes m WHERE m.id = r.owner)`
	return store.All(ctx, r, factrows.ScanRun, query)
}

// RunIsLive reports whether a run may store its session, and, unless it drains, take
// turns.
func RunIsLive(ctx context.Context, r store.Reader, id int64) (bool, error) {
	return store.Value[bool](ctx, r, `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ? AND closed_at IS NULL)`, id)
}

// RunState is what peers may change of a run: whether it takes turns, whether edits wait for it, the ids of the turns that
// it has, and the questions of these with their states.
type RunState struct {
	Takes, Notes bool
	Turns, Asks  string
}

// RunStates returns the states of the runs of a process, by their ids.
func RunStates(ctx context.Context, r store.Reader, process int64) (map[int64]RunState, error) {
	const query = `SELECT r.id, r.closed_at IS NULL AND r.draining = 0, EXISTS (SELECT 1 FROM messages INDEXED BY messages_notes
			WHERE chat_jid = r.chat_jid AND reason = 'edit_note' AND turn_id IS NULL AND routed_to = r.folder AND thread_id = r.thread_id),
		ifnull((SELECT group_concat(CAST(l.id AS TEXT), ' ') FROM (SELECT t.id FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.run_id = r.id ORDER BY t.id) l), ''),
		ifnull((SELECT group_concat(CAST(a.id AS TEXT) || a.state, ' ') FROM turns t INDEXED BY turns_run CROSS JOIN asks a ON a.turn_id = t.id
			WHERE t.state = 'running' AND t.run_id = r.id), '')
		FROM runs r INDEXED BY runs_unended WHERE r.ended_at IS NULL AND r.owner = ?`
	states := map[int64]RunState{}
	err := r.Each(ctx, func(scan store.Scan) (bool, error) {
		var id int64
		var s RunState
		err := scan(&id, &s.Takes, &s.Notes, &s.Turns, &s.Asks)
		states[id] = s
		return true, err
	}, query, process)
	return states, err
}

// RunTakes reports whether a run may get further turns.
func RunTakes(ctx context.Context, r store.Reader, id int64) (bool, error) {
	const query = `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ? AND closed_at IS NULL AND draining = 0)`
	return store.Value[bool](ctx, r, query, id)
}

// StartRun inserts a run for a queued turn and marks the turn as running. It sets
// r.ID. It returns ErrStale if the turn is not queued, or is covered by a /stop.
func StartRun(tx *store.Tx, r *msg.Run, turnID int64) (err error) {
	const insertRun = `INSERT INTO runs (folder, topic, chat_jid, thread_id, runtime, owner, started_at) VALUES (?,?,?,?,?,?,?)`
	const insertLog = `INSERT INTO session_log (run_id, started_at, folder, topic, agent, session_id) VALUES (?1,?2,?3,?4,?5,?6)`
	tx.Note(failpoint.StartRun)
	if err := claimFolder(tx, r.Folder); err != nil {
		return fmt.Errorf("start a run for turn %d: %w", turnID, err)
	}
	if undoing, err := UndoOpen(store.Uncancelled(), tx.Reader, r.Folder, r.Topic); err != nil || undoing {
		return cmp.Or(err, errUndoing(r.Folder, r.Topic))
	}
	r.Owner = tx.OwnProcess()
	r.ID, err = tx.Insert(insertRun, r.Folder, r.Topic, r.ChatJID, r.ThreadID, r.Runtime, r.Owner, r.StartedAt)
	if err != nil {
		return err
	}
	session, err := AgentSession(store.Uncancelled(), tx.Reader, r.Folder, r.Topic, r.Agent)
	if err != nil {
		return err
	}
	if err = tx.Exec(insertLog, r.ID, r.StartedAt, r.Folder, r.Topic, r.Agent, session); err != nil {
		return err
	}
	t, err := tx.Turn(store.Uncancelled(), turnID)
	if err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("start a run for turn %d: %w", turnID, store.ErrStale)
	}
	tx.Poke(msg.DaemonOf(r.ChatJID)) // which shows typing
	return giveTurn(tx, t, r.ID, r.StartedAt)
}

// claimFolder returns ErrStale if agents of another process work in a folder.
func claimFolder(tx *store.Tx, folder string) error {
	if tx.OwnProcess() == 0 {
		return nil
	}
	owner, err := FolderOwner(store.Uncancelled(), tx.Reader, folder, tx.OwnProcess())
	if err == nil && owner != 0 {
		err = fmt.Errorf("agents of process %d work in %s: %w", owner, folder, store.ErrStale)
	}
	return err
}

// RecordProcess stores how to find the run's process after a crash.
func RecordProcess(tx *store.Tx, runID int64, pid int, pidStart int64, label string) error {
	const query = `UPDATE runs SET pid = ?, pid_start = ?, label = ? WHERE id = ?`
	tx.Note(failpoint.RecordProcess)
	return tx.Exec(query, store.Null(pid), store.Null(pidStart), store.Null(label), runID)
}

// CloseRun closes a run: it gets no more turns and stores no session. Its process
// may still answer the turns it has.
func CloseRun(tx *store.Tx, runID, now int64) error {
	return tx.Exec(`UPDATE runs SET closed_at = ? WHERE id = ? AND closed_at IS NULL`, now, runID)
}

// EndRun records that a run's process has ended and closes its entry in the
// session log, with the error if there is one.
func EndRun(tx *store.Tx, runID int64, problem string, now int64) error {
	const query = `UPDATE session_log SET ended_at = ?1, error = ?2,
		result = CASE WHEN ?2 <> '' THEN 'error' ELSE 'ok' END WHERE run_id = ?3 AND ended_at IS NULL`
	tx.Note(failpoint.EndRun)
	if err := CloseRun(tx, runID, now); err != nil {
		return err
	}
	if err := tx.Exec(`UPDATE runs SET ended_at = ? WHERE id = ? AND ended_at IS NULL`, now, runID); err != nil {
		return err
	}
	tx.PokePeers()
	return tx.Exec(query, now, problem, runID)
}

// DrainRun keeps a run from getting further turns.
func DrainRun(tx *store.Tx, runID int64) error {
	tx.PokePeers()
	return tx.Exec(`UPDATE runs SET draining = 1 WHERE id = ? AND closed_at IS NULL`, runID)
}

// DrainIdleRun does so if the run has no turn, and reports whether it did.
func DrainIdleRun(tx *store.Tx, runID int64) (bool, error) {
	const query = `UPDATE runs SET draining = 1 WHERE id = ?1 AND closed_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM turns INDEXED BY turns_run WHERE state = 'running' AND run_id = ?1)`
	tx.PokePeers()
	n, err := tx.Change(query, runID)
	return n > 0, err
}

// RunTurns returns the unanswered turns of a run, oldest first.
func RunTurns(ctx context.Context, r store.Reader, runID int64) ([]*msg.Turn, error) {
	const query = `SELECT ` + store.TurnColumns +
		` FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.run_id = ? ORDER BY t.id`
	return r.ReadTurns(ctx, query, runID)
}

// A run that waits for the answer to a question is not busy.
const queryBusyRuns = `SELECT count(*) FROM runs b INDEXED BY runs_unended WHERE b.ended_at IS NULL
		AND EXISTS (SELECT 1 FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.run_id = b.id)
		AND NOT EXISTS (SELECT 1 FROM turns t INDEXED BY turns_run CROSS JOIN asks a ON a.turn_id = t.id
			WHERE t.state = 'running' AND t.run_id = b.id AND a.state = 'open' AND substr(a.ask_id, 1, 6) <> 'budget')`

// runFor returns the live run that a new turn can go to at once, 0 for none, the mode of the turn's preview there, and
// whether AttachNotes may find any.
func runFor(tx *store.Tx, t *msg.Turn, maxAgents int) (run int64, preview msg.PreviewMode, notes bool, err error) {
	// The idle run of an address that may take a turn of lane ?5 and folder ?1 at once: no turn of the lane waits, the
	// group is not probed, and a slot is free. One is where there are no more runs than slots, which is the usual case
	// and needs no look at every run's turns.
	const query = `SELECT r.id, r.owner, ifnull((SELECT config FROM registered_groups WHERE folder = r.folder), ''),
		ifnull((SELECT kind FROM chats WHERE jid = r.chat_jid), ''), EXISTS (SELECT 1 FROM messages INDEXED BY messages_notes
		WHERE chat_jid = ?3 AND reason = 'edit_note' AND turn_id IS NULL AND routed_to = ?1 AND thread_id = ?4)
		FROM runs r INDEXED BY runs_live
		WHERE r.closed_at IS NULL AND r.folder = ?1 AND r.topic = ?2 AND r.chat_jid = ?3 AND r.thread_id = ?4 AND r.draining = 0
		AND NOT EXISTS (SELECT 1 FROM turns w INDEXED BY turns_queued WHERE w.state = 'queued' AND w.lane = ?5)
		AND NOT EXISTS (SELECT 1 FROM group_failures WHERE folder = ?1 AND count >= ?6)
		AND NOT EXISTS (SELECT 1 FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = r.id)
		AND ((SELECT count(*) FROM runs u INDEXED BY runs_unended WHERE u.ended_at IS NULL AND u.owner = r.owner) <= ?7
			OR NOT ?8 AND (` + queryBusyRuns + `) < ?7)`
	if t.Kind == msg.Delegated || t.WaitsFor != "" {
		return 0, "", false, nil
	}
	var config string
	var kind msg.ChatKind
	var owner int64
	_, err = tx.Find([]any{&run, &owner, &config, &kind, &notes}, query, t.Folder, t.Topic, t.ChatJID, t.ThreadID,
		t.Lane(), factrows.MinFailures, maxAgents, tx.Beside())
	if run != 0 && tx.Within(store.Shared(SlotsOf(owner))) != nil {
		return 0, "", false, err // the turn is queued, and the process of the run gives it to that
	}
	return run, previewMode(t, config, kind), notes, err
}

// IdleOwner returns the process of the idle run of a turn's address, 0 for none.
func IdleOwner(ctx context.Context, r store.Reader, t *msg.Turn) (owner int64, err error) {
	const query = `SELECT r.owner FROM runs r INDEXED BY runs_live
		WHERE r.closed_at IS NULL AND r.folder = ?1 AND r.topic = ?2 AND r.chat_jid = ?3 AND r.thread_id = ?4 AND r.draining = 0
		AND NOT EXISTS (SELECT 1 FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = r.id)`
	return store.Value[int64](ctx, r, query, t.Folder, t.Topic, t.ChatJID, t.ThreadID)
}

// SlotsOf is the key of the slots for agents of a process. The start of a run is alone with it. Turns that go to runs
// that are there share it, as long as there is a slot for each of these.
func SlotsOf(process int64) string { return fmt.Sprintf("slots/%d", process) }

// FreeSlot reports whether fewer than maxAgents runs of this process are busy. One that waits for the answer to a
// question is not.
func FreeSlot(tx *store.Tx, maxAgents int) (bool, error) {
	const queryOwn = `SELECT count(*) FROM runs INDEXED BY runs_unended WHERE ended_at IS NULL AND owner = ?`
	if alone := tx.Within(store.Late(SlotsOf(tx.OwnProcess()))); tx.Beside() && alone != nil {
		own, err := store.Value[int](store.Uncancelled(), tx.Reader, queryOwn, tx.OwnProcess())
		if err == nil && own > maxAgents { // others may take slots meanwhile
			err = alone
		}
		return err == nil, err
	}
	var busy int
	_, err := tx.Find([]any{&busy}, queryBusyRuns+` AND b.owner = ?`, tx.OwnProcess())
	return busy < maxAgents, err
}

// TakeTurn gives a queued turn to a live run. It returns ErrStale if the turn is
// not queued, or is covered by a /stop, or the run takes no more turns.
func TakeTurn(tx *store.Tx, id, runID, now int64) error {
	// A run, with the number of its turns, and whether one of them must have it alone.
	const query = `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND closed_at IS NULL AND draining = 0), count(*),
		ifnull(max(CASE WHEN attempts > 0 OR kind = 'delegated' THEN 1 ELSE 0 END), 0)
		FROM turns INDEXED BY turns_run WHERE state = 'running' AND run_id = ?1`
	var live, alone bool
	var open int
	t, err := tx.Turn(store.Uncancelled(), id)
	if err != nil {
		return err
	}
	if _, err := tx.Find([]any{&live, &open, &alone}, query, runID); err != nil {
		return err
	}
	if t == nil || t.Alone() || !live || alone || open >= msg.MaxRunTurns {
		return fmt.Errorf("give turn %d to run %d: %w", id, runID, store.ErrStale)
	}
	return giveTurn(tx, t, runID, now)
}

func giveTurn(tx *store.Tx, t *msg.Turn, runID, now int64) error {
	const queryShownBy = `SELECT ifnull((SELECT config FROM registered_groups WHERE folder = ?1), ''),
		ifnull((SELECT kind FROM chats WHERE jid = ?2), '')`
	const query = `UPDATE turns SET state = 'running', run_id = ?, started_at = ?, waits_for = '', not_before = 0,
		preview = ? WHERE id = ? AND state = 'queued'`
	tx.Note(failpoint.TakeTurn)
	stopped, err := stopped(tx, t)
	if err != nil {
		return err
	}
	if stopped || waits(t, now) {
		return fmt.Errorf("give turn %d to run %d: it is stopped or waits: %w", t.ID, runID, store.ErrStale)
	}
	var config string
	var kind msg.ChatKind
	if _, err := tx.Find([]any{&config, &kind}, queryShownBy, t.Folder, t.ChatJID); err != nil {
		return err
	}
	preview := previewMode(t, config, kind)
	if err := change(tx, fmt.Sprintf("give run %d turn", runID), t.ID, query, runID, now, preview, t.ID); err != nil {
		return err
	}
	return AttachNotes(tx, t)
}

// previewMode is how much of a turn its chat shows before it answers: as the group's configuration sets it, or else as
// for its kind of chat. It is "" for a turn that answers no chat. gated reports an invalid configuration; no agent runs
// then.
func previewMode(t *msg.Turn, config string, kind msg.ChatKind) msg.PreviewMode {
	if t.Kind != msg.Conversation || t.WorksForGroup() {
		return ""
	}
	if kind == "" { // no adapter has described it
		kind = msg.KindOfJID(t.ChatJID)
	}
	c, _ := groupconfig.Parse(json.RawMessage(config))
	return msg.PreviewMode(c.Progress.In(kind == msg.ChatDM || kind == msg.ChatWeb || t.ThreadID != ""))
}

// RunExists reports whether a run is stored.
func RunExists(ctx context.Context, r store.Reader, id int64) (bool, error) {
	return store.Value[bool](ctx, r, `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?)`, id)
}
