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

func TestAhead_RoundedToUnit(t *testing.T) {
	const minute, hour = 60_000, 3_600_000
	for left, want := range map[int64]string{
		-5: "now", 0: "now", 1: "in less than a minute", minute: "in 1 min", 2*hour - 1: "in 119 min", 2 * hour: "in 2 h", 47 * hour: "in 47 h", 50 * hour: "in 2 d",
	} {
		if got := ahead(1000, 1000+left); got != want {
			t.Errorf("%d ms: %s, want %s", left, got, want)
		}
	}
}
