package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

const (
	maxChatChoices = 200
	maxChangeLines = 30
)

// editor is the page with a copy of the table, as it answers a request.
type editor struct {
	routePages
	draft    *draft
	page     *pages.RouteEditor
	table    *table      // the stored one
	routes   []msg.Route // of the copy
	reviewed []review    // of routes
}

// newEditor shows a fresh copy of the table.
func (c routePages) newEditor(r *http.Request) (*shown, error) {
	table, err := c.table(r.Context())
	if err != nil {
		return nil, err
	}
	d := newDraft(routeapi.Digest(table.routes), table.routes)
	q := r.URL.Query()
	page := &pages.RouteEditor{Test: pages.TestMessage{Chat: q.Get("chat"), Sender: q.Get("sender"),
		SenderName: q.Get("name"), Thread: q.Get("thread"), Verb: cmp.Or(q.Get("verb"), msg.VerbMessage)}}
	if page.Test.Chat != "" {
		d.add("chat_jid=" + page.Test.Chat)
	}
	if page.TooLarge = tooLarge(table.routes); page.TooLarge != "" {
		d.rows = nil
	}
	return &shown{data: page}, c.review(table, d, page).fill(r.Context())
}

// review compares a copy with the stored table, and checks its rows.
func (c routePages) review(t *table, d *draft, page *pages.RouteEditor) *editor {
	e := &editor{routePages: c, draft: d, page: page, table: t, routes: d.table(t.routes)}
	check := t.review
	if page.TooLarge == "" {
		changes := lines(differences(t.routes, e.routes))
		if len(changes) > 0 {
			check = func() []review { return reviewOf(e.routes, t.groups) }
		}
		page.Changes = changes[:min(len(changes), maxChangeLines)]
		page.More = len(changes) - len(page.Changes)
	}
	e.reviewed = check()
	for i := range d.rows {
		if e.reviewed[i].problem != "" {
			page.Problems++
		}
	}
	return e
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
	}
	table, err := c.table(r.Context())
	if err != nil {
		return err
	}
	e := c.review(table, d, &pages.RouteEditor{Test: readTest(r.PostForm)})
	e.page.Checked = verb == "check" || verb == "test" || verb == "replay" || verb == "save"
	asking, cancel := context.WithTimeout(r.Context(), askTimeout) // all questions together
	defer cancel()
	switch verb {
	case "test":
		e.page.Tested, err = e.test(asking)
	case "replay":
		e.page.Replay, err = e.replay(asking)
	case "save":
		return e.save(w, r)
	}
	if err != nil {
		return err
	}
	return e.show(w, r, http.StatusOK, "")
}

func readTest(form url.Values) pages.TestMessage {
	field := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	return pages.TestMessage{
		Chat: field("test_chat"), Sender: field("test_sender"), SenderName: field("test_name"),
		Thread: field("test_thread"), Verb: cmp.Or(field("test_verb"), msg.VerbMessage),
	}
}

// save replaces the stored table by the copy. What was typed stays on the page if that is refused.
func (e *editor) save(w http.ResponseWriter, r *http.Request) error {
	if e.page.Problems > 0 {
		return e.show(w, r, http.StatusBadRequest, "")
	}
	var done routeapi.Replaced
	err := e.ask(r.Context(), "routd", http.MethodPut, routeapi.RoutesPath,
		routeapi.Table{Digest: e.draft.digest, Routes: e.routes}, &done)
	switch kind := apierr.KindOf(err); {
	case err == nil:
		http.Redirect(w, r, e.flashes.add("/routes", savedWords(&done), "", e.Now()), http.StatusSeeOther)
		return nil
	case kind == apierr.Conflict:
		e.page.Conflict, e.page.Refused = true, true
		e.draft.digest = routeapi.Digest(e.table.routes) // now the operator has seen the changes
		return e.show(w, r, kind.Status(), "")
	default:
		return e.show(w, r, kind.Status(), plainText(err.Error()))
	}
}

func savedWords(done *routeapi.Replaced) string {
	if done.Added+done.Changed+done.Deleted == 0 {
		return "Nothing was changed: the routes already looked like this."
	}
	return fmt.Sprintf("Saved: %d added, %d changed, %d deleted. The next message goes by these routes.", done.Added,
		done.Changed, done.Deleted)
}

// show writes the page.
func (e *editor) show(w http.ResponseWriter, r *http.Request, status int, problem string) error {
	if err := e.fill(r.Context()); err != nil {
		return err
	}
	return e.write(w, r, status, routeEdit, &shown{data: e.page, problem: problem})
}

// fill adds the rows and the choices to the page.
func (e *editor) fill(ctx context.Context) error {
	page := e.page
	page.Now, page.Digest, page.NextKey = e.Now().UnixMilli(), e.draft.digest, e.draft.nextKey()
	exprs := make([]string, len(e.draft.rows))
	for i, row := range e.draft.rows {
		exprs[i] = row.Match
	}
	words, err := e.matchWords(ctx, exprs)
	if err != nil {
		return err
	}
	stored := map[int64]string{} // in words
	for _, r := range e.table.routes {
		stored[r.ID] = routeText(r)
	}
	for i, row := range e.draft.rows {
		before, known := stored[row.ID]
		row.New, row.Changed = !known, known && before != routeText(e.routes[i])
		row.RouteLine = routeLine(e.routes[i], i, words[i], e.reviewed[i])
		if row.Target == "" {
			row.Does = "no target yet"
		}
		row.Open = row.New || row.Changed || row.Problem != ""
		page.Rows = append(page.Rows, row)
	}
	page.Conflict = page.Conflict || page.Digest != routeapi.Digest(e.table.routes)
	page.Verbs = options(page.Test.Verb, "message", "a plain message", "mention", "a mention of the bot",
		"reply", "a reply to the bot", "reaction", "a reaction", "join", "a join", "leave", "a leave")
	page.Targets = targetChoices(e.table.groups)
	chats, err := rows.ListChats(ctx, e.Store, rows.ChatFilter{Limit: maxChatChoices})
	page.Chats = chats.Rows
	return err
}

func targetChoices(groups []msg.Group) (all []string) {
	for _, g := range groups {
		all = append(all, g.Folder, g.Folder+"#observe")
	}
	return append(all, routeapi.Onboarding, "builtin:drop", "builtin:ping")
}
