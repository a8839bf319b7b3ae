package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/apierr"
)

// storeChat stores a chat that was seen at a time.
func storeChat(t *testing.T, data, jid, title string, at int) {
	t.Helper()
	platform, _, _ := strings.Cut(jid, ":")
	shell(t, data, `INSERT INTO chats (jid, platform, kind, title, last_seen_at) VALUES (?, ?, 'group', ?, ?)`, jid, platform, title, at)
}

func TestChats_List_FiltersAndPages(t *testing.T) {
	data := dataFolder(t)
	b := serve(t, data).operator()
	contains(t, b.must(200, "GET", "/chats", "").body, "No chats yet")
	for i := range 60 {
		storeChat(t, data, fmt.Sprintf("telegram:-%d", i), fmt.Sprintf("Room <b>%d", i), 100+i)
	}
	storeChat(t, data, "slack+work:C1", "Ops", 5)
	storeTurns(t, data, "queued") // of telegram:-7
	shell(t, data, `INSERT INTO routes (seq, match, target) VALUES (1, 'chat_jid=telegram:-7', 'main')`)
	shell(t, data, `INSERT INTO chat_reply_state (jid, topic, engaged_until, engaged_folder, engaged_at) VALUES ('telegram:-7', '', ?, 'main', 5)`, time.Now().Add(9*time.Minute+30*time.Second).UnixMilli())
	rows := func(path string, want int) string {
		t.Helper()
		page := b.must(200, "GET", path, "").body
		if n := strings.Count(page, `<th scope="row"`); n != want {
			t.Errorf("%s lists %d chats, want %d", path, n, want)
		}
		return page
	}
	page := rows("/chats?text=room", 50)
	if !strings.Contains(page, "<bdi>Room &lt;b&gt;59</bdi>") || strings.Contains(page, "&lt;b&gt;9</bdi>") {
		t.Error("the chats seen last do not come first")
	}
	const next = "/chats?before=110~telegram%3A-10&text=room"
	if !strings.Contains(page, `href="`+strings.ReplaceAll(strings.ReplaceAll(next, "&", "&amp;"), "~", "~")+`"`) {
		t.Errorf("no link to %s", next)
	}
	rows(next, 10)
	rows("/chats?platform=slack%2Bwork", 1)
	rows("/chats?platform=discord", 0)
	page = rows("/chats?text=TELEGRAM:-7", 1)
	contains(t, page, `href="/groups/main"`, "for 9 min", "(1 open)", `href="/chats/telegram:-7"`, `href="/messages?chat=telegram%3a-7"`, `href="/access?chat=telegram%3a-7"`, "group chat")
	for _, path := range []string{"/chats?before=x", "/chats?before=5~", "/chats?text=" + strings.Repeat("x", 300)} {
		b.must(400, "GET", path, "")
	}
}

func TestEngagement_List_EndsWindows(t *testing.T) {
	data := dataFolder(t)
	d := newFake(t, "routd")
	b := serve(t, data, "ROUTD_URL="+d.URL).operator()
	contains(t, b.must(200, "GET", "/engagement", "").body, "No window is open")
	until := time.Now().Add(time.Hour).UnixMilli()
	for i := range 60 {
		shell(t, data, `INSERT INTO chat_reply_state (jid, topic, engaged_until, engaged_folder, engaged_at) VALUES (?, '<i>', ?, 'main', 5)`, fmt.Sprintf("telegram:-%d", i), until+int64(i/2))
	}
	page := b.must(200, "GET", "/engagement", "").body
	if n := strings.Count(page, ">End now<"); n != 50 || !strings.Contains(page, "<bdi>&lt;i&gt;</bdi>") {
		t.Errorf("%d windows: %s", n, page)
	}
	_, next, _ := strings.Cut(page, `<p class="more"><a href="`)
	next, _, _ = strings.Cut(next, `"`)
	if n := strings.Count(b.must(200, "GET", strings.ReplaceAll(next, "&amp;", "&"), "").body, ">End now<"); n != 10 {
		t.Errorf("%s has %d windows", next, n)
	}
	b.must(400, "GET", "/engagement?chat=telegram:-1&until=x", "")
	a := b.submit("/engagement/end", url.Values{"chat": {"telegram:-1"}, "place": {"<i>"}})
	if want := `web:operator POST /v1/engagement {"jid":"telegram:-1","topic":"\u003ci\u003e","folder":"","ttl_seconds":0,"caller_folder":""}`; d.calls[0] != want || !strings.Contains(a.body, "The window in telegram:-1 has ended") {
		t.Errorf("routd was asked %s", d.calls)
	}
	d.refuse(apierr.BadRequest, "jid <b> is not platform:room")
	contains(t, b.submit("/engagement/end", url.Values{}).body, "jid &lt;b&gt; is not platform:room")
}

func TestAccess_Asked_WordsTheAnswer(t *testing.T) {
	data := dataFolder(t)
	storeChat(t, data, "telegram:-1", "Dev <b>", 5)
	d := newFake(t, "routd")
	b := serve(t, data, "ROUTD_URL="+d.URL).operator()
	if page := b.must(200, "GET", "/access?chat=telegram:-1", "").body; !strings.Contains(page, `value="telegram:-1"`) || !strings.Contains(page, "Dev &lt;b&gt;") || len(d.calls) > 0 {
		t.Errorf("the form: %s", page)
	}
	row := func(verb, action, folder string, admitted bool, rate int) map[string]any {
		return map[string]any{"verb": verb, "admitted": admitted, "rate": rate, "answer": map[string]any{"action": action, "folder": folder, "target": folder, "trace": []string{"because of <u>" + verb}}}
	}
	d.answer = map[string]any{
		"chat_jid": "telegram:-1", "kind": "group", "sender": "telegram:42", "pinned": "",
		"home": map[string]any{"folder": "main", "roles": map[string]any{"ask": []string{"telegram:42", "slack:U1"}}, "admitted": true, "reaches": []string{"eng"}},
		"rows": []any{row("message", "drop", "", true, 0), row("mention", "trigger", "main", true, 20), row("reply", "trigger", "main", false, 20)},
	}
	const path = "/access?chat=telegram%3A-1&sender=telegram%3A42&thread=7"
	page := b.must(200, "GET", path, "").body
	contains(t, page, "starts nothing", "starts a turn of main, at most 20 an hour", "is dropped: the role ask of main does not list the sender", "because of &lt;u&gt;mention",
		"operators and telegram:42; slack:U1", "<bdi>eng</bdi>", "cannot pin the chat", "not an operator", `href="/groups/main"`)
	if want := "GET /v1/access?jid=telegram%3A-1&sender=telegram%3A42&sender_name=&thread_id=7"; !strings.HasSuffix(d.calls[0], want) {
		t.Errorf("routd was asked %s", d.calls)
	}
	d.refuse(apierr.BadRequest, "sender <b> is not platform:user")
	contains(t, b.must(200, "GET", path, "").body, "sender &lt;b&gt; is not platform:user", `value="telegram:42"`)
	d.Close()
	contains(t, b.must(200, "GET", path, "").body, "routd does not answer")
}
