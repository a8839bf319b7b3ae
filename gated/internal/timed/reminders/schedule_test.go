package reminders

import (
	"archive/zip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"arizuko/pkg/store/storetest"
)

// TestSchedule_ClockChanges covers hours that are skipped and hours that come twice.
func TestSchedule_ClockChanges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cron, zone, after string
		want              []string
	}{
		"skipped hour fires when it is over": {"30 2 * * *", "America/New_York", "2026-03-07T12:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"}},
		"several slots in a skipped hour fire once": {"0,20,40 2 * * *", "America/New_York", "2026-03-08T01:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"}},
		"skipped hour beside the one after it": {"30 2,3 * * *", "America/New_York", "2026-03-08T01:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-08T03:30:00-04:00", "2026-03-09T02:30:00-04:00"}},
		"repeated hour fires once": {"30 1 * * *", "America/New_York", "2026-10-31T12:00:00-04:00",
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"}},
		"asked in the second of the repeated hours": {"30 1 * * *", "America/New_York", "2026-11-01T01:10:00-05:00",
			[]string{"2026-11-02T01:30:00-05:00"}},
		"every hour, one skipped": {"15 * * * *", "Europe/Berlin", "2026-03-29T00:30:00+01:00",
			[]string{"2026-03-29T01:15:00+01:00", "2026-03-29T03:15:00+02:00"}},
		"every hour, one repeated": {"15 * * * *", "Europe/Berlin", "2026-10-25T01:30:00+02:00",
			[]string{"2026-10-25T02:15:00+02:00", "2026-10-25T02:15:00+01:00", "2026-10-25T03:15:00+01:00"}},
		"half an hour is skipped": {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		"midnight is skipped": {"0 0 * * *", "America/Santiago", "2026-09-05T12:00:00-04:00",
			[]string{"2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"}},
		"a day is skipped": {"0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"}},
		"weekdays":                {"0 9 * * mon-fri", "UTC", "2026-11-20T10:00:00Z", []string{"2026-11-23T09:00:00Z"}},
		"Sunday is 7":             {"0 9 * * 7", "UTC", "2026-11-20T10:00:00Z", []string{"2026-11-22T09:00:00Z"}},
		"day of month or of week": {"0 9 13 * 5", "UTC", "2026-11-06T10:00:00Z", []string{"2026-11-13T09:00:00Z", "2026-11-20T09:00:00Z"}},
		"leap day":                {"0 0 29 2 *", "UTC", "2026-11-06T10:00:00Z", []string{"2028-02-29T00:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schedule(t, tc.cron, tc.zone)
			at := instant(t, tc.after)
			for _, want := range tc.want {
				at = s.Next(at)
				if got := at.Format(time.RFC3339); got != want {
					t.Fatalf("next is %s, want %s", got, want)
				}
			}
		})
	}
}

// TestSchedule_EveryMinute_SameAsWalking compares Next with a walk over all minutes around a change of the clocks.
func TestSchedule_EveryMinute_SameAsWalking(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		zone := rapid.SampledFrom([]string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"}).Draw(r, "zone")
		loc, _ := time.LoadLocation(zone)
		hour := rapid.IntRange(0, 4).Draw(r, "hour")
		minute := rapid.IntRange(0, 59).Draw(r, "minute")
		s, err := ParseSchedule(fmt.Sprintf("%d %d * * *", minute, hour), loc)
		if err != nil {
			r.Fatal(err)
		}
		at := time.Date(2026, 1, rapid.IntRange(1, 365).Draw(r, "day"), rapid.IntRange(0, 23).Draw(r, "from"), 0, 0, 0, loc)
		for range 3 {
			got, want := s.Next(at), walk(at, hour, minute, loc)
			if !got.Equal(want) {
				r.Fatalf("after %s: %s, want %s", at, got, want)
			}
			at = got
		}
	})
}

// walk finds the first minute after a time from which on the clocks have reached a reading for the first time that day.
func walk(after time.Time, hour, minute int, loc *time.Location) time.Time {
	reached := func(t time.Time) bool { return t.Hour() > hour || t.Hour() == hour && t.Minute() >= minute }
	midnight := time.Date(after.Year(), after.Month(), after.Day(), 0, 0, 0, 0, loc)
	for t := midnight.Add(-3 * time.Hour); ; t = t.Add(time.Minute) {
		t = t.In(loc)
		before := t.Add(-time.Minute)
		if t.After(after) && reached(t) && (!reached(before) || before.Day() != t.Day()) && !reachedEarlier(t, hour, minute) {
			return t
		}
	}
}

// reachedEarlier reports whether the clocks had shown the reading in the two hours before, on the same day.
func reachedEarlier(t time.Time, hour, minute int) bool {
	for b := t.Add(-2 * time.Hour); b.Before(t); b = b.Add(time.Minute) {
		if b.Day() == t.Day() && b.Hour() == hour && b.Minute() == minute {
			return true
		}
	}
	return false
}

func TestSchedule_Last_FindsTheNewest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ cron, since, until, want string }{
		"a year of minutes": {"* * * * *", "2025-11-01T00:00:00Z", "2026-11-01T00:00:30Z", "2026-11-01T00:00:00Z"},
		"long ago":          {"0 0 1 1 *", "2020-01-01T00:00:00Z", "2026-11-01T00:00:00Z", "2026-01-01T00:00:00Z"},
		"exactly now":       {"0 9 * * *", "2026-11-01T09:00:00Z", "2026-11-01T09:00:00Z", "2026-11-01T09:00:00Z"},
		"none":              {"0 9 * * *", "2026-11-01T09:01:00Z", "2026-11-01T10:00:00Z", ""},
		"only the first":    {"0 9 * * *", "2026-11-01T09:00:00Z", "2026-11-02T08:59:59Z", "2026-11-01T09:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if last := schedule(t, tc.cron, "UTC").Last(instant(t, tc.since), instant(t, tc.until)); !last.IsZero() {
				got = last.Format(time.RFC3339)
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestParseSchedule_Invalid_Refused(t *testing.T) {
	t.Parallel()
	for _, cron := range []string{"", "* * * *", "* * * * * *", "@daily", "TZ=UTC * * * * *", "61 * * * *", "* 25 * * *", "* * 0 * *", "*/0 * * * *",
		"a b c d e", "0 9 * * montag", "5-1 * * * *", "0 9 * * fri-mon", "0 0 30 2 *", strings.Repeat("1,", 200) + "1 * * * *", "0 9 * * 1#9", "\x00 * * * *"} {
		if _, err := ParseSchedule(cron, time.UTC); err == nil {
			t.Errorf("%q is accepted", cron)
		}
	}
}

func TestParseSchedule_ReversedRange_IsNamed(t *testing.T) {
	t.Parallel()
	for cron, want := range map[string]string{"0 9 * * 5-1": "5-1", "0 9 * * fri-mon": "fri-mon", "50-10/5 * * * *": "50-10", "0 9 1 nov-feb *": "nov-feb"} {
		if _, err := ParseSchedule(cron, time.UTC); err == nil || !strings.Contains(err.Error(), "the range "+want+" ends before it begins") {
			t.Errorf("%q: %v", cron, err)
		}
	}
	for _, cron := range []string{"0 9 * * fri-sun", "0 9 * * 5-7", "0 9 * jan-dec *", "0 9 * * mon-fri"} {
		if _, err := ParseSchedule(cron, time.UTC); err != nil {
			t.Errorf("%q: %v", cron, err)
		}
	}
}

func FuzzParseSchedule(f *testing.F) {
	f.Add("30 9 * * mon-fri")
	f.Add("*/5 1-3,7 L * 1#2")
	f.Fuzz(func(t *testing.T, cron string) {
		s, err := ParseSchedule(cron, time.UTC)
		if err != nil {
			return
		}
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if next := s.Next(at); !next.IsZero() && !next.After(at) {
			t.Errorf("%q: %s is not after %s", cron, next, at)
		}
	})
}

func TestParseDue(t *testing.T) {
	t.Parallel()
	zone := storetest.Must(ParseZone("Europe/Berlin"))(t)
	for text, want := range map[string]string{
		"2026-11-23T09:00:00Z":      "2026-11-23T09:00:00Z",
		"2026-11-23T09:00:00+02:00": "2026-11-23T07:00:00Z",
		"2026-11-23T09:00":          "2026-11-23T08:00:00Z",
		"2026-07-01 09:00:30":       "2026-07-01T07:00:30Z",
		"2026-03-29T02:30":          "2026-03-29T01:00:00Z", // skipped
		"2026-10-25T02:30":          "2026-10-25T00:30:00Z", // comes twice
		"tomorrow":                  "",
		"1763884800":                "",
	} {
		got := ""
		if at, err := ParseDue(text, zone); err == nil {
			got = at.UTC().Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestParseZone_Unknown_Refused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Mars/Olympus", "../etc/passwd", "/etc/passwd", strings.Repeat("a", 100)} {
		if _, err := ParseZone(name); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

func schedule(t *testing.T, cron, zone string) *Schedule {
	t.Helper()
	loc := storetest.Must(ParseZone(zone))(t)
	s := storetest.Must(ParseSchedule(cron, loc))(t)
	return s
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at := storetest.Must(time.Parse(time.RFC3339, text))(t)
	return at
}

func TestLocalZone_IsNamed_WhereTheMachineSaysIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for target, want := range map[string]string{
		"/usr/share/zoneinfo/Europe/Berlin": "Europe/Berlin", "../usr/share/zoneinfo/Etc/UTC": "Etc/UTC",
		"/usr/share/zoneinfo/Mars": unnamed, "/elsewhere/Europe/Berlin": unnamed,
	} {
		link := filepath.Join(dir, filepath.Base(target)+want[:1])
		_ = os.Remove(link)
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		if got := localZone(unnamed, link); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
		if got := localZone("Asia/Tokyo", link); got != "Asia/Tokyo" {
			t.Errorf("with TZ: %s", got)
		}
	}
	if got := localZone(unnamed, filepath.Join(dir, "missing")); got != unnamed {
		t.Errorf("without a link: %s", got)
	}
	if _, err := ParseZone(LocalZone()); err != nil {
		t.Error(err)
	}
}

func TestZoneText_HasNameOrOffset(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.FixedZone("", 2*3600))
	if got := ZoneText("America/New_York", at); got != "America/New_York" {
		t.Error(got)
	}
	if got := ZoneText(unnamed, at); got == unnamed {
		t.Error(got)
	}
	for want, at := range map[string]time.Time{"UTC+02:00": at, "UTC": at.UTC(), "UTC-03:30": at.In(time.FixedZone("", -3*3600-1800))} {
		if got := offsetText(at); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

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
	root := storetest.Must(exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output())(t)
	archive := storetest.Must(zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip")))(t)
	defer archive.Close()
	rules := map[uint32]bool{} // each file once: there are many aliases
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, "/") || rules[f.CRC32] {
			continue
		}
		rules[f.CRC32] = true
		zone := storetest.Must(time.LoadLocation(f.Name))(t)
		zones = append(zones, zone)
	}
	if len(zones) < 300 {
		t.Fatalf("%d zones", len(zones))
	}
	return zones
}
