package reminders

import (
	"archive/zip"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSchedule_AnyZoneAndExpression_SlotsIncreaseOnNamedDays looks at the slots around a change of the clocks in every zone
// of the tz database.
func TestSchedule_AnyZoneAndExpression_SlotsIncreaseOnNamedDays(t *testing.T) {
	t.Parallel()
	zones := allZones(t)
	const atOnce = 30 // each zone has about ten of the checks
	zones = append(zones, zones[:atOnce]...)
	rapid.Check(t, func(r *rapid.T) {
		e := drawExpression(r)
		base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 30*366*24).Draw(r, "hours")) * time.Hour)
		back := time.Duration(rapid.IntRange(0, 72*60*60).Draw(r, "seconds before the change")) * time.Second
		first := rapid.IntRange(0, len(zones)-atOnce).Draw(r, "first zone")
		for _, zone := range zones[first : first+atOnce] {
			s, err := ParseSchedule(e.String(), zone)
			if err != nil && e.never() {
				return
			}
			if err != nil {
				r.Fatal(e, err)
			}
			at := base.In(zone)
			if _, change := at.ZoneBounds(); !change.IsZero() {
				at = change.Add(-back)
			}
			since := at
			for range 4 {
				next := s.Next(at)
				if next.IsZero() && !e.never() {
					r.Fatalf("%s in %s: nothing after %s", e, zone, at)
				}
				if next.IsZero() {
					break
				}
				if !next.After(at) || !e.names(next.In(zone)) {
					r.Fatalf("%s in %s: %s after %s", e, zone, next.In(zone), at.In(zone))
				}
				at = next
			}
			if last := s.Last(since, at); at != since && !last.Equal(at) {
				r.Fatalf("%s in %s: last slot until %s is %s", e, zone, at, last)
			}
		}
	})
}

// TestSchedule_ChangeAtMidnight_GetsOn has expressions on which the library does not get on, in all hours of two years.
func TestSchedule_ChangeAtMidnight_GetsOn(t *testing.T) {
	t.Parallel()
	for cron, zones := range map[string][]string{
		"0 * * * fri":          {"Africa/Cairo", "Asia/Gaza"},
		"*/15 * * * fri":       {"Africa/Cairo"},
		"0 * * * sun":          {"Asia/Beirut", "America/Santiago", "America/Havana", "America/Scoresbysund"},
		"0,30 0,1,23 * * sat":  {"America/Scoresbysund", "America/Nuuk", "America/Asuncion"},
		"30 * 25-31 3,10 *":    {"Europe/Lisbon", "Atlantic/Azores", "Europe/Chisinau"},
		"0 * * * thu":          {"Africa/Cairo"},
		"45 23 * * sat":        {"America/Scoresbysund"},
		"15,45 * 1-7 4,10 sun": {"Australia/Lord_Howe"},
	} {
		for _, name := range zones {
			s := schedule(t, cron, name)
			at := instant(t, "2026-01-01T00:00:00Z")
			for end := at.AddDate(2, 0, 0); at.Before(end); {
				next := s.Next(at)
				if !next.After(at) {
					t.Fatalf("%s in %s: %s after %s", cron, name, next, at)
				}
				at = next
			}
		}
	}
}

func TestSchedule_SkippedIntoAnotherDay_FiresOnItsOwn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ cron, zone, after, want string }{
		{"30 23 * * sat", "America/Scoresbysund", "2027-03-27T12:00:00Z", "2027-03-27T22:59:00-02:00"}, // 23:00 is Sunday, 00:00
		{"0 * * * fri", "Africa/Cairo", "2027-04-29T21:00:00Z", "2027-04-30T01:00:00+03:00"},
		{"0 9 30 * *", "Pacific/Apia", "2011-12-29T12:00:00-10:00", "2012-01-30T09:00:00+14:00"}, // that day did not exist
		{"0 * 1 1 *", "Africa/Cairo", "2040-12-31T12:00:00Z", "2041-01-01T00:00:00+02:00"},       // Go knows no change after that day
		{"0 9 * * fri-sun", "UTC", "2026-11-28T10:00:00Z", "2026-11-29T09:00:00Z"},
		{"0 9 * * mon-7/2", "UTC", "2026-11-27T10:00:00Z", "2026-11-29T09:00:00Z"},
		{"0 9 * * sun-sun", "UTC", "2026-11-23T10:00:00Z", "2026-11-29T09:00:00Z"},
	} {
		if got := schedule(t, tc.cron, tc.zone).Next(instant(t, tc.after)).Format(time.RFC3339); got != tc.want {
			t.Errorf("%s in %s: %s, want %s", tc.cron, tc.zone, got, tc.want)
		}
	}
}

// expression is one of which the test knows the days.
type expression struct {
	minute, hour  string
	days, months  []int // nil for *
	weekdays      []int
	weekdaysNamed string
}

func drawExpression(r *rapid.T) expression {
	list := func(label string, low, high int) []int {
		if rapid.Bool().Draw(r, label+" any") {
			return nil
		}
		values := rapid.SliceOfNDistinct(rapid.IntRange(low, high), 1, 5, rapid.ID[int]).Draw(r, label)
		slices.Sort(values)
		return values
	}
	e := expression{
		minute: rapid.SampledFrom([]string{"0", "30", "*/15", "59", "7,45", "*"}).Draw(r, "minute"),
		hour:   rapid.SampledFrom([]string{"*", "0", "23", "*/1", "*/2", "0-3", "1,2,22", "9"}).Draw(r, "hour"),
		days:   list("day", 1, 31), months: list("month", 1, 12), weekdays: list("weekday", 0, 6),
	}
	e.weekdaysNamed = join(e.weekdays)
	if first := rapid.IntRange(1, 6).Draw(r, "first weekday"); e.weekdays != nil && rapid.Bool().Draw(r, "range to Sunday") {
		e.weekdays, e.weekdaysNamed = []int{0}, fmt.Sprintf("%d-%s", first, rapid.SampledFrom([]string{"7", "sun"}).Draw(r, "Sunday"))
		for day := first; day < 7; day++ {
			e.weekdays = append(e.weekdays, day)
		}
	}
	return e
}

func join(values []int) string {
	if values == nil {
		return "*"
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(values), "[]"), " ", ",")
}

func (e expression) String() string {
	return fmt.Sprintf("%s %s %s %s %s", e.minute, e.hour, join(e.days), join(e.months), e.weekdaysNamed)
}

// never reports whether there may be no day, or only one that comes in decades.
func (e expression) never() bool {
	return e.months != nil && e.days != nil && e.days[0] >= 29 && e.weekdays == nil
}

// names reports whether the expression names the day of a time.
func (e expression) names(t time.Time) bool {
	if e.months != nil && !slices.Contains(e.months, int(t.Month())) {
		return false
	}
	day, weekday := slices.Contains(e.days, t.Day()), slices.Contains(e.weekdays, int(t.Weekday()))
	switch {
	case e.days == nil && e.weekdays == nil:
		return true
	case e.days == nil:
		return weekday
	case e.weekdays == nil:
		return day
	}
	return day || weekday
}

// allZones are the zones of the tz database that comes with Go.
func allZones(t *testing.T) (zones []*time.Location) {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	rules := map[uint32]bool{} // each file once: there are many aliases
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, "/") || rules[f.CRC32] {
			continue
		}
		rules[f.CRC32] = true
		zone, err := time.LoadLocation(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		zones = append(zones, zone)
	}
	if len(zones) < 300 {
		t.Fatalf("%d zones", len(zones))
	}
	return zones
}
