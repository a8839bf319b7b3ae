package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

const (
	maxChatChoices   = 200
	maxChangeLines   = 30
	maxConflictLines = 5
	defaultReplay    = 200
	maxReplay        = 1000
)

// newEditor shows a fresh copy of the table.
func (c routePages) newEditor(r *http.Request) (*shown, error) {
	table, err := c.table(r.Context())
	if err != nil {
		return nil, err
	}
	d := newDraft(routeapi.Digest(table.routes), table.routes)
	q := r.URL.Query()
	page := &pages.RouteEditor{Last: defaultReplay, Test: pages.TestMessage{Chat: q.Get("chat"),
		Sender:     q.Get("sender"),
		SenderName: q.Get("name"), Thread: q.Get("thread"), Verb: cmp.Or(q.Get("verb"), msg.VerbMessage)}}
	if page.Test.Chat != "" {
		d.add("chat_jid=" + page.Test.Chat)
	}
	if text := tooLarge(table.routes); text != "" {
		page.TooLarge = text
		d.rows = nil
	}
	return &shown{data: page}, c.fillEditor(r.Context(), d, page)
}

// tooLarge says that a table cannot be edited on a page, "" if it can.
func tooLarge(routes []msg.Route) string {
	size := 0
	for _, r := range routes {
		size += 500 + 3*(len(r.Match)+len(r.Target)+len(r.Impulse)) // as a form
	}
	if len(routes) <= maxDraftRows && size <= maxDraft {
		return ""
	}
	return fmt.Sprintf("The table has %d routes, and is too large for this page. Change single routes on the server: "+
		"routd routes add, routd routes rm.", len(routes))
}

// edit answers the buttons of the page.
func (c routePages) edit(w http.ResponseWriter, r *http.Request) error {
	r, err := form(w, r, maxDraft)
	if err != nil {
		return err
	}
	d, err := readDraft(r.PostForm)
	if err != nil {
		return err
	}
	page := &pages.RouteEditor{Test: readTest(r.PostForm), Last: readLast(r.PostForm.Get("last"))}
	asking, cancel := context.WithTimeout(r.Context(), askTimeout) // all questions together
	defer cancel()
	verb, key, _ := strings.Cut(r.PostForm.Get("do"), ":")
	switch verb {
	case "up":
		d.move(key, -1)
	case "down":
		d.move(key, 1)
	case "delete":
		d.remove(key)
	case "add":
		d.add("")
	case "test":
		page.Tested, err = c.testDraft(asking, d, page.Test)
	case "replay":
		page.Replay, err = c.replay(asking, d, page.Last)
	case "save":
		return c.save(w, r, d, page)
	}
	page.Checked = verb == "check" || verb == "test" || verb == "replay"
	if err != nil {
		return err
	}
	return c.showEditor(w, r, http.StatusOK, d, page, "")
}

func readTest(form url.Values) pages.TestMessage {
	field := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	return pages.TestMessage{
		Chat: field("test_chat"), Sender: field("test_sender"), SenderName: field("test_name"),
		Thread: field("test_thread"), Verb: cmp.Or(field("test_verb"), msg.VerbMessage), Text: field("test_text"),
	}
}

func readLast(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 {
		return defaultReplay
	}
	return min(n, maxReplay)
}

// save replaces the stored table by the copy. What was typed stays on the page if that is refused.
func (c routePages) save(w http.ResponseWriter, r *http.Request, d *draft, page *pages.RouteEditor) error {
	page.Checked = true
	table, err := c.table(r.Context())
	if err != nil {
		return err
	}
	routes, problems := d.table(table.routes)
	if len(problems) > 0 {
		return c.showEditor(w, r, http.StatusBadRequest, d, page, "")
	}
	var done routeapi.Replaced
	err = c.ask(r.Context(), "routd", http.MethodPut, routeapi.RoutesPath,
		routeapi.Table{Digest: d.digest, Routes: routes}, &done)
	switch kind := apierr.KindOf(err); {
	case err == nil:
		http.Redirect(w, r, c.flashes.add("/routes", savedWords(&done), "", c.Now()), http.StatusSeeOther)
		return nil
	case kind == apierr.Conflict:
		page.Conflict = &pages.Conflict{Saved: true}
		d.digest = routeapi.Digest(table.routes) // now the operator has seen the changes
		return c.showEditor(w, r, kind.Status(), d, page, "")
	default:
		return c.showEditor(w, r, kind.Status(), d, page, plainText(err.Error()))
	}
}

func savedWords(done *routeapi.Replaced) string {
	if done.Added+done.Changed+done.Deleted == 0 {
		return "Nothing was changed: the routes already looked like this."
	}
	return fmt.Sprintf("Saved: %d added, %d changed, %d deleted. The next message goes by these routes.", done.Added,
		done.Changed, done.Deleted)
}

// showEditor writes the page with a copy.
func (c routePages) showEditor(w http.ResponseWriter, r *http.Request, status int, d *draft, page *pages.RouteEditor,
	problem string) error {
	if err := c.fillEditor(r.Context(), d, page); err != nil {
		return err
	}
	return c.write(w, r, status, routeEdit, &shown{data: page, problem: problem})
}

// fillEditor adds the checks of the rows, and the choices.
func (c routePages) fillEditor(ctx context.Context, d *draft, page *pages.RouteEditor) error {
	table, err := c.table(ctx)
	if err != nil {
		return err
	}
	page.Now, page.Digest, page.NextKey = c.Now().UnixMilli(), d.digest, d.nextKey()
	routes, problems := d.table(table.routes)
	check := table.review
	if page.TooLarge == "" {
		changes := lines(differences(table.routes, routes))
		if len(changes) > 0 {
			check = func() []review { return reviewOf(routes, table.groups) }
		}
		page.Changes = changes[:min(len(changes), maxChangeLines)]
		page.More = len(changes) - len(page.Changes)
	}
	exprs := make([]string, len(d.rows))
	for i, row := range d.rows {
		exprs[i] = row.Match
	}
	words, err := c.matchWords(ctx, exprs)
	if err != nil {
		return err
	}
	stored := map[int64]string{} // in words
	for _, r := range table.routes {
		stored[r.ID] = routeText(r)
	}
	reviewed := check()
	for i, row := range d.rows {
		before, known := stored[row.ID]
		row.New, row.Changed = !known, known && before != routeText(routes[i])
		row.RouteLine = routeLine(routes[i], i, words[i], reviewed[i])
		if row.Target == "" {
			row.Does = "no target yet"
		}
		row.Problem = cmp.Or(plaintext.Line(problems[i]), row.Problem)
		if row.Problem != "" {
			page.Problems++
		}
		row.Open = row.New || row.Changed || row.Problem != ""
		page.Rows = append(page.Rows, row)
	}
	if page.Conflict == nil && page.Digest != routeapi.Digest(table.routes) {
		page.Conflict = &pages.Conflict{}
	}
	if page.Conflict != nil {
		if page.Conflict.By, err = c.routeChanges(ctx); err != nil {
			return err
		}
	}
	page.Verbs = options(page.Test.Verb, "message", "a plain message", "mention", "a mention of the bot",
		"reply", "a reply to the bot", "reaction", "a reaction", "join", "a join", "leave", "a leave")
	page.Targets = targetChoices(table.groups)
	chats, err := rows.ListChats(ctx, c.Store, rows.ChatFilter{Limit: maxChatChoices})
	page.Chats = chats.Rows
	return err
}

func targetChoices(groups []msg.Group) (all []string) {
	for _, g := range groups {
		all = append(all, g.Folder, g.Folder+"#observe")
	}
	return append(all, routeapi.Onboarding, "builtin:drop", "builtin:ping")
}

// routeChanges are the newest changes of routes, the newest first.
func (c routePages) routeChanges(ctx context.Context) (all []factrows.AuditRow, err error) {
	for _, what := range []string{"add route", "change route", "delete route", "reorder routes", factrows.AuditMove} {
		rows, err := factrows.Audit(ctx, c.Store, factrows.AuditQuery{What: what, Limit: maxConflictLines})
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	slices.SortFunc(all, func(a, b factrows.AuditRow) int { return cmp.Compare(b.ID, a.ID) })
	return all[:min(len(all), maxConflictLines)], nil
}
