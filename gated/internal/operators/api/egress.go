package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/gated/internal/endpoint"
	"arizuko/pkg/apierr"
	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
)

const (
	// comparedDays and maxCompared bound the recorded requests that a draft is compared on.
	comparedDays = 7
	maxCompared  = 5000
	maxExamples  = 50
	// maxReceipts bounds one answer.
	maxReceipts = 1000
)

func (a API) mountEgress(r chi.Router) {
	r.Get("/v1/egress/rules", endpoint.Handler(http.StatusOK, a.egressRules))
	r.Post("/v1/egress/rules", endpoint.Handler(http.StatusCreated, a.addEgressRule))
	r.Post("/v1/egress/rules/{id}/move", endpoint.Handler(http.StatusOK, a.moveEgressRule))
	r.Delete("/v1/egress/rules/{id}", endpoint.Handler(http.StatusOK, a.removeEgressRule))
	r.Post("/v1/egress/test", endpoint.Handler(http.StatusOK, a.testEgress))
	r.Get("/v1/egress/receipts", endpoint.Handler(http.StatusOK, a.egressReceipts))
}

// EgressRules are the rules in their order. ID is the rule that was added, moved or removed, 0 for none.
type EgressRules struct {
	ID    int64        `json:"id,omitempty"`
	Rules egress.Rules `json:"rules"`
}

func (a API) egressRules(r *http.Request) (any, error) {
	all, err := egressrows.Rules(r.Context(), a.Store.Reader)
	return EgressRules{Rules: append(egress.Rules{}, all...)}, err
}

func (a API) addEgressRule(r *http.Request) (any, error) {
	draft, err := httpx.Decode[egress.Draft](r)
	if err != nil {
		return nil, err
	}
	rule := &draft.Rule
	rule.ID, rule.Seq, rule.Author, rule.CreatedAt = 0, 0, httpx.By(r), a.Now().UnixMilli()
	if err := rule.Check(); err != nil {
		return nil, apierr.New(apierr.BadRequest, "%w", err)
	}
	return a.changeEgress(r, "add egress rule", func(tx *store.Tx, _ egress.Rules) (*egress.Rule, error) {
		g, err := tx.Group(store.Uncancelled(), rule.Folder)
		if err == nil && g == nil && rule.Folder != "" {
			err = apierr.New(apierr.BadRequest, "there is no group %.80q", rule.Folder)
		}
		if err == nil {
			err = egressrows.PutRule(tx, rule)
		}
		if err == nil && draft.Before != 0 {
			err = movedBefore(tx, rule.ID, draft.Before)
		}
		return rule, err
	})
}

func movedBefore(tx *store.Tx, id, before int64) error {
	found, err := egressrows.MoveRule(tx, id, before)
	if err == nil && !found {
		err = apierr.New(apierr.NotFound, "no other rule %d", before)
	}
	return err
}

func (a API) moveEgressRule(r *http.Request) (any, error) {
	to, err := httpx.Decode[struct {
		Before int64 `json:"before"` // see egress.Last
	}](r)
	if err != nil {
		return nil, err
	}
	return a.changeEgressRule(r, "move egress rule", func(tx *store.Tx, id int64) error {
		return movedBefore(tx, id, to.Before)
	})
}

func (a API) removeEgressRule(r *http.Request) (any, error) {
	return a.changeEgressRule(r, "remove egress rule", func(tx *store.Tx, id int64) error {
		_, err := egressrows.RemoveRule(tx, id)
		return err
	})
}

// changeEgressRule changes the rule that the path names.
func (a API) changeEgressRule(r *http.Request, what string, change func(*store.Tx, int64) error) (any, error) {
	id, err := endpoint.ID(r)
	if err != nil {
		return nil, err
	}
	return a.changeEgress(r, what, func(tx *store.Tx, all egress.Rules) (*egress.Rule, error) {
		i := slices.IndexFunc(all, func(rule *egress.Rule) bool { return rule.ID == id })
		if i < 0 {
			return nil, apierr.New(apierr.NotFound, "no egress rule %d", id)
		}
		return all[i], change(tx, id)
	})
}

// changeEgress makes one change to the rules and records it.
func (a API) changeEgress(r *http.Request, what string,
	change func(*store.Tx, egress.Rules) (*egress.Rule, error)) (any, error) {
	var answer EgressRules
	err := a.Store.Write(context.WithoutCancel(r.Context()), func(tx *store.Tx) error {
		all, err := egressrows.Rules(store.Uncancelled(), tx.Reader)
		if err != nil {
			return err
		}
		rule, err := change(tx, all)
		if err != nil {
			return err
		}
		answer.ID = rule.ID
		if answer.Rules, err = egressrows.Rules(store.Uncancelled(), tx.Reader); err != nil {
			return err
		}
		return tx.PutAudit(httpx.By(r), what, fmt.Sprintf("%d: %s", rule.ID, rule), a.Now().UnixMilli())
	})
	return answer, err
}

// testEgress compares the rules with those that there would be with one more.
func (a API) testEgress(r *http.Request) (any, error) {
	draft, err := httpx.Decode[egress.Draft](r)
	if err != nil {
		return nil, err
	}
	if err := draft.Check(); err != nil {
		return nil, apierr.New(apierr.BadRequest, "%w", err)
	}
	all, err := egressrows.Rules(r.Context(), a.Store.Reader)
	if err != nil {
		return nil, err
	}
	draft.ID = 0
	others, ok := all.Place(&draft.Rule, draft.Before)
	if !ok {
		return nil, apierr.New(apierr.NotFound, "no other rule %d", draft.Before)
	}
	receipts, err := egressrows.ListReceipts(r.Context(), a.Store.Reader, egressrows.Filter{
		Since: a.Now().AddDate(0, 0, -comparedDays).UnixMilli(), Limit: maxCompared,
	})
	return all.Compare(others, receipts, maxExamples), err
}

// egressReceipts lists the requests of the last days, the newest first.
func (a API) egressReceipts(r *http.Request) (any, error) {
	q := r.URL.Query()
	numbers := map[string]int64{"days": comparedDays, "before": 0, "limit": listLimit}
	for name := range numbers {
		if text := q.Get(name); text != "" {
			n, err := strconv.ParseInt(text, 10, 32)
			if err != nil || n < 1 {
				return nil, apierr.New(apierr.BadRequest, "%s=%.40q is not a number from 1 on", name, text)
			}
			numbers[name] = n
		}
	}
	state := egress.State(q.Get("state"))
	if state != "" && !slices.Contains(egress.States(), state) {
		return nil, apierr.New(apierr.BadRequest, "state %.40q is none of %s", state, egress.States())
	}
	receipts, err := egressrows.ListReceipts(r.Context(), a.Store.Reader, egressrows.Filter{
		Folder: q.Get("folder"), Host: q.Get("host"), State: state, Before: numbers["before"],
		Since: a.Now().Add(-time.Duration(numbers["days"]) * 24 * time.Hour).UnixMilli(),
		Limit: int(min(numbers["limit"], maxReceipts)),
	})
	return map[string]any{"receipts": append([]*egress.Receipt{}, receipts...)}, err
}
