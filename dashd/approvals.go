package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/pages"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/apierr"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Limits of the page of the requests.
const (
	maxRequests    = 50
	maxDecided     = 20
	maxGroups      = 100
	maxSharers     = 3       // chats that are named of each group
	maxForm        = 8 << 10 // bytes
	defaultsWithin = time.Second
)

func (d *dashd) approvalsPage(w http.ResponseWriter, r *http.Request) {
	d.showApprovals(w, r, http.StatusOK, "", "")
}

func (d *dashd) showApprovals(w http.ResponseWriter, r *http.Request, status int, notice, problem string) {
	fragment, err := d.requests(r.Context())
	if err != nil {
		d.failed(w, r, err)
		return
	}
	d.pages.Approvals(w, status, pages.ApprovalsPage{Fragment: template.HTML(fragment), Notice: notice, Problem: problem})
}

func (d *dashd) failed(w http.ResponseWriter, r *http.Request, err error) {
	d.Log.Error("page failed", "path", r.URL.Path, "err", err)
	d.pages.Problem(w, http.StatusServiceUnavailable, "The database cannot be read", "dashd doctor on the server says why.")
}

func (d *dashd) approvalsEvents(w http.ResponseWriter, r *http.Request) {
	d.fragmentEvents(w, r, "approvals", d.requests)
}

// decide answers the form that approves or rejects a request: onbod does it, and the page shows its words.
func (d *dashd) decide(verb, field string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			d.showApprovals(w, r, http.StatusBadRequest, "", "The form could not be read.")
			return
		}
		var answer struct{ Text string }
		err := d.onbod.Do(r.Context(), http.MethodPost, "/"+verb, map[string]string{
			"code": chi.URLParam(r, "code"), field: strings.TrimSpace(r.PostForm.Get(field)), "by": login.Sender(r.Context()),
		}, &answer)
		if err != nil {
			d.showApprovals(w, r, apierr.KindOf(err).Status(), "", decideProblem(err))
			return
		}
		d.showApprovals(w, r, http.StatusOK, plainText(answer.Text), "")
	}
}

// decideProblem words why a request could not be decided.
func decideProblem(err error) string {
	var network *net.OpError
	if errors.As(err, &network) || apierr.KindOf(err) == apierr.Unavailable {
		return "onbod does not answer: start it, then decide again. The request waits."
	}
	return plainText(err.Error())
}

// plainText makes a line of an answer in markdown: names are code there.
func plainText(text string) string { return plaintext.Line(strings.ReplaceAll(text, "`", "")) }

// requests renders the part of the page that changes.
func (d *dashd) requests(ctx context.Context) (string, error) {
	pending, err := d.Store.Requests(ctx, store.RequestPending, maxRequests)
	if err != nil {
		return "", err
	}
	all, err := d.Store.Requests(ctx, "", maxRequests+maxDecided)
	if err != nil {
		return "", err
	}
	waiting, _, err := d.Store.WaitingRequests(ctx)
	if err != nil {
		return "", err
	}
	shown := pages.Approvals{Now: d.Now().UnixMilli(), More: max(0, waiting.Rows-len(pending))}
	for _, r := range all {
		if r.State != store.RequestPending && len(shown.Decided) < maxDecided {
			shown.Decided = append(shown.Decided, requestLine(r))
		}
	}
	if len(pending) > 0 {
		defaults := d.defaultFolders(ctx, pending)
		for _, r := range pending {
			line := requestLine(r)
			line.DefaultFolder = defaults[r.Code]
			shown.Pending = append(shown.Pending, line)
		}
		if shown.Groups, err = d.sharedGroups(ctx); err != nil {
			return "", err
		}
		if shown.Down, err = d.onbodDown(ctx); err != nil {
			return "", err
		}
	}
	return d.pages.ApprovalsFragment(shown)
}

// requestLine bounds what strangers wrote, and makes one line of each text.
func requestLine(r *store.Request) pages.RequestLine {
	kind := map[msg.ChatKind]string{msg.ChatDM: "direct chat", msg.ChatGroup: "group chat", msg.ChatChannel: "channel"}[r.Kind]
	line := pages.RequestLine{
		Code: r.Code, Chat: excerpt(plaintext.Line(r.ChatJID)), Kind: cmp.Or(kind, string(r.Kind)), Title: excerpt(plaintext.Line(r.Title)),
		Sender: excerpt(plaintext.Line(r.Sender)), SenderName: excerpt(plaintext.Line(r.SenderName)), CreatedAt: r.CreatedAt,
		State: string(r.State), Folder: r.Folder, By: decidedBy(r.DecidedBy), Reason: excerpt(r.Reason), DecidedAt: r.DecidedAt,
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
func (d *dashd) defaultFolders(ctx context.Context, pending []*store.Request) map[string]string {
	c := &d.defaults
	c.mu.Lock()
	defer c.mu.Unlock()
	newer := len(c.folders) > 0 && slices.ContainsFunc(pending, func(r *store.Request) bool { return c.folders[r.Code] == "" })
	if now := d.Now(); newer || now.Before(c.at) || now.Sub(c.at) >= fragmentEvery {
		c.folders = d.askDefaults(ctx)
		c.at = d.Now()
	}
	return c.folders
}

func (d *dashd) askDefaults(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), defaultsWithin)
	defer cancel()
	var answer struct {
		Requests []struct {
			Code          string `json:"code"`
			DefaultFolder string `json:"default_folder"`
		} `json:"requests"`
	}
	if err := d.onbod.Do(ctx, http.MethodGet, "/v1/requests?state="+string(store.RequestPending), nil, &answer); err != nil {
		d.Log.Debug("asking onbod for requests failed", "err", err)
	}
	folders := map[string]string{}
	for _, r := range answer.Requests {
		folders[r.Code] = r.DefaultFolder
	}
	return folders
}

func (d *dashd) onbodDown(ctx context.Context) (bool, error) {
	facts, err := d.status.Daemons(ctx)
	if err != nil {
		return false, err
	}
	for _, row := range facts {
		if row.Name == "onbod" {
			return !row.OK, nil
		}
	}
	return true, nil
}

// sharedGroups are the groups with the chats whose messages a route leads there.
func (d *dashd) sharedGroups(ctx context.Context) ([]pages.GroupChats, error) {
	groups, err := d.Store.Groups(ctx)
	if err != nil {
		return nil, err
	}
	routes, err := d.Store.Routes(ctx)
	if err != nil {
		return nil, err
	}
	matches := map[string][]string{} // by folder
	for _, r := range routes {
		target, err := match.ParseTarget(r.Target)
		if words := sharer(r.Match); err == nil && target.Folder != "" && !slices.Contains(matches[target.Folder], words) {
			matches[target.Folder] = append(matches[target.Folder], words)
		}
	}
	all := make([]pages.GroupChats, 0, min(len(groups), maxGroups))
	for _, g := range groups[:min(len(groups), maxGroups)] {
		shared := pages.GroupChats{Folder: g.Folder, More: max(0, len(matches[g.Folder])-maxSharers)}
		for _, words := range matches[g.Folder][:min(len(matches[g.Folder]), maxSharers)] {
			if shared.Chats, err = d.named(ctx, shared.Chats, words); err != nil {
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
		return "messages that match " + excerpt(expr)
	}
	return jid
}

// named appends a sharer, with the title of its chat.
func (d *dashd) named(ctx context.Context, chats []string, words string) ([]string, error) {
	chat, err := d.Store.Chat(ctx, words)
	if err != nil {
		return nil, err
	}
	if chat != nil && chat.Title != "" {
		words = fmt.Sprintf("%s (%s)", excerpt(plaintext.Line(chat.Title)), words)
	}
	return append(chats, plaintext.Line(words)), nil
}
