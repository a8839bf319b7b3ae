package platforms

import (
	"fmt"
	"testing"
	"time"

	"arizuko/deploy/e2e/chatsim"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/testkit/need"
)

// Every message is stored once and answered in order, and a copy of an answer is marked.
func TestAdapter_KilledAtEachFailpoint_StoresOnceAnswersInOrder(t *testing.T) {
	need.Verify(t)
	points := []fp.Point{fp.Received, fp.Sending, fp.Sent}
	for _, v := range []fp.Verb{fp.PutMessage, fp.PutCursor, fp.ClaimOutbound, fp.PutDelivery, fp.SettleOutbound} {
		points = append(points, v.Before(), v.After())
	}
	t.Parallel()
	for _, point := range points {
		t.Run(string(point), func(t *testing.T) {
			onEachPlatform(t, func(f *fixture) { f.killAt(point) })
		})
	}
}

// killAt kills the adapter at a failpoint while users write, and restarts it.
func (f *fixture) killAt(point fp.Point) {
	thread, daemon := f.NewThread("deploys"), f.info.Daemon
	const private, public = "slow 0.2 private ", "slow 0.2 public " // long enough for the working sign
	var texts []string
	say := func(n int) {
		texts = append(texts, fmt.Sprint(private, n), fmt.Sprint(public, n))
		f.say(f.dm, texts[len(texts)-2])
		f.ask(thread, texts[len(texts)-1])
	}
	f.Kill(daemon)
	f.StartDaemon(daemon, "FAILPOINT="+string(point))
	p := f.Instance.Process(daemon)
	say(0)
	say(1)
	f.Until(daemon+" to end", func() bool { return !p.Running() })
	if !p.Killed() {
		f.T.Fatalf("%s ended with %s, want killed", daemon, p.State())
	}
	say(2)
	f.Restart(daemon)
	f.wantOneAnswerEach(texts)
	f.wantOrder(f.dm, private)
	f.wantOrder(thread, public)
}

func TestAdapter_KilledRepeatedly_AnswersOnceInOrder(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		var texts []string
		for n := range 30 {
			texts = append(texts, fmt.Sprintf("private %d", n))
			f.say(f.dm, texts[n])
			if n%6 == 5 {
				f.Kill(f.info.Daemon)
				f.Restart(f.info.Daemon)
			}
		}
		f.wantOneAnswerEach(texts)
		f.wantOrder(f.dm, "private ")
	})
}

// An adapter cannot tell an error after the delivery from one before it, unless it can look up
// messages.
func TestAdapter_UncertainDelivery_ResendsMarkedCopy(t *testing.T) {
	need.Verify(t)
	type copies struct{ plain, marked int }
	onEachPlatform(t, func(f *fixture) {
		for _, tt := range []struct {
			what  string
			fault chatsim.Fault
			want  copies // where the adapter cannot look up messages
		}{
			{"a 502 after it", chatsim.Fault{Status: 502, After: true}, copies{1, 1}},
			{"no response after it", chatsim.Fault{Drop: true, After: true}, copies{1, 1}},
			{"a 500 before it", chatsim.Fault{Status: 500}, copies{0, 1}},
			{"no response before it", chatsim.Fault{Drop: true}, copies{0, 1}},
		} {
			f.FailNextSend(tt.fault)
			f.say(f.dm, tt.what)
			want := tt.want
			if f.info.FindsMessages {
				want = copies{1, 0}
			}
			f.waitStored(tt.what)
			f.waitAnswer(tt.what)
			f.WaitIdle()
			if plain, marked := f.copies(tt.what); (copies{plain, marked}) != want {
				f.T.Errorf("%s: %d answers and %d marked copies, want %+v", tt.what, plain, marked, want)
			}
		}
	})
}

func TestAdapter_RateLimitedChat_DoesNotDelayOthers(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		const wait = 3 * time.Second
		bob := f.NewDM("Bob")
		began := time.Now()
		f.FailNextSend(chatsim.Fault{RetryAfter: wait})
		f.say(f.dm, "patience")
		f.Until("the answer to be deferred", func() bool {
			return f.Value(`SELECT d.error_class FROM deliveries d JOIN messages m ON m.id = d.message_id
				WHERE m.chat_jid = ? AND d.not_before > 0 AND d.attempts = 0`, f.dm.Chat) == "rate"
		})
		f.say(bob, "hello")
		hello := f.waitAnswer("hello")
		patience := f.waitAnswer("patience")
		if late := patience.At.Sub(began); late < wait || !hello.At.Before(patience.At) {
			f.T.Errorf("the limited answer came after %s, want at least %s; the other at %s, want before %s",
				late, wait, hello.At, patience.At)
		}
		f.wantOneAnswerEach([]string{"patience", "hello"})
		if _, marked := f.copies("patience"); marked != 0 {
			f.T.Error("a refused answer is marked as a copy")
		}
	})
}

func TestAdapter_RemovedChats_DoNotDelayOthers(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		all := f.Removals()
		for n, d := range all {
			removed := fmt.Sprint("removed", n)
			f.ask(d.Conversation, "until "+removed+" are you there?")
			f.waitRunning(d.Conversation)
			d.Apply()
			f.LetGo("main", removed)
		}
		f.say(f.dm, "hello")
		f.waitAnswer("hello")
		f.WaitIdle()
		for _, d := range all {
			want := "permanent 0 failed"
			if d.LeavesChat {
				want = " 0 sent"
			}
			if got := f.Value(`SELECT ifnull(d.error_class, '') || ' ' || d.attempts || ' ' || m.out_state FROM deliveries d JOIN messages m ON m.id = d.message_id
				WHERE m.chat_jid = ? AND m.source = 'agent'`, d.Conversation.Chat); got != want {
				f.T.Errorf("%s: the answer is %q, want %q", d.Name, got, want)
			}
		}
	})
}
