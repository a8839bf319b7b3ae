package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	egressrows "arizuko/pkg/egress/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
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
		if row.Chats, row.More, err = c.leads(r.Context(), t, g.Folder, maxSharers); err != nil {
			return nil, err
		}
		if row.Turn, row.TurnAt, err = rows.LastFolderTurn(r.Context(), c.Store, g.Folder); err != nil {
			return nil, err
		}
		page.Lines = append(page.Lines, row)
	}
	return &shown{data: page}, nil
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
	err = c.ask(r.Context(), "routd", http.MethodPost, "/v1/groups",
		msg.Group{Folder: folder, Name: name, Config: json.RawMessage(`{}`)}, nil)
	if err != nil {
		return "/groups?" + url.Values{"folder": {folder}, "name": {name}}.Encode(), "", err
	}
	return groupPath(folder), "The group " + folder + " was added. Routes lead chats to it.", nil
}

func groupPath(folder string) string { return (&url.URL{Path: "/groups/" + folder}).String() }

func groupTitle(g *msg.Group) string {
	if name := pages.Line(g.Name); name != "" && name != g.Folder {
		return name + " (" + g.Folder + ")"
	}
	return g.Folder
}

// show shows one group.
func (c groupPages) show(r *http.Request) (*shown, error) {
	g, err := c.groupOf(r)
	if err != nil {
		return nil, err
	}
	page, err := c.groupPage(r, g)
	return &shown{title: groupTitle(g), data: page}, err
}

func (c groupPages) groupOf(r *http.Request) (*msg.Group, error) {
	folder := httpx.Rest(r)
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
	page := &pages.Group{
		Now: c.Now().UnixMilli(), Folder: g.Folder, Name: g.Name, Config: indented(g.Config), Version: groupVersion(g),
		Warnings: t.warningsOf(g.Folder), Sections: sections(g.Config, nil, nil),
	}
	if page.Chats, page.MoreChats, err = c.leads(ctx, t, g.Folder, maxRows); err != nil {
		return nil, err
	}
	for _, expr := range first(t.sharers[g.Folder]) {
		if jid, _ := match.ChatOf(expr); jid != "" && !slices.Contains(page.Addresses, jid) {
			page.Addresses = append(page.Addresses, jid)
		}
	}
	own, _ := groupconfig.Parse(g.Config) // the page names its mistakes
	page.Hooks, page.Typed = own.Hooks, q
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
	page.Requests, err = egressrows.ListReceipts(ctx, c.Store, egressrows.Filter{Folder: g.Folder, Limit: maxRuns})
	if err != nil {
		return nil, err
	}
	if page.Rules, err = factrows.PermissionRules(ctx, c.Store, g.Folder); err != nil {
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
func (c groupPages) change(w http.ResponseWriter, r *http.Request) error {
	r, err := form(w, r, maxForm)
	if err != nil {
		return err
	}
	g, err := c.groupOf(r)
	if err != nil {
		return err
	}
	address, next, notice := routeapi.GroupPath(g.Folder), groupPath(g.Folder),
		"Saved. The change takes effect with the next message."
	var refusal error
	var problems map[string]string // of the fields of the form
	fields := r.PostForm
	switch fields.Get("do") {
	case "settings":
		var changed string
		if refusal = stale(r, g); refusal == nil {
			changed, problems, refusal = c.saveSettings(r, g, address)
		}
		if changed != "" {
			notice = "Saved. " + changed + ". The change takes effect with the next message."
		}
	case "agent":
		refusal = c.chooseAgent(r, g)
	case "revoke":
		notice = fmt.Sprintf("Rule %.20s is revoked: users are asked again.", fields.Get("rule"))
		rule := "/v1/permissions/" + url.PathEscape(fields.Get("rule"))
		refusal = c.ask(r.Context(), "gated", http.MethodDelete, rule, nil, nil)
	case "delete":
		notice, next = "The group "+g.Folder+" is deleted. Its files stay in its folder on the server.", "/groups"
		refusal = c.ask(r.Context(), "routd", http.MethodDelete, address, nil, nil)
	default:
		refusal = c.saveGroup(r, g, address)
	}
	if refusal == nil {
		http.Redirect(w, r, c.flashes.add(next, notice, "", c.Now()), http.StatusSeeOther)
		return nil
	}
	page, err := c.groupPage(r, g)
	if err != nil {
		return err
	}
	problem := plainText(refusal.Error())
	switch fields.Get("do") {
	case "agent", "delete", "revoke":
	case "settings":
		page.Name, page.Version = fields.Get("name"), fields.Get("version")
		page.Sections = sections(g.Config, fields, problems)
	default:
		page.Name, page.Config, page.Version = fields.Get("name"), fields.Get("config"), fields.Get("version")
		page.Problem = problem
	}
	return c.write(w, r, apierr.KindOf(refusal).Status(), groupView,
		&shown{title: groupTitle(g), data: page, problem: problem})
}

// stale refuses a form that was shown before the group was changed.
func stale(r *http.Request, g *msg.Group) error {
	if r.PostForm.Get("version") != groupVersion(g) {
		return apierr.New(apierr.Conflict,
			"The group has been changed in the meantime: copy what you typed and open its page again.")
	}
	return nil
}

func (c groupPages) saveGroup(r *http.Request, g *msg.Group, address string) error {
	if err := stale(r, g); err != nil {
		return err
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
	return c.ask(r.Context(), "routd", http.MethodPut, address,
		msg.Group{Folder: g.Folder, Name: strings.TrimSpace(r.PostForm.Get("name")), Config: config}, nil)
}

// settings shows the configuration of dashd.
func (c groupPages) settings(r *http.Request) (*shown, error) {
	daemons, err := c.Status.Daemons(r.Context())
	if err != nil {
		return nil, err
	}
	page := pages.Settings{Now: c.Now().UnixMilli(), Paths: c.Paths, Version: c.Version,
		Schema: c.Schema, Daemons: daemons}
	for _, v := range c.Settings {
		if v.Default {
			page.Defaults = append(page.Defaults, v)
		} else {
			page.Set = append(page.Set, v)
		}
	}
	return &shown{data: page}, nil
}

// agentsTimeout bounds the question which agents there are: without an answer the form takes any name.
const agentsTimeout = time.Second

// agentChoice reads which agent and model a group has, and the other choices.
func (c groupPages) agentChoice(ctx context.Context, g *msg.Group) (choice pages.AgentChoice, err error) {
	own, _ := groupconfig.Parse(g.Config) // an invalid one chooses nothing; the page names its mistakes
	choice = pages.AgentChoice{
		Agent: groupconfig.AgentTitle(own.Agent.Name), Model: cmp.Or(own.Agent.Model, groupconfig.DefaultAgent),
		Own: own.Agent.Command != "" || own.Agent.Image != "",
	}
	offered, err := factrows.AgentModels(ctx, c.Store, g.Folder, own.Agent.Name)
	if err != nil {
		return choice, err
	}
	for _, m := range offered.Models {
		choice.Models = append(choice.Models, m.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, agentsTimeout)
	defer cancel()
	var answer struct{ Agents []string }
	if err := c.ask(ctx, "gated", http.MethodGet, "/v1/agents", nil, &answer); err == nil {
		choice.Agents = answer.Agents
		if !slices.Contains(choice.Agents, choice.Agent) {
			choice.Agents, choice.Missing = append(choice.Agents, choice.Agent), true
		}
	}
	return choice, nil
}

// chooseAgent sets the agent and model of a group: routd does it. A model is kept for its agent alone.
func (c groupPages) chooseAgent(r *http.Request, g *msg.Group) error {
	own, _ := groupconfig.Parse(g.Config)
	chosen := map[string]any{"model": chosenOf(r, "model")}
	if r.PostForm.Has("agent") {
		chosen["name"] = chosenOf(r, "agent")
		name, _ := chosen["name"].(string)
		if name != own.Agent.Name && chosen["model"] == own.Agent.Model {
			chosen["model"] = nil
		}
	}
	patch := map[string]any{"config": map[string]any{"agent": chosen}}
	return c.ask(r.Context(), "routd", http.MethodPatch, routeapi.GroupPath(g.Folder), patch, nil)
}

// chosenOf is a field as a group's config has it: null for the default one.
func chosenOf(r *http.Request, field string) any {
	value := strings.TrimSpace(r.PostForm.Get(field))
	if value == "" || value == groupconfig.DefaultAgent {
		return nil
	}
	return value
}

const (
	// maxNames is how many names of a folder are read: as many are sorted and shown in pages.
	maxNames = 10_000
	// minDownloadRate is how slow a reader may be, in bytes a second.
	minDownloadRate = 20_000
)

var errNoFile = apierr.New(apierr.NotFound, "There is no such file in the folder of the group.")

// openIn opens a file or a folder of a group, for reading. No symbolic link is followed: agents write these folders.
func (c groupPages) openIn(folder, name string) (*os.File, error) {
	if msg.ValidFolder(folder) != nil || name != "" && (!fs.ValidPath(name) || strings.ContainsRune(name, 0)) {
		return nil, errNoFile
	}
	root, err := os.OpenRoot(path.Join(c.Data, "groups"))
	if err != nil {
		return nil, missing(err)
	}
	defer root.Close()
	full := path.Join(msg.DirName(folder), name)
	for i, r := range full + "/" {
		if r != '/' {
			continue
		}
		info, err := root.Lstat(full[:i])
		if err != nil {
			return nil, missing(err)
		}
		if kind := info.Mode().Type(); kind != 0 && kind != fs.ModeDir {
			return nil, apierr.New(apierr.NotFound, "%s is not a regular file: links and special files are "+
				"not followed.",
				pages.Line(full[:i]))
		}
	}
	f, err := root.OpenFile(full, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0) // a named pipe would block
	return f, missing(err)
}

// missing words the errors of a name that leads to no file.
func missing(err error) error {
	for _, gone := range []error{fs.ErrNotExist, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP} {
		if errors.Is(err, gone) {
			return errNoFile
		}
	}
	return err
}

// files lists a folder of a group by name, those after a name.
func (c groupPages) files(folder, dir, after string) (list pages.Files, err error) {
	list.Dir = dir
	f, err := c.openIn(folder, dir)
	if err != nil {
		if dir == "" && apierr.KindOf(err) == apierr.NotFound {
			err = nil // made with the first run
		}
		return list, err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxNames + 1)
	if list.Cut = len(names) > maxNames; err != nil && len(names) == 0 && !errors.Is(err, io.EOF) {
		return list, apierr.New(apierr.NotFound, "%s is no folder.", pages.Line(dir))
	}
	slices.Sort(names)
	for _, name := range names {
		if name <= after {
			continue
		}
		if len(list.Lines) == maxRows {
			list.Next = list.Lines[maxRows-1].Name
			break
		}
		file := pages.FileLine{Name: name, Path: path.Join(dir, name)}
		var info unix.Stat_t
		if unix.Fstatat(int(f.Fd()), name, &info, unix.AT_SYMLINK_NOFOLLOW) == nil { // it may be gone by now
			kind := info.Mode & unix.S_IFMT
			file.Folder, file.Regular = kind == unix.S_IFDIR, kind == unix.S_IFREG
			file.Size, file.At = info.Size, time.Unix(info.Mtim.Unix()).UnixMilli()
		}
		list.Lines = append(list.Lines, file)
	}
	return list, nil
}

// download answers with a file of a group, which no browser shows or runs.
func (c groupPages) download(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("path")
	f, err := c.openIn(r.URL.Query().Get("group"), name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errNoFile
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	h.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute +
		time.Duration(info.Size())*time.Second/minDownloadRate))
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}
