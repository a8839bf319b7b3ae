package store

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/msg"
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

func (r Reader) ReadAsks(ctx context.Context, query string, args ...any) ([]*msg.Ask, error) {
	return All(ctx, r, scanAsk, query, args...)
}

// Ask returns a question by its row, nil if there is none.
func (r Reader) Ask(ctx context.Context, id int64) (*msg.Ask, error) {
	return First(r.ReadAsks(ctx, queryAsk, id))
}

// AskOfMessage returns the question that an outbound row shows, nil if it shows none.
func (r Reader) AskOfMessage(ctx context.Context, messageID int64) (*msg.Ask, error) {
	return First(r.ReadAsks(ctx, queryAskByMessage, messageID))
}

// TurnAsks returns the questions of a turn, oldest first.
func (r Reader) TurnAsks(ctx context.Context, turnID int64) ([]*msg.Ask, error) {
	return r.ReadAsks(ctx, QueryTurnAsks, turnID)
}

// ChatAsks returns the open questions that are shown in a thread of a chat, "" for outside of one, oldest first, at
// most 20.
func (r Reader) ChatAsks(ctx context.Context, chatJID, threadID string) ([]*msg.Ask, error) {
	return r.ReadAsks(ctx, queryChatAsks, chatJID, threadID)
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
