package telegram

import (
	"fmt"
	"strings"
	"testing"

	fp "arizuko/pkg/faultpoint"
)

// TestDeathAtEveryPoint has teled die at each place it comes by, while people write, and starts it
// again: every message is stored once and answered, in order, and a copy of an answer says so.
func TestDeathAtEveryPoint(t *testing.T) {
	points := []fp.Point{fp.Received, fp.Sending, fp.Sent}
	for _, v := range []fp.Verb{fp.PutMessage, fp.PutCursor, fp.ClaimOutbound, fp.PutDelivery, fp.SettleOutbound} {
		points = append(points, v.Before(), v.After())
	}
	for _, point := range points {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			r := start(t)
			dm, group := r.DM(r.alice), r.Supergroup("Team", r.alice)
			group.AddBot(r.alice)
			r.ok(r.WaitConfirmed(r.ctx))
			r.ok(r.Kill("teled"))
			r.ok(r.Instance.Start("teled", "FAULT="+string(point)))
			p := r.Process("teled")
			var told []string
			say := func(n int) {
				told = append(told, fmt.Sprintf("private %d", n), fmt.Sprintf("public %d", n))
				dm.Say(r.alice, told[len(told)-2])
				group.Say(r.alice, "@"+r.Me().Username+" "+told[len(told)-1])
			}
			say(0)
			say(1)
			r.until("teled dies", func() bool { return !p.Running() })
			if !p.Killed() {
				t.Fatalf("it ended by itself: %s", p.State())
			}
			say(2)
			r.up("teled")
			r.onceEach(told)
			r.inOrder(dm.ChatID, "private ")
			r.inOrder(group.ChatID, "public ")
		})
	}
}

// onceEach waits until each text is answered, and fails unless it is stored once, and answered
// once or with copies that say so.
func (r *rig) onceEach(told []string) {
	r.t.Helper()
	for _, text := range told {
		r.until(fmt.Sprintf("%q is answered", text), func() bool {
			plain, marked := r.copies(text)
			return plain+marked > 0
		})
	}
	for _, text := range told {
		if plain, _ := r.copies(text); plain > 1 {
			r.t.Errorf("%q is answered %d times without a mark", text, plain)
		}
		if stored := r.value(`SELECT count(*) FROM messages WHERE direction = 'in' AND content = ?`, text); stored != "1" {
			r.t.Errorf("%q is stored %s times", text, stored)
		}
	}
}

// inOrder fails unless what the bot says in a chat to texts that end in ascending numbers is in
// their order, but for copies.
func (r *rig) inOrder(chat int64, prefix string) {
	r.t.Helper()
	last := -1
	for _, c := range r.Sent() {
		if c.Method != "sendMessage" || c.ChatID != chat || strings.HasPrefix(c.Text, "(possibly") {
			continue
		}
		for line := range strings.Lines(c.Text) {
			var n int
			if _, err := fmt.Sscanf(line, "You said: "+prefix+"%d", &n); err != nil {
				continue
			}
			if n < last {
				r.t.Errorf("%q is answered after %d", line, last)
			}
			last = n
		}
	}
}

func TestTheNetworkIsGoneForAWhile(t *testing.T) {
	t.Parallel()
	r := start(t)
	dm := r.DM(r.alice)
	dm.Say(r.alice, "slow 0.3 private 0")
	r.until("it is being answered", func() bool {
		return r.value(`SELECT count(*) FROM turns WHERE state = 'running'`) == "1"
	})
	r.Unreachable()
	r.until("the answer waits for the network", func() bool {
		return r.value(`SELECT count(*) FROM deliveries WHERE attempts > 0`) == "1"
	})
	dm.Say(r.alice, "private 1")
	dm.Say(r.alice, "private 2")
	r.until("the connection is known to be gone", func() bool {
		return r.value(`SELECT connection FROM daemons WHERE name = 'teled'`) == "degraded"
	})
	r.Reachable()
	r.onceEach([]string{"slow 0.3 private 0", "private 1", "private 2"})
	r.until("the connection is known to be back", func() bool {
		return r.value(`SELECT connection FROM daemons WHERE name = 'teled'`) == "connected"
	})
}
