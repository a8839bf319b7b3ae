package machines

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// A machine dies whole, with the gated that decides messages and the adapter that works: another of each goes on.
func TestMachines_OneDies_OthersGoOn(t *testing.T) {
	c := start(t, 3, 5)
	dead := c.awaitHolder("teled", -1, startTimeout)
	c.say(1)
	c.awaitAnswers(startTimeout)
	c.say(2)
	c.killMachine(dead)
	began := time.Now()
	c.say(3)
	c.awaitHolder("teled", dead, takeoverTimeout)
	c.awaitHolder("gated", dead, takeoverTimeout)
	c.awaitHolder("routd", dead, takeoverTimeout)
	t.Logf("others have taken over after %s", time.Since(began).Round(100*time.Millisecond))
	c.say(4)
	c.awaitAnswers(startTimeout)
	c.startMachine(dead)
	c.say(5)
	c.awaitAnswers(startTimeout)
	c.wantEachOnceInOrder()
}

// A gated that stalls for longer than its lease stores nothing more: its work is done again, once.
func TestMachines_GatedStalls_CommitsNothingMore(t *testing.T) {
	c := start(t, 3, 5)
	c.say(1)
	c.awaitAnswers(startTimeout)
	stalled := c.awaitHolder("gated", -1, startTimeout)
	c.say(2)
	c.signal(stalled, "gated", syscall.SIGSTOP)
	c.say(3)
	c.awaitHolder("gated", stalled, takeoverTimeout)
	c.awaitAnswers(startTimeout)
	c.signal(stalled, "gated", syscall.SIGCONT)
	c.awaitExit(stalled, "gated", takeoverTimeout)
	c.startMachine(stalled)
	c.say(4)
	c.awaitAnswers(startTimeout)
	c.wantEachOnceInOrder()
	if n := c.count(`SELECT count(*) FROM runs WHERE ended_at IS NULL AND owner NOT IN (SELECT id FROM processes)`); n != 0 {
		t.Errorf("%d runs of a gated that is gone have not ended", n)
	}
}

// An adapter that stalls for longer than its lease sends nothing more: its standby works by then.
func TestMachines_AdapterStalls_SendsNothingMore(t *testing.T) {
	c := start(t, 2, 3)
	stalled := c.awaitHolder("teled", -1, startTimeout)
	c.say(1)
	c.awaitAnswers(startTimeout)
	c.signal(stalled, "teled", syscall.SIGSTOP)
	c.say(2)
	c.awaitHolder("teled", stalled, takeoverTimeout)
	c.awaitAnswers(startTimeout)
	c.signal(stalled, "teled", syscall.SIGCONT)
	c.awaitExit(stalled, "teled", takeoverTimeout)
	c.startMachine(stalled)
	c.say(3)
	c.awaitAnswers(startTimeout)
	c.wantEachOnceInOrder()
	if holder := c.holder("teled"); holder == stalled {
		t.Error("the one that stalled works again, although the other has not ended")
	}
}

// Agents run on all machines, each folder's on one at a time.
func TestMachines_Turns_AreSharedOut(t *testing.T) {
	c := start(t, 3, 12)
	for n := range 3 {
		c.say(n, "slow 1")
	}
	c.awaitAnswers(2 * startTimeout)
	c.wantEachOnceInOrder()
	if n := c.count(`SELECT count(DISTINCT owner) FROM runs`); n != 3 {
		t.Errorf("%d of 3 gated have run agents", n)
	}
	if n := c.count(`SELECT count(*) FROM runs a JOIN runs b ON a.folder = b.folder AND a.owner <> b.owner
		AND a.started_at < b.ended_at AND b.started_at < a.ended_at`); n != 0 {
		t.Errorf("%d times two gated ran agents in a folder at once", n)
	}
}

// Whichever gated is asked, the owner of a run stops it, and starts what is asked for again.
func TestMachines_StopAndRetry_ReachTheOwner(t *testing.T) {
	c := start(t, 3, 12)
	c.say(1, "slow 600")
	leader := c.awaitHolder("gated", -1, startTimeout)
	turn, _, owner := c.turnElsewhere(leader)
	run := c.count(`SELECT run_id FROM turns WHERE id = $1`, turn)

	other := (owner + 1) % 3
	gated := httpx.NewClient("gated", c.machines[other].URL("gated"), secret)
	if err := gated.Do(t.Context(), http.MethodPost, fmt.Sprintf("/v1/turns/%d/cancel", turn), nil, nil); err != nil {
		t.Fatal(err)
	}
	c.awaitCount(1, `SELECT count(*) FROM runs WHERE id = $1 AND ended_at IS NOT NULL`, run)
	if err := gated.Do(t.Context(), http.MethodPost, fmt.Sprintf("/v1/turns/%d/retry", turn), nil, nil); err != nil {
		t.Fatal(err)
	}
	c.awaitCount(1, `SELECT count(*) FROM turns WHERE id = $1 AND state <> 'cancelled'`, turn)

	_, chat, _ := c.turnElsewhere(leader)
	for _, conversation := range c.chats() {
		if conversation.Chat == chat {
			if _, err := c.telegram.Do(chatsim.Action{Conversation: conversation, Verb: msg.VerbMessage, Text: "/stop"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.awaitCount(0, `SELECT count(*) FROM turns t JOIN runs r ON r.id = t.run_id WHERE t.chat_jid = $1 AND r.ended_at IS NULL`, chat)
}
