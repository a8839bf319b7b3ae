// Package pages renders the pages of the dashboard: the login, the list of chats, a chat and the
// overview. Templates, styles and scripts are embedded; no page loads anything from
// another host.
package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/disk"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/why"
)

//go:embed templates
var templateFiles embed.FS

// Pages renders the pages. Make one with New; it is safe for concurrent use.
type Pages struct {
	Redact func(string) string // replaces secrets in texts; nil: there are none

	templates *template.Template
	assets    *assets
	drafts    draftRows
}

// New parses the embedded templates.
func New() (*Pages, error) {
	p := &Pages{}
	var err error
	if p.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	p.templates, err = template.New("").Funcs(p.functions()).ParseFS(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("parse the templates: %w", err)
	}
	return p, nil
}

// functions are those that templates call.
func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{
		"asset": p.assets.url, "title": title, "navigation": navigation, "fields": fields,
		"now": func() int64 { return time.Now().UnixMilli() }, "when": when, "until": until, "left": left,
		"duration": duration, "bytes": disk.Bytes,
		// texts of users, agents and platforms, without secrets
		"line": p.hidden(Line), "plain": p.hidden(plaintext.Line), "excerpt": p.hidden(Excerpt), "hide": p.Hide,
		"whole": p.Whole, "list": list, "cut": p.hidden(func(text string) string { return Cut(text, maxText) }),
		// messages, chats and requests
		"form": FormOf, "state": StateOf, "delivery": delivery, "family": msg.FamilyOf, "pieces": p.pieces,
		"content": Content, "undelivered": undelivered,
		"kind": kindWords, "hookKinds": groupconfig.HookKinds,
		"meaning":     func(r msg.Reason) string { return strings.ReplaceAll(r.Meaning(), "`", "") },
		"requestName": requestName, "sample": sampleOf, "decider": decider,
		"day": dayOf, "time": timeOf, "links": linksOf,
		"accessVerb": accessVerb, "accessOutcome": accessOutcome,
		// turns, agents and daemons
		"turn": newTurnAt, "sessionID": sessionID, "undone": why.Undone, "used": why.Used,
		"draftRow":   p.draftRow,
		"work":       func(s agentproto.Status) string { return workStates[s] },
		"step":       func(s agentproto.StepStatus) string { return stepStates[s] },
		"call":       func(s agentproto.ToolStatus) string { return callStates[s] },
		"connection": connection, "does": does, "lease": lease, "unwell": unwell,
		"chatPath": ChatPath, "personPath": PersonPath, "endpointEnd": endpointEnd, "pushKinds": PushKinds,
		"dollars": dollars, "spendLink": spendLink, "minus": func(a, b int) int { return a - b },
	}
}

// fields are the data of a template that takes several values: names and values in turn.
func fields(pairs ...any) map[string]any {
	all := map[string]any{}
	for i := 1; i < len(pairs); i += 2 {
		all[pairs[i-1].(string)] = pairs[i]
	}
	return all
}

// Assets serves the styles and scripts that the pages refer to, below /assets/.
func (p *Pages) Assets() http.Handler { return p.assets }

// Asset returns the path of a style or script.
func (p *Pages) Asset(name string) (string, error) { return p.assets.url(name) }

// Login writes the login page.
func (p *Pages) Login(w http.ResponseWriter, status int, form login.Form) {
	p.page(w, status, "login.html", form)
}

// ChatsPage is the front page of the web chat.
type ChatsPage struct {
	Groups []GroupLine
	Text   string // the filter, "" for none
	Now    int64  // unix ms
	Steps  bool   // no chat of a platform is connected: point to the first steps
	Next   string // address of further groups, "" for none
	Later  bool   // it is not the first page
}

// GroupLine is the chat with one group in a list.
type GroupLine struct {
	rows.WebChat
	Last *msg.Message // nil if there is none
}

// Chats writes the list of groups.
func (p *Pages) Chats(w http.ResponseWriter, page ChatsPage) {
	p.page(w, http.StatusOK, "chats.html", page)
}

// ChatPage is the chat with one group.
type ChatPage struct {
	Folder, Name string
	Chats        []rows.WebChat // beside this one, the newest first
	More         bool           // there are more than these
	Assistant    string         // name of the agent
	Demo         bool           // the agent is the demo agent
	LastID       int64          // the newest row: the page asks for news after it
	MaxFile      int64          // largest file that can be sent, in bytes
	MaxFiles     int            // of a message
	Login        string         // of the operator
}

// title is a group's name, else its folder.
func title(name, folder string) string {
	if strings.TrimSpace(name) == "" {
		return folder
	}
	return name
}

// Chat writes the chat page.
func (p *Pages) Chat(w http.ResponseWriter, page ChatPage) {
	p.page(w, http.StatusOK, "chat.html", page)
}

// retrySeconds is how long a browser shows that a page cannot be shown now until it loads it again.
const retrySeconds = 2

// Problem answers the request for a page, or a form, with a page that has an error, e.g. that there is no such chat.
// What may pass, the browser tries again by itself, unless it sent a form.
func (p *Pages) Problem(w http.ResponseWriter, r *http.Request, status int, title, text string) {
	problem := struct {
		Title, Text string
		LogIn       bool
		Retry       int // after so many seconds, 0 for never
	}{Title: title, Text: text, LogIn: status == http.StatusUnauthorized}
	if status == http.StatusServiceUnavailable && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		problem.Retry = retrySeconds
		w.Header().Set("Retry-After", strconv.Itoa(retrySeconds))
	}
	p.page(w, status, "problem.html", problem)
}

// Starting answers browsers until dashd is ready: with the refusals of next as pages, and with the files of these.
func (p *Pages) Starting(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/assets/", p.assets)
	mux.Handle("/", p.Refusals(next))
	return Secure(mux)
}

// buffers are reused, since one for a large page grows, and is copied, a dozen times.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func newBuffer() *bytes.Buffer {
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	return b
}

func (p *Pages) page(w http.ResponseWriter, status int, name string, data any) {
	body := newBuffer()
	defer buffers.Put(body)
	if err := p.templates.ExecuteTemplate(body, name, data); err != nil {
		httpx.Error(w, fmt.Errorf("render the page: %w", err))
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// A page behind a login must not come back from the cache after the logout.
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // fails only once the client is gone
}
