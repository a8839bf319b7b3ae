// Package console serves the pages for operators: the state of the instance, and forms to change it. It reads rows
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
	"arizuko/pkg/config"
	"arizuko/pkg/facts"
	"arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
)

// Console serves the pages. Make one with New.
type Console struct {
	*site
	overview  overviewPages
	messages  messagePages
	lost      lostPages
	turns     turnPages
	chats     chatPages
	access    accessPages
	approvals approvalPages
	routes    routePages
	groups    groupPages
	upkeep    upkeepPages
}

// site is the part that all pages share.
type site struct {
	Config
	flashes flashes
	tables  tables
}

// The areas of the console, each with its pages and actions.
type (
	overviewPages struct {
		*site
		minutes  cached[pages.Minutes]
		findings findings
		answered atomic.Bool // a chat of a platform was answered
		checking sync.Mutex  // a token is tried
	}
	approvalPages struct {
		*site
		defaults cached[map[string]string] // of onbod
	}
	messagePages struct{ *site }
	lostPages    struct{ *site }
	turnPages    struct{ *site }
	chatPages    struct{ *site }
	accessPages  struct{ *site }
	routePages   struct{ *site }
	groupPages   struct{ *site }
	upkeepPages  struct{ *site } // reminders, polls, spend, changes
)

// Config has the sources of the pages.
type Config struct {
	Store     store.Reader
	Status    *status.Status
	Pages     *pages.Pages
	Routd     *httpx.Client
	Gated     *httpx.Client
	Onbod     *httpx.Client
	Examine   func(context.Context) ([]facts.Fact, error) // finds problems in the rows
	Operators []string                                    // OPERATORS
	Data      string                                      // ARIZUKO_DATA
	Bin       string                                      // the folder with the daemons' programs
	Environ   []string                                    // of dashd
	Settings  []config.Shown
	Paths     []config.Shown
	Version   string // of dashd
	Schema    int    // version of the schema
	Now       func() time.Time
	Log       *slog.Logger
}

// New makes a Console.
func New(cfg Config) *Console {
	s := &site{Config: cfg}
	return &Console{
		site: s, overview: overviewPages{site: s}, messages: messagePages{s}, lost: lostPages{s}, turns: turnPages{s},
		chats: chatPages{s}, access: accessPages{s}, approvals: approvalPages{site: s}, routes: routePages{s},
		groups: groupPages{s}, upkeep: upkeepPages{s},
	}
}

// Mount adds the pages. The router must require a login and refuse posts of other sites.
func (c *Console) Mount(r chi.Router) {
	for _, v := range c.views() {
		r.Get(v.path, c.page(v))
	}
	for path, do := range c.actions() {
		r.Post(path, c.act(do))
	}
	r.Get("/turns/{id}/log", c.turns.log)
	r.Post("/groups/*", c.groups.change)
	r.Get("/logs", c.groups.log)
	r.Get("/files", c.groups.download)
	r.Get("/routes/edit", c.routes.newEditor)
	r.Post("/routes/edit", c.routes.edit)
}

// Answered reports whether a chat of a platform was answered, now or since dashd was started.
func (c *Console) Answered(ctx context.Context) (bool, error) { return c.overview.wasAnswered(ctx) }

// view is a page.
type view struct {
	path    string // pattern of chi
	section string // the link in the navigation that is current
	// load reads the content of the page.
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
		{path: "/", section: "/", load: c.overview.show},
		{path: "/messages", section: "/messages", load: c.messages.list},
		{path: "/messages/{id}", section: "/messages", load: c.messages.show, needs: "gated"},
		{path: "/turns", section: "/turns", load: c.turns.list, needs: "gated"},
		{path: "/turns/{id}", section: "/turns", load: c.turns.show, needs: "gated"},
		{path: "/turns/{id}/context", section: "/turns", load: c.turns.prompt, still: true},
		{path: "/spend", section: "/spend", load: c.upkeep.spend},
		{path: "/reminders", section: "/reminders", load: c.upkeep.reminders, needs: "gated"},
		{path: "/polls", section: "/polls", load: c.upkeep.polls, needs: "gated"},
		{path: "/lost", section: "/lost", load: c.lost.list, needs: "gated"},
		{path: "/lost/confirm", section: "/lost", load: c.lost.confirm, still: true, needs: "gated"},
		{path: "/chats", section: "/chats", load: c.chats.list},
		{path: "/approvals", section: "/approvals", load: c.approvals.list, needs: "onbod"},
		{path: "/routes", section: "/routes", load: c.routes.list, needs: "routd"},
		{path: "/audit", section: "/audit", load: c.upkeep.audit},
		{path: "/engagement", section: "/engagement", load: c.chats.engagement, needs: "routd"},
		{path: "/groups", section: "/groups", load: c.groups.list, needs: "routd"},
		{path: "/groups/*", section: "/groups", load: c.groups.show, still: true, needs: "routd"},
		{path: "/settings", section: "/settings", load: c.groups.settings},
		{path: "/connect/{daemon}", section: "/", load: c.overview.connect, still: true},
		{path: "/access", section: "/access", load: c.access.show, still: true},
	}
}

// action makes a change that a form asks for. It returns the page to show then, and the result in words. An error is
// shown on the page as a problem.
type action func(r *http.Request) (next, notice string, err error)

func (c *Console) actions() map[string]action {
	return map[string]action{
		"/turns/{id}/retry":             c.turns.change("retry", "Turn %d is in the queue again."),
		"/turns/{id}/cancel":            c.turns.change("cancel", "Turn %d was cancelled."),
		"/turns/{id}/asks/{ask}/answer": c.turns.answerQuestion,
		"/reminders/{id}/cancel":        c.upkeep.cancelReminder,
		"/polls/{id}/close":             c.upkeep.closePoll,
		"/groups":                       c.groups.add,
		"/engagement/end":               c.chats.endEngagement,
		"/approvals/{code}/approve":     c.approvals.decide("approve", "folder"),
		"/approvals/{code}/reject":      c.approvals.decide("reject", "reason"),
		"/connect/{daemon}":             c.overview.tryToken,
		"/operators/code":               c.access.makeOperatorCode,
		"/operators/remove":             c.access.removeOperator,
		"/messages/{id}/replay":         c.messages.replay,
		"/lost/replay":                  c.lost.replay,
	}
}

// page answers with a page, or with its fragment in JSON for one that is open.
func (c *site) page(v view) http.HandlerFunc {
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

func (c *site) render(v view, r *http.Request) (*shown, template.HTML, error) {
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
func (c *site) failed(w http.ResponseWriter, r *http.Request, err error) {
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

// form reads a form of at most limit bytes. The request that it returns names the operator to other daemons; ok is
// false if the form was refused.
func (c *site) form(w http.ResponseWriter, r *http.Request, limit int64) (_ *http.Request, ok bool) {
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	if err := r.ParseForm(); err != nil {
		c.Pages.Problem(w, r, http.StatusBadRequest, "The form could not be read",
			"It is too long, or broken. Go back and try again.")
		return nil, false
	}
	return r.WithContext(httpx.WithBy(r.Context(), login.Sender(r.Context()))), true
}

// act answers a form with a redirect to the page that shows its result: a reload sends nothing again.
func (c *site) act(do action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r, ok := c.form(w, r, maxForm)
		if !ok {
			return
		}
		next, notice, err := do(r)
		problem := ""
		if err != nil {
			notice, problem = "", pages.Printable(strings.ReplaceAll(err.Error(), "`", ""))
		}
		http.Redirect(w, r, c.flashes.add(next, notice, problem, c.Now()), http.StatusSeeOther)
	}
}

// askTimeout is how long a page waits for other daemons: it answers within five seconds, whatever they do.
const askTimeout = 4 * time.Second

// ask calls the daemon that owns the rows. Its error is in words for operators: the daemon's own, or what is
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
			"%s did not answer in time, and may still do what you asked for: check whether it did before you try again. "+
				"If that does not help, dashd doctor on the server says what is wrong.", daemon)
	case httpx.IsForeign(err):
		return apierr.New(apierr.Unavailable,
			"What answers is not %s, or it is broken: check %s_URL and its log on the server.", daemon,
			strings.ToUpper(daemon))
	}
	return apierr.New(apierr.Unavailable, "%s does not answer: start it, then try again.", daemon)
}
