package reminders

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/cronexpr"
)

// Schedule computes the slots of a cron expression in a time zone.
//
// The hours of a day are those of the zone's clocks. A slot in an hour that is skipped fires when the
// skipped time is over, or right before it where that is another day; a slot in an hour that comes twice
// fires in the first. If the hour is *, both hours count, and a skipped one has no slots. A day that the
// zone skips as a whole counts only where every day has slots.
type Schedule struct {
	// expr is asked about readings of clocks alone, as times in UTC: over a change of the clocks it may answer with
	// the time that it was asked about, or with another day.
	expr      *cronexpr.Expression
	zone      *time.Location
	everyHour bool
	everyDay  bool
}

// cronFields are the fields of an expression: minute, hour, day of month, month, day of week.
const cronFields = 5

// maxCron bounds an expression, in bytes.
const maxCron = 200

var errCron = errors.New("a cron expression has five fields: minute hour day-of-month month day-of-week, " +
	"as in \"30 9 * * mon-fri\"")

var errNever = errors.New("the cron expression names no day that exists")

// ParseSchedule parses an expression with five fields. The error says what is wrong with it.
func ParseSchedule(cron string, zone *time.Location) (s *Schedule, err error) {
	fields := strings.Fields(cron)
	if len(cron) > maxCron || len(fields) != cronFields || strings.ContainsFunc(cron, notCron) {
		return nil, errCron
	}
	defer func() {
		if cause := recover(); cause != nil { // of the parser, for a text that it does not expect
			s, err = nil, errCron
		}
	}()
	fields[4] = withSundays(fields[4])
	expr, err := cronexpr.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCron, err)
	}
	for _, field := range fields {
		if r := reversed(field); r != "" {
			return nil, fmt.Errorf("%w; the range %s ends before it begins: write two ranges, as in fri-sat,sun-mon",
				errCron, r)
		}
	}
	// The parser takes expressions that name no day, as 30 2, and panics now on some of them.
	if expr.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errNever
	}
	every := func(field int) bool { return fields[field] == "*" || fields[field] == "*/1" }
	return &Schedule{expr, zone, every(1), every(2) && every(3) && every(4)}, nil
}

// withSundays names Sunday beside a range of days of the week that ends with it: the parser leaves it out.
func withSundays(field string) string {
	const names = "sunmontuewedthufrisat"
	parts := strings.Split(strings.ToLower(field), ",")
	for i, part := range parts {
		days, step, stepped := strings.Cut(part, "/")
		first, last, _ := strings.Cut(days, "-")
		if last != "7" && last != "sun" && last != "sunday" {
			continue
		}
		from, err := strconv.Atoi(first)
		if at := strings.Index(names, first[:min(len(first), 3)]); err != nil && len(first) >= 3 && at%3 == 0 {
			from, err = at/3, nil
		}
		by := 1
		if stepped && err == nil {
			by, err = strconv.Atoi(step)
		}
		switch {
		case err != nil || by <= 0 || from == 0 && last == "7": // the parser refuses it, or takes all days of it
		case from == 7 || from == 0:
			parts[i] = "0"
		case from < 7 && (7-from)%by == 0:
			parts[i] = fmt.Sprintf("%d-6/%d,0", from, by)
		}
	}
	return strings.Join(parts, ",")
}

// reversed returns the first range of a field that ends before it begins, "" for none: the parser takes it for nothing.
func reversed(field string) string {
	for part := range strings.SplitSeq(strings.ToLower(field), ",") {
		days, _, _ := strings.Cut(part, "/")
		first, last, isRange := strings.Cut(days, "-")
		if from, to := ordinal(first), ordinal(last); isRange && from >= 0 && to >= 0 && to < from {
			return days
		}
	}
	return ""
}

// ordinal is the number of a word of a cron expression, which may name a day or a month; -1 for none.
func ordinal(word string) int {
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	for first, names := range []string{"sunmontuewedthufrisat", "janfebmaraprmayjunjulaugsepoctnovdec"} {
		if at := strings.Index(names, word[:min(len(word), 3)]); len(word) >= 3 && at >= 0 && at%3 == 0 {
			return first + at/3
		}
	}
	return -1
}

// notCron reports whether an expression must not have a character.
func notCron(c rune) bool {
	return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune("*/,-# \t", c)
}

// maxSteps bounds each search for a slot. Between two slots are 40 years at most (a leap day on one day of the week,
// over 2100), which have two changes of the clocks each; Last looks at the slots of a day, or at one in a window that
// had none.
const maxSteps = 10_000

// Next returns the first slot after a time, the zero time if there is none.
func (s *Schedule) Next(after time.Time) time.Time {
	after = after.In(s.zone)
	if s.everyHour {
		return s.nextOfEveryHour(after)
	}
	at := reading(after)
	for range maxSteps {
		next := s.expr.Next(at)
		if !next.After(at) { // there is none, or the library does not get on
			break
		}
		at = next
		if slot, exists := s.slot(at); exists && slot.After(after) {
			return slot
		}
	}
	return time.Time{}
}

// nextOfEveryHour goes from one change of the clocks to the next: between them each reading is one instant.
func (s *Schedule) nextOfEveryHour(after time.Time) time.Time {
	from := reading(after)
	for range maxSteps {
		_, offset := after.Zone()
		end := sameOffsetUntil(after)
		next := s.expr.Next(from)
		if !next.After(from) {
			break
		}
		slot := next.Add(-time.Duration(offset) * time.Second).In(s.zone)
		if end.IsZero() || slot.Before(end) {
			return slot
		}
		// a slot may lie on the change itself
		after, from = end.In(s.zone), reading(end.In(s.zone)).Add(-time.Nanosecond)
	}
	return time.Time{}
}

// sameOffsetUntil is a time until which the clocks of a time's zone do not change, zero for ever.
func sameOffsetUntil(t time.Time) time.Time {
	const step = 15 * time.Minute // no zone changes its clocks between quarters of an hour
	_, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) { // so says Go all day on the last of December in leap years after 2037
		return t.Truncate(step).Add(step)
	}
	return end
}

// Last returns the last slot that is not after a time, the zero time if there is none since `since`.
func (s *Schedule) Last(since, until time.Time) (last time.Time) {
	// Long ago there may have been many: the search goes back further and further.
	const shortest = time.Hour
	for back := shortest; ; back *= 4 {
		from := until.Add(-back)
		if back > until.Sub(since) || back <= 0 {
			from = since.Add(-time.Nanosecond)
		}
		slot := s.Next(from)
		for range maxSteps {
			if slot.IsZero() || slot.After(until) {
				break
			}
			last, slot = slot, s.Next(slot)
		}
		if !last.IsZero() || !from.After(since) {
			return last
		}
	}
}

// reading is the reading of the clocks of a time's zone, as a time in UTC.
func reading(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// slot is when a reading fires. A reading that is skipped fires on its own day; one of a day that does not exist only
// if every day has slots.
func (s *Schedule) slot(at time.Time) (t time.Time, exists bool) {
	t = s.instant(at)
	if shown := reading(t); s.everyDay || sameDay(shown, at) {
		return t, true
	}
	before := t.Add(-time.Minute)
	return before, sameDay(reading(before), at)
}

func sameDay(a, b time.Time) bool { return a.YearDay() == b.YearDay() && a.Year() == b.Year() }

// instant is the first time at which the clocks of the zone show a reading, or have passed it.
func (s *Schedule) instant(at time.Time) time.Time {
	t := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, s.zone)
	start, end := t.ZoneBounds()
	switch shown := reading(t); {
	case shown.After(at): // skipped, and t is behind the gap
		return start
	case shown.Before(at):
		return end
	}
	if !start.IsZero() {
		_, offset := start.Add(-time.Second).Zone()
		if earlier := at.Add(-time.Duration(offset) * time.Second).In(s.zone); earlier.Before(start) &&
			reading(earlier).Equal(at) {
			return earlier
		}
	}
	return t
}

// ParseDue reads when a one-shot reminder is due: RFC 3339 with an offset, or a local time without one, which
// is read in zone. A local time that is skipped there counts as the first one after it, one that comes twice
// as the first.
func ParseDue(text string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Truncate(time.Millisecond), nil
		}
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05",
		"2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			seconds := time.Duration(t.Second())*time.Second + time.Duration(t.Nanosecond())
			return (&Schedule{zone: zone}).instant(t.Add(-seconds)).Add(seconds).Truncate(time.Millisecond), nil
		}
	}
	return time.Time{}, fmt.Errorf("%.60q is no time: write 2006-01-02T15:04:05+02:00, or without an offset for the "+
		"local time of time_zone", text)
}

// unnamed is the name of time.Local where TZ is not set.
const unnamed = "Local"

// LocalZone is the name of this machine's time zone: that of TZ, or the one that /etc/localtime links to. It is
// "Local", which is loaded like a name, if neither is known.
func LocalZone() string { return localZone(time.Local.String(), "/etc/localtime") }

func localZone(name, link string) string {
	if name != unnamed {
		return name
	}
	target, err := os.Readlink(link)
	if err != nil {
		return unnamed // a copied file, or none
	}
	_, zone, found := strings.Cut(target, "/zoneinfo/")
	if !found {
		return unnamed
	}
	if _, err := ParseZone(zone); err != nil {
		return unnamed
	}
	return zone
}

// ZoneText is a time zone as users and agents read it: its name or, if it has none, its offset at a time, as
// in UTC+02:00.
func ZoneText(name string, at time.Time) string {
	if name == unnamed {
		name = LocalZone()
	}
	if name != unnamed {
		return name
	}
	return offsetText(at)
}

func offsetText(at time.Time) string {
	if _, offset := at.Zone(); offset == 0 {
		return "UTC"
	}
	return "UTC" + at.Format("-07:00")
}
