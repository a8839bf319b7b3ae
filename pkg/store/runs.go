package store

import (
	"context"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

const runColumns = `r.id, r.folder, r.topic, r.chat_jid, r.thread_id, r.runtime, ifnull(r.pid,0), ifnull(r.pid_start,0),
	ifnull(r.label,''), r.started_at, r.draining, ifnull(r.closed_at,0), ifnull(r.ended_at,0), r.owner`

func scanRun(scan scanner) (*msg.Run, error) {
	var r msg.Run
	err := scan(&r.ID, &r.Folder, &r.Topic, &r.ChatJID, &r.ThreadID, &r.Runtime, &r.PID, &r.PIDStart,
		&r.Label, &r.StartedAt, &r.Draining, &r.ClosedAt, &r.EndedAt, &r.Owner)
	return &r, err
}

// UnendedRuns returns the runs whose process may still be running.
func (r Reader) UnendedRuns(ctx context.Context) ([]*msg.Run, error) {
	return collect(ctx, r, scanRun, queryUnended)
}

// RunIsLive reports whether a run may store its session, and, unless it drains, take
// turns.
func (r Reader) RunIsLive(ctx context.Context, id int64) (bool, error) {
	return value[bool](ctx, r, queryRunIsLive, id)
}

// RunTakes reports whether a run may get further turns.
func (r Reader) RunTakes(ctx context.Context, id int64) (bool, error) {
	return value[bool](ctx, r, queryRunTakes, id)
}

// StartRun inserts a run for a queued turn and marks the turn as running. It sets
// r.ID. It returns ErrStale if the turn is not queued, or is covered by a /stop.
func (tx *Tx) StartRun(r *msg.Run, turnID int64) (err error) {
	tx.note(failpoint.StartRun)
	if err := tx.claimFolder(r.Folder); err != nil {
		return fmt.Errorf("start a run for turn %d: %w", turnID, err)
	}
	r.Owner = tx.ownProcess()
	r.ID, err = tx.insert(insertRun, r.Folder, r.Topic, r.ChatJID, r.ThreadID, r.Runtime, r.Owner, r.StartedAt)
	if err != nil {
		return err
	}
	session, err := tx.AgentSession(uncancelled(), r.Folder, r.Topic, r.Agent)
	if err != nil {
		return err
	}
	if err = tx.exec(insertLog, r.ID, r.StartedAt, r.Folder, r.Topic, r.Agent, session); err != nil {
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
	return tx.giveTurn(t, r.ID, r.StartedAt)
}

// claimFolder returns ErrStale if agents of another process work in a folder.
func (tx *Tx) claimFolder(folder string) error {
	if tx.ownProcess() == 0 {
		return nil
	}
	owner, err := tx.FolderOwner(uncancelled(), folder, tx.ownProcess())
	if err == nil && owner != 0 {
		err = fmt.Errorf("agents of process %d work in %s: %w", owner, folder, ErrStale)
	}
	return err
}

// RecordProcess stores how to find the run's process after a crash.
func (tx *Tx) RecordProcess(runID int64, pid int, pidStart int64, label string) error {
	tx.note(failpoint.RecordProcess)
	return tx.exec(updateProcess, null(pid), null(pidStart), null(label), runID)
}

// CloseRun closes a run: it gets no more turns and stores no session. Its process
// may still answer the turns it has.
func (tx *Tx) CloseRun(runID, now int64) error {
	return tx.exec(updateCloseRun, now, runID)
}

// EndRun records that a run's process has ended and closes its entry in the
// session log, with the error if there is one.
func (tx *Tx) EndRun(runID int64, problem string, now int64) error {
	tx.note(failpoint.EndRun)
	if err := tx.CloseRun(runID, now); err != nil {
		return err
	}
	if err := tx.exec(updateEndRun, now, runID); err != nil {
		return err
	}
	tx.pokePeers()
	return tx.exec(updateEndLog, now, problem, runID)
}

// Reply is one frame of an agent for one of its turns, or for several of them.
type Reply struct {
	RunID        int64
	Agent        string // the run's
	TurnID       int64
	With         []Folded         // further turns that it is for
	Text         string           // "" for no message
	Files        []msg.Attachment // sent after the text, each as a message of its own
	Final        bool             // the last frame of the turn
	SessionID    string           // "" leaves the session unchanged
	ObservedUpto int64            // the last decision that the prompt showed
	Sender       string
	SenderName   string
	Problem      string        // why the answer is only a part, "" if it is whole
	Kind         msg.ErrorKind // of the problem
}

// Folded is a turn that the agent took in while it worked on another one.
type Folded struct {
	TurnID       int64
	ObservedUpto int64 // the last decision that its prompt showed
}

// AnswerTurn stores one frame: the outbound row, the session and, with the last
// frame, the end of the turn, and of those folded into it, which have no row of their own.
// For a turn that was cancelled or has left the run it changes nothing and returns
// ErrStale, unless there is a folded one that has not: then the frame is that one's.
func (tx *Tx) AnswerTurn(r Reply, now int64) error {
	tx.note(failpoint.AnswerTurn)
	var folded []*msg.Turn
	for _, f := range append([]Folded{{r.TurnID, r.ObservedUpto}}, r.With...) {
		t, err := tx.Turn(uncancelled(), f.TurnID)
		if err != nil {
			return err
		}
		if t != nil && t.RunID == r.RunID && (t.State == msg.TurnRunning || t.State == msg.TurnDone) {
			t.ObservedUpto = f.ObservedUpto
			folded = append(folded, t)
		}
	}
	if len(folded) == 0 {
		return fmt.Errorf("answer turn %d of run %d: %w", r.TurnID, r.RunID, ErrStale)
	}
	t := folded[0]
	if err := tx.putReply(t, folded[1:], r, now); err != nil {
		return err
	}
	if err := tx.StoreSession(&msg.Run{ID: r.RunID, Folder: t.Folder, Topic: t.Topic, Agent: r.Agent}, r.SessionID,
		now); err != nil {
		return err
	}
	for _, f := range folded {
		if err := tx.closeAnswered(f, t, r, now); err != nil {
			return err
		}
	}
	return nil
}

// closeAnswered stores that a frame was for a turn: for its own, or for the one that it was folded into.
func (tx *Tx) closeAnswered(t, with *msg.Turn, r Reply, now int64) error {
	if err := tx.exec(updateLog, r.SessionID, r.Final && t.State != msg.TurnDone, t.ID, r.RunID); err != nil {
		return err
	}
	if !r.Final || t.State == msg.TurnDone {
		return tx.exec(updateFrame, r.Text != "", t.ObservedUpto, t.ID)
	}
	e := ending{state: msg.TurnDone, reason: msg.ReasonAnswered, kind: r.Kind, problem: r.Problem,
		replied: r.Text != "", observedUpto: t.ObservedUpto}
	switch {
	case t.ID != with.ID:
		e.reason, e.kind, e.problem, e.answeredWith = msg.ReasonFolded, "", "", with.ID
	case r.Problem != "":
		e.reason = msg.ReasonPartial
	case r.Text == "" && t.Frames == 0:
		e.reason = msg.ReasonSilent
	}
	tx.pokeTyping(t)
	return tx.endTurn(t, e, now)
}

// putReply writes the agent's text to the turn's address. Where turns were folded into it, it replies to what one turn
// of all their rows would: the last mention or reply, else the last row.
func (tx *Tx) putReply(t *msg.Turn, folded []*msg.Turn, r Reply, now int64) error {
	if r.Text == "" {
		return nil
	}
	out := &msg.Message{Sender: r.Sender, SenderName: r.SenderName, Content: r.Text, Source: msg.SourceAgent}
	to := t
	for _, f := range folded {
		newer, err := tx.newerTrigger(to, f)
		if err != nil {
			return err
		}
		if newer {
			to = f
		}
	}
	if to.Frames == 0 {
		out.ReplyToID = to.ReplyTo
	}
	if err := tx.putOut(t, out, now); err != nil {
		return err
	}
	for _, a := range r.Files {
		file := &msg.Message{Kind: msg.KindFile, Sender: r.Sender, SenderName: r.SenderName, Source: msg.SourceAgent,
			Attachments: []msg.Attachment{a}}
		if err := tx.putOut(t, file, now); err != nil {
			return err
		}
	}
	return nil
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

// answerAsker writes the answer to an escalation as an inbound row in the asking group's internal chat, since no user
// sees it. Its turn has the chat, topic and thread of the one that asked.
func (tx *Tx) answerAsker(t *msg.Turn, from *msg.ReturnAddress, text string, now int64) error {
	back := *from
	back.Kind, back.TurnID = msg.Answer, t.ID
	payer, err := tx.Payer(uncancelled(), t)
	if err != nil {
		return err
	}
	if back.ChatJID, err = tx.Address(uncancelled(), from.ChatJID); err != nil {
		return err
	}
	_, _, err = tx.PutMessage(&msg.Message{
		ChatJID: msg.GroupJID(from.Folder), Direction: msg.In, Sender: msg.AgentSender(t.Folder), SenderName: t.Folder,
		IsBot:   true,
		Content: text, Timestamp: now, ReceivedAt: now,
		Source: msg.SourceDelegate, ForwardedFrom: &back, OnBehalfOf: payer,
	})
	return err
}

// Payer is the sender who caused a turn, "" if its message is gone.
func (r Reader) Payer(ctx context.Context, t *msg.Turn) (string, error) {
	trigger, err := r.Message(ctx, t.TriggerMessageID)
	if err != nil || trigger == nil {
		return "", err
	}
	return trigger.Payer(), nil
}

// OutStateOf is the initial state of a chat's outbound rows. Between groups there
// is not a delivery: a row is sent once it is written.
func OutStateOf(chatJID string) msg.OutState {
	if platform, _ := msg.SplitJID(chatJID); platform == msg.PlatformGroup {
		return msg.OutSent
	}
	return msg.OutQueued
}

// StoreSession stores the session of a live run, unless it is "". That of another agent, which answered there before,
// is kept.
func (tx *Tx) StoreSession(r *msg.Run, session string, now int64) error {
	if session == "" {
		return nil
	}
	live, err := tx.RunIsLive(uncancelled(), r.ID)
	if err != nil || !live {
		return err
	}
	if err = tx.exec(putKeptSession, r.Folder, r.Topic, r.Agent); err != nil {
		return err
	}
	if err = tx.exec(deleteAgentKept, r.Folder, r.Topic, r.Agent); err != nil {
		return err
	}
	return tx.exec(putSession, r.Folder, r.Topic, r.Agent, session, now)
}

// FinishTurn ends an open turn without another frame, as done after some output
// or as failed, with t.ErrorKind.
func (tx *Tx) FinishTurn(t *msg.Turn, state msg.TurnState, reason msg.Reason, problem string, now int64) error {
	tx.pokeTyping(t)
	return tx.endTurn(t, ending{state: state, reason: reason, kind: t.ErrorKind, problem: problem}, now)
}
