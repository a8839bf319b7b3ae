package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"arizuko/pkg/apierr"
)

// groupFile writes a file into the folder of a group.
func groupFile(t *testing.T, data, name, text string) string {
	t.Helper()
	path := filepath.Join(data, "groups", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGroups_List_PagesAndAdds(t *testing.T) {
	data := dataFolder(t)
	for i := range 60 {
		shell(t, data, `INSERT INTO registered_groups (folder, name, created_at) VALUES (?, 'G <b>', 0)`, fmt.Sprintf("acme%02d", i))
	}
	shell(t, data, `INSERT INTO routes (seq, match, target) VALUES (1, 'verb=mention', 'acme00')`)
	d := newFake(t, "routd")
	b := serve(t, data, "ROUTD_URL="+d.URL).operator()
	page := b.must(200, "GET", "/groups", "").body
	contains(t, page, `href="/groups/acme00"`, "<bdi>G &lt;b&gt;</bdi>", "mentions of the bot", "1 warning", `href="/groups?after=acme49"`, "the web chat alone")
	if n := strings.Count(b.must(200, "GET", "/groups?after=acme49", "").body, `<th scope="row"`); n != 11 {
		t.Errorf("%d groups on the second page", n)
	}
	contains(t, b.submit("/groups", url.Values{"folder": {"main"}, "name": {"Main"}}).body, "The group main was added")
	if want := `web:operator POST /v1/groups {"folder":"main","name":"Main","created_at":0,"config":{}}`; d.calls[0] != want {
		t.Errorf("routd was asked %s", d.calls)
	}
	d.refuse(apierr.BadRequest, "folder <b> is no name")
	contains(t, b.submit("/groups", url.Values{"folder": {"../x"}, "name": {"N"}}).body, "folder &lt;b&gt; is no name", `value="../x"`)
}

func TestGroup_Config_RefusedStaysTyped(t *testing.T) {
	data := dataFolder(t)
	d := newFake(t, "routd")
	b := serve(t, data, "ROUTD_URL="+d.URL).operator()
	page := b.must(200, "GET", "/groups/main", "").body
	_, version, _ := strings.Cut(page, `name="version" value="`)
	version, _, _ = strings.Cut(version, `"`)
	contains(t, b.submit("/groups/main", url.Values{"version": {version}, "name": {"New"}, "config": {`{"rate": 5}`}}).body, "Saved")
	if want := `web:operator PUT /v1/groups/main {"folder":"main","name":"New","created_at":0,"config":{"rate":5}}`; len(d.calls) != 1 || d.calls[0] != want {
		t.Errorf("routd was asked %s", d.calls)
	}
	refused := func(status int, fields url.Values, want string) {
		t.Helper()
		a := b.form("/groups/main", fields)
		if a.status != status || strings.Count(a.body, want) != 2 || !strings.Contains(a.body, "typed &lt;i&gt;") {
			t.Errorf("%d, want %q: %s", a.status, want, a.body)
		}
	}
	refused(400, url.Values{"version": {version}, "name": {"typed <i>"}, "config": {"{\n\n\"rate\": }"}}, "The config is no JSON: line 3")
	refused(400, url.Values{"version": {version}, "name": {"N"}, "config": {`["typed <i>"]`}}, "The config must be an object")
	refused(409, url.Values{"version": {"other"}, "name": {"typed <i>"}, "config": {"{}"}}, "The group has been changed in the meantime")
	d.refuse(apierr.BadRequest, "config: no setting <b>")
	refused(400, url.Values{"version": {version}, "name": {"N"}, "config": {`{"x": "typed <i>"}`}}, "config: no setting &lt;b&gt;")
	d.refuse(apierr.Conflict, "route 3 leads to group main")
	if a := b.form("/groups/main", url.Values{"do": {"delete"}}); a.status != 409 || !strings.Contains(a.body, "route 3 leads to group main") {
		t.Errorf("%d %s", a.status, a.body)
	}
	b.must(404, "GET", "/groups/none", "")
	if a := b.form("/groups/none", url.Values{"do": {"delete"}}); a.status != 404 {
		t.Errorf("deleting no group: %d", a.status)
	}
}

func TestGroup_Rules_AreShownAndRevoked(t *testing.T) {
	data := dataFolder(t)
	g := newFake(t, "gated")
	b := serve(t, data, "GATED_URL="+g.URL).operator()
	if page := b.must(200, "GET", "/groups/main", "").body; strings.Contains(page, "Always allowed") {
		t.Error("a group without rules has a table of them")
	}
	rule := shell(t, data, `INSERT INTO permission_rules (folder, chat_jid, payload_hash, text_hash, text, author, created_at, used, used_at)
		VALUES ('main', 'telegram:-7', 'h', 't', 'Run <b>Bash</b>?' || char(10) || '</td>', 'telegram:<i>', 5, 3, 6)`)
	contains(t, b.must(200, "GET", "/groups/main", "").body, "Run &lt;b&gt;Bash&lt;/b&gt;?\n&lt;/td&gt;", "telegram:&lt;i&gt;", `data-label="Used">3, last `, fmt.Sprintf(`name="rule" value="%d"`, rule))
	contains(t, b.submit("/groups/main", url.Values{"do": {"revoke"}, "rule": {fmt.Sprint(rule)}}).body, fmt.Sprintf("Rule %d is revoked", rule))
	if want := fmt.Sprintf("web:operator DELETE /v1/permissions/%d", rule); !slices.Equal(g.asked("DELETE"), []string{want}) {
		t.Errorf("gated was asked %q", g.asked("DELETE"))
	}
	g.refuse(apierr.NotFound, "no permission rule 9")
	if a := b.form("/groups/main", url.Values{"do": {"revoke"}, "rule": {"9"}}); a.status != 404 || !strings.Contains(a.body, "no permission rule 9") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestGroup_Agent_IsChosen(t *testing.T) {
	data := dataFolder(t)
	shell(t, data, `UPDATE registered_groups SET config = '{"agent":{"name":"codex","model":"m1"}}' WHERE folder = 'main'`)
	shell(t, data, `INSERT INTO agent_models (folder, agent, models, updated_at) VALUES ('main', 'codex', '[{"id":"m1"},{"id":"m<2>"}]', 1)`)
	d := newFake(t, "routd")
	g := newFake(t, "gated")
	g.answers = map[string]any{"/v1/agents": map[string]any{"agents": []string{"default", "codex", "gemini"}}}
	b := serve(t, data, "ROUTD_URL="+d.URL, "GATED_URL="+g.URL).operator()
	page := b.must(200, "GET", "/groups/main", "").body
	contains(t, page, `<option>default</option><option selected>codex</option><option>gemini</option>`, `name="model" value="m1"`, `<option value="m&lt;2&gt;">`)
	const missing = "The group cannot answer"
	if strings.Contains(page, missing) {
		t.Error("the agent is said to be missing")
	}
	shell(t, data, `UPDATE registered_groups SET config = replace(config, 'codex', 'gone') WHERE folder = 'main'`)
	contains(t, b.must(200, "GET", "/groups/main", "").body, missing, "<option selected>gone</option>")
	shell(t, data, `UPDATE registered_groups SET config = replace(config, 'gone', 'codex') WHERE folder = 'main'`)
	for _, tt := range []struct {
		fields url.Values
		want   string
	}{
		{url.Values{"agent": {"gemini"}, "model": {"m1"}}, `{"model":null,"name":"gemini"}`}, // the model was the other agent's
		{url.Values{"agent": {"codex"}, "model": {"m<2>"}}, `{"model":"m\u003c2\u003e","name":"codex"}`},
		{url.Values{"agent": {"default"}, "model": {"default"}}, `{"model":null,"name":null}`},
		{url.Values{"model": {"big"}}, `{"model":"big"}`},
	} {
		d.calls = nil
		tt.fields.Set("do", "agent")
		contains(t, b.submit("/groups/main", tt.fields).body, "Saved")
		if want := `web:operator PATCH /v1/groups/main {"config":{"agent":` + tt.want + `}}`; len(d.calls) != 1 || d.calls[0] != want {
			t.Errorf("%v: routd was asked %s, want %s", tt.fields, d.calls, want)
		}
	}
	d.refuse(apierr.BadRequest, "agent.name: no <b>")
	if a := b.form("/groups/main", url.Values{"do": {"agent"}, "agent": {"x"}}); a.status != 400 || !strings.Contains(a.body, "agent.name: no &lt;b&gt;") || !strings.Contains(a.body, `selected>codex`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	g.Close()
	contains(t, b.must(200, "GET", "/groups/main", "").body, `<input id="agent-name" name="agent" value="codex"`)
}

func TestGroup_Page_ShowsSessionsRunsAndFiles(t *testing.T) {
	data := dataFolder(t)
	id := storeTurns(t, data, "failed")[0]
	shell(t, data, `INSERT INTO runs (id, folder, topic, chat_jid, runtime, started_at, closed_at, ended_at) VALUES (77, 'main', '', 'telegram:-7', 'bwrap', 6, 8, 9)`)
	shell(t, data, `UPDATE turns SET run_id = 77 WHERE id = ?`, id)
	shell(t, data, `INSERT INTO session_log (run_id, started_at, folder, topic, result, error) VALUES (77, 6, 'main', '', 'error', 'exit <b>')`)
	shell(t, data, `INSERT INTO sessions (group_folder, topic, session_id, updated_at) VALUES ('main', '#a', '0123456789abcdef', 5)`)
	groupFile(t, data, "main/notes/<b>.md", "text")
	for i := range 60 {
		groupFile(t, data, fmt.Sprintf("main/many/f%02d", i), "x")
	}
	if err := os.MkdirAll(filepath.Join(data, "logs", "main"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "logs", "main", "run-77.log"), []byte("the <log>"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := serve(t, data).operator()
	page := b.must(200, "GET", "/groups/main", "").body
	contains(t, page, "<code>01234567…</code>", "bwrap", "exit &lt;b&gt;", `href="/logs?group=main&amp;run=77"`, `href="/groups/main?dir=notes#files"`)
	if strings.Contains(page, "0123456789abcdef") {
		t.Error("a whole session id is shown")
	}
	contains(t, b.must(200, "GET", "/groups/main?dir=notes", "").body, "<bdi>&lt;b&gt;.md</bdi>", "4 B")
	page = b.must(200, "GET", "/groups/main?dir=many", "").body
	if !strings.Contains(page, `href="/groups/main?after=f49&amp;dir=many#files"`) || strings.Contains(page, ">f50<") {
		t.Error(page)
	}
	if a := b.must(200, "GET", "/logs?group=main&run=77", ""); a.body != "the <log>" || a.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("the log: %v %s", a.Header, a.body)
	}
	for path, status := range map[string]int{"/logs?group=main&run=78": 404, "/logs?group=../x&run=77": 400, "/logs?group=main&run=x": 400, "/groups/main?dir=none": 404} {
		b.must(status, "GET", path, "")
	}
}

func TestGroup_Nested_HasItsOwnFolder(t *testing.T) {
	data := dataFolder(t)
	shell(t, data, `INSERT INTO registered_groups (folder, name, created_at) VALUES ('acme/eng', 'Engineering', 0)`)
	groupFile(t, data, "acme+eng/notes/plan.md", "the plan")
	groupFile(t, data, "acme/eng/of-acme.md", "of the group acme")
	b := serve(t, data).operator()
	if page := b.must(200, "GET", "/groups/acme/eng", "").body; !strings.Contains(page, `href="/groups/acme/eng?dir=notes#files"`) || strings.Contains(page, "of-acme") {
		t.Error(page)
	}
	contains(t, b.must(200, "GET", "/groups/acme/eng?dir=notes", "").body, "plan.md")
	if text := b.must(200, "GET", "/files?group=acme/eng&path=notes/plan.md", "").body; text != "the plan" {
		t.Error(text)
	}
	b.must(404, "GET", "/files?group=acme/eng&path=of-acme.md", "")
}

func TestFiles_Hostile_NotFollowed(t *testing.T) {
	data := dataFolder(t)
	regular := groupFile(t, data, "main/a <b>.html", "<script>alert(1)</script>")
	groupFile(t, data, "other/private", "of another group")
	in := filepath.Dir(regular)
	for name, target := range map[string]string{"out": filepath.Join(data, "secret"), "inside": "a <b>.html", "other": "../other", "up": "../../secret"} {
		if err := os.Symlink(target, filepath.Join(in, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(in, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := serve(t, data).operator()
	a := b.must(200, "GET", "/files?group=main&path=a+%3Cb%3E.html", "")
	if a.body != "<script>alert(1)</script>" || a.Get("Content-Type") != "application/octet-stream" || a.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(a.Get("Content-Disposition"), "attachment;") {
		t.Errorf("the file: %v", a.Header)
	}
	for _, path := range []string{"out", "inside", "other/private", "up", "pipe", "../other/private", "/etc/passwd", "a <b>.html/x", "", ".", "x\x00"} {
		if a := b.get("/files?group=main&path=" + url.QueryEscape(path)); a.status != 404 || strings.Contains(a.body, secret) || strings.Contains(a.body, "of another group") {
			t.Errorf("%q: %d %s", path, a.status, a.body)
		}
	}
	for _, group := range []string{"..", "", "main/..", "/"} {
		if a := b.get("/files?path=secret&group=" + url.QueryEscape(group)); a.status != 404 {
			t.Errorf("group %q: %d", group, a.status)
		}
	}
	page := b.must(200, "GET", "/groups/main", "").body
	if strings.Count(page, "link or special file") != 5 || !strings.Contains(page, "<bdi>out</bdi></th>") {
		t.Errorf("links in the list: %s", page)
	}
	b.must(404, "GET", "/groups/main?dir=other", "")
}

func TestSettings_Page_HasNoSecret(t *testing.T) {
	b := serve(t, dataFolder(t), "ARIZUKO_SECRET="+secret, "OPERATORS=telegram:42").operator()
	page := b.must(200, "GET", "/settings", "").body
	contains(t, page, "<code>OPERATORS</code></dt><dd><bdi>telegram:42</bdi>", "<code>ARIZUKO_SECRET</code></dt><dd><bdi>set</bdi>", "have their defaults</summary>", "<code>DASH_PASSWORD</code></dt><dd><bdi>not set</bdi>", "arizuko.db", "Version of dashd")
	if strings.Contains(page, secret) {
		t.Error("the secret is on the page")
	}
}
