package main

import (
	"strings"
	"testing"
	"time"
)

func TestSpend_DaysGroupsAndChats_AreShown(t *testing.T) {
	data := dataFolder(t)
	b := serve(t, data).operator()
	contains(t, b.must(200, "GET", "/spend", "").body, "No agent has reported what it used.")
	today, before := time.Now().Format(time.DateOnly), time.Now().AddDate(0, 0, -2).Format(time.DateOnly)
	for _, row := range [][]any{{today, "acme", "telegram:-1", 3, 1.25}, {today, "other", "web:other", 1, 0.004}, {before, "acme", "telegram:-2", 2, 2.5}} {
		shell(t, data, `INSERT INTO spend (day, folder, chat_jid, turns, input_tokens, output_tokens, cost_usd) VALUES (?, ?, ?, ?, 5120, 310, ?)`, row...)
	}
	for path, want := range map[string][]string{
		"/spend":                    {"$3.75 in 6 turns", "/spend?day=" + today, "/spend?group=acme", "/turns?chat=telegram%3A-2", "$0.0040", "5120"},
		"/spend?day=" + today:       {"Groups on " + today, "/turns?chat=telegram%3A-1"},
		"/spend?group=acme":         {"$3.75 in 5 turns", "/groups/acme", "&amp;group=acme", "/turns?chat=telegram%3A-2"},
		"/spend?group=%3Cb%3Eno%22": {"&lt;b&gt;no&#34;"},
	} {
		page := b.must(200, "GET", path, "").body
		for _, words := range want {
			contains(t, page, words)
		}
	}
	if page := b.must(200, "GET", "/spend?day="+today, "").body; strings.Contains(page, "telegram%3A-2") {
		t.Error("a chat of another day")
	}
	b.must(400, "GET", "/spend?day=yesterday", "")
}

func TestChats_Spend_OfTheLast30DaysIsShown(t *testing.T) {
	data := dataFolder(t)
	b := serve(t, data).operator()
	for _, jid := range []string{"telegram:-1", "telegram:-2"} {
		shell(t, data, `INSERT INTO chats (jid, platform, kind, last_seen_at) VALUES (?, 'telegram', 'group', 1)`, jid)
	}
	for ago, usd := range map[int]float64{0: 1.25, 29: 2.5, 30: 64} {
		shell(t, data, `INSERT INTO spend (day, folder, chat_jid, turns, cost_usd) VALUES (?, 'acme', 'telegram:-1', 1, ?)`,
			time.Now().AddDate(0, 0, -ago).Format(time.DateOnly), usd)
	}
	page := b.must(200, "GET", "/chats", "").body
	if strings.Count(page, `<td data-label="Spend, 30 days">$3.75</td>`) != 1 || strings.Count(page, `<td data-label="Spend, 30 days">–</td>`) != 1 {
		t.Errorf("chats: %s", page)
	}
}
