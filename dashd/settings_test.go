package main

import (
	"net/url"
	"strings"
	"testing"

	"arizuko/pkg/apierr"
)

// settingsForm returns the fields of a group's form as its page has them, with changes.
func settingsForm(t *testing.T, page string, changes map[string]string) url.Values {
	t.Helper()
	_, version, ok := strings.Cut(page, `name="version" value="`)
	if !ok {
		t.Fatalf("no form: %s", page)
	}
	version, _, _ = strings.Cut(version, `"`)
	form := url.Values{"do": {"settings"}, "version": {version}, "name": {"Main"}, "rate": {""}, "tool_input": {""}, "roles.ask": {"telegram:42, slack:U1"},
		"agent.settings": {`{"A":"b"}`}, "agent.command": {"exec <agent>\r\n--now"}, "timeouts.idle": {""}, "budget.day_usd": {"20"}}
	for name, value := range changes {
		form.Set(name, value)
	}
	return form
}

func TestGroup_Settings_AreAForm(t *testing.T) {
	data := dataFolder(t)
	const config = `{"access":["telegram:42","slack:U1"],"budget":{"day_usd":20},"agent":{"command":"exec <agent>\n--now","settings":{"A":"b"}},"hooks":{"ci":{"id":"k3q5v7x2m4n6p8r1","kind":"github"}}}`
	shell(t, data, `UPDATE registered_groups SET config = ? WHERE folder = 'main'`, config)
	d := newFake(t, "routd")
	b := serve(t, data, "ROUTD_URL="+d.URL).operator()
	page := b.must(200, "GET", "/groups/main", "").body
	contains(t, page, `name="roles.ask" value="telegram:42, slack:U1"`, `name="budget.day_usd" value="20"`, `<option value="shared">shared</option>`, "exec &lt;agent&gt;\n--now</textarea>",
		`id="hint-steer">messages that come while the agent works: fold (default: it gets them at once, if it can) or queue</span></p>`)
	put := `web:operator PUT /v1/groups/main {"folder":"main","name":"Main","created_at":0,"config":`
	const hooks = `,"hooks":{"ci":{"id":"k3q5v7x2m4n6p8r1","kind":"github"}}`
	const agent = `"agent":{"command":"exec \u003cagent\u003e\n--now","settings":{"A":"b"}}`
	const access = `"access":["telegram:42","slack:U1"],`
	for _, tt := range []struct {
		changes      map[string]string
		want, notice string
	}{
		{nil, `{` + access + agent + `,"budget":{"day_usd":20}` + hooks + `}}`, "Saved. The change"},
		{map[string]string{"rate": "5", "budget.day_usd": "", "tool_input": "true"}, `{` + access + agent + `,"budget":{}` + hooks + `,"rate":5,"tool_input":true}}`, "rate: default → 5; tool_input: default → true; budget.day_usd: 20 → default"},
		{map[string]string{"roles.ask": "everyone", "timeouts.idle": "5m"}, `{` + agent + `,"budget":{"day_usd":20}` + hooks + `,"roles":{"ask":"everyone"},"timeouts":{"idle":"5m"}}}`, "roles.ask: telegram:42, slack:U1 → everyone"},
		{map[string]string{"agent.settings": `{"C":"d"}`}, `{` + access + strings.Replace(agent, `"A":"b"`, `"C":"d"`, 1) + `,"budget":{"day_usd":20}` + hooks + `}}`, "agent.settings"},
	} {
		d.calls = nil
		contains(t, b.submit("/groups/main", settingsForm(t, page, tt.changes)).body, tt.notice)
		if len(d.calls) != 1 || d.calls[0] != put+tt.want {
			t.Errorf("%v: routd was asked\n%s, want\n%s", tt.changes, d.calls, put+tt.want)
		}
	}
	d.calls = nil
	wrong := map[string]string{"rate": "often <b>", "timeouts.idle": "-5m", "budget.day_usd": "0", "agent.settings": "[]", "roles.ask": "Ada"}
	a := b.form("/groups/main", settingsForm(t, page, wrong))
	contains(t, a.body, "Nothing was saved: agent.settings: must be a JSON object; rate: must be a number; ", `value="often &lt;b&gt;"`, `>must be a number</strong>`, `>must be a JSON object</strong>`, `value="-5m"`, `<details id="set-budget" class="fold" open>`)
	if a.status != 400 || strings.Count(a.body, `aria-invalid="true"`) != len(wrong) {
		t.Errorf("%d, %d fields are marked, want %d", a.status, strings.Count(a.body, `aria-invalid="true"`), len(wrong))
	}
	stale := settingsForm(t, page, map[string]string{"rate": "7"})
	stale.Set("version", "other")
	if a := b.form("/groups/main", stale); a.status != 409 || !strings.Contains(a.body, "changed in the meantime") || !strings.Contains(a.body, `name="rate" value="7"`) {
		t.Errorf("a stale form: %d", a.status)
	}
	if len(d.calls) != 0 {
		t.Errorf("routd was asked %s", d.calls)
	}
	d.refuse(apierr.BadRequest, "agent.name: no <b>")
	if a := b.form("/groups/main", settingsForm(t, page, map[string]string{"rate": "7"})); a.status != 400 || !strings.Contains(a.body, "agent.name: no &lt;b&gt;") || !strings.Contains(a.body, `value="7"`) {
		t.Errorf("refused by routd: %d", a.status)
	}
}
