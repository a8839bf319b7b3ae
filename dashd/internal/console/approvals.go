package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/pages"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/facts/rows"
	"arizuko/pkg/match"
	"arizuko/pkg/store"
)

// Limits of the page of the requests.
const (
	maxRequests    = 50
	maxDecided     = 20
	maxGroups      = 100
	maxSharers     = 3 // chats that are named of each group
	defaultsWithin = time.Second
	// askEvery bounds how often onbod is asked for them.
	askEvery = time.Second
)

// decide makes the action of the form that approves or rejects a request: onbod does it, and the page shows its words.
func (c *Console) decide(verb, field string) action {
	return func(r *http.Request) (next, notice string, err error) {
		var answer struct{ Text string }
		err = ask(r.Context(), c.Onbod, "onbod", http.MethodPost, "/"+verb, map[string]string{
			"code": chi.URLParam(r, "code"), field: strings.TrimSpace(r.PostForm.Get(field)),
			"by": login.Sender(r.Context()),
		}, &answer)
		return "/approvals", plainText(answer.Text), err
	}
}

// plainText makes a line of an answer in markdown: names are code there.
func plainText(text string) string { return plaintext.Line(strings.ReplaceAll(text, "`", "")) }

func (c *Console) approvals(r *http.Request) (*shown, error) {
	data, err := c.requests(r.Context())
	return &shown{title: "Approvals", template: "approvals.html", data: data}, err
}

func (c *Console) requests(ctx context.Context) (pages.Approvals, error) {
	none := pages.Approvals{}
	pending, err := c.Store.Requests(ctx, store.RequestPending, maxRequests)
	if err != nil {
		return none, err
	}
	all, err := c.Store.Requests(ctx, "", maxRequests+maxDecided)
	if err != nil {
		return none, err
	}
	waiting, _, err := rows.WaitingRequests(ctx, c.Store)
	if err != nil {
		return none, err
	}
	shown := pages.Approvals{Now: c.Now().UnixMilli(), More: max(0, waiting.Rows-len(pending))}
	for _, r := range all {
		if r.State != store.RequestPending && len(shown.Decided) < maxDecided {
			shown.Decided = append(shown.Decided, requestLine(r))
		}
	}
	if len(pending) > 0 {
		defaults := c.defaultFolders(ctx, pending)
		for _, r := range pending {
			line := requestLine(r)
			line.DefaultFolder = defaults[r.Code]
			shown.Pending = append(shown.Pending, line)
		}
		if shown.Groups, err = c.sharedGroups(ctx); err != nil {
			return none, err
		}
	}
	return shown, nil
}

// requestLine bounds what strangers wrote, and makes one line of each text.
func requestLine(r *store.Request) pages.RequestLine {
	line := pages.RequestLine{
		Code: r.Code, Chat: Excerpt(plaintext.Line(r.ChatJID)), Kind: kindWords(r.Kind),
		Title:  Excerpt(plaintext.Line(r.Title)),
		Sender: Excerpt(plaintext.Line(r.Sender)), SenderName: Excerpt(plaintext.Line(r.SenderName)),
		CreatedAt: r.CreatedAt,
		State:     string(r.State), Folder: r.Folder, By: decidedBy(r.DecidedBy), Reason: Excerpt(r.Reason),
		DecidedAt: r.DecidedAt,
	}
	if sample := []rune(plaintext.Line(r.Sample)); len(sample) > maxSample {
		line.Sample = string(sample[:maxSample]) + "…"
	} else {
		line.Sample = string(sample)
	}
	if r.Noted() {
		line.Approving = r.Folder
	}
	return line
}

// maxSample is how much of the message that asked is shown, in characters.
const maxSample = 300

// decidedBy words who decided, if it was no operator.
func decidedBy(by string) string {
	switch by {
	case store.DecidedByRoutes:
		return "a route that was added"
	case store.DecidedByTime:
		return "time: no operator decided"
	case store.DecidedByMove:
		return "its move to another address"
	}
	return by
}

// defaults is onbod's last answer about default folders. All open pages share it.
type defaults struct {
	mu      sync.Mutex
	at      time.Time // when it was asked for
	folders map[string]string
}

// defaultFolders are the groups that onbod would make, by code; none if it does not say. onbod is asked once
// a second at most, unless a request is newer than its answer.
func (c *Console) defaultFolders(ctx context.Context, pending []*store.Request) map[string]string {
	last := &c.defaults
	last.mu.Lock()
	defer last.mu.Unlock()
	newer := len(last.folders) > 0 && slices.ContainsFunc(pending,
		func(r *store.Request) bool { return last.folders[r.Code] == "" })
	if now := c.Now(); newer || now.Before(last.at) || now.Sub(last.at) >= askEvery {
		last.folders = c.askDefaults(ctx)
		last.at = c.Now()
	}
	return last.folders
}

func (c *Console) askDefaults(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), defaultsWithin)
	defer cancel()
	var answer struct {
		Requests []struct {
			Code          string `json:"code"`
			DefaultFolder string `json:"default_folder"`
		} `json:"requests"`
	}
	if err := c.Onbod.Do(ctx, http.MethodGet, "/v1/requests?state="+string(store.RequestPending), nil,
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
func (c *Console) sharedGroups(ctx context.Context) ([]pages.GroupChats, error) {
	t, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	groups, matches := t.groups, t.sharers
	all := make([]pages.GroupChats, 0, min(len(groups), maxGroups))
	for _, g := range groups[:min(len(groups), maxGroups)] {
		shared := pages.GroupChats{Folder: g.Folder, More: max(0, len(matches[g.Folder])-maxSharers)}
		for _, words := range matches[g.Folder][:min(len(matches[g.Folder]), maxSharers)] {
			if shared.Chats, err = c.named(ctx, shared.Chats, words); err != nil {
				return nil, err
			}
		}
		all = append(all, shared)
	}
	return all, nil
}

// sharer is whose messages a route leads to its group: a chat's address, or words.
func sharer(expr string) string {
	jid, all := match.ChatOf(expr)
	switch {
	case all:
		return "all chats"
	case jid == "":
		return "messages that match " + Excerpt(expr)
	}
	return jid
}

// named appends a sharer, with the title of its chat.
func (c *Console) named(ctx context.Context, chats []string, words string) ([]string, error) {
	chat, err := c.Store.Chat(ctx, words)
	if err != nil {
		return nil, err
	}
	if chat != nil && chat.Title != "" {
		words = fmt.Sprintf("%s (%s)", Excerpt(plaintext.Line(chat.Title)), words)
	}
	return append(chats, plaintext.Line(words)), nil
}
