package reminders

import (
	"strings"
	"testing"
	"time"

	"arizuko/pkg/msg"
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
