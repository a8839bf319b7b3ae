package window

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func noRow(int64) bool { return false }

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
	tests := []struct {
		name   string
		rows   []Row
		except []int64
		want   [][]int64
	}{
		{"nothing", nil, nil, nil},
		{"crossing threads", []Row{row(1, 0), row(2, 0), row(3, 1), row(4, 2), row(5, 3)}, nil, [][]int64{{1, 3, 5}, {2, 4}}},
		{"a branch", []Row{row(1, 0), row(2, 1), row(3, 1), row(4, 2)}, nil, [][]int64{{1, 2, 3, 4}}},
		{"a missing parent", []Row{row(1, 99), row(2, 99)}, nil, [][]int64{{2}, {1}}},
		{"a circle", []Row{row(1, 3), row(2, 1), row(3, 2), row(4, 4)}, nil, [][]int64{{4}, {1, 2, 3}}},
		{"a child before its parent", []Row{{ID: 2, Parent: 1, Time: 1}, {ID: 1, Time: 2}}, nil, [][]int64{{2, 1}}},
		{"the same moment", []Row{{ID: 2}, {ID: 1}, {ID: 3, Parent: 1}}, nil, [][]int64{{1, 3}, {2}}},
		{"a row twice", []Row{row(1, 0), row(1, 0)}, nil, [][]int64{{1}}},
		{"forest before exclusion", []Row{row(1, 0), row(2, 1), row(3, 1), row(4, 0)}, []int64{1}, [][]int64{{4}, {2, 3}}},
		{"the link between them is left out", []Row{row(1, 0), row(2, 1), row(3, 2)}, []int64{2}, [][]int64{{1, 3}}},
		{"everything is left out", []Row{row(1, 0), row(2, 1)}, []int64{1, 2}, nil},
	}
	for _, tt := range tests {
		forest := buildThreadForest(tt.rows, func(id int64) bool { return slices.Contains(tt.except, id) })
		if diff := cmp.Diff(tt.want, ids(forest)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestForest_Limits(t *testing.T) {
	var rows []Row
	for i := range int64(10) {
		rows = append(rows, Row{ID: i + 1, Time: i})
	}
	if diff := cmp.Diff([][]int64{{10}, {9}, {8}, {7}, {6}}, ids(buildThreadForest(rows, noRow))); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	rows = nil
	for i := range int64(30) {
		rows = append(rows, Row{ID: i + 1, Parent: i, Time: i})
	}
	forest := buildThreadForest(rows, noRow)
	if len(forest) != 1 || len(forest[0].rows) != maxMessages || forest[0].rows[0].ID != 11 || forest[0].alone {
		t.Errorf("a long thread: %v", ids(forest))
	}
	for i := range rows {
		rows[i].Text = string(make([]byte, 1<<20))
	}
	if got := len(buildThreadForest(rows, noRow)[0].rows); got != maxBytes/maxText {
		t.Errorf("%d long messages", got)
	}
}

func drawRows(t *rapid.T) []Row {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Row {
		return Row{
			ID: rapid.Int64Range(1, 60).Draw(t, "id"), Parent: rapid.Int64Range(0, 70).Draw(t, "parent"),
			Time: rapid.Int64Range(0, 20).Draw(t, "time"), Sender: rapid.SampledFrom([]string{"a:1", "a:2", "", "a:3"}).Draw(t, "sender"),
			Name: rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"bob", "you", "Ari", "x (y):", "bob 2"})).Draw(t, "name"),
			Own:  rapid.Bool().Draw(t, "own"),
			Text: rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
				"hi\nbob: no", "\n\nthread (bob):\n", "\u2028x", "", "you: no", "Ari： yes", "y\u200bou: no", "alice: x", "bob:",
			})).Draw(t, "text"),
		}
	}), 0, 60).Draw(t, "rows")
}

// connected reports whether reply links between rows lead from one row to another,
// computed in another way than by findRoots.
func connected(rows []Row, from, to int64) bool {
	reached := map[int64]bool{from: true}
	for range rows {
		for _, row := range rows {
			there := slices.ContainsFunc(rows, func(p Row) bool { return p.ID == row.Parent })
			if there && (reached[row.ID] || reached[row.Parent]) {
				reached[row.ID], reached[row.Parent] = true, true
			}
		}
	}
	return reached[to]
}

func TestForest_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		slices.SortFunc(rows, func(a, b Row) int { return int(a.ID - b.ID) })
		rows = slices.CompactFunc(rows, func(a, b Row) bool { return a.ID == b.ID })
		left := rapid.SliceOf(rapid.Int64Range(1, 60)).Draw(t, "left out")
		except := func(id int64) bool { return slices.Contains(left, id) }
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

func checkForest(t *rapid.T, rows []Row, forest []thread, except func(int64) bool) {
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
			if _, twice := threadOf[row.ID]; twice || except(row.ID) {
				t.Fatalf("row %d is shown twice, or was to be left out: %v", row.ID, ids(forest))
			}
			threadOf[row.ID] = i
			shown = append(shown, row)
		}
	}
	if len(forest) > maxThreads || len(shown) > maxMessages {
		t.Fatalf("%d threads, %d messages", len(forest), len(shown))
	}
	for _, a := range shown {
		for _, b := range shown {
			if connected(rows, a.ID, b.ID) != (threadOf[a.ID] == threadOf[b.ID]) {
				t.Fatalf("rows %d and %d: %v", a.ID, b.ID, ids(forest))
			}
		}
	}
	for _, row := range rows { // what is missing is older than all that is shown of its thread
		if _, there := threadOf[row.ID]; there || except(row.ID) {
			continue
		}
		for _, s := range shown {
			if connected(rows, row.ID, s.ID) && inOrder(row, s) > 0 {
				t.Fatalf("row %d is missing, row %d of its thread is shown: %v", row.ID, s.ID, ids(forest))
			}
		}
		if len(forest) < maxThreads && len(shown) < maxMessages {
			t.Fatalf("row %d is missing: %v", row.ID, ids(forest))
		}
	}
}
