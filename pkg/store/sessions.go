package store

import (
	"context"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// Session is the stored session of a folder's topic, "" if there is none.
func (r Reader) Session(ctx context.Context, folder, topic string) (string, error) {
	return value[string](ctx, r, querySession, folder, topic)
}

// AgentSession is the session that one agent has in a folder's topic, "" if it has none there: the topic's, or the one
// that is kept while another agent answers. agent is its name in AGENTS, "" for the default one.
func (r Reader) AgentSession(ctx context.Context, folder, topic, agent string) (string, error) {
	return value[string](ctx, r, queryAgentSession, folder, topic, agent)
}

// LastAgent is the agent that has answered in a folder's topic last, before a run; known is false if none has.
func (r Reader) LastAgent(ctx context.Context, folder, topic string, beforeRun int64) (agent string, known bool,
	err error) {
	known, err = r.get(ctx, []any{&agent}, queryLastAgent, folder, topic, beforeRun)
	return agent, known, err
}

// EvictSession deletes a session of an agent that failed, and reports whether there was one;
// the caller ends its run.
func (tx *Tx) EvictSession(folder, topic, agent string) (evicted bool, err error) {
	n, err := tx.change(deleteAgentSession, folder, topic, agent)
	if err != nil {
		return false, err
	}
	kept, err := tx.change(deleteAgentKept, folder, topic, agent)
	return n+kept > 0, err
}

// ResetSession deletes the sessions of a topic, of all agents, and closes its live run, so that no late frame
// stores it again. It returns the run, 0 if none was live.
func (tx *Tx) ResetSession(folder, topic string, now int64) (runID int64, err error) {
	tx.note(failpoint.ResetSession)
	for _, query := range []string{deleteSession, deleteKeptSessions} {
		if err := tx.exec(query, folder, topic); err != nil {
			return 0, err
		}
	}
	_, err = tx.find([]any{&runID}, updateCloseLive, now, folder, topic)
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
func (r Reader) PastSessions(ctx context.Context, folder, topic string, beforeRun int64, limit int) ([]PastSession,
	error) {
	return collect(ctx, r, func(scan scanner) (p PastSession, err error) {
		err = scan(&p.StartedAt, &p.EndedAt, &p.Agent, &p.SessionID, &p.Result, &p.Error, &p.MessageCount)
		return p, err
	}, queryPastSessions, folder, topic, beforeRun, limit)
}

// SystemMessage is a line for a folder's next prompt.
type SystemMessage struct {
	ID     int64
	Origin string
	Event  string
	Body   string
}

// PutSystemMessage queues a line for a folder's next prompt.
func (tx *Tx) PutSystemMessage(folder, origin, event, body string, now int64) error {
	return tx.exec(insertSystem, folder, origin, event, body, now)
}

// ClaimSystemMessages assigns every unclaimed line of a folder to a turn: its
// prompt carries them, also when the turn is retried.
func (tx *Tx) ClaimSystemMessages(folder string, turnID int64) error {
	tx.note(failpoint.TakeSystem)
	return tx.exec(updateClaimSystem, turnID, folder)
}

// PromptFacts says what else has to be read for a turn's prompt.
type PromptFacts struct {
	SystemWaits  bool         // the folder has unclaimed lines
	HasSystem    bool         // the turn has claimed some
	LastDecision int64        // the highest decision_seq in use
	Groups       int64        // version of the groups' configuration, and of the routes
	Kind         msg.ChatKind // of the turn's chat, "" if no adapter has described it
	Title        string       // of the turn's chat, its first 256 characters
	Unseen       bool         // the chat has rows that are neither of the turn nor shown to its run
}

// PromptFacts returns the facts for the prompt of a turn, as of one moment. The turn's
// run has been shown the rows of the chat up to shownUpto, and wrote its own answers.
func (r Reader) PromptFacts(ctx context.Context, t *msg.Turn, runID, shownUpto int64) (f PromptFacts, err error) {
	_, err = r.get(ctx, []any{&f.SystemWaits, &f.HasSystem, &f.LastDecision, &f.Groups, &f.Kind, &f.Title, &f.Unseen},
		queryPromptFacts, t.Folder, t.ID, t.ChatJID, shownUpto, runID)
	return f, err
}

// TurnSystemMessages returns the lines that a turn's prompt carries.
func (r Reader) TurnSystemMessages(ctx context.Context, turnID int64) ([]SystemMessage, error) {
	return collect(ctx, r, func(scan scanner) (m SystemMessage, err error) {
		err = scan(&m.ID, &m.Origin, &m.Event, &m.Body)
		return m, err
	}, querySystemOfTurn, turnID)
}
