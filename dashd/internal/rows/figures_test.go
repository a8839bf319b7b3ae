package rows_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

func TestCountMessages_BySpan_TheNewestUpToTheLimit(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const start = int64(1_700_000_040_000)
	for _, at := range []int64{start - 1, start, start + 59_999, start + 60_000, start + 180_000} {
		storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Content: "x", ReceivedAt: at})
	}
	for _, state := range []msg.OutState{msg.OutQueued, msg.OutFailed} {
		storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Content: "y", OutState: state, ReceivedAt: start + 200_000})
	}
	for _, tt := range []struct {
		limit int64
		all   bool
		want  map[int64][3]int
	}{
		{100, true, map[int64][3]int{start: {2, 0, 0}, start + 60_000: {1, 0, 0}, start + 180_000: {1, 1, 1}}},
		{6, true, map[int64][3]int{start: {2, 0, 0}, start + 60_000: {1, 0, 0}, start + 180_000: {1, 1, 1}}},
		{2, false, map[int64][3]int{start + 180_000: {0, 1, 1}}},
	} {
		got := map[int64][3]int{}
		all, err := rows.CountMessages(t.Context(), s.Reader, start, 60_000, tt.limit, func(at int64, n [3]int) { got[at] = n })
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil || all != tt.all {
			t.Errorf("limit %d: all %t, %v %s", tt.limit, all, err, diff)
		}
	}
}

func TestEachTurn_SinceATime_WithWhenItsMessageCame(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	s := storetest.OpenAt(t, path, nil)
	for i, at := range []int64{1000, 2000, 3000} {
		id := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Content: "x", ReceivedAt: at - 100}).ID
		storetest.Exec(t, path, `INSERT INTO turns (kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at, started_at, ended_at)
			VALUES ('conversation', 'main', 'telegram:-1', '', ?, '', 1, ?, ?, ?, ?)`, id, []string{"done", "done", "queued"}[i], at, []any{at, at + 5, nil}[i], []any{at + 9, at + 50, nil}[i])
	}
	var got []rows.TurnTimes
	if err := rows.EachTurn(t.Context(), s.Reader, 1001, func(turn rows.TurnTimes) { got = append(got, turn) }); err != nil {
		t.Fatal(err)
	}
	want := []rows.TurnTimes{{Made: 2000, Asked: 1900, Started: 2005, Ended: 2050, State: msg.TurnDone}, {Made: 3000, Asked: 2900, State: msg.TurnQueued}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, tt := range []struct{ since, until, from, to int64 }{{0, 0, 1, 4}, {1000, 3000, 1, 3}, {1001, 3001, 2, 4}, {4000, 0, 4, 4}, {0, 500, 1, 1}} {
		from, to, err := rows.TurnsBetween(t.Context(), s.Reader, tt.since, tt.until)
		if err != nil || from != tt.from || to != tt.to {
			t.Errorf("from %d to %d: %d to %d, %v", tt.since, tt.until, from, to, err)
		}
	}
}

func TestDollarsSince_OfDaysAndGroups(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	s := storetest.OpenAt(t, path, nil)
	storetest.Exec(t, path, `INSERT INTO spend (day, folder, chat_jid, cost_usd) VALUES ('2026-11-01', 'a', 'web:a', 8), ('2026-11-02', 'a', 'web:a', 1),
		('2026-11-02', 'a', 'web:b', 2.5), ('2026-11-02', 'b', 'web:b', 4)`)
	got := storetest.Must(rows.DollarsSince(t.Context(), s.Reader, "2026-11-02"))(t)
	if diff := cmp.Diff([]rows.DaySpend{{Day: "2026-11-02", Name: "a", USD: 3.5}, {Day: "2026-11-02", Name: "b", USD: 4}}, got); diff != "" {
		t.Error(diff)
	}
}
