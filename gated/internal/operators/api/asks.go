package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"arizuko/gated/internal/codes"
	"arizuko/gated/internal/endpoint"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// operatorName is who has answered, as the chat reads it. The rows and the audit have the login.
const operatorName = "an operator"

// answerAsk answers an open question in the place of those whom it is for: operators may answer each one, such as one
// whose asker has left.
func (a API) answerAsk(r *http.Request) (any, error) {
	id, err := endpoint.ID(r)
	if err != nil {
		return nil, err
	}
	request, err := httpx.Decode[struct {
		Option int `json:"option"` // from 1
	}](r)
	if err != nil {
		return nil, err
	}
	var ended *msg.Ask
	err = a.Store.Write(context.WithoutCancel(r.Context()), func(tx *store.Tx) (err error) {
		ended, err = a.endAsk(tx, id, request.Option, httpx.By(r))
		return err
	})
	if err != nil {
		return nil, err
	}
	a.Agents.AskEnded()
	if msg.OutlivesTurn(ended.AskID) {
		a.Agents.Revived()
	}
	return map[string]any{"id": ended.ID, "turn_id": ended.TurnID, "state": ended.State, "option": ended.Option,
		"answered_by": ended.AnsweredBy}, nil
}

// endAsk answers a question and records it. It returns the question as it is then.
func (a API) endAsk(tx *store.Tx, id int64, option int, by string) (*msg.Ask, error) {
	ctx := context.Background() // in a transaction
	ask, err := tx.Ask(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case ask == nil:
		return nil, apierr.New(apierr.NotFound, "no question %d", id)
	case option < 1 || option > len(ask.Options):
		return nil, apierr.New(apierr.BadRequest, "option must be a number from 1 to %d", len(ask.Options))
	}
	now := a.Now().UnixMilli()
	author := by
	if ask.Always && option == len(ask.Options) && by != msg.WebOperator { // with a colon, a rule would be a user's
		author = strings.ReplaceAll(by, ":", "/")
	}
	err = rows.AnswerAsk(tx, id, option, author, operatorName, now, now)
	if errors.Is(err, store.ErrStale) {
		return nil, apierr.New(apierr.Conflict, "question %d is not open any more: %s", id, endOf(ask))
	}
	if err != nil {
		return nil, err
	}
	t, err := tx.Turn(ctx, ask.TurnID)
	if err != nil {
		return nil, err
	}
	detail := fmt.Sprintf("%d of turn %d: %s", id, ask.TurnID, ask.Options[option-1])
	if t != nil {
		detail = fmt.Sprintf("%d of turn %d of %s in %s: %s", id, t.ID, t.Folder, t.ChatJID, ask.Options[option-1])
	}
	if err := tx.PutAudit(by, "answer question", detail, now); err != nil {
		return nil, err
	}
	return tx.Ask(ctx, id)
}

// permissions lists the rules by which a group always allows something.
func (a API) permissions(r *http.Request) (any, error) {
	rules, err := factrows.PermissionRules(r.Context(), a.Store.Reader, r.URL.Query().Get("folder"))
	return map[string]any{"rules": append([]*msg.PermissionRule{}, rules...)}, err
}

func (a API) revokePermission(r *http.Request) (any, error) {
	id, err := endpoint.ID(r)
	if err != nil {
		return nil, err
	}
	var rule *msg.PermissionRule
	err = a.Store.Write(context.WithoutCancel(r.Context()), func(tx *store.Tx) (err error) {
		rule, err = rows.RevokeRule(tx, id, httpx.By(r), a.Now().UnixMilli())
		if err == nil && rule == nil {
			err = apierr.New(apierr.NotFound, "no permission rule %d", id)
		}
		return err
	})
	return rule, err
}

// endOf is how a question has ended, in words.
func endOf(a *msg.Ask) string {
	if a.State == msg.AskAnswered {
		return fmt.Sprintf("%s answered %q at %s", a.AnsweredBy, a.Chosen(),
			time.UnixMilli(a.EndedAt).UTC().Format("15:04:05 UTC"))
	}
	if a.EndedAt != 0 && a.EndedAt < a.ExpiresAt {
		return "its turn ended without an answer"
	}
	return "it has expired"
}

// makeOperatorCode makes the one-time code by which a user becomes an operator. The one before ends.
func (a API) makeOperatorCode(r *http.Request) (any, error) {
	code, now := codes.New(), a.Now().UnixMilli()
	stored := &rows.OperatorCode{Hash: codes.Hash(code), By: httpx.By(r), ExpiresAt: now + codes.Life.Milliseconds()}
	err := a.Store.Write(r.Context(), func(tx *store.Tx) error { return rows.PutOperatorCode(tx, stored, now) })
	return map[string]any{"code": code, "expires_at": stored.ExpiresAt}, err
}

// removeOperator removes an operator who was made by a code. Those of OPERATORS stay.
func (a API) removeOperator(r *http.Request) (any, error) {
	body, err := httpx.Decode[struct {
		Sender string `json:"sender"`
	}](r)
	if err != nil {
		return nil, err
	}
	err = a.Store.Write(r.Context(), func(tx *store.Tx) error {
		return rows.RemoveOperator(tx, body.Sender, httpx.By(r), a.Now().UnixMilli())
	})
	if errors.Is(err, store.ErrStale) {
		err = apierr.New(apierr.NotFound, "%.80q did not become an operator by a code", body.Sender)
	}
	return map[string]string{"removed": body.Sender}, err
}
