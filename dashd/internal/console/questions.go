package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
)

// questions are those of a turn, open ones first, else the newest first. operator is who looks at them.
func (c turnPages) questions(ctx context.Context, t *msg.Turn, operator string) (all []pages.Question, err error) {
	asks, err := c.Store.TurnAsks(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	for _, open := range []bool{true, false} {
		for _, a := range slices.Backward(asks) {
			if q := (pages.Question{Ask: a, Operator: operator}); q.Open() == open {
				all = append(all, q)
			}
		}
	}
	return all, nil
}

// answerQuestion asks gated to answer a question with the chosen option.
func (c turnPages) answerQuestion(r *http.Request) (next, notice string, err error) {
	t, err := c.turnOf(r)
	if err != nil {
		return "/turns", "", err
	}
	next = turnPath(t.ID)
	a, option, err := c.chosen(r, t)
	if err != nil {
		return next, "", err
	}
	path := fmt.Sprintf("/v1/asks/%d/answer", a.ID)
	err = c.ask(r.Context(), "gated", http.MethodPost, path, map[string]int{"option": option}, nil)
	return next, fmt.Sprintf("Question %d is answered: %s.", a.ID, pages.Line(a.Options[option-1])), err
}

// chosen reads which question of a turn a form answers, and with which option.
func (c turnPages) chosen(r *http.Request, t *msg.Turn) (*msg.Ask, int, error) {
	id, err := idOf(chi.URLParam(r, "ask"), "question")
	if err != nil {
		return nil, 0, err
	}
	a, err := c.Store.Ask(r.Context(), id)
	if err != nil {
		return nil, 0, err
	}
	if a == nil || a.TurnID != t.ID {
		return nil, 0, apierr.New(apierr.NotFound, "Turn %d has no question %d.", t.ID, id)
	}
	option, err := strconv.Atoi(r.PostForm.Get("option"))
	if err != nil || option < 1 || option > len(a.Options) {
		return nil, 0, apierr.New(apierr.BadRequest, "Question %d has no such option: choose one of its buttons.", id)
	}
	return a, option, nil
}
