package reminders

import (
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/redecided"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

func TestSpec_Apply(t *testing.T) {
	t.Parallel()
	now := instant(t, "2026-11-23T08:00:00Z")
	for name, tc := range map[string]struct {
		stored msg.Reminder
		spec   Spec
		want   string // the next slot
		err    string
	}{
		"once":                      {spec: Spec{DueAt: "2026-11-23T10:00:00+01:00"}, want: "2026-11-23T09:00:00Z"},
		"once, local":               {spec: Spec{DueAt: "2026-11-23T10:00"}, want: "2026-11-23T09:00:00Z"},
		"once, local elsewhere":     {spec: Spec{DueAt: "2026-11-23T10:00", TimeZone: "America/New_York"}, want: "2026-11-23T15:00:00Z"},
		"past":                      {spec: Spec{DueAt: "2026-11-23T08:00:00Z"}, err: "it is 2026-11-23T09:00:00+01:00 now"},
		"far ahead":                 {spec: Spec{DueAt: "2036-11-23T08:00:00Z"}, err: "5 years"},
		"no time":                   {spec: Spec{DueAt: "soon"}, err: "is no time"},
		"repeats":                   {spec: Spec{Cron: " 30 9  * * * "}, want: "2026-11-23T08:30:00Z"},
		"every ten minutes":         {spec: Spec{Cron: "*/10 * * * *"}, want: "2026-11-23T08:10:00Z"},
		"too often":                 {spec: Spec{Cron: "*/5 * * * *"}, err: "every 10 minutes"},
		"twice in a row":            {spec: Spec{Cron: "0,5 9 * * *"}, err: "every 10 minutes"},
		"both":                      {spec: Spec{Cron: "0 9 * * *", DueAt: "2026-11-24T08:00:00Z"}, err: "not both"},
		"neither":                   {err: "when?"},
		"unknown zone":              {spec: Spec{Cron: "0 9 * * *", TimeZone: "Mars"}, err: "no such time zone"},
		"other text":                {stored: msg.Reminder{DueAt: 9_000_000_000_000, NextSlot: 9_000_000_000_000}, spec: Spec{Body: "y"}, want: "2255-03-14T16:00:00Z"},
		"once becomes repeated":     {stored: msg.Reminder{DueAt: 9_000_000_000_000}, spec: Spec{Cron: "0 9 * * *"}, want: "2026-11-24T08:00:00Z"},
		"another zone":              {stored: msg.Reminder{Cron: "0 9 * * *", TimeZone: "UTC"}, spec: Spec{TimeZone: "America/New_York"}, want: "2026-11-23T14:00:00Z"},
		"repeated becomes one-shot": {stored: msg.Reminder{Cron: "0 9 * * *"}, spec: Spec{DueAt: "2026-11-24T08:00:00Z"}, want: "2026-11-24T08:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tc.stored
			r.Body = "x"
			err := tc.spec.Apply(&r, "Europe/Berlin", now)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%v, want %q", err, tc.err)
				}
				return
			}
			if got := time.UnixMilli(r.NextSlot).UTC().Format(time.RFC3339); err != nil || got != tc.want {
				t.Errorf("next slot is %s, %v, want %s", got, err, tc.want)
			}
			if (r.DueAt == 0) == (r.Cron == "") {
				t.Errorf("reminder is %+v", r)
			}
		})
	}
}

func TestRedecide_NextTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC).UnixMilli()
	at := func(text string) int64 {
		parsed := storetest.Must(time.Parse("2006-01-02 15:04", text))(t)
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
