package api

import (
	"encoding/json"
	"testing"
	"time"

	"arizuko/gated/internal/rows"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestSpend_ByDayGroupAndChat_IsListed(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	today := time.UnixMilli(5000).Local()
	day := func(ago int) string { return today.AddDate(0, 0, -ago).Format(time.DateOnly) }
	for _, used := range []struct {
		chat string
		ago  int
		usd  float64
	}{{"telegram:1", 0, 0.5}, {"telegram:2", 0, 2}, {"telegram:2", 29, 4}, {"telegram:1", 30, 100}} {
		turn := r.turn(used.chat, msg.TurnQueued)
		r.write(func(tx *store.Tx) error {
			return rows.AddUsage(tx, turn.ID, agentproto.Usage{Input: 10, Output: 1, CostUSD: used.usd}, day(used.ago))
		})
	}
	total := SpendLine{"", 3, 30, 3, 6.5}
	for query, want := range map[string]Spend{
		"":                                   {day(29), day(0), "day", []SpendLine{{day(29), 1, 10, 1, 4}, {day(0), 2, 20, 2, 2.5}}, total},
		"?by=group":                          {day(29), day(0), "group", []SpendLine{{"main", 3, 30, 3, 6.5}}, total},
		"?by=chat":                           {day(29), day(0), "chat", []SpendLine{{"telegram:2", 2, 20, 2, 6}, {"telegram:1", 1, 10, 1, 0.5}}, total},
		"?by=chat&folder=no":                 {day(29), day(0), "chat", []SpendLine{}, SpendLine{}},
		"?from=" + day(30) + "&to=" + day(1): {day(30), day(1), "day", []SpendLine{{day(30), 1, 10, 1, 100}, {day(29), 1, 10, 1, 4}}, SpendLine{"", 2, 20, 2, 104}},
	} {
		body := storetest.Must(json.Marshal(r.expect("GET", "/v1/spend"+query, 200)))(t)
		var got Spend
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", query, d)
		}
	}
	for query, words := range map[string]string{
		"?by=week": `is none of day, group, chat`, "?from=monday": `is not a day, as in 2026-11-23`, "?by=group&folder=main": "folder is for by=day and by=chat",
	} {
		r.expect("GET", "/v1/spend"+query, 400, words)
	}
}
