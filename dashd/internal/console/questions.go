package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
	"arizuko/pkg/why"
)

// questions are those of a turn, open ones first, else the newest first. operator is who looks at them.
func (c *Console) questions(ctx context.Context, t *msg.Turn, operator string) (all []pages.Question, err error) {
	asks, err := c.Store.TurnAsks(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	for _, a := range asks {
		all = append(all, c.question(a, operator))
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b pages.Question) int {
		switch {
		case a.Open == b.Open:
			return 0
		case a.Open:
			return -1
		}
		return 1
	})
	return all, nil
}

// question words a question. An operator may answer each one: one whose asker has left would hold its turn up.
func (c *Console) question(a *msg.Ask, operator string) pages.Question {
	text, detail, _ := strings.Cut(a.Question, "\n")
	q := pages.Question{
		ID: a.ID, Turn: a.TurnID, Message: a.MessageID, Kind: "asks",
		Text: c.hide(cutText(text, agentproto.MaxQuestion)), Detail: c.hide(cutText(detail, maxDetail)),
		For: line(why.For(a.Who)), Open: a.State == msg.AskOpen, AskedAt: a.CreatedAt, ExpiresAt: a.ExpiresAt,
		EndedAt: a.EndedAt,
	}
	if a.IsPermission() {
		q.Kind, q.Hash = "asks for permission", line(why.ShortHash(a.PayloadHash))
	}
	for i, option := range a.Options {
		q.Options = append(q.Options, pages.Option{Value: strconv.Itoa(i + 1), Text: line(option),
			Selected: a.State == msg.AskAnswered && option == a.Option})
	}
	switch {
	case a.State == msg.AskAnswered:
		q.End = "answered by " + line(a.AnsweredBy)
	case !q.Open:
		q.End, q.Bad = why.AskState(a), true
	case !a.Who.May(operator) && a.Who.Label != operatorsLabel:
		q.Stands = fmt.Sprintf("You answer in the place of %s, as an operator: the chat will read so, and Changes has your login.", q.For)
	}
	return q
}

// maxDetail is how much of what a question is about is shown, in characters: all that its chat has.
const maxDetail = 2 * agentproto.MaxDetail

// operatorsLabel is how a question names its users that is for operators.
const operatorsLabel = "operators"

// answerQuestion lets gated answer a question with the chosen option.
func (c *Console) answerQuestion(r *http.Request) (next, notice string, err error) {
	t, err := c.turnOf(r)
	if err != nil {
		return "/turns", "", err
	}
	next = fmt.Sprintf("/turns/%d", t.ID)
	a, option, err := c.chosen(r, t)
	if err != nil {
		return next, "", err
	}
	path := fmt.Sprintf("/v1/asks/%d/answer", a.ID)
	err = ask(r.Context(), c.Gated, "gated", http.MethodPost, path, map[string]int{"option": option}, nil)
	return next, fmt.Sprintf("Question %d is answered: %s.", a.ID, line(a.Options[option-1])), err
}

// chosen reads which question of a turn a form answers, and with which option.
func (c *Console) chosen(r *http.Request, t *msg.Turn) (*msg.Ask, int, error) {
	id, err := strconv.ParseInt(chi.URLParam(r, "ask"), 10, 64)
	if err != nil {
		return nil, 0, apierr.New(apierr.BadRequest, "The address has no number of a question.")
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
