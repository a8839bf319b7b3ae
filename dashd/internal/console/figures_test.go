package console

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/msg"
)

// Columns follow each other without a gap, end after now, and begin with the hours, days and Mondays of a clock.
func TestColumns_AnyZoneAndMoment_FollowEachOther(t *testing.T) {
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	for _, zone := range []string{"UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Australia/Lord_Howe"} {
		var err error
		if time.Local, err = time.LoadLocation(zone); err != nil {
			t.Fatal(err)
		}
		for _, now := range []string{"2026-03-29T01:30:00Z", "2026-10-25T00:10:00Z", "2026-11-01T23:59:59Z", "2026-11-30T12:00:00Z"} {
			at, err := time.Parse(time.RFC3339, now)
			if err != nil {
				t.Fatal(err)
			}
			for by, n := range map[string]int{"hour": 48, "day": 30, "week": 26} {
				cols := columns(by, at)
				if len(cols) != n || cols.Place(at.UnixMilli()) != n-1 {
					t.Errorf("%s %s %s: %d columns, now is in column %d", zone, now, by, len(cols), cols.Place(at.UnixMilli()))
				}
				for i, c := range cols {
					from := time.UnixMilli(c.From)
					if i > 0 && cols[i-1].Until != c.From || by == "week" && from.Weekday() != time.Monday || by != "hour" && from.Hour() != 0 {
						t.Errorf("%s %s: %s column %d begins at %s", zone, now, by, i, from)
					}
					if by == "hour" && (c.Until-c.From != time.Hour.Milliseconds() || zone != "Australia/Lord_Howe" && from.Minute() != 0) {
						t.Errorf("%s %s: hour %d begins at %s and has %d ms", zone, now, i, from, c.Until-c.From)
					}
				}
			}
		}
	}
}

func TestTurnCharts_Add_CountsResultsTimesAndQueue(t *testing.T) {
	t.Parallel()
	cols := pages.Columns{{From: 1000, Until: 2000}, {From: 2000, Until: 3000}, {From: 3000, Until: 4000}}
	c := newTurnCharts(cols)
	for _, turn := range []rows.TurnTimes{
		{Made: 500, Asked: 400, Started: 1500, Ended: 1600, State: msg.TurnDone}, // before, but it waited in the first column
		{Made: 1200, Asked: 1100, Started: 1300, Ended: 1900, State: msg.TurnDone},
		{Made: 1500, Asked: 1500, State: msg.TurnQueued},
		{Made: 2000, Asked: 1900, Started: 2500, Ended: 2600, State: msg.TurnFailed},
		{Made: 3999, Asked: 3999, Ended: 4200, State: msg.TurnCancelled},
		{Made: 4000, Asked: 4000, State: msg.TurnQueued}, // after
		{Made: 3000, Asked: 3000, Started: 9000, Attempts: 2, Ended: 9900, State: msg.TurnFailed},
		{Made: 3100, Asked: 3100, Started: 3100, Attempts: 1, Ended: 3200, State: msg.TurnDone},
		{Made: 3200, Asked: 3200, Started: 3250, Attempts: 1, Ended: 3300, State: msg.TurnFailed},
	} {
		c.add(turn, 3500)
	}
	// running or queued, answered, cancelled, failed
	if diff := cmp.Diff([][]float64{{1, 1, 0, 0}, {0, 0, 0, 1}, {0, 1, 1, 2}}, c.results.Values); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]float64{{1.1}, {1.5}, {1.551}}, c.queue.Values); diff != "" {
		t.Errorf("the queue: %s", diff)
	}
	if diff := cmp.Diff([][]int64{{200}, {600}, {50}}, c.signs); diff != "" {
		t.Errorf("first signs: %s", diff)
	}
	if diff := cmp.Diff([][]int64{{800}, nil, {100}}, c.answers); diff != "" {
		t.Errorf("answers: %s", diff)
	}
}

func TestWithin_IsTheSmallestTimeThatEnoughDoNotExceed(t *testing.T) {
	t.Parallel()
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[99-i] = int64(i + 1)
	}
	for _, tt := range []struct {
		all      []int64
		p50, p95 float64
	}{{nil, 0, 0}, {[]int64{7}, 7, 7}, {[]int64{9, 1}, 1, 9}, {hundred, 50, 95}, {[]int64{-5}, 0, 0}} {
		if p50, p95 := within(slices.Clone(tt.all), 50), within(tt.all, 95); p50 != tt.p50 || p95 != tt.p95 {
			t.Errorf("%v: %g and %g", tt.all, p50, p95)
		}
	}
}

func TestSpendChart_ManyGroups_TheLastAreOthers(t *testing.T) {
	t.Parallel()
	today := time.Date(2026, 11, 30, 0, 0, 0, 0, time.Local)
	days := pages.Columns{{From: today.UnixMilli(), Until: today.AddDate(0, 0, 1).UnixMilli()}}
	spent := []rows.DaySpend{{Day: "2026-11-29", Name: "a", USD: 90}, {Day: "no day", Name: "a", USD: 1}}
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		spent = append(spent, rows.DaySpend{Day: "2026-11-30", Name: name, USD: float64(10 - i)})
	}
	got := spendChart("group", days, spent)
	var names []string
	for _, s := range got.Series {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e", "others"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]float64{{10, 9, 8, 7, 6, 5 + 4}}, got.Values); diff != "" {
		t.Error(diff)
	}
}
