// Package api serves gated's HTTP API: turns and what operators do with them.
package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

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
}

// API serves /v1/turns and /v1/messages.
type API struct {
	Store  *store.Store
	Agents Agents
	Now    func() time.Time
}

// Mount adds the routes. The router must check the bearer secret.
func (a API) Mount(r chi.Router) {
	r.Get("/v1/turns", answer(http.StatusOK, a.list))
	r.Get("/v1/turns/{id}", answer(http.StatusOK, a.show))
	r.Post("/v1/turns/{id}/retry", answer(http.StatusAccepted, a.retry))
	r.Post("/v1/turns/{id}/cancel", answer(http.StatusAccepted, a.cancel))
	r.Post("/v1/messages/{id}/replay", answer(http.StatusAccepted, a.replay))
}

func answer(status int, handle func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := handle(r)
		if err != nil {
			httpx.Error(w, err)
			return
		}
		httpx.JSON(w, status, v)
	}
}

func (a API) list(r *http.Request) (any, error) {
	state := msg.TurnState(r.URL.Query().Get("state"))
	switch state {
	case "", msg.TurnQueued, msg.TurnRunning, msg.TurnDone, msg.TurnFailed, msg.TurnCancelled:
	default:
		return nil, apierr.New(apierr.BadRequest, "state %q is none of queued, running, done, failed, cancelled", state)
	}
	turns, err := a.Store.Turns(r.Context(), state, r.URL.Query().Get("chat"), listLimit)
	if err != nil {
		return nil, busy(err)
	}
	if turns == nil {
		turns = []*msg.Turn{}
	}
	return map[string]any{"turns": turns}, nil
}

func (a API) show(r *http.Request) (any, error) {
	return a.turn(r)
}

func (a API) turn(r *http.Request) (*msg.Turn, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	t, err := a.Store.Turn(r.Context(), id)
	if err != nil {
		return nil, busy(err)
	}
	if t == nil {
		return nil, apierr.New(apierr.NotFound, "no turn %d", id)
	}
	return t, nil
}

func (a API) retry(r *http.Request) (any, error) {
	t, err := a.change(r, "failed and cancelled turns, and those that wait for a time, can be retried", (*store.Tx).ReviveTurn)
	if err != nil {
		return nil, err
	}
	a.Agents.Retry(t)
	return t, nil
}

func (a API) cancel(r *http.Request) (any, error) {
	var before *msg.Turn
	t, err := a.change(r, "it has ended already", func(tx *store.Tx, id int64) (err error) {
		if before, err = tx.Turn(r.Context(), id); err != nil {
			return err
		}
		return tx.CancelTurn(id, msg.ReasonCancelled, a.Now().UnixMilli())
	})
	if err != nil {
		return nil, err
	}
	a.Agents.Cancel(before)
	return t, nil
}

// change makes one change to a turn and returns the turn as it is then.
func (a API) change(r *http.Request, rule string, verb func(*store.Tx, int64) error) (t *msg.Turn, err error) {
	before, err := a.turn(r)
	if err != nil {
		return nil, err
	}
	err = a.Store.Write(r.Context(), func(tx *store.Tx) error {
		if err := verb(tx, before.ID); err != nil {
			return err
		}
		t, err = tx.Turn(r.Context(), before.ID)
		return err
	})
	if errors.Is(err, store.ErrStale) {
		return nil, apierr.New(apierr.Conflict, "turn %d is %s: %s", before.ID, before.State, rule)
	}
	if err != nil {
		return nil, busy(err)
	}
	return t, nil
}

// replay copies a message: an inbound copy is decided again, an outbound copy of
// one that failed or was cancelled is sent.
func (a API) replay(r *http.Request) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	m, err := a.Store.Message(r.Context(), id)
	if err != nil {
		return nil, busy(err)
	}
	if m == nil {
		return nil, apierr.New(apierr.NotFound, "no message %d", id)
	}
	if m.DerivedFrom != 0 && m.Source == msg.SourcePrefix { // the original has the prefix
		if m, err = a.Store.Message(r.Context(), m.DerivedFrom); err != nil {
			return nil, busy(err)
		}
	}
	if problem := unreplayable(m); problem != "" {
		return nil, apierr.New(apierr.Conflict, "message %d %s", id, problem)
	}
	replayed := copyOf(m, a.Now().UnixMilli())
	err = a.Store.Write(context.WithoutCancel(r.Context()), func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(replayed)
		return err
	})
	if err != nil {
		return nil, busy(err)
	}
	return map[string]int64{"id": replayed.ID}, nil
}

func unreplayable(m *msg.Message) string {
	switch {
	case m.Direction == msg.Out && m.OutState != msg.OutFailed && m.OutState != msg.OutCancelled && m.OutState != msg.OutAmbiguous:
		return fmt.Sprintf("is %s: only failed, ambiguous and cancelled messages are sent again", m.OutState)
	case m.Direction == msg.In && m.Disposition == "":
		return "is not decided yet"
	case m.Direction == msg.In && m.Disposition == msg.Onboarding:
		return "waits for its chat to be approved"
	}
	return ""
}

func copyOf(m *msg.Message, now int64) *msg.Message {
	replayed := *m
	replayed.ID, replayed.PlatformID, replayed.DerivedFrom = 0, "", m.ID
	replayed.Timestamp, replayed.ReceivedAt = now, now
	if m.Direction == msg.Out {
		replayed.OutState = store.OutStateOf(m.ChatJID)
	} else {
		replayed.Source, replayed.TurnID = msg.SourceReplay, 0
	}
	return &replayed
}

func pathID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil || id <= 0 {
		return 0, apierr.New(apierr.BadRequest, "%q is not an id", chi.URLParam(r, "id"))
	}
	return id, nil
}

// busy turns a database error into one that asks the client to retry.
func busy(err error) error {
	return apierr.New(apierr.Unavailable, "the database is not available right now: %w", err)
}
