package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
)

const egressPath = "/egress"

// show shows the rules, the form for a new one with what it would change, and the latest requests.
func (c egressPages) show(r *http.Request) (*shown, error) {
	ctx, q := r.Context(), r.URL.Query()
	table, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	page := pages.Egress{Draft: egressDraft(q), Group: strings.TrimSpace(q.Get("of")),
		Host: strings.TrimSpace(q.Get("to")), Now: c.Now().UnixMilli()}
	for _, g := range table.groups {
		page.Groups = append(page.Groups, g.Folder)
	}
	if page.Rules, err = egressrows.Rules(ctx, c.Store); err != nil {
		return nil, err
	}
	for _, action := range []egress.Action{egress.Ask, egress.Pass, egress.Inject, egress.Deny} {
		page.Actions = append(page.Actions, pages.Option{Value: string(action), Text: string(action),
			Selected: action == page.Draft.Action})
	}
	if q.Get("do") == "test" {
		if err := c.ask(ctx, "gated", http.MethodPost, "/v1/egress/test", page.Draft, &page.Compared); err != nil {
			page.Compared, page.Problem = nil, plainText(err.Error())
		}
	}
	return &shown{data: &page}, c.addRequests(ctx, r, &page)
}

// addRequests adds the latest requests that the filter selects.
func (c egressPages) addRequests(ctx context.Context, r *http.Request, page *pages.Egress) error {
	state := egress.State(r.URL.Query().Get("state"))
	page.States = []pages.Option{{Text: "any"}}
	for _, s := range egress.States() {
		page.States = append(page.States, pages.Option{Value: string(s), Text: string(s), Selected: s == state})
	}
	before, err := position(r.URL.Query())
	if err != nil {
		return err
	}
	receipts, err := egressrows.ListReceipts(ctx, c.Store, egressrows.Filter{
		Folder: page.Group, Host: page.Host, State: state, Before: before, Limit: maxRows + 1,
		Since: c.Now().AddDate(0, 0, -spendDays).UnixMilli(),
	})
	page.Requests, page.Next = paged(r, receipts, "before", func(r *egress.Receipt) int64 { return r.ID })
	return err
}

// egressDraft reads the form for a rule.
func egressDraft(form url.Values) (d egress.Rule) {
	field := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	// Fields of the names action and method would hide those of the form from scripts.
	d.Host, d.Method, d.Path, d.Folder = field("host"), field("verb"), field("path"), field("group")
	d.Action, d.Secret = egress.Action(cmp.Or(field("what"), string(egress.Ask))), field("secret")
	var err error
	if d.Seq, err = strconv.ParseInt(cmp.Or(field("seq"), "0"), 10, 64); err != nil {
		d.Seq = -1 // which gated refuses
	}
	return d
}

// add asks gated to add a rule. What was typed into a form that is refused stays there.
func (c egressPages) add(r *http.Request) (next, notice string, err error) {
	draft := egressDraft(r.PostForm)
	if err := c.ask(r.Context(), "gated", http.MethodPost, "/v1/egress/rules", draft, nil); err != nil {
		return egressPath + "?" + r.PostForm.Encode(), "", err
	}
	return egressPath, "The rule was added: " + pages.Line(draft.String()) + ".", nil
}

// remove asks gated to remove a rule.
func (c egressPages) remove(r *http.Request) (next, notice string, err error) {
	id := chi.URLParam(r, "id")
	err = c.ask(r.Context(), "gated", http.MethodDelete, "/v1/egress/rules/"+url.PathEscape(id), nil, nil)
	return egressPath, fmt.Sprintf("Rule %s was removed.", id), err
}
