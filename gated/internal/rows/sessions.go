package rows

import (
	"context"
	"encoding/json"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	putSession = `INSERT INTO sessions (group_folder, topic, agent, session_id, updated_at) VALUES (?,?,?,?,?)
		ON CONFLICT (group_folder, topic) DO UPDATE SET agent = excluded.agent, session_id = excluded.session_id, updated_at = excluded.updated_at`
	updateCloseLive = `UPDATE runs SET closed_at = ? WHERE folder = ? AND topic = ? AND closed_at IS NULL RETURNING id`
)

// The session of one agent: it is the topic's, or kept while another agent answers.
const queryAgentSession = `SELECT session_id FROM sessions WHERE group_folder = ?1 AND topic = ?2 AND agent = ?3
		UNION ALL SELECT session_id FROM kept_sessions WHERE group_folder = ?1 AND topic = ?2 AND agent = ?3 LIMIT 1`

const deleteAgentKept = `DELETE FROM kept_sessions WHERE group_folder = ? AND topic = ? AND agent = ?`

// StoreSession stores the session that a live run has named in a turn, unless it is "". The turn keeps the name from
// before it, for an undo.
func StoreSession(tx *store.Tx, r *msg.Run, turn int64, session string, now int64) error {
	const updateBefore = `UPDATE turns SET session_before = ifnull((` + queryAgentSession + `), '') WHERE id = ?4 AND session_before IS NULL`
	if session == "" {
		return nil
	}
	live, err := RunIsLive(store.Uncancelled(), tx.Reader, r.ID)
	if err != nil || !live {
		return err
	}
	if err = tx.Exec(updateBefore, r.Folder, r.Topic, r.Agent, turn); err != nil {
		return err
	}
	return SetSession(tx, r.Folder, r.Topic, r.Agent, session, now)
}

// SetSession sets what the session of a topic's agent is called, "" for none. That of another agent, which answered
// there before, is kept.
func SetSession(tx *store.Tx, folder, topic, agent, session string, now int64) error {
	const putKeptSession = `INSERT INTO kept_sessions (group_folder, topic, agent, session_id, updated_at)
		SELECT group_folder, topic, agent, session_id, updated_at FROM sessions WHERE group_folder = ? AND topic = ? AND agent <> ?
		ON CONFLICT (group_folder, topic, agent) DO UPDATE SET session_id = excluded.session_id, updated_at = excluded.updated_at`
	if session == "" {
		_, err := EvictSession(tx, folder, topic, agent)
		return err
	}
	for _, query := range []string{putKeptSession, deleteAgentKept} {
		if err := tx.Exec(query, folder, topic, agent); err != nil {
			return err
		}
	}
	return tx.Exec(putSession, folder, topic, agent, session, now)
}

// PutAgentModels stores the models that an agent offers to a group, in place of those before.
func PutAgentModels(tx *store.Tx, folder, agent string, m agentproto.Models, now int64) error {
	const query = `INSERT INTO agent_models (folder, agent, models, current, updated_at) VALUES (?,?,?,?,?)
		ON CONFLICT (folder, agent) DO UPDATE SET models = excluded.models, current = excluded.current, updated_at = excluded.updated_at`
	list, err := json.Marshal(orEmpty(m.Models))
	if err != nil {
		return err
	}
	return tx.Exec(query, folder, agent, string(list), m.Current, now)
}

// AgentSession is the session that one agent has in a folder's topic, "" if it has none there: the topic's, or the one
// that is kept while another agent answers. agent is its name in AGENTS, "" for the default one.
func AgentSession(ctx context.Context, r store.Reader, folder, topic, agent string) (string, error) {
	return store.Value[string](ctx, r, queryAgentSession, folder, topic, agent)
}

// LastAgent is the agent that has answered in a folder's topic last, before a run; known is false if none has.
func LastAgent(ctx context.Context, r store.Reader, folder, topic string, beforeRun int64) (agent string, known bool,
	err error) {
	const query = `SELECT agent FROM session_log WHERE folder = ? AND topic = ? AND run_id < ? AND message_count > 0 ORDER BY id DESC LIMIT 1`
	known, err = r.Get(ctx, []any{&agent}, query, folder, topic, beforeRun)
	return agent, known, err
}

// EvictSession deletes a session of an agent that failed, and reports whether there was one;
// the caller ends its run.
func EvictSession(tx *store.Tx, folder, topic, agent string) (evicted bool, err error) {
	n, err := tx.Change(`DELETE FROM sessions WHERE group_folder = ? AND topic = ? AND agent = ?`, folder, topic, agent)
	if err != nil {
		return false, err
	}
	kept, err := tx.Change(deleteAgentKept, folder, topic, agent)
	return n+kept > 0, err
}

// ResetSession deletes the sessions of a topic, of all agents, and closes its live run, so that no late frame
// stores it again, and no redo. It returns the run, 0 if none was live.
func ResetSession(tx *store.Tx, folder, topic string, now int64) (runID int64, err error) {
	const updateUndone = `UPDATE turns INDEXED BY turns_undone SET session_after = '' WHERE folder = ? AND topic = ? AND undone_at IS NOT NULL AND session_after <> ''`
	tx.Note(failpoint.ResetSession)
	for _, query := range []string{`DELETE FROM sessions WHERE group_folder = ? AND topic = ?`, `DELETE FROM kept_sessions WHERE group_folder = ? AND topic = ?`, updateUndone} {
		if err := tx.Exec(query, folder, topic); err != nil {
			return 0, err
		}
	}
	_, err = tx.Find([]any{&runID}, updateCloseLive, now, folder, topic)
	return runID, err
}

// PastSession is one entry of the session log.
type PastSession struct {
	StartedAt    int64
	EndedAt      int64
	Agent        string // its name in AGENTS, "" for the default one
	SessionID    string
	Result       string
	Error        string
	MessageCount int
}

// PastSessions returns the last entries of a topic's session log before a
// run, newest first, at most limit.
func PastSessions(ctx context.Context, r store.Reader, folder, topic string, beforeRun int64, limit int) ([]PastSession,
	error) {
	const query = `SELECT started_at, ifnull(ended_at,0), agent, session_id, result, error, message_count FROM session_log
		WHERE folder = ? AND topic = ? AND run_id < ? ORDER BY id DESC LIMIT ?+0`
	return store.All(ctx, r, func(scan store.Scan) (p PastSession, err error) {
		err = scan(&p.StartedAt, &p.EndedAt, &p.Agent, &p.SessionID, &p.Result, &p.Error, &p.MessageCount)
		return p, err
	}, query, folder, topic, beforeRun, limit)
}
