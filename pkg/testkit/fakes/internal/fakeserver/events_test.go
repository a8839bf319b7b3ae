package fakeserver_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// inbox holds the events that a bot received.
type inbox struct {
	*fakeserver.Events[string]
	mu  sync.Mutex
	got []string
}

func newInbox() *inbox {
	b := &inbox{}
	b.Events = fakeserver.NewEvents(&b.mu, func(e string, times int) {
		for range times {
			b.got = append(b.got, e)
		}
		b.Delivered(e)
	}, func(again []string) { b.got = append(b.got, again...) })
	return b
}

func (b *inbox) emit(events ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range events {
		b.Emit(e)
	}
}

func (b *inbox) received(t *testing.T, want string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := strings.Join(b.got, " "); got != want {
		t.Errorf("received %q, want %q", got, want)
	}
	b.got = nil
}

func TestEvents_DuplicatedReorderedRedelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newInbox()
		b.DuplicateNext(1)
		b.emit("1", "2")
		b.received(t, "1 1 2")
		b.ReverseNext(2)
		b.emit("3", "4", "5")
		b.received(t, "4 3 5")

		b.ReverseNext(3)
		b.emit("6", "7")
		if b.Held() != 2 {
			t.Errorf("%d are held", b.Held())
		}
		b.received(t, "")
		<-time.After(2 * time.Second)
		synctest.Wait()
		b.received(t, "7 6")

		b.ReverseNext(2)
		b.emit("8")
		b.ReverseNext(2)
		b.received(t, "8")
		b.emit("9")
		<-time.After(time.Second)
		b.ReverseNext(2)
		b.emit("10")
		<-time.After(time.Second)
		synctest.Wait()
		b.received(t, "9") // 10 waits for two seconds of its own
		b.emit("11")
		b.received(t, "11 10")

		if n := b.Redeliver(3); n != 3 {
			t.Errorf("%d redelivered", n)
		}
		b.received(t, "9 11 10")
		if n := b.Redeliver(5000); n != 11 {
			t.Errorf("%d redelivered", n)
		}
		for range 1001 {
			b.emit("x")
		}
		if n := b.Redeliver(5000); n != 1000 {
			t.Errorf("%d are kept", n)
		}
	})
}
