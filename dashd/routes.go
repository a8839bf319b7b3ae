package main

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/live"
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/webchat"
	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// routes mounts all endpoints. Those for health checks, which carry no chats, answer under any name.
func (d *dashd) routes() {
	r := d.Router.With(pages.Secure, d.hosts.Forwarded, d.hosts.Check)
	r.Handle("/assets/*", d.pages.Assets())
	d.login.Mount(r)
	r.Group(func(r chi.Router) {
		r.Use(d.login.Require, d.login.SameOrigin)
		r.Get("/", d.overviewPage)
		r.Get("/overview/events", d.overviewEvents)
		r.Get("/approvals", d.approvalsPage)
		r.Get("/approvals/events", d.approvalsEvents)
		r.Post("/approvals/{code}/approve", d.decide("approve", "folder"))
		r.Post("/approvals/{code}/reject", d.decide("reject", "reason"))
		d.status.Mount(r)
		r.Get("/chat", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/chat/", http.StatusSeeOther) })
		r.Get("/chat/", d.chatsPage)
		r.Get("/chat/*", d.inChat(map[string]inGroup{
			"": d.chatPage, "messages": d.chat.History, "topics": d.chat.Topics, "events": d.chat.Events, "file": d.chat.File,
		}))
		r.Post("/chat/*", d.inChat(map[string]inGroup{"messages": d.chat.Post, "votes": d.chat.Vote}))
	})
}

// inGroup answers a request about one group's chat.
type inGroup func(http.ResponseWriter, *http.Request, *msg.Group)

// inChat calls the handler for the last part of a path below /chat/, with the group that the path
// names.
func (d *dashd) inChat(handlers map[string]inGroup) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		folder, part := splitChatPath(chi.URLParam(r, "*"))
		handler, ok := handlers[part]
		if !ok {
			httpx.Error(w, apierr.New(apierr.BadRequest, "%s does not take %s", r.URL.Path, r.Method))
			return
		}
		g, err := d.Store.Group(r.Context(), folder)
		switch {
		case err != nil:
			httpx.Error(w, err)
		case g != nil:
			handler(w, r, g)
		case strings.Contains(r.Header.Get("Accept"), "text/html"):
			d.pages.Problem(w, http.StatusNotFound, "No such chat", "There is no group "+folder+". Add one with: routd groups add NAME")
		default:
			httpx.Error(w, apierr.New(apierr.NotFound, "no group %q is registered", folder))
		}
	}
}

// splitChatPath reads "acme/eng/messages" as the messages of the group acme/eng. A path with a
// slash at its end is always a group's page, also that of a group called acme/messages.
func splitChatPath(path string) (folder, part string) {
	if folder, ok := strings.CutSuffix(path, "/"); ok {
		return folder, ""
	}
	i := strings.LastIndexByte(path, '/')
	if last := path[i+1:]; i > 0 && slices.Contains([]string{"messages", "topics", "events", "file", "votes"}, last) {
		return path[:i], last
	}
	return path, ""
}

func (d *dashd) chatsPage(w http.ResponseWriter, r *http.Request) {
	groups, err := d.Store.Groups(r.Context())
	if err != nil {
		httpx.Error(w, err)
		return
	}
	connected, err := d.Store.HasGroupRoute(r.Context())
	if err != nil {
		httpx.Error(w, err)
		return
	}
	page := pages.ChatsPage{Groups: make([]pages.GroupLine, len(groups)), Now: d.Now().UnixMilli(), Steps: !connected}
	for i, g := range groups {
		page.Groups[i] = pages.GroupLine{Folder: g.Folder, Name: g.Name}
		last, err := d.Store.LastWebMessage(r.Context(), webchat.JID(g.Folder))
		if err != nil {
			httpx.Error(w, err)
			return
		}
		if last != nil {
			page.Groups[i].Last, page.Groups[i].LastAt = excerpt(last.Content), last.ReceivedAt
		}
	}
	d.pages.Chats(w, page)
}

// maxExcerpt is how much of a message the list of chats shows, in characters.
const maxExcerpt = 120

func excerpt(text string) string {
	text = strings.TrimSpace(text)
	start := strings.ToValidUTF8(text[:min(len(text), 4*(maxExcerpt+1))], "") // no character has more than 4 bytes
	line := []rune(strings.Join(strings.Fields(start), " "))
	if len(line) > maxExcerpt {
		return string(line[:maxExcerpt]) + "…"
	}
	return string(line)
}

func (d *dashd) chatPage(w http.ResponseWriter, r *http.Request, g *msg.Group) {
	last, err := d.Store.WebEnd(r.Context(), webchat.JID(g.Folder))
	if err != nil {
		httpx.Error(w, err)
		return
	}
	d.pages.Chat(w, pages.ChatPage{Folder: g.Folder, Name: g.Name, Assistant: d.cfg.AssistantName, LastID: last})
}

func (d *dashd) overviewPage(w http.ResponseWriter, r *http.Request) {
	fragment, err := d.facts(r.Context())
	if err != nil {
		httpx.Error(w, err)
		return
	}
	d.pages.Overview(w, pages.OverviewPage{Fragment: template.HTML(fragment)})
}

// fragmentEvery bounds how often a part of an open page is updated.
const fragmentEvery = time.Second

func (d *dashd) overviewEvents(w http.ResponseWriter, r *http.Request) {
	d.fragmentEvents(w, r, "overview", d.facts)
}

// fragmentEvents sends a part of a page as HTML, in events of a name, again and again.
func (d *dashd) fragmentEvents(w http.ResponseWriter, r *http.Request, event string, render func(context.Context) (string, error)) {
	var sent time.Time
	d.hub.Serve(w, r, func(s *live.Stream) error {
		now := d.Now()
		if now.Sub(sent) < fragmentEvery {
			return nil // the next poll updates it
		}
		sent = now
		html, err := render(r.Context())
		if err != nil {
			return err
		}
		return s.Event(event, 0, map[string]string{"html": html})
	})
}

// facts renders the part of the overview that changes.
func (d *dashd) facts(ctx context.Context) (string, error) {
	f, err := d.status.Instance(ctx)
	if err != nil {
		return "", err
	}
	requests, _, err := d.Store.WaitingRequests(ctx)
	if err != nil {
		return "", err
	}
	steps, err := d.steps(ctx, f.Daemons)
	if err != nil {
		return "", err
	}
	shown := pages.Overview{
		Pending: requests.Rows, Steps: steps,
		Running: pageTurns(f.RunningCount, f.Running), Queued: pageTurns(f.QueuedCount, f.Queued), Now: f.Now,
		Waiting: pages.WaitingLine{Rows: f.Inbound.Rows, Chat: f.Inbound.ChatJID, Since: f.Inbound.Since},
		Unsent:  pages.WaitingLine{Rows: f.Outbound.Rows, Chat: f.Outbound.ChatJID, Since: f.Outbound.Since},
	}
	for _, line := range f.Daemons {
		if line.Name == "routd" && line.Detail != "" {
			shown.Routes, line.Detail = strings.Split(line.Detail, "\n"), "" // as routd reports its table
		}
		shown.Daemons = append(shown.Daemons, pages.DaemonLine{
			Name: line.Name, Connection: string(line.Connection), Detail: line.Detail, Version: line.Version,
			OK: line.OK, HeartbeatAt: line.HeartbeatAt,
		})
	}
	return d.pages.OverviewFragment(shown)
}

func pageTurns(count int, listed []*msg.Turn) pages.Turns {
	lines := make([]pages.TurnLine, len(listed))
	for i, t := range listed {
		lines[i] = pages.TurnLine{
			ID: t.ID, Folder: t.Folder, Chat: t.ChatJID, Topic: t.Topic, State: string(t.State),
			Since: since(t), Attempts: t.Attempts, Error: t.Error,
		}
	}
	return pages.Turns{Count: count, Lines: lines}
}

func since(t *msg.Turn) int64 {
	if t.State == msg.TurnQueued { // also after a requeue
		return t.CreatedAt
	}
	return cmp.Or(t.StartedAt, t.CreatedAt)
}
