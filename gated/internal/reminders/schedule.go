package reminders

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/cronexpr"
)

// Schedule computes the slots of a cron expression in a time zone.
//
// The hours of a day are those of the zone's clocks. What falls into an hour that is skipped fires when
// the skipped time is over; what falls into an hour that comes twice fires in the first. If the hour is *,
// both hours count, and a skipped one has no slots.
type Schedule struct {
	expr      *cronexpr.Expression
	zone      *time.Location
	everyHour bool
}

// cronFields are the fields of an expression: minute, hour, day of month, month, day of week.
const cronFields = 5

// maxCron bounds an expression, in bytes.
const maxCron = 200

var errCron = errors.New("a cron expression has five fields: minute hour day-of-month month day-of-week, as in \"30 9 * * mon-fri\"")

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
	expr, err := cronexpr.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCron, err)
	}
	// The parser takes ranges that are empty, as 5-1, on which it panics now.
	if expr.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errNever
	}
	return &Schedule{expr, zone, fields[1] == "*" || fields[1] == "*/1"}, nil
}

// notCron reports whether an expression must not have a character.
func notCron(c rune) bool {
	return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune("*/,-# \t", c)
}

// Next returns the first slot after a time, the zero time if there is none.
func (s *Schedule) Next(after time.Time) time.Time {
	after = after.In(s.zone)
	if s.everyHour {
		return s.expr.Next(after)
	}
	// The clock's readings, as if the zone never changed.
	for at := s.expr.Next(reading(after)); !at.IsZero(); at = s.expr.Next(at) {
		if slot := s.instant(at); slot.After(after) {
			return slot
		}
	}
	return time.Time{}
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
		for slot := s.Next(from); !slot.IsZero() && !slot.After(until); slot = s.Next(slot) {
			last = slot
		}
		if !last.IsZero() || !from.After(since) {
			return last
		}
	}
}

// reading is what the clocks of a time's zone show, as a time in UTC.
func reading(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

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
		if earlier := at.Add(-time.Duration(offset) * time.Second).In(s.zone); earlier.Before(start) && reading(earlier).Equal(at) {
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
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			seconds := time.Duration(t.Second())*time.Second + time.Duration(t.Nanosecond())
			return (&Schedule{zone: zone}).instant(t.Add(-seconds)).Add(seconds).Truncate(time.Millisecond), nil
		}
	}
	return time.Time{}, fmt.Errorf("%.60q is no time: write 2006-01-02T15:04:05+02:00, or without an offset for the local time of time_zone", text)
}
