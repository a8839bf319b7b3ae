package reminders

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

// wallClock is a clock that is set while the time of the bubble goes on.
type wallClock struct{ ahead atomic.Int64 }

func (c *wallClock) now() time.Time      { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *wallClock) set(clock time.Time) { c.ahead.Store(int64(time.Until(clock))) }

// A slot that the clock jumps to does not wait for the next look at the rows.
func TestRun_ClockIsSetAhead_FiresAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := harnessOn(t, storetest.Open(t))
		h.daily()
		var clock wallClock
		clock.set(h.now)
		h.s.cfg.Now = clock.now
		go func() { _ = h.s.Run(t.Context()) }()
		<-time.After(10 * time.Second)
		clock.set(instant(t, "2026-11-23T08:30:05Z"))
		<-time.After(2 * clockLook)
		synctest.Wait()
		if n := len(h.sent()); n != 1 {
			t.Errorf("%d messages 2 s after the slot, want 1", n)
		}
	})
}

// TestRun_ClockIsSet runs the scheduler while its clock jumps, and compares when the reminder of 08:30 UTC has fired.
func TestRun_ClockIsSet_SlotsFireOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		missed msg.Missed
		jumps  []string // the clock is set to each of them, and runs for two minutes
		slots  []string // that have fired
	}{
		"ahead past several slots, one":  {msg.MissedOne, []string{"2026-11-26T12:00:00Z"}, []string{"2026-11-26T08:30:00Z"}},
		"ahead past several slots, skip": {msg.MissedSkip, []string{"2026-11-26T12:00:00Z"}, nil},
		"ahead to a slot, skip":          {msg.MissedSkip, []string{"2026-11-26T08:29:00Z"}, []string{"2026-11-26T08:30:00Z"}},
		"ahead and forward again, skip":  {msg.MissedSkip, []string{"2026-11-26T12:00:00Z", "2026-11-27T08:29:30Z"}, []string{"2026-11-27T08:30:00Z"}},
		"back over a slot":               {msg.MissedOne, []string{"2026-11-23T08:29:30Z", "2026-11-23T08:29:30Z", "2026-11-23T08:29:30Z"}, []string{"2026-11-23T08:30:00Z"}},
		"back by days":                   {msg.MissedOne, []string{"2026-11-23T08:29:30Z", "2026-11-20T08:29:30Z", "2026-11-23T08:29:30Z"}, []string{"2026-11-20T08:30:00Z", "2026-11-22T08:30:00Z", "2026-11-23T08:30:00Z"}},
		// Slots that fired while the clock was wrong stay fired, and the right ones fire too.
		"a year ahead for a while, one": {msg.MissedOne, []string{"2027-11-24T12:00:00Z", "2026-11-23T08:29:30Z", "2026-11-24T08:29:30Z"},
			[]string{"2026-11-23T08:30:00Z", "2026-11-24T08:30:00Z", "2027-11-24T08:30:00Z"}},
		"a year ahead for a while, skip": {msg.MissedSkip, []string{"2027-11-24T12:00:00Z", "2026-11-23T08:29:30Z"}, []string{"2026-11-23T08:30:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				path := storetest.Path(t)
				h := harnessOn(t, storetest.OpenAt(t, path, nil))
				h.put(msg.Reminder{Cron: "30 9 * * *", Missed: tc.missed})
				var clock wallClock
				clock.set(h.now)
				h.s.cfg.Now = clock.now
				go func() { _ = h.s.Run(t.Context()) }()
				synctest.Wait()
				for _, jump := range tc.jumps {
					clock.set(instant(t, jump))
					time.Sleep(2 * time.Minute) //nolint:forbidigo // in a bubble
					synctest.Wait()
				}
				slots := firedTimes(t, path)
				if slices.Sort(slots); !slices.Equal(slots, tc.slots) {
					t.Errorf("fired %s, want %s", slots, tc.slots)
				}
				if n := len(h.sent()); n != len(tc.slots) {
					t.Errorf("%d messages", n)
				}
			})
		})
	}
}
