package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

func TestResolve_Items_AnsweredInOrder(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	f.must(t, 201, "POST", "/v1/routes", `{"match":"chat_jid=telegram:-1","target":"acme#observe","impulse_config":{"quiet_ms":5}}`)
	got := f.must(t, 200, "POST", routeapi.Path, `{"items":[
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
}

func TestResolve_NoItems_EmptyList(t *testing.T) {
	f := newFixture(t)
	if got := f.must(t, 200, "POST", routeapi.Path, `{"items":[]}`); !strings.HasPrefix(got, `{"items":[],`) {
		t.Errorf("no items: %s", got)
	}
}

func TestResolve_InvalidBody_BadRequest(t *testing.T) {
	f := newFixture(t)
	many := strings.TrimSuffix(strings.Repeat(`{"id":1,"chat_jid":"a:b"},`, routeapi.MaxItems), ",")
	f.must(t, 200, "POST", routeapi.Path, `{"items":[`+many+`]}`)
	for body, reason := range map[string]string{
		`{"items":[` + many + `,{"id":2,"chat_jid":"a:b"}]}`: "1001 items, at most 1000",
		`{"items":[{"id":"1","chat_jid":"a:b"}]}`:            "id",
		`{"items":[{"id":1,"jid":"a:b"}]}`:                   "jid",
		`{"rows":[]}`:                                        "rows",
		`[]`:                                                 "array",
		``:                                                   "empty",
	} {
		f.must(t, 400, "POST", routeapi.Path, body)
		f.refused(t, apierr.BadRequest, reason, "POST", routeapi.Path, body)
	}
}

// An item claims for the ones after it.
func TestResolve_Mention_ClaimsForLaterItems(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	f.must(t, 201, "POST", "/v1/routes", `{"match":"verb=mention","target":"acme"}`)
	var response routeapi.Response
	body := f.must(t, 200, "POST", routeapi.Path, `{"items":[
		{"id":1,"chat_jid":"telegram:-1","received_at":10},
		{"id":2,"chat_jid":"telegram:-1","verb":"mention","received_at":20},
		{"id":3,"chat_jid":"telegram:-1","received_at":30},
		{"id":4,"chat_jid":"telegram:-2","received_at":30}]}`)
	if err := json.Unmarshal([]byte(body), &response); err != nil {
		t.Fatal(err)
	}
	var got []msg.Reason
	for _, a := range response.Items {
		got = append(got, a.Reason)
	}
	want := []msg.Reason{msg.ReasonNoRoute, msg.ReasonRoute, msg.ReasonEngaged, msg.ReasonNoRoute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

func TestResolve_Answers_CountedAndLogged(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	f.must(t, 201, "POST", "/v1/routes", `{"match":"chat_jid=telegram:-1","target":"acme#observe"}`)
	f.must(t, 200, "POST", routeapi.Path, `{"items":[{"id":5,"chat_jid":"telegram:-1"},{"id":6,"chat_jid":"nowhere"},
		{"id":7,"chat_jid":"telegram:-1","home_only":true}]}`)
	for reason, want := range map[string]float64{"error": 1, "home_only": 1, "route_observe": 1, "route": 0} {
		if got := f.resolved(t, reason); got != want {
			t.Errorf("%v answers with reason %s, want %v", got, reason, want)
		}
	}
	const logged = "level=DEBUG msg=resolved row=5 chat=telegram:-1 action=observe folder=acme reason=route_observe route=1"
	if !strings.Contains(f.log.String(), logged) {
		t.Errorf("no %q in\n%s", logged, f.log.String())
	}
}

func TestTestRoutes_OpenTable_Warns(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"listed","config":{"access":["telegram:42"]}}`)
	f.must(t, 201, "POST", "/v1/routes", `{"match":"sender=telegram:42","target":"acme"}`)
	f.must(t, 201, "POST", "/v1/routes", `{"target":"listed"}`)
	for body, want := range map[string]string{
		`{"chat_jid":"telegram:7"}`:                                                                                 "",
		`{"chat_jid":"telegram:7","routes":[]}`:                                                                     "",
		`{"chat_jid":"telegram:7","routes":[{"id":4,"target":"acme"}]}`:                                             "route 4 (everything) lets any user reach group acme",
		`{"chat_jid":"telegram:7","routes":[{"id":4,"match":"sender=telegram:4*","target":"acme"}]}`:                "route 4 (sender=telegram:4*) lets any user",
		`{"chat_jid":"telegram:7","routes":[{"id":4,"match":"sender=*Lee","target":"builtin:drop"}]}`:               "use sender_name",
		`{"chat_jid":"telegram:7","routes":[{"target":"builtin:drop"},{"match":"platform=slack","target":"acme"}]}`: "",
	} {
		var v struct{ Warnings []string }
		answer := f.must(t, 200, "POST", "/v1/routes/test", body)
		if err := json.Unmarshal([]byte(answer), &v); err != nil || v.Warnings == nil {
			t.Fatalf("%v: %s", err, answer)
		}
		if want == "" && len(v.Warnings) > 0 || want != "" && (len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], want)) {
			t.Errorf("%s: %q, want %q", body, v.Warnings, want)
		}
	}
}

func TestTestRoutes_EditedTable_NothingChanges(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	f.must(t, 201, "POST", "/v1/routes", `{"match":"platform=slack","target":"builtin:drop"}`)
	f.must(t, 201, "POST", "/v1/routes", `{"target":"acme"}`)
	type result struct {
		Answer routeapi.Answer
		Route  *msg.Route
		Trace  []string
	}
	try := func(body string) (v result) {
		t.Helper()
		if err := json.Unmarshal([]byte(f.must(t, 200, "POST", "/v1/routes/test", body)), &v); err != nil {
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
	f.must(t, 400, "POST", "/v1/routes/test", `{"chat_jid":"telegram:7","routes":[{"target":"missing"}]}`)
	f.must(t, 400, "POST", "/v1/routes/test", `{"verb":"mention"}`)
}
