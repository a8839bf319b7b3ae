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
