package reminders

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
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
	zone, err := ParseZone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
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
	loc, err := ParseZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSchedule(cron, loc)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
