package store

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/msg"
)

const (
	AskColumns = `a.id, a.turn_id, a.ask_id, ifnull(a.message_id, 0), a.question, a.options, a.payload_hash, a.who, a.state, ifnull(a.option, ''),
		ifnull(a.answered_by, ''), a.created_at, a.expires_at, ifnull(a.ended_at, 0)`
	QueryTurnAsks = `SELECT ` + AskColumns + ` FROM asks a WHERE a.turn_id = ? ORDER BY a.id`
)

func scanAsk(scan Scan) (*msg.Ask, error) {
	var a msg.Ask
	var options, who string
	err := scan(&a.ID, &a.TurnID, &a.AskID, &a.MessageID, &a.Question, &options, &a.PayloadHash, &who, &a.State,
		&a.Option,
		&a.AnsweredBy, &a.CreatedAt, &a.ExpiresAt, &a.EndedAt)
	if err != nil {
		return nil, fmt.Errorf("scan question: %w", err)
	}
	if json.Unmarshal([]byte(options), &a.Options) != nil { // JSON of another shape counts as none
		a.Options = nil
	}
	a.Who = msg.ParseWho(who)
	return &a, nil
}

// ReadAsks runs a query of AskColumns.
func (r Reader) ReadAsks(ctx context.Context, query string, args ...any) ([]*msg.Ask, error) {
	return All(ctx, r, scanAsk, query, args...)
}

// Ask returns a question by its row, nil if there is none.
func (r Reader) Ask(ctx context.Context, id int64) (*msg.Ask, error) {
	return First(r.ReadAsks(ctx, `SELECT `+AskColumns+` FROM asks a WHERE a.id = ?`, id))
}

// AskOfMessage returns the question that an outbound row shows, nil if it shows none.
func (r Reader) AskOfMessage(ctx context.Context, messageID int64) (*msg.Ask, error) {
	return First(r.ReadAsks(ctx, `SELECT `+AskColumns+` FROM asks a INDEXED BY asks_message WHERE a.message_id = ?`,
		messageID))
}

// TurnAsks returns the questions of a turn, oldest first.
func (r Reader) TurnAsks(ctx context.Context, turnID int64) ([]*msg.Ask, error) {
	return r.ReadAsks(ctx, QueryTurnAsks, turnID)
}

// AskOfTarget returns the question that the message of a platform id shows in a chat, nil if it shows none.
func (r Reader) AskOfTarget(ctx context.Context, chatJID, platformID string) (*msg.Ask, error) {
	if platformID == "" {
		return nil, nil
	}
	m, err := r.MessageByPlatformID(ctx, chatJID, platformID)
	if err != nil || m == nil || m.Direction != msg.Out {
		return nil, err
	}
	return r.AskOfMessage(ctx, m.ID)
}

// AskBeingSent returns a question whose message in a chat has no id yet, since its adapter is sending it, nil for any
// other.
func (r Reader) AskBeingSent(ctx context.Context, id int64, chatJID string) (*msg.Ask, error) {
	a, err := r.Ask(ctx, id)
	if err != nil || a == nil {
		return nil, err
	}
	row, err := r.Message(ctx, a.MessageID)
	if err != nil || row == nil || row.ChatJID != chatJID ||
		row.OutState != msg.OutSending && row.OutState != msg.OutQueued {
		return nil, err
	}
	return a, nil
}

// Pressed returns the question that a press is about, and the number of the chosen option; nil if it is about no
// question of its chat. Users may forge what a button carries, and a button may stand on a copy of the message: the
// question's own message must be in this chat and, once its id is known, the one that was pressed.
func (r Reader) Pressed(ctx context.Context, m *msg.Message) (a *msg.Ask, option int, err error) {
	press, ok := msg.ParsePress(m.Content)
	var early *msg.Ask
	if ok {
		if early, err = r.AskBeingSent(ctx, press.Ask, m.ChatJID); err != nil {
			return nil, 0, err
		}
	}
	// Read after it: an id that is stored in between is found.
	shown, err := r.AskOfTarget(ctx, m.ChatJID, m.TargetID)
	switch {
	case err != nil:
		return nil, 0, err
	case !ok: // by a foreign adapter
		if shown != nil {
			option, _ = shown.Number(m.Content)
		}
		return shown, option, nil
	case shown == nil && early != nil && m.TargetID != "":
		// It was pressed before the adapter has stored the id of the message, unless this is the id of another one.
		row, err := r.MessageByPlatformID(ctx, m.ChatJID, m.TargetID)
		if err != nil || row != nil && row.ID != early.MessageID {
			return nil, 0, err
		}
		return early, press.Option, nil
	case shown != nil && shown.ID != press.Ask:
		return nil, 0, nil
	}
	return shown, press.Option, nil
}

// Stoppable returns the turn that the Stop button of a chat names, nil if it can no longer be stopped from there: users
// may forge what a button carries.
func (r Reader) Stoppable(ctx context.Context, chatJID string, id int64) (*msg.Turn, error) {
	t, err := r.Turn(ctx, id)
	if err != nil || t == nil || t.ChatJID != chatJID || !t.State.IsOpen() {
		return nil, err
	}
	return t, nil
}
