package pages

import (
	"testing"
	"time"
)

func TestAgo_Ages_RoundedToUnit(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		before time.Duration
		want   string
	}{
		{-time.Hour, "just now"}, // clocks differ
		{0, "just now"},
		{time.Minute - time.Millisecond, "just now"},
		{time.Minute, "1 min ago"},
		{time.Hour - time.Millisecond, "59 min ago"},
		{time.Hour, "1 h ago"},
		{24*time.Hour - time.Millisecond, "23 h ago"},
		{24 * time.Hour, "1 d ago"},
		{7*24*time.Hour - time.Millisecond, "6 d ago"},
		{7 * 24 * time.Hour, "2026-11-14"},
	} {
		if got := ago(now.UnixMilli(), now.Add(-test.before).UnixMilli()); got != test.want {
			t.Errorf("%v before: %q, want %q", test.before, got, test.want)
		}
	}
}
