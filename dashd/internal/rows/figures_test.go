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
