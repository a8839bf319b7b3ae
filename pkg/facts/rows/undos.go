package rows

import (
	"context"
	"encoding/json"
	"strings"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// UndoneFilesChanged begins the answer of an undo that is refused since files have changed.
const UndoneFilesChanged = "Nothing is changed: these files have changed since: "

// UndoState is how far an undo is.
type UndoState string

// The states of undos.
const (
	UndoOpen    UndoState = "open"
	UndoDone    UndoState = "done"
	UndoRefused UndoState = "refused"
)

// Undo is an /undo of a turn, or with Redo a /redo.
type Undo struct {
	Redo      bool
	State     UndoState
	By, Name  string // the user; the name is "" if it is not known
	Answer    string // in markdown, "" while it is open
	CreatedAt int64
	EndedAt   int64
}

// FilesChanged reports whether it was refused since files have changed.
func (u *Undo) FilesChanged() bool {
	return u.State == UndoRefused && strings.HasPrefix(u.Answer, UndoneFilesChanged)
}

// Undos returns the undos of a turn, or of the turn that it was answered with, oldest first.
func Undos(ctx context.Context, r store.Reader, t *msg.Turn) ([]*Undo, error) {
	of := t.ID
	if t.AnsweredWith != 0 {
		of = t.AnsweredWith
	}
	return store.All(ctx, r, func(scan store.Scan) (*Undo, error) {
		var u Undo
		err := scan(&u.Redo, &u.State, &u.By, &u.Name, &u.Answer, &u.CreatedAt, &u.EndedAt)
		return &u, err
	}, `SELECT u.redo, u.state, u.by, ifnull(m.sender_name, ''), u.answer, u.created_at, ifnull(u.ended_at, 0)
		FROM undos u INDEXED BY undos_turn LEFT JOIN messages m ON m.id = u.message_id WHERE u.turn_id = ? ORDER BY u.id`, of)
}

// TakenBack is the end of a turn that was undone.
const TakenBack = "taken back"

// TurnEnds returns how the turns of messages ended, in words, by the messages' ids: TakenBack, or why they failed.
func TurnEnds(ctx context.Context, r store.Reader, messages []*msg.Message) (map[int64]string, error) {
	var turns []int64
	for _, m := range messages {
		if m.TurnID != 0 {
			turns = append(turns, m.TurnID)
		}
	}
	if len(turns) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(turns)
	if err != nil {
		return nil, err
	}
	ends := map[int64]string{}
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		var id int64
		var undone bool
		var reason msg.Reason
		err := scan(&id, &undone, &reason)
		if ends[id] = reason.Words(); undone {
			ends[id] = TakenBack
		}
		return true, err
	}, `SELECT t.id, t.undone_at IS NOT NULL, t.reason
		FROM json_each(?) j CROSS JOIN turns t ON t.id = CAST(j.value AS INTEGER)
		WHERE t.undone_at IS NOT NULL OR t.state = 'failed'`, string(list))
	of := map[int64]string{}
	for _, m := range messages {
		if end := ends[m.TurnID]; end == TakenBack || m.Direction == msg.In { // that it failed is said once
			of[m.ID] = end
		}
	}
	return of, err
}

// HasUndo joins a turn t, and the last text m of its agent, while the answer may have an Undo button; the time since
// which the turn must have ended follows.
const HasUndo = `m.direction = 'out' AND m.kind = 'message' AND m.source = 'agent' AND t.kind = 'conversation'
	AND t.state = 'done' AND t.undone_at IS NULL AND t.answered_with IS NULL
	AND NOT EXISTS (SELECT 1 FROM messages n INDEXED BY messages_turn WHERE n.turn_id IS NOT NULL AND n.turn_id = m.turn_id
		AND n.id > m.id AND n.direction = 'out' AND n.kind = 'message' AND n.source = 'agent')
	AND t.ended_at > `

// UndoUntil returns until when a row has an Undo button, in unix ms, 0 if it has none now: it must be the last text of
// a turn that has ended lately, and was not taken back.
func UndoUntil(ctx context.Context, r store.Reader, m *msg.Message, now int64) (until int64, err error) {
	if m.Kind != msg.KindMessage || m.Source != msg.SourceAgent || m.TurnID == 0 {
		return 0, nil
	}
	forTime := msg.UndoTime.Milliseconds()
	ended, err := store.Value[int64](ctx, r, `SELECT t.ended_at FROM messages m JOIN turns t ON t.id = m.turn_id
		WHERE m.id = ?1 AND `+HasUndo+`?2`, m.ID, now-forTime)
	if err != nil || ended == 0 {
		return 0, err
	}
	return ended + forTime, nil
}
