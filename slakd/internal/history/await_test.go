package history

import (
	"testing"
	"testing/synctest"
	"time"
)

// awaited is how long a live message waits in a conversation while act runs.
func awaited(t *testing.T, b *Bookmarks, channel string, act func()) time.Duration {
	t.Helper()
	began, done := time.Now(), make(chan time.Duration)
	go func() {
		b.Await(t.Context(), channel)
		done <- time.Since(began)
	}()
	synctest.Wait()
	act()
	return <-done
}

func TestAwait_LiveMessage_ComesAfterThoseMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBookmarks(nil, "slakd", time.Now)
		if got := awaited(t, b, "C1", func() {}); got != 0 {
			t.Errorf("without a gap it waits for %v", got)
		}
		b.Connected()
		gap := b.current()
		got := awaited(t, b, "C1", func() {
			if next := b.nextOf([]string{"C2", "C1"}); next != 1 {
				t.Errorf("conversation %d is read next, want the one in which a message waits", next)
			}
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
			b.settle("C2", gap)
			b.settle("C1", gap)
		})
		if got != time.Second {
			t.Errorf("it waits for %v, want until its conversation is read", got)
		}
		if next := b.nextOf([]string{"C2", "C1"}); next != 0 {
			t.Errorf("conversation %d is read next", next)
		}
		if got := awaited(t, b, "C3", func() {}); got != maxAwait {
			t.Errorf("of a conversation that is not read it waits for %v, want %v", got, maxAwait)
		}
		if got := awaited(t, b, "C3", func() { b.close(gap) }); got != 0 {
			t.Errorf("after the gap it waits for %v", got)
		}
		b.Connected()
		time.Sleep(maxOrdered) //nolint:forbidigo // in a bubble
		if got := awaited(t, b, "C1", func() {}); got != 0 {
			t.Errorf("long after the gap has opened it waits for %v", got)
		}
	})
}
