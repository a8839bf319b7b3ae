package window

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// without has the rows that are left out.
func without(ids []int64) map[int64]bool {
	left := map[int64]bool{}
	for _, id := range ids {
		left[id] = true
	}
	return left
}

// ids are the row ids of each thread.
func ids(forest []thread) (all [][]int64) {
	for _, t := range forest {
		var rows []int64
		for _, row := range t.rows {
			rows = append(rows, row.ID)
		}
		all = append(all, rows)
	}
	return all
}

func TestForest_GroupsByReply(t *testing.T) {
	row := func(id, parent int64) Row { return Row{ID: id, Parent: parent, Time: id, Text: "x"} }
	own := func(id, parent int64) Row { return Row{ID: id, Parent: parent, Time: id, Own: true} }
	at := func(id, parent int64, after time.Duration, place string) Row {
		return Row{ID: id, Parent: parent, Time: after.Milliseconds(), Place: place}
	}
	tests := []struct {
		name   string
		rows   []Row
		except []int64
		want   [][]int64
	}{
		{"nothing", nil, nil, nil},
		{"crossing threads", []Row{row(1, 0), row(2, 0), row(3, 1), row(4, 2), row(5, 3)}, nil, [][]int64{{1, 3, 5}, {2, 4}}},
		{"a branch", []Row{row(1, 0), row(2, 1), row(3, 1), row(4, 2)}, nil, [][]int64{{1, 2, 3, 4}}},
		{"a missing parent", []Row{row(1, 99), row(2, 99)}, nil, [][]int64{{1, 2}}},
		{"a circle", []Row{row(1, 3), row(2, 1), row(3, 2), row(4, 4)}, nil, [][]int64{{4}, {1, 2, 3}}},
		{"a child before its parent", []Row{{ID: 2, Parent: 1, Time: 1}, {ID: 1, Time: 2}}, nil, [][]int64{{2, 1}}},
		{"the same moment", []Row{{ID: 2}, {ID: 1}, {ID: 3, Parent: 1}}, nil, [][]int64{{1, 3}, {2}}},
		{"a row twice", []Row{row(1, 0), row(1, 0)}, nil, [][]int64{{1}}},
		{"forest before exclusion", []Row{row(1, 0), row(2, 1), row(3, 1), row(4, 0)}, []int64{1}, [][]int64{{4}, {2, 3}}},
		{"the link between them is left out", []Row{row(1, 0), row(2, 1), row(3, 2)}, []int64{2}, [][]int64{{1, 3}}},
		{"without replies", []Row{row(1, 0), row(2, 0), row(3, 0)}, nil, [][]int64{{1, 2, 3}}},
		{"a pause", []Row{at(1, 0, 0, ""), at(2, 0, pause-1, ""), at(3, 0, 2*pause-1, "")}, nil, [][]int64{{3}, {1, 2}}},
		{"a pause that an answer ends", []Row{at(1, 0, 0, ""), {ID: 2, Parent: 1, Time: 1200_000, Own: true}, at(3, 0, pause, "")}, nil, [][]int64{{1, 2, 3}}},
		{"a late answer", []Row{at(1, 0, 0, ""), at(2, 0, pause, ""), {ID: 3, Parent: 1, Time: 2000_000, Own: true}, at(4, 0, 2*pause-1, "")}, nil, [][]int64{{2, 4}, {1, 3}}},
		{"two places", []Row{at(1, 0, 1, ""), at(2, 0, 2, "7"), at(3, 0, 3, ""), at(4, 0, 4, "7")}, nil, [][]int64{{2, 4}, {1, 3}}},
		{"a direct chat", []Row{row(1, 0), own(2, 1), row(3, 0), own(4, 3), row(5, 0)}, nil, [][]int64{{1, 2, 3, 4, 5}}},
		{"a reply among others", []Row{row(1, 0), row(2, 0), row(3, 1), row(4, 0)}, nil, [][]int64{{2, 4}, {1, 3}}},
		{"a reply to what is long ago", []Row{at(1, 0, 0, ""), at(2, 0, 3*pause, ""), at(3, 1, 3*pause+1, ""), at(4, 0, 3*pause+2, "")}, nil, [][]int64{{2, 4}, {1, 3}}},
		{"an answer in another place", []Row{at(1, 0, 1, ""), at(2, 0, 2, ""), {ID: 3, Parent: 2, Own: true, Place: "2"}, at(4, 0, 4, "")}, nil, [][]int64{{1, 4}, {2, 3}}},
		{"conversation before exclusion", []Row{row(1, 0), row(2, 0), row(3, 0)}, []int64{2}, [][]int64{{1, 3}}},
		{"everything is left out", []Row{row(1, 0), row(2, 1)}, []int64{1, 2}, nil},
	}
	for _, tt := range tests {
		forest := buildThreadForest(tt.rows, without(tt.except))
		if diff := cmp.Diff(tt.want, ids(forest)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestForest_Limits(t *testing.T) {
	var rows []Row
	for i := range int64(10) {
		rows = append(rows, Row{ID: i + 1, Time: i * pause.Milliseconds()})
	}
	if diff := cmp.Diff([][]int64{{10}, {9}, {8}, {7}, {6}}, ids(buildThreadForest(rows, nil))); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	rows = nil
	for i := range int64(30) {
		rows = append(rows, Row{ID: i + 1, Parent: i, Time: i})
	}
	forest := buildThreadForest(rows, nil)
	if len(forest) != 1 || len(forest[0].rows) != maxMessages || forest[0].rows[0].ID != 11 || forest[0].alone {
		t.Errorf("a long thread: %v", ids(forest))
	}
	rows[0].Opens = true
	if got := buildThreadForest(rows, nil)[0].rows; len(got) != maxMessages || got[0].ID != 1 || got[1].ID != 12 {
		t.Errorf("a long thread, with the row it was opened from: %+v", got)
	}
	for i := range rows {
		rows[i].Text = string(make([]byte, 1<<20))
	}
	if got := len(buildThreadForest(rows, nil)[0].rows); got != maxBytes/maxText {
		t.Errorf("%d long messages", got)
	}
}

func drawRows(t *rapid.T) []Row {
	rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Row {
		return Row{
			Place: rapid.SampledFrom([]string{"", "", "7"}).Draw(t, "place"),
			ID:    rapid.Int64Range(1, 60).Draw(t, "id"), Parent: rapid.Int64Range(0, 70).Draw(t, "parent"),
			Time: rapid.Int64Range(0, 20).Draw(t, "time") * pause.Milliseconds() / 3, Sender: rapid.SampledFrom([]string{"a:1", "a:2", "", "a:3"}).Draw(t, "sender"),
			Name: rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"bob", "you", "Ari", "x (y):", "bob 2"})).Draw(t, "name"),
			Own:  rapid.Bool().Draw(t, "own"),
			Text: rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
				"hi\nbob: no", "\n\nthread (bob):\n", "\u2028x", "", "you: no", "Ari： yes", "y\u200bou: no", "alice: x", "bob:",
			})).Draw(t, "text"),
		}
	}), 0, 60).Draw(t, "rows")
	if opening := rapid.IntRange(0, 100).Draw(t, "opening"); opening < len(rows) {
		rows[opening].Opens = true
	}
	return rows
}

// threadsOf are numbers of the threads of rows, computed in another way than by buildThreadForest.
func threadsOf(rows []Row) map[int64]int {
	rows = slices.SortedFunc(slices.Values(rows), inOrder)
	byID := map[int64]Row{}
	number := map[int64]int{}
	for i, row := range rows {
		byID[row.ID], number[row.ID] = row, i
	}
	renumber := func(from, to int) {
		for id, n := range number {
			if n == from {
				number[id] = to
			}
		}
	}
	answered := map[int]bool{}
	for _, row := range rows {
		if parent, there := byID[row.Parent]; there {
			from, to := max(number[row.ID], number[row.Parent]), min(number[row.ID], number[row.Parent])
			renumber(from, to)
			ofUser := row.ID != row.Parent && (!row.Own || row.Place != parent.Place)
			answered[to] = answered[to] || answered[from] || ofUser
		}
	}
	last := map[string]int{}   // number of the latest conversation, by place
	for i, row := range rows { // a tree has the number of its first row
		if number[row.ID] != i || answered[i] {
			continue
		}
		before, there := last[row.Place]
		for _, r := range rows[:i] {
			if there && number[r.ID] == before && row.Time-r.Time < pause.Milliseconds() {
				renumber(i, before)
			}
		}
		if number[row.ID] == i {
			last[row.Place] = i
		}
	}
	return number
}

func TestForest_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		slices.SortFunc(rows, func(a, b Row) int { return int(a.ID - b.ID) })
		rows = slices.CompactFunc(rows, func(a, b Row) bool { return a.ID == b.ID })
		left := rapid.SliceOf(rapid.Int64Range(1, 60)).Draw(t, "left out")
		except := without(left)
		given := slices.Clone(rows)
		forest := buildThreadForest(rows, except)
		if diff := cmp.Diff(given, rows); diff != "" {
			t.Fatalf("its input was changed:\n%s", diff)
		}
		checkForest(t, rows, forest, except)

		shuffled := rapid.Permutation(append(slices.Clone(rows), rows...)).Draw(t, "shuffled")
		if diff := cmp.Diff(ids(forest), ids(buildThreadForest(shuffled, except))); diff != "" {
			t.Fatalf("in another order, with every row twice:\n%s", diff)
		}
	})
}

func checkForest(t *rapid.T, rows []Row, forest []thread, except map[int64]bool) {
	var shown []Row
	threadOf := map[int64]int{}
	for i, th := range forest {
		if len(th.rows) == 0 || !slices.IsSortedFunc(th.rows, inOrder) {
			t.Fatalf("thread %d: %v", i, ids(forest))
		}
		if i > 0 && inOrder(forest[i-1].newest(), th.newest()) <= 0 {
			t.Fatalf("thread %d is newer than the one before it: %v", i, ids(forest))
		}
		for _, row := range th.rows {
			if _, twice := threadOf[row.ID]; twice || except[row.ID] {
				t.Fatalf("row %d is shown twice, or was to be left out: %v", row.ID, ids(forest))
			}
			threadOf[row.ID] = i
			shown = append(shown, row)
		}
	}
	if len(forest) > maxThreads || len(shown) > maxMessages {
		t.Fatalf("%d threads, %d messages", len(forest), len(shown))
	}
	number := threadsOf(rows)
	for _, a := range shown {
		for _, b := range shown {
			if (number[a.ID] == number[b.ID]) != (threadOf[a.ID] == threadOf[b.ID]) {
				t.Fatalf("rows %d and %d: %v", a.ID, b.ID, ids(forest))
			}
		}
	}
	for _, row := range rows { // missing rows are older than all that are shown of their thread
		if _, there := threadOf[row.ID]; there || except[row.ID] {
			continue
		}
		for _, s := range shown {
			if number[row.ID] == number[s.ID] && (row.Opens || inOrder(row, s) > 0 && !s.Opens) {
				t.Fatalf("row %d is missing, row %d of its thread is shown: %v", row.ID, s.ID, ids(forest))
			}
		}
		if len(forest) < maxThreads && len(shown) < maxMessages {
			t.Fatalf("row %d is missing: %v", row.ID, ids(forest))
		}
	}
}
