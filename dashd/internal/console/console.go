// Package console serves the pages for operators: the state of the instance, and forms to change it. It reads rows
// itself; the daemon that owns a row changes it.
package console

import (
	"cmp"
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
	"arizuko/dashd/internal/push"
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
	approvals approvalPages
	figures   figurePages
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
		findings findings
		answered atomic.Bool // a chat of a platform was answered
		checking sync.Mutex  // a token is tried
	}
	approvalPages struct {
		*site
		mu      sync.Mutex
		askedAt time.Time         // when onbod was asked
		folders map[string]string // its answer
	}
	figurePages struct {
		*site
		counted [3]latest[figures] // by hour, day and week
	}
	messagePages struct{ *site }
	lostPages    struct{ *site }
	turnPages    struct{ *site }
	chatPages    struct{ *site }
	accessPages  struct{ *site }
	routePages   struct{ *site }
	egressPages  struct{ *site }
	groupPages   struct{ *site }
	hookPages    struct{ *site }
	pushPages    struct{ *site }
	upkeepPages  struct{ *site } // reminders, polls, spend, changes
)

// Config has the sources of the pages.
type Config struct {
	Store     store.Reader
	Status    *status.Status
	Pages     *pages.Pages
	Push      *push.Push
	Daemons   map[string]*httpx.Client                    // routd, gated and onbod
	Examine   func(context.Context) ([]facts.Fact, error) // finds problems in the rows
	Restart   func(context.Context, string) error         // a daemon that the launcher runs
	Operators []string                                    // OPERATORS
	Data      string                                      // ARIZUKO_DATA
	Public    string                                      // the URL of dashd, without a slash at its end
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
	return &Console{site: s, overview: overviewPages{site: s}, approvals: approvalPages{site: s},
		figures: figurePages{site: s}}
}

// Mount adds the pages. The router must require a login and refuse posts of other sites.
func (c *Console) Mount(r chi.Router) {
	for _, v := range c.views() {
		r.Get(v.path, c.handle(func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Vary", "Accept")
			content, err := v.load(r)
			if err != nil {
				return err
			}
			return c.write(w, r, http.StatusOK, v, content)
		}))
	}
	for path, do := range c.actions() {
		r.Post(path, c.act(do))
	}
	r.Post("/groups/*", c.handle(groupPages{c.site}.change))
	r.Get("/logs", c.handle(groupPages{c.site}.log))
	r.Get("/files", c.handle(groupPages{c.site}.download))
	r.Post("/routes/edit", c.handle(routePages{c.site}.edit))
}

// Answered reports whether a chat of a platform was answered, now or since dashd was started.
func (c *Console) Answered(ctx context.Context) (bool, error) { return c.overview.wasAnswered(ctx) }

// view is a page.
type view struct {
	path     string // pattern of chi
	section  string // the link in the navigation that is current
	title    string
	template string
	// load reads the content of the page.
	load  func(*http.Request) (*shown, error)
	still bool   // it is not rendered again while it is open
	needs string // the daemon that makes the changes of the page, "" for none
}

// shown is the content of a page: the data of its template.
type shown struct {
	data    any
	title   string       // "" for the one of the view
	up      []pages.Link // pages between it and its section
	problem string       // why a form of it was refused
}

// The pages that answer a form with themselves.
var (
	groupView = view{path: "/groups/*", section: "/groups", template: "group.html", still: true, needs: "routd"}
	routeEdit = view{path: "/routes/edit", section: "/routes", title: "Edit routes", template: "route-editor.html",
		still: true}
)

func (c *Console) views() []view {
	messages, turns, lost, upkeep := messagePages{c.site}, turnPages{c.site}, lostPages{c.site}, upkeepPages{c.site}
	chats, groups, routes := chatPages{c.site}, groupPages{c.site}, routePages{c.site}
	group, editor := groupView, routeEdit
	group.load, editor.load = groups.show, routes.newEditor
	return []view{
		{"/", "/", "Overview", "overview.html", c.overview.show, false, ""},
		{"/messages", "/messages", "Messages", "messages.html", messages.list, false, ""},
		{"/messages/{id}", "/messages", "", "why.html", messages.show, false, "gated"},
		{"/search", "/search", "Search", "search.html", messages.search, true, ""},
		{"/turns", "/turns", "Turns", "turns.html", turns.list, false, "gated"},
		{"/turns/retry", "/turns", "Retry failed turns", "retry.html", turns.causes, true, "gated"},
		{"/turns/{id}", "/turns", "", "turn.html", turns.show, false, "gated"},
		{"/turns/{id}/context", "/turns", "What the agent was given", "prompt.html", turns.prompt, true, ""},
		{"/figures", "/figures", "Figures", "figures.html", c.figures.show, false, ""},
		{"/spend", "/spend", "Spend", "spend.html", upkeep.spend, false, ""},
		{"/reminders", "/reminders", "Reminders", "reminders.html", upkeep.reminders, false, "gated"},
		{"/polls", "/polls", "Polls", "polls.html", upkeep.polls, false, "gated"},
		{"/lost", "/lost", "Lost and found", "lost.html", lost.list, false, "gated"},
		{"/lost/confirm", "/lost", "Lost and found", "lost.html", lost.confirm, true, "gated"},
		{"/chats", "/chats", "Chats", "chatlist.html", chats.list, false, ""},
		{"/chats/*", "/chats", "", "onechat.html", chats.show, false, "gated"},
		{"/senders/*", "/search", "", "person.html", chats.person, false, ""},
		{"/approvals", "/approvals", "Approvals", "approvals.html", c.approvals.list, false, "onbod"},
		{"/routes", "/routes", "Routes", "routes.html", routes.list, false, "routd"},
		{"/audit", "/audit", "Changes", "audit.html", upkeep.audit, false, ""},
		{"/engagement", "/engagement", "Engagement", "engagement.html", chats.engagement, false, "routd"},
		{"/groups", "/groups", "Groups", "groups.html", groups.list, false, "routd"},
		{notificationsPath, notificationsPath, "Notifications", "notifications.html", pushPages{c.site}.show, true, ""},
		{"/settings", "/settings", "Settings", "settings.html", groups.settings, false, ""},
		{"/connect/{daemon}", "/", "", "connect.html", c.overview.connect, true, ""},
		{"/access", "/access", "Access", "access.html", accessPages{c.site}.show, true, ""},
		{egressPath, egressPath, "Egress", "egress.html", egressPages{c.site}.show, true, "gated"},
		{"/hooks/*", "/groups", "", "hook.html", hookPages{c.site}.show, false, "routd"},
		group, editor,
	}
}

// action makes a change that a form asks for. It returns the page to show then, and the result in words. An error is
// shown on the page as a problem.
type action func(r *http.Request) (next, notice string, err error)

func (c *Console) actions() map[string]action {
	turns, access, upkeep := turnPages{c.site}, accessPages{c.site}, upkeepPages{c.site}
	egress := egressPages{c.site}
	return map[string]action{
		"/turns/retry":                  turns.retryAll,
		"/turns/{id}/retry":             turns.change("retry", "Turn %d is in the queue again."),
		"/turns/{id}/cancel":            turns.change("cancel", "Turn %d was cancelled."),
		"/turns/{id}/undo":              turns.change("undo", "Turn %d is being taken back."),
		"/turns/{id}/redo":              turns.change("redo", "Turn %d is being done again."),
		"/turns/{id}/asks/{ask}/answer": turns.answerQuestion,
		"/daemons/{name}/restart":       c.overview.restart,
		"/reminders/{id}/cancel":        upkeep.cancelReminder,
		"/polls/{id}/close":             upkeep.closePoll,
		"/groups":                       groupPages{c.site}.add,
		"/engagement/end":               chatPages{c.site}.endEngagement,
		"/approvals/{code}/approve":     c.approvals.decide("approve", "folder"),
		"/approvals/{code}/reject":      c.approvals.decide("reject", "reason"),
		"/connect/{daemon}":             c.overview.tryToken,
		"/operators/code":               access.makeOperatorCode,
		"/operators/remove":             access.removeOperator,
		"/messages/{id}/replay":         messagePages{c.site}.replay,
		"/lost/replay":                  lostPages{c.site}.replay,
		"/hooks":                        hookPages{c.site}.add,
		"/hooks/*":                      hookPages{c.site}.change,
		"/egress/rules":                 egress.add,
		notificationsPath:               pushPages{c.site}.add,
		notificationsPath + "/{id}":     pushPages{c.site}.change,
		"/egress/rules/{id}/remove":     egress.remove,
	}
}

// handle shows the error of a handler.
func (c *site) handle(do func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := do(w, r); err != nil {
			c.failed(w, r, err)
		}
	}
}

// write answers with a page, or with its fragment in JSON for one that is open. An error leaves the answer unwritten.
func (c *site) write(w http.ResponseWriter, r *http.Request, status int, v view, content *shown) error {
	fragment, err := c.render(r.Context(), v, content.data)
	if err != nil {
		return err
	}
	tag := ""
	if !v.still {
		hash := sha256.Sum256([]byte(fragment))
		tag = fmt.Sprintf(`"%x"`, hash[:16])
	}
	if wantsJSON(r) && r.Method == http.MethodGet {
		writeFragment(w, r, fragment, tag)
		return nil
	}
	requests, err := rows.CountRequests(r.Context(), c.Store)
	if err != nil {
		return err
	}
	notice, problem := c.flashes.take(r.URL.Query().Get(flashParameter), c.Now())
	up := content.up
	if v.path != v.section {
		up = append([]pages.Link{pages.Section(v.section)}, up...)
	}
	c.Pages.View(w, status, pages.View{
		Title: cmp.Or(content.title, v.title), Section: v.section, Up: up, Tag: tag, Login: login.Sender(r.Context()),
		Fragment: fragment, Notice: notice, Problem: cmp.Or(content.problem, problem), Requests: requests,
	})
	return nil
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

// render makes the fragment of a page. It begins with a warning if the daemon that the page needs does not run.
func (c *site) render(ctx context.Context, v view, data any) (template.HTML, error) {
	fragment, err := c.Pages.Fragment(v.template, data)
	if err != nil || v.needs == "" {
		return fragment, err
	}
	runs, err := c.Status.Runs(ctx, v.needs)
	if err != nil || runs {
		return fragment, err
	}
	down, err := c.Pages.Fragment("down.html", v.needs)
	return down + fragment, err
}

// failed answers why a page cannot be shown: the words of a refusal, else that the database cannot be read.
func (c *site) failed(w http.ResponseWriter, r *http.Request, err error) {
	if kind := apierr.KindOf(err); kind != apierr.BadRequest && kind != apierr.NotFound {
		c.Log.Error("page failed", "path", r.URL.Path, "err", err)
		err = apierr.New(apierr.Unavailable, "The database cannot be read. dashd doctor on the server says why.")
	}
	httpx.Error(w, err)
}

// maxForm is how much of a form is read, in bytes.
const maxForm = 256 << 10

// form reads a form of at most limit bytes. The request that it returns names the operator to other daemons.
func form(w http.ResponseWriter, r *http.Request, limit int64) (*http.Request, error) {
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	if err := r.ParseForm(); err != nil {
		return nil, apierr.New(apierr.BadRequest,
			"The form could not be read: it is too long, or broken. Go back and try again.")
	}
	return r.WithContext(httpx.WithBy(r.Context(), login.Sender(r.Context()))), nil
}

// act answers a form with a redirect to the page that shows its result: a reload sends nothing again.
func (c *site) act(do action) http.HandlerFunc {
	return c.handle(func(w http.ResponseWriter, r *http.Request) error {
		r, err := form(w, r, maxForm)
		if err != nil {
			return err
		}
		next, notice, err := do(r)
		problem := ""
		if err != nil {
			notice, problem = "", pages.Printable(strings.ReplaceAll(err.Error(), "`", ""))
		}
		http.Redirect(w, r, c.flashes.add(next, notice, problem, c.Now()), http.StatusSeeOther)
		return nil
	})
}

// askTimeout is how long a page waits for other daemons: it answers within five seconds, whatever they do.
const askTimeout = 4 * time.Second

// ask calls the daemon that owns the rows. Its error is in words for operators: the daemon's own, or what is
// wrong with the daemon.
func (c *site) ask(ctx context.Context, daemon, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := c.Daemons[daemon].Do(ctx, method, path, in, out)
	switch {
	case httpx.IsAnswer(err) && apierr.KindOf(err) == apierr.Unavailable:
		return apierr.New(apierr.Unavailable, "%s cannot do that now: %s. Try again.", daemon,
			strings.TrimSuffix(err.Error(), "."))
	case err == nil, httpx.IsAnswer(err):
		return err
	case errors.Is(err, context.DeadlineExceeded) && method == http.MethodGet:
		return apierr.New(apierr.Unavailable,
			"%s does not answer in time. Try again; if that does not help, dashd doctor on the server says "+
				"what is wrong.", daemon)
	case errors.Is(err, context.DeadlineExceeded):
		return apierr.New(apierr.Unavailable,
			"%s did not answer in time, and may still do what you asked for: check whether it did before "+
				"you try again. If that does not help, dashd doctor on the server says what is wrong.", daemon)
	case httpx.IsForeign(err):
		return apierr.New(apierr.Unavailable,
			"The program that answers is not %s, or it is broken: check %s_URL and its log on the server.", daemon,
			strings.ToUpper(daemon))
	}
	return apierr.New(apierr.Unavailable, "%s does not answer: start it, then try again.", daemon)
}
