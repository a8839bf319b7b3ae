package store

import (
	"context"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

const runColumns = `r.id, r.folder, r.topic, r.chat_jid, r.thread_id, r.runtime, ifnull(r.pid,0), ifnull(r.pid_start,0),
	ifnull(r.label,''), r.started_at, r.draining, ifnull(r.closed_at,0), ifnull(r.ended_at,0)`

func scanRun(scan scanner) (*msg.Run, error) {
	var r msg.Run
	err := scan(&r.ID, &r.Folder, &r.Topic, &r.ChatJID, &r.ThreadID, &r.Runtime, &r.PID, &r.PIDStart,
		&r.Label, &r.StartedAt, &r.Draining, &r.ClosedAt, &r.EndedAt)
	return &r, err
}

// UnendedRuns returns the runs whose process may still be running.
func (r Reader) UnendedRuns(ctx context.Context) ([]*msg.Run, error) {
	return collect(ctx, r.q, scanRun, queryUnended)
}

// RunIsLive reports whether a run may store its session, and, unless it drains, take
// turns.
func (r Reader) RunIsLive(ctx context.Context, id int64) (live bool, err error) {
	_, err = r.q.get(ctx, []any{&live}, queryRunIsLive, id)
	return live, err
}

// RunTakes reports whether a run may get further turns.
func (r Reader) RunTakes(ctx context.Context, id int64) (takes bool, err error) {
	_, err = r.q.get(ctx, []any{&takes}, queryRunTakes, id)
	return takes, err
}

// StartRun inserts a run for a queued turn and marks the turn as running. It sets
// r.ID. It returns ErrStale if the turn is not queued, or is covered by a /stop.
func (tx *Tx) StartRun(r *msg.Run, turnID int64) (err error) {
	tx.note(failpoint.StartRun)
	r.ID, err = tx.insert(insertRun, r.Folder, r.Topic, r.ChatJID, r.ThreadID, r.Runtime, r.StartedAt)
	if err != nil {
		return err
	}
	if _, err = tx.exec(insertLog, r.ID, r.StartedAt, r.Folder, r.Topic); err != nil {
		return err
	}
	t, err := tx.Turn(uncancelled(), turnID)
	if err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("start a run for turn %d: %w", turnID, ErrStale)
	}
	tx.Poke(msg.DaemonOf(r.ChatJID)) // which shows typing
	return tx.take(t, r.ID, r.StartedAt)
}

// RecordProcess stores how to find the run's process after a crash.
func (tx *Tx) RecordProcess(runID int64, pid int, pidStart int64, label string) error {
	tx.note(failpoint.RecordProcess)
	_, err := tx.exec(updateProcess, null(pid), null(pidStart), null(label), runID)
	return err
}

// CloseRun closes a run: it gets no more turns and stores no session. Its process
// may still answer the turns it has.
func (tx *Tx) CloseRun(runID, now int64) error {
	_, err := tx.exec(updateCloseRun, now, runID)
	return err
}

// EndRun records that a run's process has ended and closes its entry in the
// session log, with the error if there is one.
func (tx *Tx) EndRun(runID int64, problem string, now int64) error {
	tx.note(failpoint.EndRun)
	if err := tx.CloseRun(runID, now); err != nil {
		return err
	}
	if _, err := tx.exec(updateEndRun, now, runID); err != nil {
		return err
	}
	_, err := tx.exec(updateEndLog, now, problem, runID)
	return err
}

// Reply is one frame of an agent for one of its turns.
type Reply struct {
	RunID        int64
	TurnID       int64
	Text         string // "" for no message
	Final        bool   // the last frame of the turn
	SessionID    string // "" leaves the session unchanged
	ObservedUpto int64  // the last decision that the prompt showed
	Sender       string
	SenderName   string
	Problem      string        // why the answer is only a part, "" if it is whole
	Kind         msg.ErrorKind // of the problem
}

// AnswerTurn stores one frame: the outbound row, the session and, with the last
// frame, the end of the turn. For a turn that was cancelled or has left the run it
// changes nothing and returns ErrStale.
func (tx *Tx) AnswerTurn(r Reply, now int64) error {
	tx.note(failpoint.AnswerTurn)
	t, err := tx.Turn(uncancelled(), r.TurnID)
	if err != nil {
		return err
	}
	if t == nil || t.RunID != r.RunID || t.State == msg.TurnCancelled || t.State == msg.TurnQueued || t.State == msg.TurnFailed {
		return fmt.Errorf("answer turn %d of run %d: %w", r.TurnID, r.RunID, ErrStale)
	}
	if err := tx.putReply(t, r, now); err != nil {
		return err
	}
	if err := tx.storeSession(t, r, now); err != nil {
		return err
	}
	if !r.Final || t.State == msg.TurnDone {
		_, err := tx.exec(updateFrame, r.Text != "", r.ObservedUpto, t.ID)
		return err
	}
	reason := msg.ReasonAnswered
	switch {
	case r.Problem != "":
		reason = msg.ReasonPartial
	case r.Text == "" && t.Frames == 0:
		reason = msg.ReasonSilent
	}
	tx.pokeTyping(t)
	return tx.endTurn(t.ID, ending{
		state: msg.TurnDone, reason: reason, kind: r.Kind, problem: r.Problem, replied: r.Text != "", observedUpto: r.ObservedUpto,
	}, now)
}

// putReply writes the agent's text to the turn's address.
func (tx *Tx) putReply(t *msg.Turn, r Reply, now int64) error {
	if r.Text == "" {
		return nil
	}
	out := &msg.Message{Sender: r.Sender, SenderName: r.SenderName, Content: r.Text, Source: msg.SourceAgent}
	if t.Frames == 0 {
		out.ReplyToID = t.ReplyTo
	}
	return tx.putOut(t, out, now)
}

// PutNotice sends a notice of arizuko itself to the turn's address.
func (tx *Tx) PutNotice(t *msg.Turn, text string, now int64) error {
	return tx.putOut(t, &msg.Message{Content: text, Source: msg.SourceNotice, ReplyToID: t.ReplyTo}, now)
}

// PutInterimNotice sends a notice about a turn that goes on. The group that escalated
// gets none: it would take it for the answer.
func (tx *Tx) PutInterimNotice(t *msg.Turn, text string, now int64) error {
	asker, err := tx.Asker(uncancelled(), t)
	if err != nil || asker != nil {
		return err
	}
	return tx.PutNotice(t, text, now)
}

// Asker returns the return address of an escalation, whose asking group waits for the
// turn's answer; nil for any other turn.
func (r Reader) Asker(ctx context.Context, t *msg.Turn) (*msg.ReturnAddress, error) {
	request := t.Request()
	if request == 0 {
		return nil, nil
	}
	row, err := r.Message(ctx, request)
	if err != nil || row == nil || row.ForwardedFrom == nil || row.ForwardedFrom.Kind != msg.Escalation {
		return nil, err
	}
	return row.ForwardedFrom, nil
}

// Escalated reports whether a group waits for the turn's answer, and not a chat.
func (r Reader) Escalated(ctx context.Context, t *msg.Turn) (bool, error) {
	asker, err := r.Asker(ctx, t)
	return asker != nil, err
}

// putOut writes an outbound row to the turn's chat, or, for an escalation, an
// answer to the group that asked.
func (tx *Tx) putOut(t *msg.Turn, out *msg.Message, now int64) error {
	asker, err := tx.Asker(uncancelled(), t)
	if err != nil {
		return err
	}
	if asker != nil {
		return tx.answerAsker(t, asker, out.Content, now)
	}
	out.ChatJID, out.Direction, out.IsBot = t.ChatJID, msg.Out, true
	out.Topic, out.ThreadID, out.TurnID = t.Place, t.ThreadID, t.ID
	out.Timestamp, out.ReceivedAt, out.OutState = now, now, OutStateOf(t.ChatJID)
	_, _, err = tx.PutMessage(out)
	return err
}

// answerAsker writes the answer to an escalation as an inbound row in the asking
// group's chat, topic and thread.
func (tx *Tx) answerAsker(t *msg.Turn, from *msg.ReturnAddress, text string, now int64) error {
	back := *from
	back.Kind, back.TurnID = msg.Answer, t.ID
	_, _, err := tx.PutMessage(&msg.Message{
		ChatJID: from.ChatJID, Direction: msg.In, Sender: msg.AgentSender(t.Folder), SenderName: t.Folder, IsBot: true,
		Content: text, Topic: from.Topic, ThreadID: from.ThreadID, Timestamp: now, ReceivedAt: now,
		Source: msg.SourceDelegate, ForwardedFrom: &back,
	})
	return err
}

// OutStateOf is the initial state of a chat's outbound rows. Between groups there
// is not a delivery: a row is sent once it is written.
func OutStateOf(chatJID string) msg.OutState {
	if platform, _ := msg.SplitJID(chatJID); platform == msg.PlatformGroup {
		return msg.OutSent
	}
	return msg.OutQueued
}

// storeSession stores the session of a live run and counts the turn's messages in
// the session log.
func (tx *Tx) storeSession(t *msg.Turn, r Reply, now int64) error {
	if err := tx.StoreSession(r.RunID, t.Folder, t.Topic, r.SessionID, now); err != nil {
		return err
	}
	_, err := tx.exec(updateLog, r.SessionID, r.Final && t.State != msg.TurnDone, t.ID, r.RunID)
	return err
}

// StoreSession stores the session of a live run, unless it is "".
func (tx *Tx) StoreSession(runID int64, folder, topic, session string, now int64) error {
	if session == "" {
		return nil
	}
	live, err := tx.RunIsLive(uncancelled(), runID)
	if err != nil || !live {
		return err
	}
	_, err = tx.exec(putSession, folder, topic, session, now)
	return err
}

// FinishTurn ends an open turn without another frame, as done after some output
// or as failed, with t.ErrorKind.
func (tx *Tx) FinishTurn(t *msg.Turn, state msg.TurnState, reason msg.Reason, problem string, now int64) error {
	tx.pokeTyping(t)
	return tx.endTurn(t.ID, ending{state: state, reason: reason, kind: t.ErrorKind, problem: problem}, now)
}
