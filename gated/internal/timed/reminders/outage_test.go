package reminders

import (
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// TestRun_DiskFull_FiresOnceThereIsSpace is not parallel: for a while no file of this process may grow.
func TestRun_DiskFull_FiresOnceThereIsSpace(t *testing.T) {
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	synctest.Test(t, func(t *testing.T) {
		path := storetest.Path(t)
		var failed atomic.Int32
		h := harnessAt(t, path, func(err error) {
			if err != nil {
				failed.Add(1)
			}
		})
		h.put(msg.Reminder{DueAt: h.now.Add(time.Minute).UnixMilli()})
		h.put(msg.Reminder{DueAt: h.now.Add(time.Minute).UnixMilli(), Kind: msg.ReminderPrompt})
		h.now = h.now.Add(time.Minute)
		wal := storetest.Must(os.Stat(path + "-wal"))(t)
		release := limitFiles(t, uint64(wal.Size()))
		defer release()
		go func() { _ = h.s.Run(t.Context()) }()
		time.Sleep(3*retryDelay + retryDelay/2) //nolint:forbidigo // in a bubble
		synctest.Wait()
		if n := len(firedSlots(t, path)); n != 0 || failed.Load() != 4 || len(h.turns()) != 0 {
			t.Errorf("%d slots fired and %d turns dispatched in %d failed commits while the disk was full", n, len(h.turns()), failed.Load())
		}
		release()
		time.Sleep(10 * retryDelay) //nolint:forbidigo // in a bubble
		synctest.Wait()
		if n := len(firedSlots(t, path)); n != 2 || failed.Load() != 4 || len(h.turns()) != 1 {
			t.Errorf("%d slots fired, %d turns dispatched, %d commits failed, want 2, 1 and 4", n, len(h.turns()), failed.Load())
		}
	})
}

// TestRun_SetBackWhileDiskFull_FiresAtTheRightTimeAgain is not parallel either.
func TestRun_SetBackWhileDiskFull_FiresAtTheRightTimeAgain(t *testing.T) {
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	synctest.Test(t, func(t *testing.T) {
		path := storetest.Path(t)
		h := harnessAt(t, path, func(error) {})
		h.daily()
		var clock wallClock
		clock.set(instant(t, "2027-11-23T08:29:30Z")) // a year ahead: the slot of the day before is late
		h.s.cfg.Now = clock.now
		go func() { _ = h.s.Run(t.Context()) }()
		time.Sleep(2 * time.Minute) //nolint:forbidigo // in a bubble
		synctest.Wait()
		wal := storetest.Must(os.Stat(path + "-wal"))(t)
		release := limitFiles(t, uint64(wal.Size()))
		defer release()
		clock.set(instant(t, "2026-11-23T08:20:00Z"))
		time.Sleep(5 * time.Minute) //nolint:forbidigo // in a bubble
		release()
		time.Sleep(10 * time.Minute) //nolint:forbidigo // in a bubble
		synctest.Wait()
		slots := firedTimes(t, path)
		if want := []string{"2027-11-22T08:30:00Z", "2027-11-23T08:30:00Z", "2026-11-23T08:30:00Z"}; !slices.Equal(slots, want) {
			t.Errorf("fired %s, want %s", slots, want)
		}
	})
}

// limitFiles makes writes past a size fail in this process, until release is called.
func limitFiles(t *testing.T, size uint64) (release func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limited := before
	limited.Cur = size
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limited); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	}
}

func TestScheduler_DatabaseLocked_FiresOnceItIsFree(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	h := harnessAt(t, path, func(error) {})
	h.put(msg.Reminder{DueAt: h.now.UnixMilli() + 1})
	h.now = h.now.Add(time.Second)
	other := storetest.OpenAt(t, path, nil)
	held, free, released := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		released <- other.Write(t.Context(), func(tx *store.Tx) error {
			close(held)
			<-free
			return tx.EnsureChat("telegram:9", 1)
		})
	}()
	<-held
	done := make(chan error)
	go func() {
		_, err := h.s.fireDue(t.Context())
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("the page was written while another process held the lock: %v", err)
	default:
	}
	close(free)
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	h.at("2026-11-23T08:00:02Z")
	if n := len(firedSlots(t, path)); n != 1 {
		t.Errorf("%d slots fired", n)
	}
}

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
