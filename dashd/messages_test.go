package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/apierr"
)

// newReplays is a gated that copies messages. It refuses message 1 without again=true.
func newReplays(t *testing.T) *fake {
	g := newFake(t, "gated")
	g.answer = map[string]int64{"id": 3}
	g.answers = map[string]any{
		"/v1/messages/1/replay": apierr.New(apierr.Conflict, "message 1 was replayed already, as message 3: again=true replays it once more"),
		"/v1/messages/replay":   map[string]any{"messages": []map[string]any{{"id": 1, "skipped": "message 1 was replayed already"}, {"id": 2, "copy": 4}}},
	}
	return g
}

// lostRows stores two answers that failed for good, the first with a copy, a message that no route took, and a parked one.
func lostRows(t *testing.T, data string) (first, second int64) {
	t.Helper()
	shell(t, data, `INSERT INTO chats (jid, platform, kind, title) VALUES ('telegram:-7', 'telegram', 'group', 'Ops <b>')`)
	out := `INSERT INTO messages (chat_jid, direction, sender, content, timestamp, received_at, source, out_state, derived_from) VALUES ('telegram:-7', 'out', 'agent:main', ?, 5, 5, 'agent', ?, ?)`
	first, second = shell(t, data, out, "the <i>first</i> answer", "failed", nil), shell(t, data, out, "the second answer has "+secret, "failed", nil)
	for _, id := range []int64{first, second} {
		shell(t, data, `INSERT INTO deliveries (message_id, part, state, attempts, error_class, error, updated_at) VALUES (?, 0, 'failed', 1, 'permanent', 'chat <x> not found', 9)`, id)
	}
	shell(t, data, out, "the <i>first</i> answer", "sent", first)
	in := `INSERT INTO messages (chat_jid, direction, sender, sender_name, content, timestamp, received_at, source, disposition, reason, decided_at, decision_seq) VALUES ('telegram:-7', 'in', 'telegram:42', 'Ada', ?, 6, 6, 'teled', ?, ?, 7, ?)`
	shell(t, data, in, "hello naïve world", "dropped", "no_route", 1)
	shell(t, data, in, "let me in", "onboarding", "awaiting_approval", 2)
	return first, second
}

func contains(t *testing.T, page string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(page, w) {
			t.Errorf("the page does not have %q:\n%s", w, page)
		}
	}
}

func TestMessages_FiltersAndSearch(t *testing.T) {
	data := dataFolder(t)
	b := serve(t, data).operator()
	contains(t, b.must(200, "GET", "/messages", "").body, "No messages yet.")
	contains(t, b.must(200, "GET", "/lost", "").body, "Nothing is lost")
	lostRows(t, data)
	page := b.must(200, "GET", "/messages", "").body
	contains(t, page, "the &lt;i&gt;first&lt;/i&gt; answer", "Ops &lt;b&gt;", "dropped, no_route", `href="/messages/1"`)
	if strings.Contains(page, secret) {
		t.Error("a secret is shown")
	}
	contains(t, b.must(200, "GET", "/messages?chat=telegram:-7", "").body, `href="/turns?chat=telegram%3a-7"`, `href="/access?chat=telegram%3a-7"`)
	for query, want := range map[string]int{
		"direction=out": 3, "chat=telegram:-7": 5, "chat=telegram:-8": 0, "sender=telegram:42": 2, "disposition=dropped&reason=no_route": 1, "state=failed": 2,
		"since=1970-01-01T00:00": 5, "since=2026-01-01T00:00": 0, "until=1970-01-01T00:01": 5, "group=main": 0, "disposition=odd": 0,
	} {
		if got := strings.Count(b.must(200, "GET", "/messages?"+query, "").body, "Why? Message"); got != want {
			t.Errorf("%s: %d messages, want %d", query, got, want)
		}
	}
	for deadline := time.Now().Add(timeout); ; { // the index follows
		page := b.must(200, "GET", "/messages?text=NAIVE+wor*", "").body
		if strings.Contains(page, "hello naïve <mark>world</mark>") && !strings.Contains(page, "first") && !strings.Contains(page, "is behind") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(page)
		}
	}
	for query, words := range map[string]string{
		"text=%22unclosed+AND+(": "No message matches", "text=***": "Write a word to search for", "since=yesterday": "Write the time as", "before=x": "This address is not valid",
		"text=" + url.QueryEscape(`") OR "`): "No message matches", "direction=%3Cscript%3E": "&lt;script&gt;",
	} {
		contains(t, b.must(200, "GET", "/messages?"+query, "").body, words)
	}
}

func TestMessages_Pages_HaveEachMessageOnce(t *testing.T) {
	data := dataFolder(t)
	shell(t, data, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120)
		INSERT INTO messages (chat_jid, direction, content, timestamp, received_at) SELECT 'telegram:-7', 'in', 'x', i, i FROM n`)
	b := serve(t, data).operator()
	var ids []string
	for path := "/messages?chat=telegram%3A-7"; path != ""; {
		page := b.must(200, "GET", path, "").body
		for _, part := range strings.Split(page, `<a href="/messages/`)[1:] {
			ids = append(ids, part[:strings.Index(part, `"`)])
		}
		_, rest, found := strings.Cut(page, `<p class="more"><a href="/messages?before=`)
		if path = ""; found {
			path = "/messages?before=" + strings.ReplaceAll(rest[:strings.Index(rest, `"`)], "&amp;", "&")
		}
	}
	if len(ids) != 120 || ids[0] != "120" || ids[119] != "1" || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 120 {
		t.Errorf("%d messages: %v", len(ids), ids)
	}
}

func TestWhy_Page_ShowsStepsAndReplays(t *testing.T) {
	data := dataFolder(t)
	first, second := lostRows(t, data)
	g := newReplays(t)
	b := serve(t, data, "GATED_URL="+g.URL).operator()
	page := b.must(200, "GET", fmt.Sprintf("/messages/%d", first), "").body
	contains(t, page, "message 1 part 0: failed", "permanent error: chat &lt;x&gt; not found", "was not delivered and is not tried again", "the copy is <a href=\"/messages/3\">", `name="again" value="true"`)
	contains(t, b.must(200, "GET", "/messages/4", "").body, `title="no_route"`, "Decide a copy", ":00.006", "no route takes it", `<a class="button" href="/routes/edit?chat=`)
	contains(t, b.must(200, "GET", "/messages/5", "").body, "its chat has no group yet", `href="/approvals"`)
	if page := b.must(200, "GET", fmt.Sprintf("/messages/%d", second), "").body; strings.Contains(page, secret) || strings.Contains(page, `name="again"`) {
		t.Errorf("a secret, or a second confirmation:\n%s", page)
	}
	contains(t, b.must(404, "GET", "/messages/99", "").body, "There is no message 99")
	contains(t, b.must(400, "GET", "/messages/x", "").body, "needs the number of a message")

	contains(t, b.submit("/messages/1/replay", url.Values{}).body, "message 1 was replayed already, as message 3: confirm below")
	contains(t, b.submit("/messages/1/replay", url.Values{"again": {"true"}, "sure": {"yes"}}).body, "This is the copy of message 1.")
	want := []string{"web:operator POST /v1/messages/1/replay", "web:operator POST /v1/messages/1/replay?again=true"}
	if !slices.Equal(g.calls, want) {
		t.Errorf("gated was asked %q", g.calls)
	}
}

func TestLost_ListsByReason_AndReplaysAll(t *testing.T) {
	data := dataFolder(t)
	first, second := lostRows(t, data)
	g := newReplays(t)
	b := serve(t, data, "GATED_URL="+g.URL).operator()
	contains(t, b.must(200, "GET", "/lost", "").body, "/lost?reason=failed.permanent", "/lost?reason=dropped.no_route", "/lost?reason=parked", `<span class="count">2</span>`)
	page := b.must(200, "GET", "/lost?reason=failed.permanent", "").body
	contains(t, page, "the &lt;i&gt;first&lt;/i&gt; answer", `Replayed: <a href="/messages/3">`, `href="/lost/confirm?reason=failed.permanent"`, `aria-label="Send again message 2"`)
	if strings.Contains(page, "Send again message 1") || strings.Contains(page, secret) {
		t.Error("a replayed message has a button, or a secret is shown")
	}
	contains(t, b.must(200, "GET", "/lost?reason=parked", "").body, "let me in")
	contains(t, b.must(200, "GET", "/lost?reason=odd", "").body, "Not answered")
	contains(t, b.must(400, "GET", "/lost?reason=parked&before=x", "").body, "not valid")
	confirm := b.must(200, "GET", "/lost/confirm?reason=failed.permanent", "").body
	contains(t, confirm, "Send again 1 message?", `1 to <span class="platform telegram" title="Telegram">`, "<bdi>Ops &lt;b&gt;</bdi>", fmt.Sprintf(`name="ids" value="%d"`, second))
	a := b.submit("/lost/replay", url.Values{"ids": {fmt.Sprintf("%d %d", first, second)}, "reason": {"failed.permanent"}})
	contains(t, a.body, "Replayed: 1. Left out: 1, such as: message 1 was replayed already.")
	if want := []string{fmt.Sprintf(`web:operator POST /v1/messages/replay {"ids":[%d,%d]}`, first, second)}; !slices.Equal(g.calls, want) {
		t.Errorf("gated was asked %q", g.calls)
	}
	for _, ids := range []string{"", "x", "1 -2", strings.Repeat("1 ", 201)} {
		a := b.submit("/lost/replay", url.Values{"ids": {ids}, "reason": {"failed.permanent"}})
		if !strings.Contains(a.body, "start again") && !strings.Contains(a.body, "No message was chosen") || len(g.calls) != 1 {
			t.Errorf("%.20q: %s", ids, a.body)
		}
	}
}
