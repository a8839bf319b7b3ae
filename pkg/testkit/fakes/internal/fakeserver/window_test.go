package fakeserver_test

import (
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

func TestWindow_Full_GivesWait(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	w := fakeserver.Window{at(0), at(1), at(5)}
	for _, tt := range []struct {
		limit, now int
		want       time.Duration
	}{
		{4, 5, 0}, {3, 5, 5 * time.Second}, {2, 5, 6 * time.Second}, {1, 5, 10 * time.Second}, {3, 10, 0}, {3, 12, -2 * time.Second},
	} {
		if got := w.Wait(tt.limit, 10*time.Second, at(tt.now)); got != tt.want {
			t.Errorf("limit %d at %d: %v, want %v", tt.limit, tt.now, got, tt.want)
		}
	}
	if got := w.Since(5*time.Second, at(6)); len(got) != 1 || !got[0].Equal(at(5)) {
		t.Errorf("since: %v", got)
	}
}

func TestSeconds_RoundsUp(t *testing.T) {
	for wait, want := range map[time.Duration]int{-time.Second: 0, 0: 0, 1: 1, time.Second: 1, 1100 * time.Millisecond: 2} {
		if got := fakeserver.Seconds(wait); got != want {
			t.Errorf("%v: %d, want %d", wait, got, want)
		}
	}
}
