package platforms

import (
	"fmt"
	"testing"
	"time"

	"arizuko/deploy/e2e/chatsim"
	fp "arizuko/pkg/failpoint"
)

// TestDeathAtEveryPoint has an adapter die at each place it comes by, while people write, and
// starts it again: every message is stored once and answered, in order, and a copy of an answer
// says so.
func TestDeathAtEveryPoint(t *testing.T) {
	points := []fp.Point{fp.Received, fp.Sending, fp.Sent}
	for _, v := range []fp.Verb{fp.PutMessage, fp.PutCursor, fp.ClaimOutbound, fp.PutDelivery, fp.SettleOutbound} {
		points = append(points, v.Before(), v.After())
	}
	t.Parallel()
	for _, point := range points {
		t.Run(string(point), func(t *testing.T) {
			each(t, func(f *front) { f.dieAt(point) })
		})
	}
}

func (f *front) dieAt(point fp.Point) {
	thread, daemon := f.NewThread("deploys"), f.about.Daemon
	const private, public = "slow 0.2 private ", "slow 0.2 public " // long enough for people to be shown it
	var told []string
	say := func(n int) {
		told = append(told, fmt.Sprint(private, n), fmt.Sprint(public, n))
		f.say(f.dm, told[len(told)-2])
		f.call(thread, told[len(told)-1])
	}
	f.down(daemon)
	f.ok(f.Start(daemon, "FAILPOINT="+string(point)))
	p := f.Process(daemon)
	say(0)
	say(1)
	f.until(daemon+" dies", func() bool { return !p.Running() })
	if !p.Killed() {
		f.t.Fatalf("it ended by itself: %s", p.State())
	}
	say(2)
	f.up(daemon)
	f.onceEach(told)
	f.inOrder(f.dm, private)
	f.inOrder(thread, public)
}

func TestKilledAgainAndAgain(t *testing.T) {
	each(t, func(f *front) {
		var told []string
		for n := range 30 {
			told = append(told, fmt.Sprintf("private %d", n))
			f.say(f.dm, told[n])
			if n%6 == 5 {
				f.down(f.about.Daemon)
				f.up(f.about.Daemon)
			}
		}
		f.onceEach(told)
		f.inOrder(f.dm, "private ")
	})
}

// TestAnErrorBehindADelivery is also about those in front of one: nobody can tell which it was, but
// where the platform can be asked.
func TestAnErrorBehindADelivery(t *testing.T) {
	type copies struct{ plain, marked int }
	each(t, func(f *front) {
		for _, tt := range []struct {
			what  string
			fault chatsim.Fault
			want  copies // where nobody can look
		}{
			{"a 502 behind it", chatsim.Fault{Status: 502, After: true}, copies{1, 1}},
			{"silence behind it", chatsim.Fault{Drop: true, After: true}, copies{1, 1}},
			{"a 500 in front of it", chatsim.Fault{Status: 500}, copies{0, 1}},
			{"silence in front of it", chatsim.Fault{Drop: true}, copies{0, 1}},
		} {
			f.FailNextSend(tt.fault)
			f.say(f.dm, tt.what)
			want := tt.want
			if f.about.FindsMessages {
				want = copies{1, 0}
			}
			f.stored(tt.what)
			f.answer(tt.what)
			f.settle()
			if plain, marked := f.copies(tt.what); (copies{plain, marked}) != want {
				f.t.Errorf("%s: there are %d copies and %d marked ones, not %+v", tt.what, plain, marked, want)
			}
		}
	})
}

func TestWhoHasToWaitHoldsUpNobody(t *testing.T) {
	each(t, func(f *front) {
		const wait = 3 * time.Second
		bob := f.NewDM("Bob")
		began := time.Now()
		f.FailNextSend(chatsim.Fault{RetryAfter: wait})
		f.say(f.dm, "patience")
		f.until("the platform's wish is kept", func() bool {
			return f.value(`SELECT d.error_class FROM deliveries d JOIN messages m ON m.id = d.message_id
				WHERE m.chat_jid = ? AND d.not_before > 0 AND d.attempts = 0`, f.dm.Chat) == "rate"
		})
		f.say(bob, "hello")
		hello := f.answer("hello")
		patience := f.answer("patience")
		if late := patience.At.Sub(began); late < wait || !hello.At.Before(patience.At) {
			f.t.Errorf("who had to wait for %s has waited for %s, and the other was answered at %s, not before %s",
				wait, late, hello.At, patience.At)
		}
		f.onceEach([]string{"patience", "hello"})
		if _, marked := f.copies("patience"); marked != 0 {
			f.t.Error("what was refused is marked as a copy")
		}
	})
}

func TestDeadChatsHoldUpNobody(t *testing.T) {
	each(t, func(f *front) {
		all := f.Removals()
		for _, d := range all {
			f.call(d.Conversation, "slow 2 are you there?")
			f.running(d.Conversation)
			d.Apply()
		}
		f.say(f.dm, "hello")
		f.answer("hello")
		f.settle()
		for _, d := range all {
			if got := f.value(`SELECT d.error_class || ' ' || d.attempts || ' ' || m.out_state FROM deliveries d JOIN messages m ON m.id = d.message_id
				WHERE m.chat_jid = ? AND m.source = 'agent'`, d.Conversation.Chat); got != "permanent 0 failed" {
				f.t.Errorf("%s: the answer is %q", d.Name, got)
			}
		}
	})
}
