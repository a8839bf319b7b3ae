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
	// comparedDays and maxCompared bound the recorded requests that a rule is tried on.
	comparedDays = 7
	maxCompared  = 5000
	maxExamples  = 50
	// maxReceipts bounds one answer.
	maxReceipts = 1000
)

func (a API) mountEgress(r chi.Router) {
	r.Get("/v1/egress/rules", endpoint.Handler(http.StatusOK, a.egressRules))
	r.Post("/v1/egress/rules", endpoint.Handler(http.StatusCreated, a.addEgressRule))
	r.Delete("/v1/egress/rules/{id}", endpoint.Handler(http.StatusOK, a.removeEgressRule))
	r.Post("/v1/egress/test", endpoint.Handler(http.StatusOK, a.testEgress))
	r.Get("/v1/egress/receipts", endpoint.Handler(http.StatusOK, a.egressReceipts))
}

// EgressRules are the rules in their order.
type EgressRules struct {
	Rules egress.Rules `json:"rules"`
}

func (a API) egressRules(r *http.Request) (any, error) {
	all, err := egressrows.Rules(r.Context(), a.Store.Reader)
	return EgressRules{append(egress.Rules{}, all...)}, err
}

func egressRule(r *http.Request) (rule egress.Rule, err error) {
	if rule, err = httpx.Decode[egress.Rule](r); err != nil {
		return rule, err
	}
	if err := rule.Check(); err != nil {
		return rule, apierr.New(apierr.BadRequest, "%w", err)
	}
	return rule, nil
}

func (a API) addEgressRule(r *http.Request) (any, error) {
	rule, err := egressRule(r)
	if err != nil {
		return nil, err
	}
	rule.ID, rule.Author, rule.CreatedAt = 0, httpx.By(r), a.Now().UnixMilli()
	return a.changeEgress(r, "add egress rule", func(tx *store.Tx) (*egress.Rule, error) {
		g, err := tx.Group(store.Uncancelled(), rule.Folder)
		if err == nil && g == nil && rule.Folder != "" {
			err = apierr.New(apierr.BadRequest, "there is no group %.80q", rule.Folder)
		}
		if err == nil {
			err = egressrows.PutRule(tx, &rule)
		}
		return &rule, err
	})
}

func (a API) removeEgressRule(r *http.Request) (any, error) {
	id, err := endpoint.ID(r)
	if err != nil {
		return nil, err
	}
	return a.changeEgress(r, "remove egress rule", func(tx *store.Tx) (*egress.Rule, error) {
		rule, err := egressrows.RemoveRule(tx, id)
		if err == nil && rule == nil {
			err = apierr.New(apierr.NotFound, "no egress rule %d", id)
		}
		return rule, err
	})
}

// changeEgress makes one change to the rules, records it, and answers with the rule that was added or removed.
func (a API) changeEgress(r *http.Request, what string, change func(*store.Tx) (*egress.Rule, error)) (any, error) {
	var rule *egress.Rule
	err := a.Store.Write(context.WithoutCancel(r.Context()), func(tx *store.Tx) (err error) {
		if rule, err = change(tx); err != nil {
			return err
		}
		return tx.PutAudit(httpx.By(r), what, fmt.Sprintf("%d: %s", rule.ID, rule), a.Now().UnixMilli())
	})
	return rule, err
}

// testEgress compares the rules with those that there would be with one more.
func (a API) testEgress(r *http.Request) (any, error) {
	rule, err := egressRule(r)
	if err != nil {
		return nil, err
	}
	all, err := egressrows.Rules(r.Context(), a.Store.Reader)
	if err != nil {
		return nil, err
	}
	receipts, err := egressrows.ListReceipts(r.Context(), a.Store.Reader, egressrows.Filter{
		Since: a.Now().AddDate(0, 0, -comparedDays).UnixMilli(), Limit: maxCompared,
	})
	return all.Compare(all.With(&rule), receipts, maxExamples), err
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
