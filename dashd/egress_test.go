package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/egress"
)

func TestEgress_RulesAreTriedAddedAndRemoved(t *testing.T) {
	data := dataFolder(t)
	g := newGated(t)
	b := serve(t, data, "GATED_URL="+g.URL).operator()
	page := b.must(200, "GET", "/egress", "").body
	contains(t, page, "api.anthropic.com → pass", "No requests.", `aria-label="Remove the rule at place 10"`)
	last := func(want string) {
		t.Helper()
		if got := g.calls[len(g.calls)-1]; got != want {
			t.Errorf("gated was asked %s, want %s", got, want)
		}
	}
	rule := url.Values{"host": {" example.com "}, "verb": {"POST"}, "path": {"/x/"}, "group": {"main"}, "what": {"inject"}, "secret": {"gh"}, "seq": {"7"}}
	const draft = `{"id":0,"seq":7,"folder":"main","host":"example.com","method":"POST","path":"/x/","action":"inject","secret":"gh","author":"","created_at":0}`
	g.answer = egress.Comparison{Requests: 40, Changed: 3,
		Examples: []egress.Example{{Was: "ask", Would: "inject gh", At: time.Now().UnixMilli(), Folder: "main", Request: "POST example.com/x/<b>"}}}
	contains(t, b.must(200, "GET", "/egress?do=test&"+rule.Encode(), "").body, "<strong>3 of 40</strong>", "POST example.com/x/&lt;b&gt;", `value="/x/"`, `name="seq" inputmode="numeric" maxlength="10" value="7"`, `<option value="inject" selected>`)
	last("api POST /v1/egress/test " + draft)
	contains(t, b.submit("/egress/rules", rule).body, "The rule was added: main: POST example.com/x/ → inject gh.")
	last("web:operator POST /v1/egress/rules " + draft)
	contains(t, b.submit("/egress/rules/3/remove", nil).body, "Rule 3 was removed.")
	last("web:operator DELETE /v1/egress/rules/3")
	g.answer = apierr.New(apierr.BadRequest, "host \"https://x\": want a name")
	contains(t, b.submit("/egress/rules", rule).body, "want a name", `value="example.com"`, `value="7"`)
	contains(t, b.must(200, "GET", "/egress?do=test&host=x&seq=first", "").body, `role="alert" id="compared"`, "want a name")
	last(`api POST /v1/egress/test {"id":0,"seq":-1,"host":"x","action":"ask","author":"","created_at":0}`)
}

func TestEgress_RequestsAreShown(t *testing.T) {
	data := dataFolder(t)
	b := serve(t, data).operator()
	turn := storeTurns(t, data, "done")[0]
	shell(t, data, `INSERT INTO registered_groups (folder, name, created_at) VALUES ('acme', '', 0)`)
	put := func(n int, folder, host, state string, age time.Duration) {
		t.Helper()
		for i := range n {
			shell(t, data, `INSERT INTO egress_receipts (at, run_id, turn_id, folder, method, host, port, path, state, status, reason, bytes_out, ended_at) VALUES (?, 1, ?, ?, 'POST', ?, 443, ?, ?, ?, '<b>', 412, 9)`,
				time.Now().Add(-age).UnixMilli(), turn, folder, host, fmt.Sprint("/", i), state, map[string]int{"sent": 201}[state])
		}
	}
	put(1, "acme", "old.test", "sent", 40*24*time.Hour)
	put(60, "acme", "a.test", "sent", time.Hour)
	put(2, "main", "b.test", "refused", 0)
	count := func(path string) int {
		t.Helper()
		return strings.Count(b.must(200, "GET", path, "").body, "<p><bdi>POST ")
	}
	for path, want := range map[string]int{
		"/egress": 50, "/egress?before=13": 11, "/egress?of=main": 2, "/egress?to=b.test&state=refused": 2, "/egress?to=b.test&state=sent": 0, "/egress?to=old.test": 0,
		"/groups/acme": 10, fmt.Sprintf("/turns/%d", turn): 50,
	} {
		if got := count(path); got != want {
			t.Errorf("%s shows %d requests, want %d", path, got, want)
		}
	}
	contains(t, b.must(200, "GET", "/egress", "").body, "POST a.test/59 (412 bytes) → 201", "POST b.test/0 (412 bytes) → refused: &lt;b&gt;", `"/egress?before=14#requests"`, fmt.Sprintf(`<a href="/turns/%d">`, turn))
}
