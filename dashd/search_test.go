package main

import (
	"strings"
	"testing"
	"time"
)

func TestSearch_Everything_IsFoundByWordsAndNumber(t *testing.T) {
	data := dataFolder(t)
	ids := storeTurns(t, data, "failed")
	shell(t, data, `INSERT INTO registered_groups (folder, name, created_at) VALUES ('acme/ops', 'Operations <b>', 5)`)
	b := serve(t, data).operator()
	find := func(q string) string { t.Helper(); return b.must(200, "GET", "/search?q="+q, "").body }
	contains(t, find(""), "Finds groups, chats, senders", `<form method="get" action="/search"`)
	contains(t, find("nosuchword"), "Nothing has these words.")
	contains(t, find("OPERAT"), `<a href="/groups/acme/ops"><span class="platform other" title="Group">`, "<mark>Operations</mark> &lt;b&gt;")
	contains(t, find("ops"), `<mark>Ops</mark> &lt;b&gt;</a>`, `href="/chats/telegram:-7"`, `title="Telegram"`)
	contains(t, find("ada"), `<a href="/senders/telegram:42"><span class="platform telegram"`, "</span><mark>Ada</mark></a>")
	contains(t, find("1"), `<a href="/turns/1">`, "</span>Turn <mark>1</mark></a>", `<a href="/messages/1">`, "</span>Message <mark>1</mark></a>")
	if page := find("99999999999999999999"); strings.Contains(page, "By number") || ids[0] != 1 {
		t.Errorf("an id that is too large: %s", page)
	}
	for deadline := time.Now().Add(timeout); ; { // the index follows
		page := find("red")
		if strings.Contains(page, "is it &lt;i&gt;<mark>red</mark>&lt;/i&gt;?") && strings.Contains(page, `title="Why? Message 1"`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(page)
		}
	}
	contains(t, b.must(200, "GET", "/messages?text=red", "").body, "<mark>red</mark>")
	contains(t, b.must(400, "GET", "/search?q="+strings.Repeat("x", 201), "").body, "too long")
}
