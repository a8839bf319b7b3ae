package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestReminders_Lists_AndCancels(t *testing.T) {
	data := dataFolder(t)
	g := newGated(t)
	b := serve(t, data, "GATED_URL="+g.URL).operator()
	contains(t, b.must(200, "GET", "/reminders", "").body, "No reminders here")
	put := func(state string, next any, body string) int64 {
		t.Helper()
		return shell(t, data, `INSERT INTO reminders (folder, chat_jid, kind, body, cron, state, next_slot, created_by, created_at, updated_at)
			VALUES ('main', 'telegram:-7', 'prompt', ?, '0 9 * * 1', ?, ?, 'telegram:42', 1, 1)`, body, state, next)
	}
	first := put("active", 9_000_000_000_000, "the <b>plan</b>")
	put("done", nil, "it is done")
	for i := range 60 {
		put("active", 9_000_000_000_001+i, "more")
	}
	rows := func(path string) (int, string) {
		t.Helper()
		page := b.must(200, "GET", path, "").body
		return strings.Count(page, "<li>\n    <p class=\"about\">"), page
	}
	for path, want := range map[string]int{
		"/reminders": 50, "/reminders?chat=telegram:-7": 50, "/reminders?chat=telegram:-8": 0, "/reminders?group=main&state=done": 1,
		"/reminders?group=main&after=50": 12, "/reminders?after=0": 50,
	} {
		if n, _ := rows(path); n != want {
			t.Errorf("%s lists %d reminders, want %d", path, n, want)
		}
	}
	if _, page := rows("/reminders"); !strings.Contains(page, `"/reminders?after=0"`) {
		t.Errorf("the rest is not found from the first one on: %s", page)
	}
	if _, page := rows("/reminders"); !strings.Contains(page, "the &lt;b&gt;plan&lt;/b&gt;") || !strings.Contains(page, "data-until>in ") {
		t.Errorf("the first: %s", page)
	}
	b.must(400, "GET", "/reminders?after=x", "")
	contains(t, b.submit(fmt.Sprintf("/reminders/%d/cancel", first), nil).body, fmt.Sprintf("Reminder %d was cancelled.", first))
	if want := fmt.Sprintf(`web:operator POST /v1/reminders/%d/cancel {"by":"web:operator"}`, first); g.calls[len(g.calls)-1] != want {
		t.Errorf("gated was asked: %s", g.calls)
	}
}

func TestPolls_Lists_AndCloses(t *testing.T) {
	data := dataFolder(t)
	g := newGated(t)
	b := serve(t, data, "GATED_URL="+g.URL).operator()
	contains(t, b.must(200, "GET", "/polls", "").body, "No polls here")
	row := queued(t, data, "poll")
	put := func(state string, closed any) int64 {
		t.Helper()
		return shell(t, data, `INSERT INTO polls (message_id, folder, chat_jid, question, options, state, created_at, closed_at)
			VALUES (?, 'main', 'web:main', 'Tea <i>?', '["yes","no <b>"]', ?, 1, ?)`, row, state, closed)
	}
	open := put("open", nil)
	put("closed", 5)
	shell(t, data, `INSERT INTO poll_votes (poll_id, voter, name, options, at) VALUES (?, 'web:a', 'A', '[1]', 2), (?, 'web:b', 'B', '[1]', 2)`, open, open)
	page := b.must(200, "GET", "/polls", "").body
	if strings.Count(page, "Tea &lt;i&gt;?") != 2 || strings.Count(page, "/close\"") != 1 || !strings.Contains(page, "no &lt;b&gt;") || !strings.Contains(page, `<td>2</td><td><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width="100"`) {
		t.Error(page)
	}
	if page := b.must(200, "GET", "/polls?state=open", "").body; strings.Count(page, "Tea") != 1 {
		t.Error(page)
	}
	if a := b.submit(fmt.Sprintf("/polls/%d/close", open), nil); !strings.Contains(a.body, "was closed") || g.calls[len(g.calls)-1] != fmt.Sprintf("web:operator POST /v1/polls/%d/close", open) {
		t.Errorf("%s %s", g.calls, a.body)
	}
}
