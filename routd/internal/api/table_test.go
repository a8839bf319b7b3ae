package api_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store/storetest"
)

// newTableFixture has the groups acme and ops, and three routes.
func newTableFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"ops"}`)
	for _, route := range []string{`{"match":"chat_jid=telegram:-1","target":"acme"}`, `{"match":"platform=slack","target":"acme"}`, `{"target":"daemon:onbod"}`} {
		f.must(t, 201, "POST", "/v1/routes", route)
	}
	return f
}

// routes returns the stored table and its digest.
func (f *fixture) routes(t testing.TB) (table routeapi.Table) {
	t.Helper()
	if err := json.Unmarshal([]byte(f.must(t, 200, "GET", "/v1/routes", "")), &table); err != nil {
		t.Fatal(err)
	}
	return table
}

func body(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReplaceRoutes_EditedTable_KeepsIDsAndIsAudited(t *testing.T) {
	f := newTableFixture(t)
	table := f.routes(t)
	before := len(storetest.Audit(t, f.path))
	r := table.Routes
	r[0].Target, r[2].Seq = "ops#observe", 9
	table.Routes = []msg.Route{r[0], {Seq: 2, Match: " verb=mention  platform=discord ", Target: "ops", Impulse: json.RawMessage(`{ "quiet_ms": 5 }`)}, r[2]}
	var done routeapi.Replaced
	if err := json.Unmarshal([]byte(f.must(t, 200, "PUT", "/v1/routes", body(t, table))), &done); err != nil {
		t.Fatal(err)
	}
	want := []msg.Route{
		{ID: 1, Match: "chat_jid=telegram:-1", Target: "ops#observe"},
		{ID: 4, Seq: 2, Match: "verb=mention platform=discord", Target: "ops", Impulse: json.RawMessage(`{"quiet_ms":5}`)},
		{ID: 3, Seq: 9, Target: "daemon:onbod"},
	}
	if diff := cmp.Diff(want, done.Routes); diff != "" || done.Added != 1 || done.Changed != 2 || done.Deleted != 1 {
		t.Errorf("%d added, %d changed, %d deleted (-want +got):\n%s", done.Added, done.Changed, done.Deleted, diff)
	}
	if now := f.routes(t); now.Digest != done.Digest || now.Digest == table.Digest || !cmp.Equal(now.Routes, want) {
		t.Errorf("stored: %+v", now)
	}
	if a := f.resolve(t, routeapi.Item{ChatJID: "telegram:-1"}); a.Folder != "ops" || a.Action != routeapi.Observe {
		t.Errorf("decided by the old table: %+v", a)
	}
	wantAudit := []string{
		"api: change route: 1: order 0, chat_jid=telegram:-1 to ops#observe; before: order 0, chat_jid=telegram:-1 to acme",
		`api: add route: 4: order 2, verb=mention platform=discord to ops, impulse_config {"quiet_ms":5}`,
		"api: delete route: 2: order 0, platform=slack to acme",
		"api: reorder routes: 1: [3]",
	}
	if diff := cmp.Diff(wantAudit, storetest.Audit(t, f.path)[before:]); diff != "" {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
}

func TestReplaceRoutes_SameTable_ChangesNothing(t *testing.T) {
	f := newTableFixture(t)
	table, before := f.routes(t), storetest.Audit(t, f.path)
	for range 2 {
		f.must(t, 200, "PUT", "/v1/routes", body(t, table))
	}
	if diff := cmp.Diff(before, storetest.Audit(t, f.path)); diff != "" || f.routes(t).Digest != table.Digest {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
}

// Changes that another editor has saved in between are not overwritten.
func TestReplaceRoutes_ChangedSinceSeen_Conflict(t *testing.T) {
	for name, change := range map[string][3]string{
		"added":   {"POST", "/v1/routes", `{"target":"ops"}`},
		"changed": {"PUT", "/v1/routes/2", `{"match":"platform=slack","target":"ops"}`},
		"deleted": {"DELETE", "/v1/routes/2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTableFixture(t)
			seen := f.routes(t)
			f.call(change[0], change[1], change[2])
			stored := f.routes(t)
			f.refused(t, apierr.Conflict, "the routes were changed since you loaded them", "PUT", "/v1/routes", body(t, seen))
			if diff := cmp.Diff(stored, f.routes(t)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			f.must(t, 200, "PUT", "/v1/routes", body(t, stored))
		})
	}
	f := newTableFixture(t)
	seen := f.routes(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"new"}`) // no change of routes
	f.must(t, 200, "PUT", "/v1/routes", body(t, seen))
}

func TestReplaceRoutes_InvalidRows_AllNamedNothingStored(t *testing.T) {
	f := newTableFixture(t)
	table := f.routes(t)
	digest := table.Digest
	table.Routes[0].Match, table.Routes[1].Target = "platfrom=x", "nowhere"
	table.Routes = append(table.Routes, msg.Route{ID: 3, Target: "acme"}, msg.Route{ID: 77, Target: "acme"}, msg.Route{Target: "acme", Impulse: json.RawMessage(`{"x":1}`)})
	for _, problem := range []string{
		`routes[0]: match: unknown key "platfrom"`, "routes[1]: folder nowhere is not registered", "routes[3]: id 3 is there twice",
		"routes[4]: there is no route 77", `routes[5]: impulse_config: "x"`,
	} {
		f.refused(t, apierr.BadRequest, problem, "PUT", "/v1/routes", body(t, table))
	}
	if f.routes(t).Digest != digest {
		t.Error("the table was changed")
	}
	many := routeapi.Table{Digest: digest, Routes: slices.Repeat([]msg.Route{{Target: "x"}}, 30)}
	f.refused(t, apierr.BadRequest, "; 20 more problems", "PUT", "/v1/routes", body(t, many))
	many.Routes = slices.Repeat([]msg.Route{{Target: "acme"}}, routeapi.MaxRoutes+1)
	f.refused(t, apierr.BadRequest, "5001 routes, at most 5000", "PUT", "/v1/routes", body(t, many))
	f.refused(t, apierr.BadRequest, "routes is missing", "PUT", "/v1/routes", `{"digest":"`+digest+`"}`)
}

func TestTestRoutes_Items_DecidedByBothTables(t *testing.T) {
	f := newTableFixture(t)
	request := map[string]any{
		"items": []map[string]any{
			{"id": 7, "chat_jid": "telegram:-1"},
			{"id": 8, "chat_jid": "slack:C1", "verb": "mention"},
			{"id": 9, "chat_jid": "slack:C1"}, // the mention before claims nothing
			{"id": 10, "chat_jid": "telegram:-1", "sticky_group": "acme"},
		},
		"routes": []msg.Route{{ID: 1, Match: "chat_jid=telegram:-1", Target: "ops#observe"}, {Match: "platform=slack verb=mention", Target: "acme"}},
	}
	var got routeapi.Tested
	if err := json.Unmarshal([]byte(f.must(t, 200, "POST", "/v1/routes/test", body(t, request))), &got); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, i := range got.Items {
		lines = append(lines, fmt.Sprintf("%d %s %s by %d, then %s %s by %d", i.ID, i.Present.Action, i.Present.Target, i.Present.RouteID,
			i.Edited.Action, i.Edited.Target, i.Edited.RouteID))
	}
	want := []string{
		"7 trigger acme by 1, then observe ops#observe by 1", "8 trigger acme by 2, then trigger acme by 2",
		"9 trigger acme by 2, then none  by 0", "10 trigger acme by 0, then trigger acme by 0",
	}
	if diff := cmp.Diff(want, lines); diff != "" || len(got.Problems) != 0 {
		t.Errorf("%v (-want +got):\n%s", got.Problems, diff)
	}
	if got := f.routes(t).Routes; len(got) != 3 {
		t.Errorf("the table was changed: %v", got)
	}
}

func TestTestRoutes_Items_BadTableOrItems(t *testing.T) {
	f := newTableFixture(t)
	equal(t, `{"items":[],"problems":[{"row":0,"text":"folder x is not registered"},{"row":2,"text":"target: target is empty"}]}`,
		f.must(t, 200, "POST", "/v1/routes/test", `{"items":[],"routes":[{"target":"x"},{"target":"acme"},{"target":""}]}`))
	item := `{"chat_jid":"telegram:1"},`
	for request, problem := range map[string]string{
		`{"items":[]}`: "routes is missing",
		`{"items":[` + item + `{"topic":"` + strings.Repeat("x", 5000) + `"}],"routes":[]}`:                   "items[1]: topic has 5000 bytes",
		`{"items":[` + strings.TrimSuffix(strings.Repeat(item, routeapi.MaxTested+1), ",") + `],"routes":[]}`: "501 items, at most 500",
	} {
		f.refused(t, apierr.BadRequest, problem, "POST", "/v1/routes/test", request)
	}
	f.must(t, 200, "POST", "/v1/routes/test", `{"items":[`+strings.TrimSuffix(strings.Repeat(item, routeapi.MaxTested), ",")+`],"routes":[]}`)
}

// Each change names who asked for it, in the change's transaction; a refused one leaves no row.
func TestChanges_Audited(t *testing.T) {
	f := newTableFixture(t)
	for _, c := range []struct {
		method, path, body string
		want               []string // the rows of the audit, nil for none
	}{
		{"POST", "/v1/groups", `{"folder":"hr","config":{"rate":3}}`, []string{"add group: hr"}},
		{"POST", "/v1/groups", `{"folder":"hr","config":{"rate":3}}`, nil},
		{"PUT", "/v1/groups/hr", `{"name":"HR","config":{"agent":{"settings":{"KEY":"secret"}},"rate":3}}`, []string{"change group: hr: name, config.agent"}},
		{"PUT", "/v1/groups/hr", `{"name":"HR","config":{"rate":3, "agent":{"settings":{"KEY":"secret"}}}}`, nil},
		{"PUT", "/v1/groups/none", `{}`, nil},
		{"POST", "/v1/routes", `{"match":"room=7","target":"hr"}`, []string{"add route: 4: order 0, room=7 to hr"}},
		{"DELETE", "/v1/groups/hr", "", nil}, // a route leads there
		{"PUT", "/v1/routes/4", `{"match":"room=7","target":"hr"}`, nil},
		{"PUT", "/v1/routes/4", `{"match":"room=8","target":"hr","seq":3}`, []string{"change route: 4: order 3, room=8 to hr; before: order 0, room=7 to hr"}},
		{"PUT", "/v1/routes/9", `{"target":"hr"}`, nil},
		{"DELETE", "/v1/routes/4", "", []string{"delete route: 4: order 3, room=8 to hr"}},
		{"DELETE", "/v1/routes/4", "", nil},
		{"DELETE", "/v1/groups/hr", "", []string{"delete group: hr"}},
		{"POST", "/v1/engagement", `{"jid":"telegram:-1","topic":"","folder":"acme","ttl_seconds":60}`, []string{"open engagement: telegram:-1 with acme for 1m0s"}},
		{"POST", "/v1/engagement", `{"jid":"telegram:-1","topic":"","ttl_seconds":0}`, []string{"end engagement: telegram:-1 with acme"}},
		{"POST", "/v1/engagement", `{"jid":"telegram:-1","topic":"","folder":"acme","ttl_seconds":60,"caller_folder":"acme"}`, nil}, // an agent
		{"POST", "/v1/approvals", `{"code":"A","chat_jid":"telegram:5","folder":"fam","by":"telegram:1"}`, []string{
			"telegram:1: add group: fam", "telegram:1: add route: 5: order 0, chat_jid=telegram:5 to fam"}},
		{"POST", "/v1/approvals", `{"code":"A","chat_jid":"telegram:5","folder":"fam","by":"telegram:1"}`, nil},
	} {
		before := len(storetest.Audit(t, f.path))
		w := httptest.NewRecorder()
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		r.Header.Set("Arizuko-By", "web:op")
		f.ServeHTTP(w, r)
		var want []string
		for _, line := range c.want {
			if !strings.HasPrefix(line, "telegram:1: ") {
				line = "web:op: " + line
			}
			want = append(want, line)
		}
		if got := storetest.Audit(t, f.path)[before:]; !slices.Equal(got, want) {
			t.Errorf("%s %s %s: %d %s\naudit %q, want %q", c.method, c.path, c.body, w.Code, w.Body, got, want)
		}
	}
	if strings.Contains(fmt.Sprint(storetest.Audit(t, f.path)), "secret") {
		t.Error("the audit has a secret")
	}
	if who := httpx.By(httptest.NewRequest("GET", "/", nil)); who != "api" {
		t.Errorf("without a name it is %s", who)
	}
}
