package reminders

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"arizuko/pkg/msg"
)

// Limits of reminders.
const (
	MaxPerFolder = 200  // active ones of a group
	MaxPerChat   = 50   // active ones for a chat
	MaxBody      = 4000 // characters: about one post on every platform
	// minPeriod is the shortest time between two slots: a chat is not a clock.
	minPeriod = 10 * time.Minute
	// MinDistance is the least time between prompts of a chat that fire once: each is a turn.
	MinDistance = time.Minute
	// checkedSlots is how many slots are compared with minPeriod.
	checkedSlots = 100
	// maxAhead is how far ahead a one-shot reminder may be.
	maxAhead = 5 * 366 * 24 * time.Hour
)

// Spec is a request for a reminder, or for a change of one, whose empty fields leave the stored ones.
type Spec struct {
	Kind, Body, DueAt, Cron, TimeZone, Missed string
}

// Apply changes a reminder and computes its next slot. zone is the time zone of a reminder that names none. The errors
// are for the author of the spec: they say what to do.
func (s Spec) Apply(r *msg.Reminder, zone string, now time.Time) error {
	set(&r.Kind, s.Kind)
	set(&r.Missed, s.Missed)
	set(&r.TimeZone, s.TimeZone)
	if strings.TrimSpace(s.Body) != "" {
		r.Body = s.Body
	}
	if r.TimeZone == "" {
		r.TimeZone = zone
	}
	if r.Body == "" {
		return errors.New("body is missing: give the text to send, or the prompt for yourself")
	}
	loc, err := ParseZone(r.TimeZone)
	if err != nil {
		return err
	}
	switch {
	case s.DueAt != "" && s.Cron != "":
		return errors.New("give due_at for a reminder that fires once, or cron for one that repeats, not both")
	case s.DueAt != "":
		r.Cron = ""
		return s.once(r, loc, now)
	case s.Cron != "":
		r.DueAt, r.Cron = 0, strings.Join(strings.Fields(s.Cron), " ")
	case r.DueAt == 0 && r.Cron == "":
		return errors.New("when? Give due_at for a reminder that fires once, or cron for one that repeats")
	case r.DueAt != 0:
		return nil // when it fires stays
	}
	return repeat(r, loc, now)
}

func set[T ~string](to *T, value string) {
	if value != "" {
		*to = T(value)
	}
}

// once sets when a reminder fires that does not repeat.
func (s Spec) once(r *msg.Reminder, loc *time.Location, now time.Time) error {
	at, err := ParseDue(s.DueAt, loc)
	if err != nil {
		return err
	}
	if !at.After(now) {
		return fmt.Errorf("due_at %s has passed: it is %s now. Give a later time, with the offset that you mean",
			at.In(loc).Format(time.RFC3339), now.In(loc).Format(time.RFC3339))
	}
	if at.Sub(now) > maxAhead {
		return fmt.Errorf("due_at is more than 5 years ahead: it is %s now", now.In(loc).Format(time.RFC3339))
	}
	r.DueAt, r.NextSlot = at.UnixMilli(), at.UnixMilli()
	return nil
}

// repeat sets when a reminder fires next that repeats.
func repeat(r *msg.Reminder, loc *time.Location, now time.Time) error {
	schedule, err := ParseSchedule(r.Cron, loc)
	if err != nil {
		return err
	}
	first := schedule.Next(now)
	if first.IsZero() {
		return errNever
	}
	for at, n := first, 0; n < checkedSlots; n++ {
		next := schedule.Next(at)
		if next.IsZero() {
			break
		}
		if next.Sub(at) < minPeriod {
			return fmt.Errorf("cron %q fires twice within %s: let it fire every 10 minutes at most", r.Cron,
				next.Sub(at))
		}
		at = next
	}
	r.NextSlot = first.UnixMilli()
	return nil
}

// FreeSlot is the first time from at and earliest on that is MinDistance away from the times that are planned, which
// are sorted. All are unix ms; a time that is not at itself has whole seconds, as authors write them.
func FreeSlot(at, earliest int64, planned []int64) int64 {
	const distance = int64(MinDistance / time.Millisecond)
	later := func(ms int64) int64 { return (ms + 999) / 1000 * 1000 }
	if at < earliest {
		at = later(earliest)
	}
	for _, other := range planned {
		if other-at >= distance {
			break
		}
		if at-other < distance {
			at = later(other + distance)
		}
	}
	return at
}
