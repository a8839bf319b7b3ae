package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/apierr"
	"arizuko/pkg/routeapi"
)

const (
	hookID  = "k3q5v7x2m4n6p8r1"
	hookJID = "hook:main." + hookID
	hookURL = "/hooks/main." + hookID
)

// storeHook gives the group main a hook ci, with further settings in JSON.
func storeHook(t *testing.T, data, settings string) {
	t.Helper()
	shell(t, data, `UPDATE registered_groups SET config = ? WHERE folder = 'main'`, fmt.Sprintf(`{"hooks":{"ci":{"id":%q,"kind":"github"%s}}}`, hookID, settings))
}

// storeDelivery stores a message that came by the hook.
func storeDelivery(t *testing.T, data, text string, disposition, reason any, why string) (id int64) {
	t.Helper()
	return shell(t, data, `INSERT INTO messages (chat_jid, direction, sender, sender_name, content, timestamp, received_at, source, disposition, reason, error, decided_at, decision_seq, routed_to)
		VALUES (?1, 'in', ?1, 'ci', ?2, 5, 5, 'dashd', ?3, ?4, ?5, iif(?3 IS NULL, NULL, 5), iif(?3 IS NULL, NULL, 1000 + (SELECT count(*) FROM messages)), iif(?3 = 'routed', 'main', NULL))`,
		hookJID, text, disposition, reason, why)
}

func TestHooks_Add_SecretIsShownOnceAndKeptNowhere(t *testing.T) {
	data := dataFolder(t)
	shell(t, data, `INSERT INTO routes (match, target) VALUES ('chat_jid=slack:C0ABC', 'main'), ('verb=mention', 'main')`)
	d := newFake(t, "routd")
	s := serve(t, data, "ROUTD_URL="+d.URL)
	b := s.operator()
	contains(t, b.must(200, "GET", "/groups/main", "").body, "None yet. Services such as GitHub", `<option value="slack:C0ABC">`, `<option>github</option>`)
	form := url.Values{"folder": {"main"}, "hook": {" ci "}, "kind": {"github"}, "to": {"slack:C0ABC"}, "events": {"issues.opened, check_*"}}
	const made = "MADE-BY-ROUTD-0001"
	d.answer = routeapi.HookAdded{ID: "main." + hookID, URL: "https://bot.example/hook/main." + hookID, Secret: made}
	storeHook(t, data, "")
	a := b.form("/hooks", form)
	if a.status != 303 || strings.Contains(a.Get("Location"), made) || !strings.HasPrefix(a.Get("Location"), hookURL+"?done=") {
		t.Errorf("%d to %q", a.status, a.Get("Location"))
	}
	contains(t, b.must(200, "GET", a.Get("Location"), "").body, "The webhook ci was added", "\nhttps://bot.example/hook/main."+hookID+"\n"+made+"</p>")
	want := `web:operator POST /v1/hooks {"folder":"main","name":"ci","hook":{"id":"","kind":"github","to":"slack:C0ABC","events":["issues.opened","check_*"]},"secret":""}`
	if got := d.asked("POST"); len(got) != 1 || got[0] != want {
		t.Errorf("routd was asked %s, want %s", got, want)
	}
	if body := b.must(200, "GET", hookURL, "").body; strings.Contains(body, made) {
		t.Error("the secret is shown again")
	}
	form.Set("kind", "hmac")
	form.Set("header", "X-Signature")
	form.Set("prefix", "sha256=")
	b.form("/hooks", form)
	if got := d.asked("POST"); len(got) != 2 || !strings.Contains(got[1], `"kind":"hmac"`) || !strings.Contains(got[1], `"header":"X-Signature","prefix":"sha256="`) {
		t.Errorf("routd was asked %s", got)
	}
	d.refuse(apierr.BadRequest, "no route leads from <b> to main")
	refused := b.submit("/hooks", form).body
	contains(t, refused, "no route leads from &lt;b&gt; to main", `name="hook" value=" ci "`, `value="slack:C0ABC" list`, `value="issues.opened, check_*"`, `<option selected>hmac</option>`, `name="header" value="X-Signature"`, `name="prefix" value="sha256="`)
	s.stop()
	if strings.Contains(s.log.String(), made) {
		t.Errorf("the secret is in the log: %s", s.log)
	}
	err := filepath.Walk(data, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), made) {
			t.Errorf("the secret is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestHooks_List_ShowsTheHooksOfTheGroup(t *testing.T) {
	data := dataFolder(t)
	shell(t, data, `UPDATE registered_groups SET config = ? WHERE folder = 'main'`, `{"hooks":{"ci":{"id":"k3q5v7x2m4n6p8r1","kind":"github","to":"slack:C0ABC","events":["check_*","<i>"]},"pay":{"id":"fedcba9876543210","kind":"stripe","off":true}}}`)
	page := serve(t, data).operator().must(200, "GET", "/groups/main", "").body
	contains(t, page, `<a href="/hooks/main.k3q5v7x2m4n6p8r1"><bdi>ci</bdi></a>, github, on: <bdi>check_*, &lt;i&gt;</bdi>, answers go to <bdi>slack:C0ABC</bdi>`,
		`<bdi>pay</bdi></a>, stripe, off: all events, answers go to no chat</li>`)
}

func TestHook_Page_SettingsInWords(t *testing.T) {
	data := dataFolder(t)
	storeHook(t, data, `,"to":"slack:C0ABC","thread":"17.5","events":["issues.*"],"branches":["main"],"only":{"check_run.conclusion":"failure"},"ignore":["bot<b>"],"quiet_ms":90000`)
	b := serve(t, data).operator()
	page := b.must(200, "GET", hookURL, "").body
	contains(t, page, "<h1><bdi>Webhook ci of main</bdi></h1>", `<a href="/groups/main"><bdi>main</bdi></a>`, "<dd>on</dd>", b.base+"/hook/main."+hookID, "<dd>github</dd>", "<bdi>slack:C0ABC</bdi></a>, thread <bdi>17.5</bdi>", "one for each issue",
		"<bdi>issues.*</bdi>", "<bdi>main</bdi>", "check_run.conclusion = failure", "bot&lt;b&gt;", "90 s of silence", "<option>pull_request</option>", "No deliveries yet", "None. Deliveries with a wrong signature",
		`value="off">Turn off`)
	storeHook(t, data, `,"off":true`)
	page = b.must(200, "GET", hookURL, "").body
	contains(t, page, "off: its deliveries are refused", "no chat: only the dashboard shows them", `value="on">Turn on`)
	if strings.Contains(page, "Send a test delivery") {
		t.Error("a hook that is off can be tested")
	}
	b.must(404, "GET", "/hooks/main.none", "")
	b.must(404, "GET", "/hooks/none."+hookID, "")
	b.must(404, "GET", "/hooks/x", "")
}

func TestHook_Deliveries_AreExplainedAndDecidedAgain(t *testing.T) {
	data := dataFolder(t)
	storeHook(t, data, "")
	turn := storeTurns(t, data, "done")[0]
	routed := storeDelivery(t, data, "issue #7 opened\n<b>red</b>", "routed", "address", "")
	shell(t, data, `UPDATE messages SET turn_id = ? WHERE id = ?`, turn, routed)
	observed := storeDelivery(t, data, "push to dev", "observed", "hook_filter", "branch <i>dev</i>")
	waiting := storeDelivery(t, data, "check failed", nil, nil, "")
	copied := storeDelivery(t, data, "a copy", "dropped", "no_route", "")
	shell(t, data, `UPDATE messages SET source = 'replay', derived_from = ? WHERE id = ?`, observed, copied)
	shell(t, data, `INSERT INTO messages (chat_jid, direction, sender, content, timestamp, received_at, source, out_state) VALUES (?, 'out', 'agent:main', 'an answer', 5, 5, 'agent', 'sent')`, hookJID)
	shell(t, data, `INSERT INTO hook_refusals (chat_jid, at, reason) VALUES (?, 5, 'the signature <i>'), ('hook:main.fedcba9876543210', 5, 'of another')`, hookJID)
	g := newFake(t, "gated")
	b := serve(t, data, "GATED_URL="+g.URL).operator()
	page := b.must(200, "GET", hookURL, "").body
	contains(t, page, "issue #7 opened &lt;b&gt;red&lt;/b&gt;", fmt.Sprintf(`signature accepted · <a href="/messages/%d">message %[1]d</a> · <a href="/turns/%d">`, routed, turn), "Started a turn: the chat&#39;s own address names the group",
		"Started no turn: the settings of the hook leave such deliveries", "(<bdi>branch &lt;i&gt;dev&lt;/i&gt;</bdi>)", "Not decided yet", fmt.Sprintf(`a copy of <a href="/messages/%d">`, observed), "dropped: ",
		fmt.Sprintf(`<form method="post" action="/messages/%d/replay" class="buttons"><button class="quiet" aria-label="Hand it to the agent: message %[1]d">`, observed),
		fmt.Sprintf(`aria-label="Decide again: message %d"`, routed), "the signature &lt;i&gt;")
	for _, none := range []string{"an answer", "of another", fmt.Sprintf(`action="/messages/%d/replay"`, waiting)} {
		if strings.Contains(page, none) {
			t.Errorf("the page has %q", none)
		}
	}
	g.answer = map[string]any{"id": copied}
	contains(t, b.submit(fmt.Sprintf("/messages/%d/replay", observed), nil).body, fmt.Sprintf("This is the copy of message %d.", observed))
	contains(t, b.must(200, "GET", "/messages?chat="+hookJID, "").body, "push to dev")
}

func TestHook_Deliveries_ArePaged(t *testing.T) {
	data := dataFolder(t)
	storeHook(t, data, "")
	for i := range 60 {
		storeDelivery(t, data, fmt.Sprintf("delivery %d.", i), "observed", "hook_filter", "")
	}
	b := serve(t, data).operator()
	first := b.must(200, "GET", hookURL, "").body
	_, older, _ := strings.Cut(first, `<p class="more"><a href="`)
	older, _, _ = strings.Cut(older, `"`)
	second := b.must(200, "GET", older, "").body
	if n, m := strings.Count(first, "signature accepted"), strings.Count(second, "signature accepted"); n != 50 || m != 10 || strings.Contains(second, "Older deliveries") {
		t.Errorf("%d and %d deliveries", n, m)
	}
	contains(t, second, "delivery 0.", "delivery 9.")
}

func TestHook_Changes_AreMadeByRoutd(t *testing.T) {
	data := dataFolder(t)
	storeHook(t, data, "")
	d := newFake(t, "routd")
	s := serve(t, data, "ROUTD_URL="+d.URL)
	b := s.operator()
	change := func(do string, answer any, wantCall, wantShown string) {
		t.Helper()
		d.answer, d.calls = answer, nil
		contains(t, b.submit(hookURL, url.Values{"do": {do}, "event": {"push"}}).body, wantShown)
		if len(d.calls) != 1 || d.calls[0] != "web:operator "+wantCall {
			t.Errorf("routd was asked %s, want %s", d.calls, wantCall)
		}
	}
	change("test", routeapi.HookTested{Event: "push", State: "observed", ID: 12}, `POST /v1/hooks/test {"id":"main.k3q5v7x2m4n6p8r1","secret":"","overlap_seconds":0,"event":"push"}`,
		"The test delivery push was accepted: observed as message 12.")
	change("test", apierr.New(apierr.Conflict, "dashd refused it with 401: the signature <b>"), `POST /v1/hooks/test {"id":"main.k3q5v7x2m4n6p8r1","secret":"","overlap_seconds":0,"event":"push"}`,
		"dashd refused it with 401: the signature &lt;b&gt;")
	change("secret", routeapi.HookAdded{ID: "main." + hookID, Secret: "ROTATED-0002"}, `POST /v1/hooks/secret {"id":"main.k3q5v7x2m4n6p8r1","secret":"","overlap_seconds":86400,"event":""}`,
		"for 24 hours more.\nROTATED-0002</p>")
	change("off", map[string]any{}, `PATCH /v1/groups/main {"config":{"hooks":{"ci":{"off":true}}}}`, "The webhook is off.")
	change("on", map[string]any{}, `PATCH /v1/groups/main {"config":{"hooks":{"ci":{"off":null}}}}`, "The webhook is on.")
	change("on", apierr.New(apierr.BadRequest, "hooks.ci: no <b>"), `PATCH /v1/groups/main {"config":{"hooks":{"ci":{"off":null}}}}`, "hooks.ci: no &lt;b&gt;")
	change("delete", apierr.New(apierr.Conflict, "not <b>"), `DELETE /v1/hooks/main.k3q5v7x2m4n6p8r1`, "<h1><bdi>Webhook ci of main")
	change("delete", map[string]any{}, `DELETE /v1/hooks/main.k3q5v7x2m4n6p8r1`, "The webhook ci was removed.")
	contains(t, b.submit(hookURL, url.Values{"do": {"x"}}).body, "The form asks for nothing")
	contains(t, b.submit("/hooks/main.none", url.Values{"do": {"test"}}).body, "There is no webhook")
	if s.stop(); strings.Contains(s.log.String(), "ROTATED-0002") {
		t.Errorf("the secret is in the log: %s", s.log)
	}
}

func TestHook_Chat_IsNamed(t *testing.T) {
	data := dataFolder(t)
	shell(t, data, `INSERT INTO chats (jid, platform, kind, title, last_seen_at) VALUES (?, 'hook', 'internal', 'hook ci of main', 5)`, hookJID)
	contains(t, serve(t, data).operator().must(200, "GET", "/chats", "").body, "<bdi>hook ci of main</bdi>", "<td>webhook</td>")
}
