package pages_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/dashd/internal/pages"
)

func TestChart_Scale_IsRoundAndHoldsTheHighestColumn(t *testing.T) {
	for _, tt := range []struct {
		unit pages.Unit
		most float64
		want string // the highest tick first
	}{
		{0, 0.3, "1 0"},
		{0, 5, "5 4 3 2 1 0"},
		{0, 6, "6 4 2 0"},
		{0, 21, "25 20 15 10 5 0"},
		{0, 1234, "1500 1000 500 0"},
		{pages.Dollars, 0.00031, "$0.0004 $0.0003 $0.0002 $0.0001 $0.00"},
		{pages.Dollars, 12, "$15.00 $10.00 $5.00 $0.00"},
		{pages.Milliseconds, 430, "500 ms|400 ms|300 ms|200 ms|100 ms|0 ms"},
		{pages.Milliseconds, 4_500, "5.0 s|4.0 s|3.0 s|2.0 s|1.0 s|0 ms"},
		{pages.Milliseconds, 61_000, "80 s|60 s|40 s|20 s|0 ms"},
		{pages.Milliseconds, 200_000, "4 min|3 min|2 min|60 s|0 ms"},
		{pages.Milliseconds, 8 * 3_600_000, "8 h|6 h|4 h|2 h|0 ms"},
		{pages.Milliseconds, 100 * 3_600_000, "5 days|4 days|3 days|2 days|24 h|0 ms"},
	} {
		c := pages.Chart{Unit: tt.unit, Series: make([]pages.Series, 1), Columns: make([]pages.Column, 1), Values: [][]float64{{tt.most}}}
		var got []string
		for _, tick := range c.Ticks() {
			got = append(got, tick.Text)
		}
		sep := map[bool]string{true: "|", false: " "}[tt.unit == pages.Milliseconds]
		if diff := cmp.Diff(strings.Split(tt.want, sep), got); diff != "" {
			t.Errorf("%d %g: %s", tt.unit, tt.most, diff)
		}
	}
}

func TestChart_Rows_BarsStandOnEachOtherOrInFront(t *testing.T) {
	cols := []pages.Column{pages.NewColumn(time.UnixMilli(0), time.UnixMilli(60_000), "a"), pages.NewColumn(time.UnixMilli(60_000), time.UnixMilli(120_000), "b")}
	c := pages.Chart{Columns: cols, Values: [][]float64{{0, 0}, {4, 0.001}}, Series: []pages.Series{
		pages.NewSeries("x", 2, "/turns", "state", "done"), pages.NewSeries("y", 1, "/turns"),
	}}
	x := pages.ChartBar{Name: "x", Text: "4", Path: "/turns?since=1970-01-01T00%3A01&state=done&until=1970-01-01T00%3A02", X: 500, Y: 40, Width: 497, Height: 160, Fill: 2}
	y := pages.ChartBar{Name: "y", Text: "0", Path: "/turns?since=1970-01-01T00%3A01&until=1970-01-01T00%3A02", X: 500, Y: 39, Width: 497, Height: 1, Fill: 1}
	if diff := cmp.Diff([]pages.ChartRow{{Label: "b", Path: y.Path, Bars: []pages.ChartBar{x, y}}}, c.Rows()); diff != "" {
		t.Error(diff)
	}
	c.Over, c.Values[1] = true, []float64{4, 2}
	x.Y, x.Height = 0, 200
	y.Text, y.Y, y.Height = "2", 100, 100
	if diff := cmp.Diff([]pages.ChartRow{{Label: "b", Path: y.Path, Bars: []pages.ChartBar{x, y}}}, c.Rows()); diff != "" {
		t.Errorf("in front: %s", diff)
	}
}

func TestChart_Marks_LeaveRoom(t *testing.T) {
	for n, want := range map[int]string{3: "ooo", 30: "o------o------o------o--------", 26: "o-----o-----o-----o-------"} {
		c, got := pages.Chart{}, ""
		for range n {
			c.Columns = append(c.Columns, pages.NewColumn(time.Time{}, time.Time{}, "o"))
		}
		for _, mark := range c.Marks() {
			got += map[bool]string{true: "-", false: mark}[mark == ""]
		}
		if got != want {
			t.Errorf("%d columns: %s", n, got)
		}
	}
}
