// Package console serves the pages for operators: what the instance does, and what they can change. It reads rows
// itself; the daemon that owns a row changes it.
package console

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/status"
	"arizuko/pkg/apierr"
	"arizuko/pkg/facts"
	"arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
)

// Console serves the pages. Make one with New.
type Console struct {
	Config
	flashes  flashes
	defaults defaults
	minutes  minutes
	findings findings
	tables   tables
	answered atomic.Bool // a chat of a platform was answered
	checking sync.Mutex  // a token is tried
}

// Config is what the pages read and whom they ask.
type Config struct {
	Store     store.Reader
	Status    *status.Status
	Pages     *pages.Pages
	Routd     *httpx.Client
	Gated     *httpx.Client
	Onbod     *httpx.Client
	Examine   func(context.Context) ([]facts.Fact, error) // what the rows say is wrong
	Operators []string                                    // OPERATORS
	Data      string                                      // ARIZUKO_DATA
	Bin       string                                      // the folder with the daemons' programs
	Environ   []string                                    // of dashd
	Redact    func(string) string                         // replaces secrets in texts; nil: there are none
	Settings  []pages.Setting
	Paths     []pages.Setting
	Version   string // of dashd
	Schema    int    // version of the schema
	Now       func() time.Time
	Log       *slog.Logger
}

// New makes a Console.
func New(cfg Config) *Console { return &Console{Config: cfg} }

// Mount adds the pages. The router must require a login and refuse posts of other sites.
func (c *Console) Mount(r chi.Router) {
	for _, v := range c.views() {
		r.Get(v.path, c.page(v))
	}
	r.Get("/turns/{id}/log", c.log)
	r.Post("/groups/*", c.changeGroup)
	r.Get("/logs", c.groupLog)
	r.Get("/files", c.download)
	for path, do := range c.actions() {
		r.Post(path, c.act(do))
	}
	r.Get("/routes/edit", c.newEditor)
	r.Post("/routes/edit", c.edit)
}

// view is a page.
type view struct {
	path    string // pattern of chi
	section string // the link in the navigation that is current
	// load reads what the page shows.
	load  func(*http.Request) (*shown, error)
	still bool   // it is not rendered again while it is open
	needs string // the daemon that makes the changes of the page, "" for none
}

// shown is the content of a page: a template and its data.
type shown struct {
	title    string
	template string
	data     any
	up       []pages.Link
}

func (c *Console) views() []view {
	return []view{
		{path: "/", section: "/", load: c.overview},
		{path: "/messages", section: "/messages", load: c.messages},
		{path: "/messages/{id}", section: "/messages", load: c.why, needs: "gated"},
		{path: "/turns", section: "/turns", load: c.turns, needs: "gated"},
		{path: "/turns/{id}", section: "/turns", load: c.turn, needs: "gated"},
		{path: "/turns/{id}/context", section: "/turns", load: c.prompt, still: true},
		{path: "/spend", section: "/spend", load: c.spend},
		{path: "/reminders", section: "/reminders", load: c.reminders, needs: "gated"},
		{path: "/polls", section: "/polls", load: c.polls, needs: "gated"},
		{path: "/lost", section: "/lost", load: c.lost, needs: "gated"},
		{path: "/lost/confirm", section: "/lost", load: c.confirmLost, still: true, needs: "gated"},
		{path: "/chats", section: "/chats", load: c.chats},
		{path: "/approvals", section: "/approvals", load: c.approvals, needs: "onbod"},
		{path: "/routes", section: "/routes", load: c.routes, needs: "routd"},
		{path: "/audit", section: "/audit", load: c.audit},
		{path: "/engagement", section: "/engagement", load: c.engagement, needs: "routd"},
		{path: "/groups", section: "/groups", load: c.groups, needs: "routd"},
		{path: "/groups/*", section: "/groups", load: c.group, still: true, needs: "routd"},
		{path: "/settings", section: "/settings", load: c.settings},
		{path: "/connect/{daemon}", section: "/", load: c.connect, still: true},
		{path: "/access", section: "/access", load: c.access, still: true},
	}
}

// action makes a change that a form asks for. It returns the page to show then, and what was done in words. An error is
// shown on the page as a problem.
type action func(r *http.Request) (next, notice string, err error)

func (c *Console) actions() map[string]action {
	return map[string]action{
		"/turns/{id}/retry":             c.changeTurn("retry", "Turn %d is in the queue again."),
		"/turns/{id}/cancel":            c.changeTurn("cancel", "Turn %d was cancelled."),
		"/turns/{id}/asks/{ask}/answer": c.answerQuestion,
		"/reminders/{id}/cancel":        c.cancelReminder,
		"/polls/{id}/close":             c.closePoll,
		"/groups":                       c.addGroup,
		"/engagement/end":               c.endEngagement,
		"/approvals/{code}/approve":     c.decide("approve", "folder"),
		"/approvals/{code}/reject":      c.decide("reject", "reason"),
		"/connect/{daemon}":             c.tryToken,
		"/operators/code":               c.makeOperatorCode,
		"/operators/remove":             c.removeOperator,
		"/messages/{id}/replay":         c.replayOne,
		"/lost/replay":                  c.replayLost,
	}
}

// page answers with a page, or with its fragment in JSON for one that is open.
func (c *Console) page(v view) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		content, fragment, err := c.render(v, r)
		if err != nil {
			c.failed(w, r, err)
			return
		}
		tag := ""
		if !v.still {
			hash := sha256.Sum256([]byte(fragment))
			tag = fmt.Sprintf(`"%x"`, hash[:16])
		}
		if wantsJSON(r) {
			writeFragment(w, r, fragment, tag)
			return
		}
		requests, _, err := rows.WaitingRequests(r.Context(), c.Store)
		if err != nil {
			c.failed(w, r, err)
			return
		}
		notice, problem := c.flashes.take(r.URL.Query().Get(flashParameter), c.Now())
		c.Pages.View(w, http.StatusOK, pages.View{
			Title: content.title, Section: v.section, Up: content.up, Tag: tag, Login: login.Sender(r.Context()),
			Fragment: fragment, Notice: notice, Problem: problem, Requests: requests.Rows,
		})
	}
}

// wantsJSON reports whether a request is of a page that is open.
func wantsJSON(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Accept"), "application/json")
}

// writeFragment answers with a fragment, unless the page shows the same already.
func writeFragment(w http.ResponseWriter, r *http.Request, fragment template.HTML, tag string) {
	w.Header().Set("Cache-Control", "no-store")
	if tag != "" {
		w.Header().Set("ETag", tag)
	}
	// A proxy that compresses answers makes the tag a weak one.
	if tag != "" && strings.TrimPrefix(r.Header.Get("If-None-Match"), "W/") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	httpx.JSON(w, http.StatusOK, map[string]template.HTML{"html": fragment})
}

func (c *Console) render(v view, r *http.Request) (*shown, template.HTML, error) {
	content, err := v.load(r)
	if err != nil {
		return nil, "", err
	}
	fragment, err := c.Pages.Fragment(content.template, content.data)
	if err != nil || v.needs == "" {
		return content, fragment, err
	}
	runs, err := c.Status.Runs(r.Context(), v.needs)
	if err != nil || runs {
		return content, fragment, err
	}
	down, err := c.Pages.Fragment("down.html", v.needs)
	return content, down + fragment, err
}

// failed shows why a page cannot be shown: the words of a refusal, else that the database cannot be read.
func (c *Console) failed(w http.ResponseWriter, r *http.Request, err error) {
	kind := apierr.KindOf(err)
	refused := kind == apierr.BadRequest || kind == apierr.NotFound
	if !refused {
		c.Log.Error("page failed", "path", r.URL.Path, "err", err)
	}
	switch {
	case wantsJSON(r):
		httpx.Error(w, err)
	case refused:
		c.Pages.Problem(w, r, kind.Status(), "This page cannot be shown", plainText(err.Error()))
	default:
		c.Pages.Problem(w, r, http.StatusServiceUnavailable, "The database cannot be read",
			"dashd doctor on the server says why.")
	}
}

// maxForm is how much of a form is read, in bytes.
const maxForm = 256 << 10

// act answers a form with a redirect to the page that shows what became of it: a reload sends nothing again.
func (c *Console) act(do action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			c.Pages.Problem(w, r, http.StatusBadRequest, "The form could not be read",
				"It is too long, or broken. Go back and try again.")
			return
		}
		r = r.WithContext(httpx.WithBy(r.Context(), login.Sender(r.Context())))
		next, notice, err := do(r)
		problem := ""
		if err != nil {
			notice, problem = "", printable(strings.ReplaceAll(err.Error(), "`", ""))
		}
		http.Redirect(w, r, c.flashes.add(next, notice, problem, c.Now()), http.StatusSeeOther)
	}
}

// askTimeout is how long a page waits for other daemons: it answers within five seconds, whatever they do.
const askTimeout = 4 * time.Second

// ask calls the daemon that owns what is changed. Its error is in words for operators: the daemon's own, or what is
// wrong with the daemon.
func ask(ctx context.Context, client *httpx.Client, daemon, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := client.Do(ctx, method, path, in, out)
	switch {
	case httpx.IsAnswer(err) && apierr.KindOf(err) == apierr.Unavailable:
		return apierr.New(apierr.Unavailable, "%s cannot do that now: %s. Try again.", daemon,
			strings.TrimSuffix(err.Error(), "."))
	case err == nil, httpx.IsAnswer(err):
		return err
	case errors.Is(err, context.DeadlineExceeded) && method == http.MethodGet:
		return apierr.New(apierr.Unavailable,
			"%s does not answer in time. Try again; if that does not help, dashd doctor on the server says what is wrong.", daemon)
	case errors.Is(err, context.DeadlineExceeded):
		return apierr.New(apierr.Unavailable,
			"%s did not answer in time, and may still do what you asked for: look whether it has before you try again. "+
				"If that does not help, dashd doctor on the server says what is wrong.", daemon)
	case httpx.IsForeign(err):
		return apierr.New(apierr.Unavailable,
			"What answers is not %s, or it is broken: check %s_URL and its log on the server.", daemon,
			strings.ToUpper(daemon))
	}
	return apierr.New(apierr.Unavailable, "%s does not answer: start it, then try again.", daemon)
}
