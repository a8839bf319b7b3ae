package adapter

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestFloods_SecondChatRefused_IsTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Floods{}
		expect := func(what, chat string, want bool) {
			t.Helper()
			if got := f.Refused(chat, time.Minute); got != want {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		expect("the first chat", "one", false)
		expect("the same chat", "one", false)
		expect("another chat", "two", true)
		f.Accepted("two")
		expect("after something was taken", "two", false)
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		expect("after the wait", "one", false)
	})
}

// Two groups that are written to all the time may both be at their own limits.
func TestFloods_OnlyBusyChatsRefused_IsNotTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after, want := range map[time.Duration]bool{quietFor - time.Second: false, quietFor: true} {
			f := &Floods{}
			f.Accepted("one")
			f.Accepted("two")
			time.Sleep(after) //nolint:forbidigo // in a bubble
			f.Refused("one", time.Hour)
			if got := f.Refused("two", time.Hour); got != want {
				t.Errorf("%s after both were sent to: %v, want %v", after, got, want)
			}
			if !f.Refused("three", time.Hour) {
				t.Errorf("%s after: a quiet chat is refused, too, and the account does not wait", after)
			}
		}
	})
}

func TestFloods_ManyChats_ForgetsQuietOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Floods{}
		for i := range 3 * maxBusy {
			f.Accepted(strconv.Itoa(i))
			time.Sleep(time.Second / 30) //nolint:forbidigo // in a bubble
		}
		if len(f.busy) > maxBusy {
			t.Errorf("%d chats are remembered", len(f.busy))
		}
	})
}
