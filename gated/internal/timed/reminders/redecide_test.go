package reminders

import (
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/redecided"
	"arizuko/pkg/msg"
)

func TestRedecide_NextTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC).UnixMilli()
	at := func(text string) int64 {
		parsed, err := time.Parse("2006-01-02 15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed.UnixMilli()
	}
	for name, tc := range map[string]struct {
		r    msg.Reminder
		want string // the difference, "" for none
	}{
		"next":             {msg.Reminder{Cron: "30 9 * * *", NextSlot: at("2026-03-03 09:30")}, ""},
		"has come, waits":  {msg.Reminder{Cron: "30 9 * * *", NextSlot: at("2026-03-01 09:30")}, ""},
		"once":             {msg.Reminder{DueAt: at("2026-04-01 09:30"), NextSlot: at("2026-04-01 09:30")}, ""},
		"once, has come":   {msg.Reminder{DueAt: at("2026-03-01 09:30"), NextSlot: at("2026-03-01 09:30")}, ""},
		"later than it is": {msg.Reminder{Cron: "30 9 * * *", NextSlot: at("2026-03-04 09:30")}, "now at 2026-03-03T09:30:00Z"},
		"no slot":          {msg.Reminder{Cron: "30 9 * * *", NextSlot: at("2026-03-03 10:00")}, "now at 2026-03-03T09:30:00Z"},
		"invalid now":      {msg.Reminder{Cron: "nonsense", NextSlot: at("2026-03-03 10:00")}, "now it would end: a cron expression has five fields"},
	} {
		tc.r.TimeZone, tc.r.ID = "UTC", 7
		var check redecided.Check
		redecide(&check, &tc.r, now)
		got := strings.Join(check.Examples, "\n")
		if (tc.want == "") != (check.Same == 1) || !strings.Contains(got, tc.want) || tc.want != "" && !strings.Contains(got, "reminder 7 of ") {
			t.Errorf("%s: %+v, want %q", name, check, tc.want)
		}
	}
	var check redecided.Check
	if redecide(&check, &msg.Reminder{DueAt: now}, now); check.Same+check.Different != 0 || len(check.NotCompared) != 1 {
		t.Errorf("without a slot: %+v", check)
	}
}
