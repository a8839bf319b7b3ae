package main

import (
	"net/url"
	"strings"
	"testing"
)

func TestOperators_CodeOfGated_IsShownOnce_AndWhatCameOfItRemoved(t *testing.T) {
	data := dataFolder(t)
	gated := newFake(t, "gated")
	gated.answer = map[string]any{"code": "ABCD-EFGH-2345", "expires_at": 4_102_444_800_000}
	p := serve(t, data, "GATED_URL="+gated.URL)
	b := p.operator()
	const shown = "Write /operator ABCD-EFGH-2345 (on Slack !operator ABCD-EFGH-2345) to the bot in a direct chat"
	contains(t, b.must(200, "GET", "/", "").body, `action="/operators/code"`, "OPERATORS=telegram:123,slack:U0AB")
	contains(t, b.submit("/operators/code", url.Values{"from": {"/"}}).body, "First steps", shown)
	for _, from := range []string{"", "//evil.example", "/access?x"} {
		contains(t, b.submit("/operators/code", url.Values{"from": {from}}).body, "<h1><bdi>Access</bdi></h1>", shown, "No platform user is an operator")
	}
	if page := b.must(200, "GET", "/access", "").body; strings.Contains(page, "ABCD-EFGH") {
		t.Error("the code is shown again")
	}
	shell(t, data, `INSERT INTO cursors (daemon, key, value) VALUES ('gated', 'operator:telegram:7', '{"at":5,"by":"web:operator"}'),
		('gated', 'operator:x:<b>', 'nonsense'), ('gated', 'operator code', '{"hash":"h"}'), ('teled', 'operator:telegram:8', '{}')`)
	contains(t, b.must(200, "GET", "/", "").body, "Operators: <bdi>telegram:7</bdi>, <bdi>x:&lt;b&gt;</bdi>")
	shell(t, data, `INSERT INTO messages (chat_jid, direction, sender, sender_name, content, timestamp, received_at) VALUES ('telegram:7', 'in', 'telegram:7', 'Ada <b>', 'x', 1, 1)`)
	page := b.must(200, "GET", "/access", "").body
	contains(t, page, "<bdi>telegram:7, Ada &lt;b&gt;</bdi></strong> by a code of <bdi>web:operator</bdi>", `value="x:&lt;b&gt;"`)
	if strings.Contains(page, "telegram:8") {
		t.Error("a cursor of another daemon is an operator")
	}
	contains(t, b.submit("/operators/remove", url.Values{"sender": {" telegram:7 "}}).body, "telegram:7 is no longer an operator.")
	made, removed := "web:operator POST /v1/operators/code\n", `web:operator POST /v1/operators/remove {"sender":"telegram:7"}`
	if got := strings.Join(gated.asked("POST"), "\n"); got != strings.Repeat(made, 4)+removed {
		t.Errorf("gated was asked:\n%s", got)
	}
	gated.Close()
	contains(t, b.submit("/operators/code", nil).body, "gated does not answer: start it, then try again.")
}

func TestAccess_Roles_AreShown_AndSavedAsSettings(t *testing.T) {
	data := dataFolder(t)
	shell(t, data, `UPDATE registered_groups SET config = '{"access":["telegram:42","slack:U1"],"roles":{"approve":[{"who":"telegram:7","hosts":["a.example"]}]}}' WHERE folder = 'main'`)
	d := newFake(t, "routd")
	b := serve(t, data, "ROUTD_URL="+d.URL).operator()
	contains(t, b.must(200, "GET", "/access", "").body, "ask, write to the agent: <bdi>operators and telegram:42; slack:U1</bdi>", `href="/groups/main"`,
		"operators; until it is set, everyone may stop", "telegram:7 (a.example)")
	page := b.must(200, "GET", "/groups/main", "").body
	contains(t, page, `value="telegram:42, slack:U1"`, `value="[{&#34;hosts&#34;:[&#34;a.example&#34;],&#34;who&#34;:&#34;telegram:7&#34;}]"`)
	form := settingsForm(t, page, nil)
	form = url.Values{"do": form["do"], "version": form["version"]}
	for typed, want := range map[string]string{
		"": ``, " everyone ": `"approve":"everyone"`, "operators": `"approve":"operators"`, "telegram:1, slack:U2\n slack:U3": `"approve":["telegram:1","slack:U2","slack:U3"]`,
		"platform admins, telegram:1,":     `"approve":["platform admins","telegram:1"]`,
		`[{"who":"a:1","tools":["Bash"]}]`: `"approve":[{"tools":["Bash"],"who":"a:1"}]`,
	} {
		d.calls = nil
		form.Set("roles.approve", typed)
		contains(t, b.submit("/groups/main", form).body, "Saved. roles.approve: ")
		call := `web:operator PUT /v1/groups/main {"folder":"main","name":"","created_at":0,"config":{"access":["telegram:42","slack:U1"],"roles":{` + want + `}}}`
		if len(d.calls) != 1 || d.calls[0] != call {
			t.Errorf("%q: routd was asked %s, want %s", typed, d.calls, call)
		}
	}
	d.calls = nil
	form.Set("roles.approve", "[x")
	if a := b.form("/groups/main", form); a.status != 400 || !strings.Contains(a.body, "is no JSON list") || !strings.Contains(a.body, `value="[x"`) || len(d.calls) != 0 {
		t.Errorf("%d, routd was asked %s", a.status, d.calls)
	}
}
