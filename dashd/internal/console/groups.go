package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
)

// list shows the groups by folder.
func (c groupPages) list(r *http.Request) (*shown, error) {
	q := r.URL.Query()
	t, err := c.table(r.Context())
	if err != nil {
		return nil, err
	}
	page := pages.Groups{Now: c.Now().UnixMilli(), Folder: q.Get("folder"), Name: q.Get("name"),
		Later: q.Get("after") != ""}
	for _, g := range t.groups {
		if g.Folder <= q.Get("after") {
			continue
		}
		if len(page.Lines) == maxRows {
			page.Next = below(r, "after", page.Lines[maxRows-1].Folder)
			break
		}
		row := pages.GroupRow{Group: g, Warnings: len(t.warningsOf(g.Folder))}
		leads := t.sharers[g.Folder]
		row.Chats, row.More = leads[:min(len(leads), maxSharers)], max(0, len(leads)-maxSharers)
		if row.Turn, row.TurnAt, err = rows.LastFolderTurn(r.Context(), c.Store, g.Folder); err != nil {
			return nil, err
		}
		page.Lines = append(page.Lines, row)
	}
	return &shown{title: "Groups", template: "groups.html", data: page}, nil
}

func (t *table) warningsOf(folder string) (texts []string) {
	for _, w := range t.warnings {
		if w.Folder == folder && len(texts) < maxRows {
			texts = append(texts, w.Text)
		}
	}
	return texts
}

// add registers a group: routd does it. A refused form stays filled in.
func (c groupPages) add(r *http.Request) (next, notice string, err error) {
	folder, name := strings.TrimSpace(r.PostForm.Get("folder")), strings.TrimSpace(r.PostForm.Get("name"))
	err = ask(r.Context(), c.Routd, "routd", http.MethodPost, "/v1/groups",
		msg.Group{Folder: folder, Name: name, Config: json.RawMessage(`{}`)}, nil)
	if err != nil {
		return "/groups?" + url.Values{"folder": {folder}, "name": {name}}.Encode(), "", err
	}
	return groupPath(folder), "The group " + folder + " was added. Routes lead chats to it.", nil
}

func groupPath(folder string) string { return (&url.URL{Path: "/groups/" + folder}).String() }

// show shows one group.
func (c groupPages) show(r *http.Request) (*shown, error) {
	g, err := c.groupOf(r)
	if err != nil {
		return nil, err
	}
	page, err := c.groupPage(r, g)
	if err != nil {
		return nil, err
	}
	return groupShown(page), nil
}

func groupShown(page *pages.Group) *shown {
	return &shown{title: page.Folder, template: "group.html", data: page,
		up: []pages.Link{{Path: "/groups", Text: "Groups"}}}
}

func (c groupPages) groupOf(r *http.Request) (*msg.Group, error) {
	folder := chi.URLParam(r, "*")
	if plain, err := url.PathUnescape(folder); err == nil {
		folder = plain
	}
	g, err := c.Store.Group(r.Context(), folder)
	if err == nil && g == nil {
		err = apierr.New(apierr.NotFound, "There is no group %.80q.", folder)
	}
	return g, err
}

func (c groupPages) groupPage(r *http.Request, g *msg.Group) (*pages.Group, error) {
	ctx, q := r.Context(), r.URL.Query()
	t, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	leads := t.sharers[g.Folder]
	page := &pages.Group{
		Now: c.Now().UnixMilli(), Folder: g.Folder, Name: g.Name, Config: indented(g.Config), Version: groupVersion(g),
		CreatedAt: g.CreatedAt,
		Warnings:  t.warningsOf(g.Folder), Chats: leads[:min(len(leads), maxRows)],
		MoreChats: max(0, len(leads)-maxRows),
	}
	if page.Choice, err = c.agentChoice(ctx, g); err != nil {
		return nil, err
	}
	page.Sessions, err = rows.FolderSessions(ctx, c.Store, page.Folder, q.Get("session"), maxRows+1)
	if err != nil {
		return nil, err
	}
	if len(page.Sessions) > maxRows {
		page.NextSession = below(r, "session", page.Sessions[maxRows].Topic)
		page.Sessions = page.Sessions[:maxRows]
	}
	if page.Runs, err = rows.FolderRuns(ctx, c.Store, g.Folder, maxRuns); err != nil {
		return nil, err
	}
	if page.Files, err = c.files(g.Folder, q.Get("dir"), q.Get("after")); err != nil {
		return nil, err
	}
	if page.Files.Next != "" {
		page.Files.Next = below(r, "after", page.Files.Next)
	}
	if dir := page.Files.Dir; dir != "" {
		page.Files.Up = groupPath(g.Folder)
		if above := path.Dir(dir); above != "." {
			page.Files.Up += "?" + url.Values{"dir": {above}}.Encode()
		}
	}
	return page, nil
}

// indented is a config for a field of a form.
func indented(config json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, config, "", "  "); err != nil {
		return string(config)
	}
	return b.String()
}

// groupVersion tells whether a group was changed since its form was shown.
func groupVersion(g *msg.Group) string {
	sum := sha256.Sum256(append([]byte(g.Name+"\x00"), g.Config...))
	return hex.EncodeToString(sum[:8])
}

// change saves or deletes a group: routd does it. What was typed into a form that is refused stays there.
func (c groupPages) change(w http.ResponseWriter, r *http.Request) {
	r, ok := c.form(w, r, maxForm)
	if !ok {
		return
	}
	g, err := c.groupOf(r)
	if err != nil {
		c.failed(w, r, err)
		return
	}
	address, next, notice := "/v1/groups/"+url.PathEscape(g.Folder), groupPath(g.Folder),
		"Saved: the change holds from the next message on."
	switch r.PostForm.Get("do") {
	case "agent":
		err = c.chooseAgent(r, g)
	case "delete":
		notice, next = "The group "+g.Folder+" is deleted. Its files stay in its folder on the server.", "/groups"
		err = ask(r.Context(), c.Routd, "routd", http.MethodDelete, address, nil, nil)
	default:
		err = c.saveGroup(r, g, address)
	}
	if err == nil {
		http.Redirect(w, r, c.flashes.add(next, notice, "", c.Now()), http.StatusSeeOther)
		return
	}
	c.refuseGroup(w, r, g, err)
}

func (c groupPages) saveGroup(r *http.Request, g *msg.Group, address string) error {
	if r.PostForm.Get("version") != groupVersion(g) {
		return apierr.New(apierr.Conflict,
			"The group was changed meanwhile: copy what you typed, and open its page again.")
	}
	config := json.RawMessage(r.PostForm.Get("config"))
	var syntax *json.SyntaxError
	if err := json.Unmarshal(config, new(map[string]json.RawMessage)); errors.As(err, &syntax) {
		before := config[:min(max(0, syntax.Offset), int64(len(config)))]
		return apierr.New(apierr.BadRequest, "The config is no JSON: line %d: %w", 1+bytes.Count(before, []byte("\n")),
			err)
	} else if err != nil {
		return apierr.New(apierr.BadRequest, "The config must be an object, as in {\"rate\": 20}.")
	}
	return ask(r.Context(), c.Routd, "routd", http.MethodPut, address,
		msg.Group{Folder: g.Folder, Name: strings.TrimSpace(r.PostForm.Get("name")), Config: config}, nil)
}

// refuseGroup shows the page with the form as typed, and why it was refused.
func (c groupPages) refuseGroup(w http.ResponseWriter, r *http.Request, g *msg.Group, refusal error) {
	page, err := c.groupPage(r, g)
	if err != nil {
		c.failed(w, r, err)
		return
	}
	problem := plainText(refusal.Error())
	switch r.PostForm.Get("do") {
	case "agent", "delete":
	default:
		page.Name, page.Config, page.Version = r.PostForm.Get("name"), r.PostForm.Get("config"),
			r.PostForm.Get("version")
		page.Problem = problem
	}
	content := groupShown(page)
	fragment, err := c.Pages.Fragment(content.template, content.data)
	if err != nil {
		c.failed(w, r, err)
		return
	}
	c.Pages.View(w, apierr.KindOf(refusal).Status(), pages.View{Title: content.title, Section: "/groups",
		Up: content.up, Fragment: fragment, Problem: problem})
}

// log answers with the log of a group's run as text.
func (c groupPages) log(w http.ResponseWriter, r *http.Request) {
	folder := r.URL.Query().Get("group")
	run, err := strconv.ParseInt(r.URL.Query().Get("run"), 10, 64)
	if err != nil || msg.ValidFolder(folder) != nil {
		c.failed(w, r, apierr.New(apierr.BadRequest, "The address must name a group and the number of a run."))
		return
	}
	c.writeLog(w, r, folder, run)
}

// settings shows the configuration of dashd.
func (c groupPages) settings(r *http.Request) (*shown, error) {
	daemons, err := c.Status.Daemons(r.Context())
	if err != nil {
		return nil, err
	}
	page := pages.Settings{Now: c.Now().UnixMilli(), Values: c.Settings, Paths: c.Paths, Version: c.Version,
		Schema: c.Schema, Daemons: daemons}
	return &shown{title: "Settings", template: "settings.html", data: page}, nil
}
