package console

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/pages"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/facts/rows"
)

// Limits of the page of the requests.
const (
	maxRequests     = 50
	maxDecided      = 20
	maxGroups       = 100
	maxSharers      = 3 // chats that are named of each group
	defaultsTimeout = time.Second
	askEvery        = time.Second
)

// decide makes the action of the form that approves or rejects a request: onbod does it, and the page shows its words.
func (c *approvalPages) decide(verb, field string) action {
	return func(r *http.Request) (next, notice string, err error) {
		var answer struct{ Text string }
		err = c.ask(r.Context(), "onbod", http.MethodPost, "/"+verb, map[string]string{
			"code": chi.URLParam(r, "code"), field: strings.TrimSpace(r.PostForm.Get(field)),
			"by": login.Sender(r.Context()),
		}, &answer)
		return "/approvals", plainText(answer.Text), err
	}
}

// plainText makes a line of an answer in markdown: names are code there.
func plainText(text string) string { return plaintext.Line(strings.ReplaceAll(text, "`", "")) }

// list shows the requests that wait, and those that were decided lately.
func (c *approvalPages) list(r *http.Request) (*shown, error) {
	ctx := r.Context()
	pending, err := rows.Requests(ctx, c.Store, rows.RequestPending, maxRequests)
	if err != nil {
		return nil, err
	}
	all, err := rows.Requests(ctx, c.Store, "", maxRequests+maxDecided)
	if err != nil {
		return nil, err
	}
	waiting, err := rows.CountRequests(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	page := pages.Approvals{Now: c.Now().UnixMilli(), Pending: pending, More: max(0, waiting-len(pending))}
	for _, r := range all {
		if r.State != rows.RequestPending && len(page.Decided) < maxDecided {
			page.Decided = append(page.Decided, r)
		}
	}
	if len(pending) > 0 {
		page.Defaults = c.defaultFolders(ctx, pending)
		if page.Groups, err = c.sharedGroups(ctx); err != nil {
			return nil, err
		}
	}
	return &shown{data: page}, nil
}

// defaultFolders are the groups that onbod would make, by code; none if it does not say. onbod is asked once a second
// at most, whatever the number of open pages, unless a request is newer than its answer.
func (c *approvalPages) defaultFolders(ctx context.Context, pending []*rows.Request) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	newer := len(c.folders) > 0 &&
		slices.ContainsFunc(pending, func(r *rows.Request) bool { return c.folders[r.Code] == "" })
	if age := c.Now().Sub(c.askedAt); newer || age < 0 || age >= askEvery {
		c.folders, c.askedAt = c.askDefaults(ctx), c.Now()
	}
	return c.folders
}

func (c *approvalPages) askDefaults(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), defaultsTimeout)
	defer cancel()
	var answer struct {
		Requests []struct {
			Code          string `json:"code"`
			DefaultFolder string `json:"default_folder"`
		} `json:"requests"`
	}
	if err := c.Daemons["onbod"].Do(ctx, http.MethodGet, "/v1/requests?state="+string(rows.RequestPending), nil,
		&answer); err != nil {
		c.Log.Debug("asking onbod for requests failed", "err", err)
	}
	folders := map[string]string{}
	for _, r := range answer.Requests {
		folders[r.Code] = r.DefaultFolder
	}
	return folders
}

// sharedGroups are the groups with the chats whose messages a route leads there.
func (c *approvalPages) sharedGroups(ctx context.Context) ([]pages.GroupChats, error) {
	t, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]pages.GroupChats, 0, min(len(t.groups), maxGroups))
	for _, g := range t.groups[:min(len(t.groups), maxGroups)] {
		words, more, err := c.leads(ctx, t, g.Folder, maxSharers)
		if err != nil {
			return nil, err
		}
		all = append(all, pages.GroupChats{Folder: g.Folder, Chats: words, More: more})
	}
	return all, nil
}
