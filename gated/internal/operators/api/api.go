// Package api serves gated's HTTP API: turns, and the actions of operators on them.
package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/gated/internal/endpoint"
	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/undo"
	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// listLimit is how many turns one answer lists.
const listLimit = 200

// Agents applies the API's changes to runs and queue.
type Agents interface {
	Cancel(turns ...*msg.Turn)
	Retry(*msg.Turn)
	// AskEnded hands the answers of questions to the agents that wait for them.
	AskEnded()
	// Revived starts the turns that were queued again since a budget was raised.
	Revived()
	// Drain lets the run of a turn that is taken back finish.
	Drain(runID int64)
}

// API serves /v1/turns, /v1/asks, /v1/messages, /v1/operators, /v1/spend, /v1/permissions and
// /v1/egress.
type API struct {
	Store  *store.Store
	Agents Agents
	// Context makes the prompt of a turn again, without secrets.
	Context func(ctx context.Context, turn int64) (string, error)
	Now     func() time.Time
	Names   []string // of the agents that groups may name, the default one first
}

// Mount adds the routes. The router must check the bearer secret.
func (a API) Mount(r chi.Router) {
	r.Get("/v1/agents", endpoint.Handler(http.StatusOK, func(*http.Request) (any, error) {
		return map[string]any{"agents": a.Names}, nil
	}))
	r.Get("/v1/turns", endpoint.Handler(http.StatusOK, a.list))
	r.Get("/v1/turns/{id}", endpoint.Handler(http.StatusOK, a.show))
	r.Get("/v1/turns/{id}/context", endpoint.Handler(http.StatusOK, a.context))
	r.Post("/v1/turns/{id}/retry", endpoint.Handler(http.StatusAccepted, a.retry))
	r.Post("/v1/turns/{id}/cancel", endpoint.Handler(http.StatusAccepted, a.cancel))
	r.Post("/v1/turns/{id}/undo", endpoint.Handler(http.StatusAccepted, a.undo))
	r.Post("/v1/turns/{id}/redo", endpoint.Handler(http.StatusAccepted, a.redo))
	r.Post("/v1/asks/{id}/answer", endpoint.Handler(http.StatusAccepted, a.answerAsk))
	r.Post("/v1/messages/{id}/replay", endpoint.Handler(http.StatusAccepted, a.replay))
	r.Post("/v1/messages/replay", endpoint.Handler(http.StatusAccepted, a.replayAll))
	r.Get("/v1/messages/lost", endpoint.Handler(http.StatusOK, a.lost))
	r.Post("/v1/operators/code", endpoint.Handler(http.StatusCreated, a.makeOperatorCode))
	r.Post("/v1/operators/remove", endpoint.Handler(http.StatusOK, a.removeOperator))
	r.Get("/v1/spend", endpoint.Handler(http.StatusOK, a.spend))
	r.Get("/v1/permissions", endpoint.Handler(http.StatusOK, a.permissions))
	r.Delete("/v1/permissions/{id}", endpoint.Handler(http.StatusOK, a.revokePermission))
	a.mountEgress(r)
}

func (a API) list(r *http.Request) (any, error) {
	state := msg.TurnState(r.URL.Query().Get("state"))
	switch state {
	case "", msg.TurnQueued, msg.TurnRunning, msg.TurnDone, msg.TurnFailed, msg.TurnCancelled:
	default:
		return nil, apierr.New(apierr.BadRequest, "state %q is none of queued, running, done, failed, cancelled", state)
	}
	turns, err := a.Store.Turns(r.Context(), store.TurnList{State: state, ChatJID: r.URL.Query().Get("chat"),
		Limit: listLimit})
	return map[string]any{"turns": append([]*msg.Turn{}, turns...)}, err
}

func (a API) show(r *http.Request) (any, error) { return a.turn(r) }

func (a API) turn(r *http.Request) (*msg.Turn, error) {
	id, err := endpoint.ID(r)
	if err != nil {
		return nil, err
	}
	t, err := a.Store.Turn(r.Context(), id)
	if err == nil && t == nil {
		err = apierr.New(apierr.NotFound, "no turn %d", id)
	}
	return t, err
}

// context is the prompt of a turn that has started, made again from the rows.
func (a API) context(r *http.Request) (any, error) {
	t, err := a.turn(r)
	if err != nil {
		return nil, err
	}
	if t.StartedAt == 0 {
		return nil, apierr.New(apierr.Conflict, "turn %d has not started: its prompt is made when an agent takes it",
			t.ID)
	}
	text, err := a.Context(r.Context(), t.ID)
	return map[string]string{"prompt": text}, err
}

func (a API) retry(r *http.Request) (any, error) {
	t, err := a.change(r, "retry turn", "failed and cancelled turns, and those that wait for a time, can be retried",
		func(tx *store.Tx, id int64) error {
			if err := rows.ReviveTurn(tx, id); err != nil {
				return err
			}
			return rows.EndRetryAsks(tx, id, a.Now().UnixMilli())
		})
	if err == nil {
		a.Agents.Retry(t)
	}
	return t, err
}

func (a API) cancel(r *http.Request) (any, error) {
	var before *msg.Turn
	t, err := a.change(r, "cancel turn", "it has ended already", func(tx *store.Tx, id int64) (err error) {
		if before, err = tx.Turn(r.Context(), id); err != nil {
			return err
		}
		if err := rows.CancelTurn(tx, id, msg.ReasonCancelled, a.Now().UnixMilli()); err != nil {
			return err
		}
		if escalated, err := rows.Escalated(r.Context(), tx.Reader, before); err != nil || !escalated {
			return errors.Join(err, tx.MarkCancelled(before, "", a.Now().UnixMilli()))
		}
		return rows.PutNotice(tx, before, "(No answer: an operator has cancelled this.)", a.Now().UnixMilli())
	})
	if err == nil {
		a.Agents.Cancel(before)
	}
	return t, err
}

func (a API) undo(r *http.Request) (any, error) { return a.takeBack(r, false) }

func (a API) redo(r *http.Request) (any, error) { return a.takeBack(r, true) }

// takeBack asks for a turn to be taken back, or done again. With ?rest=true files that have changed since stay as they
// are. The answer is in the turn's chat, and on its page.
func (a API) takeBack(r *http.Request, redo bool) (any, error) {
	var run int64
	what := "undo turn"
	if redo {
		what = "redo turn"
	}
	t, err := a.change(r, what, "", func(tx *store.Tx, id int64) error {
		_, closed, refusal, err := undo.Ask(tx, undo.Request{Turn: id, Redo: redo, By: httpx.By(r), Operator: true,
			Rest: r.URL.Query().Get("rest") == "true"}, a.Now().UnixMilli())
		if run = closed; err == nil && refusal != "" {
			err = apierr.New(apierr.Conflict, "%s", refusal)
		}
		return err
	})
	if err == nil {
		a.Agents.Drain(run)
	}
	return t, err
}

// change makes one change to a turn, records it and returns the turn as it is then.
func (a API) change(r *http.Request, what, rule string, verb func(*store.Tx, int64) error) (t *msg.Turn, err error) {
	before, err := a.turn(r)
	if err != nil {
		return nil, err
	}
	err = a.Store.Write(r.Context(), func(tx *store.Tx) error {
		if err := verb(tx, before.ID); err != nil {
			return err
		}
		if t, err = tx.Turn(r.Context(), before.ID); err != nil {
			return err
		}
		return tx.PutAudit(httpx.By(r), what, fmt.Sprintf("%d of %s in %s", t.ID, t.Folder, t.ChatJID),
			a.Now().UnixMilli())
	})
	if errors.Is(err, store.ErrStale) {
		err = apierr.New(apierr.Conflict, "turn %d is %s: %s", before.ID, before.State, rule)
	}
	return t, err
}

// lost lists the outbound rows that were not delivered, or may not have been.
func (a API) lost(r *http.Request) (any, error) {
	since := int64(0)
	if text := r.URL.Query().Get("since"); text != "" {
		age, err := time.ParseDuration(text)
		if err != nil || age <= 0 {
			return nil, apierr.New(apierr.BadRequest, "since %.40q is not a duration, such as 24h", text)
		}
		since = a.Now().Add(-age).UnixMilli()
	}
	list, err := rows.LostRows(r.Context(), a.Store.Reader, since, r.URL.Query().Get("chat"), listLimit)
	return map[string]any{"messages": append([]rows.Lost{}, list...)}, err
}
