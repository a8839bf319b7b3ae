package main

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"arizuko/dashd/internal/rows"
	factrows "arizuko/pkg/facts/rows"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/webchat"
	"arizuko/pkg/apierr"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// routes mounts all endpoints. Those for health checks, which carry no chats, answer under any name.
func (d *dashd) routes() {
	r := d.Router.With(pages.Secure, pages.Compress, d.hosts.Forwarded, d.pages.Refusals, d.hosts.Check)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		httpx.Error(w, apierr.New(apierr.NotFound, "no such path: %s", r.URL.Path))
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		httpx.Error(w, apierr.New(apierr.BadRequest, "%s does not take %s: nothing was changed", r.URL.Path, r.Method))
	})
	r.Handle("/assets/*", d.pages.Assets())
	r.Get("/sw.js", d.pages.Worker)
	r.Get("/offline", d.pages.Offline)
	d.login.Mount(r)
	r.Group(func(r chi.Router) {
		r.Use(d.login.Require, d.login.SameOrigin)
		d.console.Mount(r)
		d.status.Mount(r)
		r.Post("/v1/alerts", d.alerts.Serve)
		r.Get("/events", d.news.Events)
		r.Method(http.MethodGet, "/chat", http.RedirectHandler("/chat/", http.StatusSeeOther))
		r.Get("/chat/", func(w http.ResponseWriter, r *http.Request) {
			if err := d.chatsPage(w, r); err != nil {
				httpx.Error(w, err)
			}
		})
		r.Get("/chat/*", d.inChat(map[string]inGroup{"": d.chatPage, "messages": d.history,
			"topics": d.chat.Topics, "events": d.chat.Events, "file": d.chat.File, "progress": d.chat.Progress,
			"search": d.chat.Search}))
		r.Post("/chat/*", d.inChat(map[string]inGroup{"messages": d.chat.Post, "votes": d.chat.Vote,
			"answers": d.chat.Answer, "undo": d.chat.Undo, "topics": d.chat.EditTopic}))
	})
}

// history answers a page that shows a chat, which needs no notice of what it gets.
func (d *dashd) history(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	if r.URL.Query().Has("shown") {
		d.push.Shown(login.Sender(r.Context()), g.Folder)
	}
	return d.chat.History(w, r, g)
}

// inGroup answers a request about one group's chat.
type inGroup func(http.ResponseWriter, *http.Request, *msg.Group) error

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
		case g != nil:
			err = handler(w, r, g)
		default:
			err = apierr.New(apierr.NotFound, "There is no group %.80q. The page Groups lists them and can add one.",
				folder)
		}
		if err != nil {
			httpx.Error(w, err)
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
	if last := path[i+1:]; i > 0 && slices.Contains([]string{"messages", "topics", "events", "file", "votes", "answers",
		"progress", "undo", "search"}, last) {
		return path[:i], last
	}
	return path, ""
}

const (
	maxChatLines = 50  // of a page that lists chats
	maxPaneLines = 200 // beside a chat
)

// chatsPage lists the chats with the groups, the one with the newest message first.
func (d *dashd) chatsPage(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	page := pages.ChatsPage{Now: d.Now().UnixMilli(), Text: strings.TrimSpace(query.Get("text"))}
	lines, err := d.chatLines(r.Context(), page.Text)
	if err != nil {
		return err
	}
	answered, err := d.console.Answered(r.Context())
	if err != nil {
		return err
	}
	page.Steps = !answered
	skip, _ := strconv.Atoi(query.Get("skip")) // else from the beginning
	page.Later = skip > 0
	lines = lines[max(0, min(skip, len(lines))):]
	if len(lines) > maxChatLines {
		lines = lines[:maxChatLines]
		query.Set("skip", strconv.Itoa(skip+maxChatLines))
		page.Next = "/chat/?" + query.Encode()
	}
	for _, chat := range lines {
		last, err := rows.LastWebMessage(r.Context(), d.Store.Reader, webchat.JID(chat.Folder))
		if err != nil {
			return err
		}
		page.Groups = append(page.Groups, pages.GroupLine{WebChat: chat, Last: last})
	}
	d.pages.Chats(w, page)
	return nil
}

// chatLines returns the chats whose title or folder has a text, whatever its case.
func (d *dashd) chatLines(ctx context.Context, text string) ([]rows.WebChat, error) {
	chats, err := rows.WebChats(ctx, d.Store.Reader)
	text = strings.ToLower(text)
	return slices.DeleteFunc(chats, func(c rows.WebChat) bool {
		return !strings.Contains(strings.ToLower(c.Name+"\n"+c.Folder), text)
	}), err
}

func (d *dashd) chatPage(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	last, err := rows.WebEnd(r.Context(), d.Store.Reader, webchat.JID(g.Folder))
	if err != nil {
		return err
	}
	assistant, demo, err := d.agentOf(r.Context(), g)
	if err != nil {
		return err
	}
	chats, err := d.chatLines(r.Context(), "")
	if err != nil {
		return err
	}
	d.pages.Chat(w, pages.ChatPage{
		Chats: chats[:min(len(chats), maxPaneLines)], More: len(chats) > maxPaneLines,
		Folder: g.Folder, Name: g.Name, Assistant: assistant, Demo: demo, LastID: last,
		MaxFile: d.cfg.MediaMax, MaxFiles: webchat.MaxFiles, Login: login.Sender(r.Context()),
	})
	return nil
}

// agentOf returns the name of a group's agent, and whether it is the demo agent: unless the instance or the group has
// another one.
func (d *dashd) agentOf(ctx context.Context, g *msg.Group) (assistant string, demo bool, err error) {
	demo, err = factrows.DemoAgent(ctx, d.Store.Reader)
	if c, err := groupconfig.Parse(g.Config); err == nil {
		assistant, demo = c.AssistantName, demo && c.Agent.Command == "" && c.Agent.Image == ""
	}
	return cmp.Or(assistant, d.cfg.AssistantName), demo, err
}
