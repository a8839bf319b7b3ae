package store

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/msg"
)

const (
	AskColumns = `a.id, a.turn_id, a.ask_id, ifnull(a.message_id, 0), a.question, a.options, a.payload_hash, a.who, a.state, ifnull(a.option, ''),
		ifnull(a.answered_by, ''), a.created_at, a.expires_at, ifnull(a.ended_at, 0), a.tool, a.allow, a.always = 1, a.rule_id, a.rule_at`
	QueryTurnAsks = `SELECT ` + AskColumns + ` FROM asks a WHERE a.turn_id = ? ORDER BY a.id`
)

func scanAsk(scan Scan) (*msg.Ask, error) {
	var a msg.Ask
	var options, who string
	err := scan(&a.ID, &a.TurnID, &a.AskID, &a.MessageID, &a.Question, &options, &a.PayloadHash, &who, &a.State,
		&a.Option,
		&a.AnsweredBy, &a.CreatedAt, &a.ExpiresAt, &a.EndedAt, &a.Tool, &a.Allow, &a.Always, &a.RuleID, &a.RuleAt)
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
