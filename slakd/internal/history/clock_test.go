package history

import (
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/store"
)

// The first start, and what is too old, follow Slack's clock: the machine's may be wrong, and may be set later.
func TestLoad_WrongClock_BeginsAtSlacksTime(t *testing.T) {
	for what, wrong := range map[string]time.Duration{"fast": 3 * time.Hour, "slow": -3 * time.Hour, "right": 0} {
		s := newShell(t)
		slack := time.Now()
		clock := wrong
		b := NewBookmarks(s.Store, "slakd", func() time.Time { return slack.Add(clock) })
		b.SetSlackTime(slack.Truncate(time.Second))
		if err := b.Load(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		stored, err := s.Store.DaemonCursor(t.Context(), "slakd", "began")
		began := time.UnixMicro(micros(stored))
		want := slack.Truncate(time.Second)
		if wrong == 0 {
			want = slack.Truncate(time.Microsecond) // to the microsecond where the clocks agree
		}
		if err != nil || !began.Equal(want) {
			t.Errorf("%s: began %v, %v, want %v", what, began, err, want)
		}
		if floor := b.span("C1", time.Hour).floor; floor != began.UnixMicro() {
			t.Errorf("%s: floor %v, want %v", what, time.UnixMicro(floor), began)
		}
		if floor := b.span("C1", -time.Minute).floor; floor != began.Add(time.Minute).UnixMicro() {
			t.Errorf("%s: floor %v, want a minute after %v", what, time.UnixMicro(floor), began)
		}
	}
}

// A start that was stored by a clock that was ahead begins again: otherwise nothing would be read until then.
func TestLoad_BeganInTheFuture_BeginsNow(t *testing.T) {
	s := newShell(t)
	now := time.Now()
	if err := s.Store.Write(t.Context(), func(tx *store.Tx) error {
		return tx.PutCursor("slakd", "began", timestamp(now.Add(time.Hour).UnixMicro()))
	}); err != nil {
		t.Fatal(err)
	}
	b := NewBookmarks(s.Store, "slakd", func() time.Time { return now })
	if err := b.Load(t.Context(), s); err != nil || b.began != now.UnixMicro() {
		t.Errorf("began %v, %v", time.UnixMicro(b.began), err)
	}
	if stored, err := s.Store.DaemonCursor(t.Context(), "slakd", "began"); err != nil || micros(stored) != now.UnixMicro() {
		t.Errorf("stored %q, %v", stored, err)
	}
}

// A clock that is set while slakd runs changes nothing; elapsed time counts.
func TestSlackNow_FollowsElapsedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBookmarks(nil, "slakd", time.Now)
		slack := time.Now().Add(48 * time.Hour)
		b.SetSlackTime(slack)
		time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
		if got := b.slackNow(); !got.Equal(slack.Add(time.Hour)) {
			t.Errorf("%v, want %v", got, slack.Add(time.Hour))
		}
	})
}

// A message from the future moves a bookmark no further than what is read again before it.
func TestMove_FromTheFuture_HidesNothing(t *testing.T) {
	now := time.Now()
	b := NewBookmarks(nil, "slakd", func() time.Time { return now })
	b.Connected()
	gap := b.current()
	b.settle("C1", gap)
	b.close(gap)
	b.Move("C1", timestamp(now.Add(time.Hour).UnixMicro()))
	b.advance("C2", now.Add(time.Hour).UnixMicro())
	for _, channel := range []string{"C1", "C2"} {
		if since := b.span(channel, 24*time.Hour).since; since > now.UnixMicro() {
			t.Errorf("%s is read from %v on, want %v or earlier", channel, time.UnixMicro(since), now)
		}
	}
}
