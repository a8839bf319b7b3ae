package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// routd is a fake of the daemon that owns the routes: each message goes by the first row whose match is its chat.
type routd struct {
	*httptest.Server
	st    *store.Store
	mu    sync.Mutex
	calls []string // method, path, and who asks
	items int      // messages that were tested at once
}

func newRoutd(t *testing.T, data string) *routd {
	f := &routd{st: storetest.OpenAt(t, data+"/arizuko.db", nil)}
	f.Server = peer("routd", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.calls = append(f.calls, r.Method+" "+r.URL.Path+" by "+httpx.By(r))
		answer, err := f.answer(r)
		if err != nil {
			httpx.Error(w, err)
			return
		}
		httpx.JSON(w, http.StatusOK, answer)
	})
	t.Cleanup(f.Close)
	return f
}

func (f *routd) answer(r *http.Request) (any, error) {
	stored, err := f.st.Routes(context.Background())
	if err != nil {
		return nil, err
	}
	if r.Method == http.MethodPut {
		table, err := httpx.Decode[routeapi.Table](r)
		if err != nil {
			return nil, err
		}
		if table.Digest != routeapi.Digest(stored) {
			return nil, apierr.New(apierr.Conflict, "the routes were changed")
		}
		return routeapi.Replaced{Changed: 1}, f.st.Write(context.Background(), func(tx *store.Tx) error { return replace(tx, stored, table.Routes) })
	}
	test, err := httpx.Decode[routeapi.Test](r)
	if err != nil {
		return nil, err
	}
	f.items = max(f.items, len(test.Items))
	tested := routeapi.Tested{Problems: []routeapi.Problem{}}
	for i := range test.Items {
		item := &test.Items[i]
		tested.Items = append(tested.Items, routeapi.TestedItem{ID: item.ID, Present: decideBy(stored, item), Edited: decideBy(test.Routes, item)})
	}
	return tested, nil
}

func replace(tx *store.Tx, stored, routes []msg.Route) error {
	kept := map[int64]bool{}
	for i := range routes {
		kept[routes[i].ID] = true
		if routes[i].ID == 0 {
			if err := tx.PutRoute(&routes[i]); err != nil {
				return err
			}
		} else if err := tx.Exec(`UPDATE routes SET seq = ?, match = ?, target = ?, impulse_config = ? WHERE id = ?`, routes[i].Seq,
			routes[i].Match, routes[i].Target, store.Null(string(routes[i].Impulse)), routes[i].ID); err != nil {
			return err
		}
	}
	for _, r := range stored {
		if !kept[r.ID] {
			if err := tx.Exec(`DELETE FROM routes WHERE id = ?`, r.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

func decideBy(routes []msg.Route, item *routeapi.Item) routeapi.Answer {
	a := routeapi.Answer{ID: item.ID, Action: routeapi.None, Reason: msg.ReasonNoRoute, Trace: []string{"no route matches"}}
	for _, r := range routes {
		if r.Match == "" || r.Match == "chat_jid="+item.ChatJID {
			a.Action, a.Folder, a.Home, a.Target, a.RouteID, a.Trace = routeapi.Trigger, r.Target, r.Target, r.Target, r.ID, []string{"route <i>leads</i> there"}
			a.Reason = msg.ReasonRoute
			break
		}
	}
	if item.Folder != "" {
		a.Folder = item.Folder
	}
	return a
}

// editorForm reads the fields of the page of the editor, as a browser sends them.
func editorForm(t *testing.T, page string) url.Values {
	t.Helper()
	form := url.Values{}
	attribute := func(tag, name string) string {
		found := regexp.MustCompile(`\b` + name + `="([^"]*)"`).FindStringSubmatch(tag)
		if found == nil {
			return ""
		}
		return strings.NewReplacer("&#34;", `"`, "&lt;", "<", "&gt;", ">", "&#39;", "'", "&#43;", "+", "&amp;", "&").Replace(found[1])
	}
	start := strings.Index(page, `<form method="post" action="/routes/edit"`)
	if start < 0 {
		t.Fatalf("no form in %.500s", page)
	}
	for _, tag := range regexp.MustCompile(`<input [^>]*>`).FindAllString(page[start:], -1) {
		form.Add(attribute(tag, "name"), attribute(tag, "value"))
	}
	return form
}

// routesFixture is a dashd with two routes, a chat and a fake routd.
func routesFixture(t *testing.T) (data string, f *routd, b *browser) {
	t.Helper()
	data = dataFolder(t)
	shell(t, data, `INSERT INTO registered_groups (folder, name, created_at) VALUES ('ops', 'Ops', 0)`)
	shell(t, data, `INSERT INTO routes (match, target, impulse_config) VALUES ('chat_jid=telegram:-1', 'main', '{"quiet_ms":3000}'), ('', 'daemon:onbod', NULL)`)
	shell(t, data, `INSERT INTO chats (jid, platform, kind, title) VALUES ('telegram:-1', 'telegram', 'group', 'Dev<script>')`)
	f = newRoutd(t, data)
	return data, f, serve(t, data, "ROUTD_URL="+f.URL).operator()
}

func TestRoutes_Page_ShowsTheTableInWords(t *testing.T) {
	data, _, b := routesFixture(t)
	shell(t, data, `INSERT INTO routes (seq, match, target) VALUES (-1, 'platfrom=<b>', 'main'), (5, 'platform=slack', 'ops#observe')`)
	page := b.must(200, "GET", "/routes", "").body
	contains(t, page, "everything in “Dev&lt;script&gt;” (telegram:-1)", `answered by <a href="/groups/main">main</a>`, "waits for silence of 3s",
		"asks you to connect the chat", "It matches nothing: <bdi>match: unknown key", "platfrom=&lt;b&gt;",
		"everything on Slack", "read along by", "never used: the route at place 3 matches all that it does")
	if strings.Contains(page, "<script>") || strings.Contains(page, "=<b>") {
		t.Error("markup is not escaped")
	}
	found := b.must(200, "GET", "/routes?q=SLACK", "").body
	if !strings.Contains(found, "everything on Slack") || strings.Contains(found, "Dev&lt;") {
		t.Error("the search does not find the one row")
	}
	contains(t, b.must(200, "GET", "/routes?q=nowhere", "").body, "No route contains", "Show all 4")
	shell(t, data, `DELETE FROM routes`)
	contains(t, b.must(200, "GET", "/routes", "").body, "There are no routes")
}

func TestRoutes_ManyRows_InPages(t *testing.T) {
	data, _, b := routesFixture(t)
	for i := range 120 {
		shell(t, data, `INSERT INTO routes (seq, match, target) VALUES (10, ?, 'main')`, fmt.Sprintf("room=%d", i))
	}
	seen, path := 0, "/routes?q=room"
	for path != "" {
		page := b.must(200, "GET", path, "").body
		seen += strings.Count(page, `<li class="route"`)
		path = ""
		if next := regexp.MustCompile(`<a href="([^"]+)">Later routes`).FindStringSubmatch(page); next != nil {
			path = strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	if seen != 120 {
		t.Errorf("%d rows on all pages", seen)
	}
}

func TestRouteEditor_EditedCopy_IsSaved(t *testing.T) {
	_, f, b := routesFixture(t)
	form := editorForm(t, b.must(200, "GET", "/routes/edit", "").body)
	form["target"][0], form["impulse"][0] = "ops", `{"quiet_ms": 300000}`
	form.Set("do", "add")
	page := b.form("/routes/edit", form)
	contains(t, page.body, "New route", "chat_jid=telegram:-1 → ops, waits for silence of 5m")
	form = editorForm(t, page.body)
	if len(form["key"]) != 3 || form["key"][1] != "n1" {
		t.Fatalf("rows: %v", form["key"])
	}
	form["match"][1], form["target"][1] = "sender=telegram:6", "builtin:drop"
	form.Set("do", "up:n1")
	form = editorForm(t, b.form("/routes/edit", form).body)
	form.Set("do", "save")
	contains(t, b.submit("/routes/edit", form).body, "Saved: ", "from telegram:6", "waits for silence of 5m")
	routes, err := f.st.Routes(t.Context())
	if got, want := fmt.Sprint(routes), `[{3 -1 sender=telegram:6 builtin:drop []} {1 0 chat_jid=telegram:-1 ops [123 34`; err != nil || !strings.HasPrefix(got, want) {
		t.Errorf("stored: %s, %v", got, err)
	}
	if want := "PUT /v1/routes by web:operator"; len(f.calls) != 1 || f.calls[0] != want {
		t.Errorf("calls: %q", f.calls)
	}
}

func TestRouteEditor_ChatInAddress_HasARouteForIt(t *testing.T) {
	_, _, b := routesFixture(t)
	form := editorForm(t, b.must(200, "GET", "/routes/edit?chat=slack:T1%2FC2&sender=slack:U1&verb=mention", "").body)
	if i := slices.Index(form["key"], "n1"); i < 0 || form["match"][i] != "chat_jid=slack:T1/C2" || form.Get("test_sender") != "slack:U1" {
		t.Errorf("the form: %v", form)
	}
}

func TestRouteEditor_InvalidRows_AllShownNothingSaved(t *testing.T) {
	_, f, b := routesFixture(t)
	form := editorForm(t, b.must(200, "GET", "/routes/edit", "").body)
	form["match"][0], form["impulse"][1] = "platfrom=<x>", `{"quiet_ms": "soon"}`
	for _, do := range []string{"check", "save"} {
		form.Set("do", do)
		a := b.form("/routes/edit", form)
		contains(t, a.body, "2 of the routes cannot be saved", "unknown key &#34;platfrom&#34;", "impulse_config: &#34;quiet_ms&#34;: ", `value="{&#34;quiet_ms&#34;: &#34;soon&#34;}"`, `value="platfrom=&lt;x&gt;"`)
	}
	form["impulse"][1], form["target"][1] = "", "nowhere"
	form.Set("do", "check")
	contains(t, b.form("/routes/edit", form).body, "folder nowhere is not registered")
	if len(f.calls) != 0 {
		t.Errorf("routd was asked: %q", f.calls)
	}
}

// What another editor has saved meanwhile is shown, and what was typed stays.
func TestRouteEditor_OtherEditorSaved_Conflict(t *testing.T) {
	data, f, b := routesFixture(t)
	form := editorForm(t, b.must(200, "GET", "/routes/edit", "").body)
	shell(t, data, `UPDATE routes SET target = 'ops' WHERE id = 2`)
	form["target"][0] = "ops#observe"
	form.Set("do", "check")
	contains(t, b.form("/routes/edit", form).body, "Another operator saved routes after you loaded this page", `<a href="/audit">See who changed what</a>`)
	form.Set("do", "save")
	a := b.form("/routes/edit", form)
	if a.status != http.StatusConflict {
		t.Fatalf("%d", a.status)
	}
	contains(t, a.body, "Nothing was saved", `value="ops#observe"`, "change route 2: everything → daemon:onbod; before: everything → ops", "Save mine, replace theirs")
	form = editorForm(t, a.body)
	form.Set("do", "save")
	contains(t, b.submit("/routes/edit", form).body, "Saved: ")
	if routes, err := f.st.Routes(t.Context()); err != nil || routes[0].Target != "ops#observe" || routes[1].Target != "daemon:onbod" {
		t.Errorf("stored: %v, %v", routes, err)
	}
}

func TestRouteEditor_TestMessage_BothTablesInWords(t *testing.T) {
	_, f, b := routesFixture(t)
	form := editorForm(t, b.must(200, "GET", "/routes/edit", "").body)
	form["target"][0] = "ops"
	for field, value := range map[string]string{"do": "test", "test_chat": "telegram:-1", "test_sender": "telegram:42", "test_verb": "mention"} {
		form.Set(field, value)
	}
	contains(t, b.form("/routes/edit", form).body, "With your copy:</strong> <bdi>answered by ops", "Now:</strong> <bdi>answered by main", "route &lt;i&gt;leads&lt;/i&gt; there",
		`<option value="telegram:-1">Dev&lt;script&gt;</option>`, `value="telegram:42"`)
	f.Close()
	contains(t, b.form("/routes/edit", form).body, "routd does not answer: start it, then try again.")
}

func TestRouteEditor_Replay_CountsAndNamesDifferences(t *testing.T) {
	data, f, b := routesFixture(t)
	for i := range 620 {
		shell(t, data, `INSERT INTO messages (chat_jid, direction, sender, sender_name, content, timestamp, received_at) VALUES (?, 'in', 'telegram:42', 'Ada<b>', 'hello <i>', 5, ?)`,
			fmt.Sprintf("telegram:-%d", 1+i%2), i)
	}
	shell(t, data, `INSERT INTO messages (chat_jid, direction, kind, verb, sender, content, timestamp, received_at) VALUES ('telegram:-1', 'in', 'edit', 'edit', 'telegram:42', 'x', 5, 5)`)
	form := editorForm(t, b.must(200, "GET", "/routes/edit", "").body)
	form["target"][0] = "ops"
	form.Set("do", "replay")
	page := b.form("/routes/edit", form).body
	contains(t, page, "<strong>249 of 499</strong> messages would go another way", "1 more are edits", `>249</th><td class="wide" data-label="Was">answered by main</td><td class="wide" data-label="Would be">answered by ops</td>`,
		`<a href="/messages/619">Message 619</a>`, "Ada&lt;b&gt;", "hello &lt;i&gt;", "route &lt;i&gt;leads&lt;/i&gt; there", "and 199 more", "Engagement, access and rate limits are ignored")
	if strings.Count(page, "Message ") != 50 || f.items > routeapi.MaxTested {
		t.Errorf("%d messages listed, %d asked at once", strings.Count(page, "Message "), f.items)
	}
	form["target"][0] = ""
	contains(t, b.form("/routes/edit", form).body, "1 of the routes cannot be saved")
}

func TestRouteEditor_Bounds_RefusedInWords(t *testing.T) {
	data, _, b := routesFixture(t)
	form := editorForm(t, b.must(200, "GET", "/routes/edit", "").body)
	form["match"] = form["match"][:1]
	if a := b.form("/routes/edit", form); a.status != 400 || !strings.Contains(a.body, "the form is broken") {
		t.Errorf("a missing field: %d", a.status)
	}
	form.Set("match", strings.Repeat("x", 1<<20))
	if a := b.form("/routes/edit", form); a.status != 400 || !strings.Contains(a.body, "too long") {
		t.Errorf("too long: %d", a.status)
	}
	shell(t, data, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 498) INSERT INTO routes (match, target) SELECT 'room=' || i, 'main' FROM n`)
	form = editorForm(t, b.must(200, "GET", "/routes/edit", "").body)
	form.Set("do", "check")
	if a := b.form("/routes/edit", form); len(form["match"]) != 500 || a.status != 200 {
		t.Errorf("as many rows as may be, %d: %d %.300s", len(form["match"]), a.status, a.body)
	}
	shell(t, data, `INSERT INTO routes (match, target) VALUES ('room=x', 'main')`)
	contains(t, b.must(200, "GET", "/routes/edit", "").body, "The table has 501 routes, and is too large for this page")
	if a := b.do("POST", "/routes/edit", "do=save", "Content-Type: application/x-www-form-urlencoded", "Origin: http://evil.example"); a.status != 403 {
		t.Errorf("another site's form: %d", a.status)
	}
}

func TestChanges_Page_FilteredInPages(t *testing.T) {
	data, _, b := routesFixture(t)
	contains(t, b.must(200, "GET", "/audit", "").body, "No changes yet")
	for i := range 120 {
		who, what := "cli", "add route"
		if i%3 == 0 {
			who, what = "web:ada", "approve"
		}
		shell(t, data, `INSERT INTO audit (at, who, what, detail) VALUES (?, ?, ?, ?)`, i, who, what, fmt.Sprintf("detail-%d <b>", i))
	}
	for first, want := range map[string]int{"/audit": 120, "/audit?who=cli": 80, "/audit?what=approve": 40, "/audit?who=web:ada&what=approve": 40, "/audit?who=cli&what=approve": 0} {
		seen, path := 0, first
		for path != "" {
			page := b.must(200, "GET", path, "").body
			seen += strings.Count(page, `<li id="change-`)
			path = ""
			if next := regexp.MustCompile(`<a href="([^"]+)">Older changes`).FindStringSubmatch(page); next != nil {
				path = strings.ReplaceAll(next[1], "&amp;", "&")
			}
		}
		if seen != want {
			t.Errorf("%s: %d changes, want %d", first, seen, want)
		}
	}
	contains(t, b.must(200, "GET", "/audit", "").body, "detail-119 &lt;b&gt;", `<option value="approve">`)
	contains(t, b.must(200, "GET", "/audit?who=no%20one", "").body, "No matching changes")
	contains(t, b.must(200, "GET", "/audit", "").body, "The oldest change that is kept was made", "The newest 50000 are kept")
	if body := b.must(200, "GET", "/audit", "").body; strings.Contains(body, "Older ones were deleted") {
		t.Error("the page says that changes were deleted")
	}
	shell(t, data, `DELETE FROM audit WHERE id = 1`)
	contains(t, b.must(200, "GET", "/audit", "").body, "Older ones were deleted")
	if a := b.get("/audit?before=x"); a.status != 400 {
		t.Errorf("before=x: %d", a.status)
	}
}
