package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// ask makes a request with the shared secret.
func (s *service) ask(t testing.TB, method, path, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.Base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	res, err := s.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(content))
}

// must makes a request that has to be answered with status.
func (s *service) must(t testing.TB, status int, method, path, body string) string {
	t.Helper()
	got, answer := s.ask(t, method, path, body)
	if got != status {
		t.Fatalf("%s %s %.200s: %d, want %d\n%s", method, path, body, got, status, answer)
	}
	return answer
}

// equal compares an answer with the JSON wanted, after dropping the fields named.
func equal(t *testing.T, want, got string, drop ...string) {
	t.Helper()
	var w, g map[string]any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	for _, name := range drop {
		if _, ok := g[name]; !ok {
			t.Errorf("no %s in %s", name, got)
		}
		delete(g, name)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGroupsOverHTTP(t *testing.T) {
	s := serve(t)
	if got := s.must(t, 200, "GET", "/v1/groups", ""); got != `{"groups":[]}` {
		t.Errorf("no groups: %s", got)
	}
	eng := `{"folder":"acme/eng","name":"Eng","config":{"observe":"none", "agent":{"model":"m"}}}`
	equal(t, eng, s.must(t, 201, "POST", "/v1/groups", eng), "created_at")
	equal(t, eng, s.must(t, 200, "POST", "/v1/groups", `{"config":{"agent":{"model":"m"},"observe":"none"},"name":"Eng","folder":"acme/eng"}`), "created_at")
	s.must(t, 409, "POST", "/v1/groups", `{"folder":"acme/eng","name":"Other"}`)
	s.must(t, 409, "POST", "/v1/groups", `{"folder":"acme/eng","name":"Eng","config":{"observe":"all","agent":{"model":"m"}}}`)
	equal(t, `{"folder":"acme","name":"","config":{}}`, s.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`), "created_at")
	equal(t, `{"folder":"acme","name":"","config":{}}`, s.must(t, 200, "POST", "/v1/groups", `{"folder":"acme","config":null}`), "created_at")

	for _, path := range []string{"/v1/groups/acme/eng", "/v1/groups/acme%2Feng"} {
		equal(t, eng, s.must(t, 200, "GET", path, ""), "created_at")
	}
	s.must(t, 404, "GET", "/v1/groups/acme/ops", "")
	before := s.must(t, 200, "GET", "/v1/groups/acme/eng", "")
	if got := s.must(t, 200, "PUT", "/v1/groups/acme/eng", before); got != before {
		t.Errorf("PUT of what GET said: %s", got)
	}
	equal(t, `{"folder":"acme/eng","name":"E","config":{}}`, s.must(t, 200, "PUT", "/v1/groups/acme/eng", `{"name":"E"}`), "created_at")
	s.must(t, 404, "PUT", "/v1/groups/acme/ops", `{}`)
	s.must(t, 400, "PUT", "/v1/groups/acme/eng", `{"folder":"acme"}`)

	route := s.must(t, 201, "POST", "/v1/routes", `{"target":"folder:acme/eng#observe"}`)
	for path, reason := range map[string]string{"/v1/groups/acme": "below it", "/v1/groups/acme/eng": "route 1 leads"} {
		if got := s.must(t, 409, "DELETE", path, ""); !strings.Contains(got, reason) {
			t.Errorf("%s: %s", path, got)
		}
		s.must(t, 200, "GET", path, "")
	}
	s.must(t, 204, "DELETE", "/v1/routes/1", "")
	s.must(t, 204, "DELETE", "/v1/groups/acme/eng", "")
	s.must(t, 404, "DELETE", "/v1/groups/acme/eng", "")
	s.must(t, 204, "DELETE", "/v1/groups/acme", "")
	if got := s.must(t, 200, "GET", "/v1/groups", ""); got != `{"groups":[]}` {
		t.Errorf("after all: %s, route was %s", got, route)
	}
}

func TestRoutesOverHTTP(t *testing.T) {
	s := serve(t)
	s.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	if got := s.must(t, 200, "GET", "/v1/routes", ""); got != `{"routes":[]}` {
		t.Errorf("no routes: %s", got)
	}
	first := `{"id":1,"seq":9,"match":"verb=mention platform=slack","target":"acme","impulse_config":{"quiet_ms":5}}`
	equal(t, first, s.must(t, 201, "POST", "/v1/routes",
		`{"seq":9,"match":"  verb=mention \t platform=slack ","target":"acme","impulse_config": { "quiet_ms": 5 } }`))
	second := `{"id":2,"seq":0,"match":"","target":"builtin:drop"}`
	equal(t, second, s.must(t, 201, "POST", "/v1/routes", `{"target":"builtin:drop","impulse_config":null}`))
	equal(t, `{"routes":[`+second+`,`+first+`]}`, s.must(t, 200, "GET", "/v1/routes", ""))

	second = `{"id":2,"seq":20,"match":"","target":"daemon:onbod"}`
	equal(t, second, s.must(t, 200, "PUT", "/v1/routes/2", second))
	equal(t, `{"routes":[`+first+`,`+second+`]}`, s.must(t, 200, "GET", "/v1/routes", ""))
	s.must(t, 404, "PUT", "/v1/routes/9", `{"target":"acme"}`)
	s.must(t, 400, "PUT", "/v1/routes/2", `{"id":1,"target":"acme"}`)
	s.must(t, 400, "PUT", "/v1/routes/two", `{"target":"acme"}`)
	s.must(t, 204, "DELETE", "/v1/routes/2", "")
	s.must(t, 404, "DELETE", "/v1/routes/2", "")
	equal(t, `{"routes":[`+first+`]}`, s.must(t, 200, "GET", "/v1/routes", ""))
}

func TestBadRowsAreRefused(t *testing.T) {
	s := serve(t)
	s.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	s.must(t, 201, "POST", "/v1/routes", `{"target":"acme"}`)
	for body, reason := range map[string]string{
		`{"match":"platfrom=x","target":"acme"}`:                         "unknown key",
		`{"match":"telegram","target":"acme"}`:                           "key=glob",
		`{"match":"room=[","target":"acme"}`:                             "bad glob",
		`{"match":"room=a room=b","target":"acme"}`:                      "twice",
		`{"match":"` + strings.Repeat("x", 1<<16) + `","target":"acme"}`: "key=glob",
		`{"match":"room=a"}`:                                             "target is empty",
		`{"target":"acme#later"}`:                                        "unknown fragment",
		`{"target":"http:acme"}`:                                         "unknown target",
		`{"target":"builtin:pong"}`:                                      "unknown builtin",
		`{"target":"daemon:../x"}`:                                       "daemon",
		`{"target":"../etc"}`:                                            "folder",
		`{"target":"ops"}`:                                               "folder ops is not registered",
		`{"target":"acme","impulse_config":{"quiet":1}}`:                 "quiet",
		`{"target":"acme","impulse_config":{"threshold":-1}}`:            "threshold",
		`{"target":"acme","impulse_config":[1]}`:                         "impulse_config",
		`{"target":"acme","impulse_config":"{}"}`:                        "impulse_config",
		`{"target":"acme","sequence":1}`:                                 "sequence",
		`{"target":"acme","seq":"1"}`:                                    "seq",
		`{"target":"acme"} {}`:                                           "more than one",
		`[]`:                                                             "array",
		``:                                                               "empty",
	} {
		for _, call := range []string{"POST /v1/routes", "PUT /v1/routes/1"} {
			method, path, _ := strings.Cut(call, " ")
			got := s.must(t, 400, method, path, body)
			var answer struct {
				Error struct{ Kind, Message string }
			}
			if err := json.Unmarshal([]byte(got), &answer); err != nil {
				t.Fatal(err)
			}
			if answer.Error.Kind != "bad_request" || !strings.Contains(answer.Error.Message, reason) || len(got) > 1000 {
				t.Errorf("%s %.60s: %.300s, want %q", call, body, got, reason)
			}
		}
	}
	if got := s.must(t, 400, "POST", "/v1/routes", `{"id":5,"target":"acme"}`); !strings.Contains(got, "no id") {
		t.Errorf("with an id: %s", got)
	}
	if got := s.must(t, 200, "GET", "/v1/routes", ""); strings.Count(got, `"id"`) != 1 {
		t.Errorf("a bad row was written: %s", got)
	}
	for _, body := range []string{
		`{}`, `{"folder":"Acme"}`, `{"folder":"a/../b"}`, `{"folder":"a/b/c/d/e/f/g/h/i"}`, `{"folder":"ops","config":[]}`,
		`{"folder":"ops","config":{"observe":"some"}}`, `{"folder":"ops","colour":"red"}`,
	} {
		s.must(t, 400, "POST", "/v1/groups", body)
	}
	s.must(t, 201, "POST", "/v1/groups", `{"folder":"ops"}`)
	for _, call := range [][2]string{{"POST", "/v1/groups"}, {"PUT", "/v1/groups/ops"}} {
		got := s.must(t, 400, call[0], call[1], `{"folder":"ops","config":{"modle":"m","limits":{"pids":"many"},"agent":{"env":["SLACK_BOT_TOKEN"]}}}`)
		for _, problem := range []string{"did you mean agent.model?", "limits.pids: must be a number", "SLACK_BOT_TOKEN is a secret"} {
			if !strings.Contains(got, problem) {
				t.Errorf("%s: no %q in %s", call[0], problem, got)
			}
		}
	}
	equal(t, `{"folder":"ops","name":"","config":{}}`, s.must(t, 200, "GET", "/v1/groups/ops", ""), "created_at")
}

func TestResolveOverHTTP(t *testing.T) {
	s := serve(t)
	s.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	s.must(t, 201, "POST", "/v1/routes", `{"match":"chat_jid=telegram:-1","target":"acme#observe","impulse_config":{"quiet_ms":5}}`)
	got := s.must(t, 200, "POST", routeapi.Path, `{"items":[
		{"id":5,"chat_jid":"telegram:-1"},
		{"id":6,"chat_jid":"nowhere"},
		{"id":4,"chat_jid":"slack:D1","kind":"dm","topic":"#x","thread_id":"1.2","sender":"slack:U1","sender_name":"Ann",
		 "verb":"mention","platform_id":"1.3","sticky_group":"acme","received_at":1700000000000}]}`)
	equal(t, `{"items":[
		{"id":5,"action":"observe","folder":"acme","home":"acme","target":"acme#observe","route_id":1,"engaged":false,
		 "thread_id":"","opens_thread":false,"surface":"telegram-group","ceiling":1500,
		 "impulse":{"threshold":100,"max_hold_ms":300000,"quiet_ms":5,"weights":{"reaction":0,"typing":0}},
		 "reason":"route_observe","trace":["route 1 (chat_jid=telegram:-1) leads to acme#observe"]},
		{"id":6,"error":"chat_jid \"nowhere\" is not platform:room"},
		{"id":4,"action":"trigger","folder":"acme","home":"acme","target":"acme","route_id":0,"engaged":false,
		 "thread_id":"1.2","opens_thread":false,"surface":"slack-pane","ceiling":4000,
		 "impulse":{"threshold":100,"max_hold_ms":300000,"quiet_ms":0,"weights":{"reaction":0,"typing":0}},
		 "reason":"sticky_target","trace":["the chat is pinned to acme"]}]}`, got, "version")
	if got := s.must(t, 200, "POST", routeapi.Path, `{"items":[]}`); !strings.HasPrefix(got, `{"items":[],`) {
		t.Errorf("no items: %s", got)
	}
	many := strings.TrimSuffix(strings.Repeat(`{"id":1,"chat_jid":"a:b"},`, routeapi.MaxItems), ",")
	s.must(t, 200, "POST", routeapi.Path, `{"items":[`+many+`]}`)
	s.must(t, 400, "POST", routeapi.Path, `{"items":[`+many+`,{"id":2,"chat_jid":"a:b"}]}`)
	s.must(t, 400, "POST", routeapi.Path, `{"items":[{"id":"1","chat_jid":"a:b"}]}`)
	if metrics := s.must(t, 200, "GET", "/metrics", ""); !strings.Contains(metrics, `arizuko_routd_resolved_total{reason="route_observe"} 1`) {
		t.Error("answers are not counted")
	}
}

func TestRoutesTest(t *testing.T) {
	s := serve(t)
	s.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	s.must(t, 201, "POST", "/v1/routes", `{"match":"platform=slack","target":"builtin:drop"}`)
	s.must(t, 201, "POST", "/v1/routes", `{"target":"acme"}`)
	type verdict struct {
		Answer routeapi.Answer
		Route  *msg.Route
		Trace  []string
	}
	try := func(body string) (v verdict) {
		t.Helper()
		if err := json.Unmarshal([]byte(s.must(t, 200, "POST", "/v1/routes/test", body)), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := try(`{"chat_jid":"telegram:7"}`)
	want := []string{`route 1: platform=slack does not match "telegram"`, "route 2 (everything) leads to acme"}
	if v.Answer.Folder != "acme" || v.Route == nil || v.Route.ID != 2 || cmp.Diff(want, v.Trace) != "" {
		t.Errorf("table in force: %+v", v)
	}
	v = try(`{"chat_jid":"telegram:7","routes":[{"match":"platform=telegram","target":"builtin:ping"},{"id":2,"target":"acme"}]}`)
	if v.Answer.Reason != msg.ReasonRoute || v.Route.ID != 2 {
		t.Errorf("a new row comes after an old one with its seq: %+v", v)
	}
	if v = try(`{"chat_jid":"telegram:7","routes":[]}`); v.Answer.Reason != msg.ReasonNoRoute || v.Route != nil {
		t.Errorf("empty table: %+v", v)
	}
	if v = try(`{"chat_jid":"telegram:7"}`); v.Answer.Folder != "acme" {
		t.Errorf("a test changed the table: %+v", v)
	}
	s.must(t, 400, "POST", "/v1/routes/test", `{"chat_jid":"telegram:7","routes":[{"target":"missing"}]}`)
	s.must(t, 400, "POST", "/v1/routes/test", `{"verb":"mention"}`)
}

func TestSecretIsAskedFor(t *testing.T) {
	s := serve(t)
	for _, call := range []string{
		"POST /v1/resolve", "GET /v1/routes", "POST /v1/routes", "PUT /v1/routes/1", "DELETE /v1/routes/1",
		"POST /v1/routes/test", "GET /v1/engagement", "POST /v1/engagement",
		"GET /v1/groups", "POST /v1/groups", "GET /v1/groups/a/b", "PUT /v1/groups/a", "DELETE /v1/groups/a",
	} {
		method, path, _ := strings.Cut(call, " ")
		stranger := *s.Client
		stranger.Secret = "guess"
		if err := stranger.Do(t.Context(), method, path, map[string]string{}, nil); apierr.KindOf(err) != apierr.Unauthorized {
			t.Errorf("%s: %v", call, err)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		res, err := s.HTTP.Get(s.Base + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

func TestChangesBySQLAreSeen(t *testing.T) {
	s := serve(t)
	folder := func() string {
		t.Helper()
		var response routeapi.Response
		request := routeapi.Request{Items: []routeapi.Item{{ID: 1, ChatJID: "telegram:7"}}}
		if err := s.Do(t.Context(), "POST", routeapi.Path, request, &response); err != nil {
			t.Fatal(err)
		}
		return response.Items[0].Folder
	}
	s.shell(t, `INSERT INTO routes (seq, match, target) VALUES (1, '', 'acme'), (0, 'platfrom=x', 'builtin:drop')`)
	<-s.gated.C()
	if got := folder(); got != "" {
		t.Errorf("a route to nowhere leads to %s", got)
	}
	ready := s.must(t, 200, "GET", "/readyz", "")
	for _, want := range []string{"ok\n", "route 1 matches nothing: folder acme is not registered", "route 2 matches nothing: match: unknown key"} {
		if !strings.Contains(ready, want) {
			t.Errorf("no %q in /readyz:\n%s", want, ready)
		}
	}
	s.shell(t, `INSERT INTO registered_groups (folder, created_at) VALUES ('acme', 0); DELETE FROM routes WHERE id = 2`)
	<-s.gated.C()
	if got := folder(); got != "acme" {
		t.Errorf("folder %q, want acme", got)
	}
	if got := s.must(t, 200, "GET", "/readyz", ""); got != "ok" {
		t.Errorf("readyz %q", got)
	}
	s.shell(t, `UPDATE routes SET impulse_config = '{"broken'`)
	<-s.gated.C()
	if got := folder(); got != "" {
		t.Errorf("a route with a broken config leads to %s", got)
	}
	if got := s.must(t, 200, "GET", "/v1/routes", ""); !strings.Contains(got, `"impulse_config":"{\"broken"`) {
		t.Errorf("the broken row can't be read: %s", got)
	}
}

func TestGatedIsPokedWhenTheChangeIsInForce(t *testing.T) {
	s := serve(t)
	for i := range 20 {
		s.must(t, 201, "POST", "/v1/groups", fmt.Sprintf(`{"folder":"g%d"}`, i))
		<-s.gated.C()
		got := s.must(t, 200, "POST", routeapi.Path, fmt.Sprintf(`{"items":[{"id":1,"chat_jid":"web:g%d"}]}`, i))
		if !strings.Contains(got, `"action":"trigger"`) {
			t.Fatalf("group %d is not in force: %s", i, got)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	s := serve(b)
	s.must(b, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	fill(b, s.data, 10_000)
	<-s.gated.C() // the group
	<-s.gated.C() // the routes
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			var request routeapi.Request
			for i := range n {
				request.Items = append(request.Items, routeapi.Item{
					ID: int64(i), ChatJID: fmt.Sprintf("telegram:-%d", 9999-i), Sender: "telegram:7", SenderName: "Ann", Verb: "mention",
				})
			}
			body, err := json.Marshal(request)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if got := s.must(b, 200, "POST", routeapi.Path, string(body)); !bytes.Contains([]byte(got), []byte(`"route"`)) {
					b.Fatal(got)
				}
			}
		})
	}
}
