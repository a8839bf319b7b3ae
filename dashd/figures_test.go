package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestFigures_RowsOfTheLastHours_AreCountedAndLinked(t *testing.T) {
	data := dataFolder(t)
	at := time.Now().Add(-3 * time.Hour).Truncate(time.Hour)
	for i, state := range []string{"done", "done", "failed"} {
		ms := at.UnixMilli() + int64(i)
		shell(t, data, `INSERT INTO messages (id, chat_jid, direction, content, timestamp, received_at) VALUES (?, 'telegram:-7', 'in', 'x', ?2, ?2)`, i+1, ms)
		shell(t, data, `INSERT INTO turns (id, kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at, started_at, ended_at)
			VALUES (?1, 'conversation', 'main', 'telegram:-7', '', ?1, 'telegram-group', 4000, ?2, ?3, ?3+2000, ?3+65000)`, i+1, state, ms)
	}
	shell(t, data, `INSERT INTO spend (day, folder, chat_jid, turns, cost_usd) VALUES (?, 'acme', 'telegram:-7', 1, 1.25)`, time.Now().Format(time.DateOnly))
	b := serve(t, data).operator()
	span := func(filter string) string {
		q, err := url.ParseQuery(filter)
		if err != nil {
			t.Fatal(err)
		}
		q.Set("since", at.UTC().Format("2006-01-02T15:04"))
		q.Set("until", at.Add(time.Hour).UTC().Format("2006-01-02T15:04"))
		return q.Encode()
	}
	label, page := at.Local().Format("Mon 15:00"), b.must(200, "GET", "/figures", "").body
	for filter, words := range map[string]string{"state=done": "answered: 2", "state=failed": "failed: 1", "": "95 % within: 2.0 s", "x=": "half within: 65 s"} {
		contains(t, page, fmt.Sprintf("<title>%s, %s</title>", label, words))
		if filter != "x=" {
			contains(t, page, strings.ReplaceAll("/turns?"+span(filter), "&", "&amp;"))
		}
	}
	contains(t, page, "acme: $1.25")
	contains(t, page, "default: $1.25")
	for _, by := range []string{"day", "week", "else"} {
		contains(t, b.must(200, "GET", "/figures?by="+by, "").body, "received: 3")
	}
	list := b.must(200, "GET", "/turns?"+span("state=failed"), "").body
	contains(t, list, `href="/turns/3"`)
	contains(t, list, "Turns, since "+at.UTC().Format("2006-01-02 15:04")+" UTC")
	contains(t, list, strings.ReplaceAll("/turns?"+span("state=done"), "&", "&amp;")) // the other lists are of the same time
	if strings.Contains(list, `href="/turns/2"`) {
		t.Error("a turn that did not fail")
	}
	for _, other := range []string{"since=" + at.Add(time.Hour).UTC().Format("2006-01-02T15:04"), "until=" + at.UTC().Format("2006-01-02T15:04")} {
		contains(t, b.must(200, "GET", "/turns?"+other, "").body, "No turns here.")
	}
	b.must(400, "GET", "/turns?since=yesterday", "")
}
