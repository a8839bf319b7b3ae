package rows

import (
	"context"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// NotifiedOf reports whether the place of a turn, such as a thread, got a notice of another turn that failed in the same
// way since a time, in unix ms.
func NotifiedOf(ctx context.Context, r store.Reader, t *msg.Turn, kind msg.ErrorKind, since int64) (bool, error) {
	const query = `SELECT EXISTS (SELECT 1 FROM turns INDEXED BY turns_failed WHERE state = 'failed' AND chat_jid = ? AND ended_at > ?
		AND place = ? AND error_kind = ? AND reason = 'agent_error')`
	return store.Value[bool](ctx, r, query, t.ChatJID, since, t.Place, kind)
}

// HasNotice reports whether arizuko itself has written to the chat about a turn: a text, or "" for any.
func HasNotice(ctx context.Context, r store.Reader, turnID int64, text string) (bool, error) {
	const query = `SELECT EXISTS (SELECT 1 FROM messages WHERE turn_id = ?1 AND direction = 'out' AND source = 'notice'
		AND (?2 = '' OR content = ?2))`
	return store.Value[bool](ctx, r, query, turnID, text)
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
// failing reports whether a turn ended, and turns of its group had failed before.
func AnswerTurn(tx *store.Tx, r Reply, now int64) (failing bool, err error) {
	tx.Note(failpoint.AnswerTurn)
	var folded []*msg.Turn
	for _, f := range append([]Folded{{r.TurnID, r.ObservedUpto}}, r.With...) {
		t, err := tx.Turn(store.Uncancelled(), f.TurnID)
		if err != nil {
			return false, err
		}
		if t != nil && t.RunID == r.RunID && (t.State == msg.TurnRunning || t.State == msg.TurnDone) {
			t.ObservedUpto = f.ObservedUpto
			folded = append(folded, t)
		}
	}
	if len(folded) == 0 {
		return false, fmt.Errorf("answer turn %d of run %d: %w", r.TurnID, r.RunID, store.ErrStale)
	}
	t := folded[0]
	if err := putReply(tx, t, folded[1:], r, now); err != nil {
		return false, err
	}
	if err := StoreSession(tx, &msg.Run{ID: r.RunID, Folder: t.Folder, Topic: t.Topic, Agent: r.Agent}, t.ID,
		r.SessionID, now); err != nil {
		return false, err
	}
	for _, f := range folded {
		before, err := closeAnswered(tx, f, t, r, now)
		if err != nil {
			return false, err
		}
		failing = failing || before
	}
	return failing, nil
}

// closeAnswered stores that a frame was for a turn: for its own, or for the one that it was folded into. failing is
// AnswerTurn's.
func closeAnswered(tx *store.Tx, t, with *msg.Turn, r Reply, now int64) (failing bool, err error) {
	const updateFrame = `UPDATE turns SET frames = frames + ?, observed_upto = ? WHERE id = ?`
	const updateLog = `UPDATE session_log SET session_id = CASE WHEN ?1 <> '' THEN ?1 ELSE session_id END,
		message_count = message_count + CASE WHEN ?2 THEN (SELECT count(*) FROM messages WHERE turn_id = ?3 AND direction = 'in') ELSE 0 END
		WHERE run_id = ?4`
	if err := tx.Exec(updateLog, r.SessionID, r.Final && t.State != msg.TurnDone, t.ID, r.RunID); err != nil {
		return false, err
	}
	if !r.Final || t.State == msg.TurnDone {
		return false, tx.Exec(updateFrame, r.Text != "", t.ObservedUpto, t.ID)
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
	pokeTyping(tx, t)
	return endTurn(tx, t, e, now)
}

// putReply writes the agent's text to the turn's address. Where turns were folded into it, it replies like
// one turn of all their rows: to the last mention or reply, else to the last row.
func putReply(tx *store.Tx, t *msg.Turn, folded []*msg.Turn, r Reply, now int64) error {
	if r.Text == "" {
		return nil
	}
	out := &msg.Message{Sender: r.Sender, SenderName: r.SenderName, Content: r.Text, Source: msg.SourceAgent}
	to := t
	for _, f := range folded {
		newer, err := newerTrigger(tx, to, f)
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
	if err := putOut(tx, t, out, now); err != nil {
		return err
	}
	for _, a := range r.Files {
		file := &msg.Message{Kind: msg.KindFile, Sender: r.Sender, SenderName: r.SenderName, Source: msg.SourceAgent,
			Attachments: []msg.Attachment{a}}
		if err := putOut(tx, t, file, now); err != nil {
			return err
		}
	}
	return nil
}

// PutNotice sends a notice of arizuko itself to the turn's address.
func PutNotice(tx *store.Tx, t *msg.Turn, text string, now int64) error {
	return putOut(tx, t, &msg.Message{Content: text, Source: msg.SourceNotice, ReplyToID: t.ReplyTo}, now)
}

// PutInterimNotice sends a notice about a turn that goes on. The group that escalated
// gets none: it would take it for the answer.
func PutInterimNotice(tx *store.Tx, t *msg.Turn, text string, now int64) error {
	asker, err := Asker(store.Uncancelled(), tx.Reader, t)
	if err != nil || asker != nil {
		return err
	}
	return PutNotice(tx, t, text, now)
}

// putOut writes an outbound row to the turn's chat, or, for an escalation, an
// answer to the group that asked.
func putOut(tx *store.Tx, t *msg.Turn, out *msg.Message, now int64) error {
	asker, err := Asker(store.Uncancelled(), tx.Reader, t)
	if err != nil {
		return err
	}
	if asker != nil {
		return answerAsker(tx, t, asker, out.Content, now)
	}
	out.ChatJID, out.Direction, out.IsBot = t.ChatJID, msg.Out, true
	out.Topic, out.ThreadID, out.TurnID = t.Place, t.ThreadID, t.ID
	out.Timestamp, out.ReceivedAt, out.OutState = now, now, msg.OutStateOf(t.ChatJID)
	_, _, err = tx.PutMessage(out)
	return err
}
