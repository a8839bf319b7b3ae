package platforms

import (
	"fmt"
	"testing"

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
