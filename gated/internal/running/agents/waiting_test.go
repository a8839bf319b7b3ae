package agents

import (
	"testing"
	"time"

	"arizuko/pkg/msg"
)

// marks returns the reactions on the message of a turn that waits. There is no adapter: one that is taken away is cancelled.
func (r *harness) marks(t *msg.Turn) (all string) {
	r.t.Helper()
	if r.side == nil {
		r.side = r.sabotage()
	}
	err := r.side.QueryRow(`SELECT ifnull(group_concat(content, ' '), '') FROM messages
		WHERE source = 'waiting' AND turn_id = ? AND out_state <> 'cancelled'`, t.ID).Scan(&all)
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

func waitMark(cfg *Config) { cfg.WaitMark = 20 * time.Millisecond }

func TestWaiting_AgentIsBusy_MessageIsMarkedUntilItBegins(t *testing.T) {
	t.Parallel()
	r := newHarness(t, waitMark)
	first, second := r.gate("main", "first"), r.gate("main", "second")
	one := r.ask("!hold first; say one")
	two := r.ask("!hold second; say two")
	r.until("the second message is marked", func() bool { return r.marks(two) == "👀" })
	first()
	r.until("the mark is gone", func() bool { return r.marks(two) == "" })
	second()
	diff(t, "answers", r.answered(one, two), []string{"one", "two"})
	if got := r.marks(one); got != "" {
		t.Errorf("the first message is marked: %s", got)
	}
}

func TestWaiting_QueuedAndCancelled_MarkIsTakenAway(t *testing.T) {
	t.Parallel()
	r := newHarness(t, waitMark, func(cfg *Config) { cfg.MaxAgents = 1 })
	open := r.gate("main", "gate")
	busy := r.ask("!hold gate; say one")
	r.until("the agent works", func() bool { return r.turn(busy.ID).State == msg.TurnRunning })
	queued := r.ask("hi", group("other"), chat("telegram:2"))
	r.until("it is marked", func() bool { return r.marks(queued) == "👀" })
	r.cancel(queued)
	open()
	r.answered(busy)
	if m := r.marks(queued); m != "" {
		t.Errorf("marks %q", m)
	}
}

func TestWaiting_AgentTakesItIn_MarkIsTakenAway(t *testing.T) {
	t.Parallel()
	r := newHarness(t, waitMark)
	first, taken := r.gate("main", "first"), r.gate("main", "taken")
	one := r.ask(announce + "hold first; take 1; hold taken; sayall both")
	two := r.ask("two")
	r.until("it is marked", func() bool { return r.marks(two) == "👀" })
	first()
	r.until("the agent has taken it in", func() bool { return r.progress(two) != nil })
	r.until("its mark is gone", func() bool { return r.marks(two) == "" })
	taken()
	diff(t, "answer", r.answered(one), []string{"both"})
}

func TestWaiting_ProgressIsOff_NothingIsMarked(t *testing.T) {
	t.Parallel()
	r := newHarness(t, waitMark)
	r.configure("main", `{"progress":"off"}`)
	mine, others := r.gate("main", "gate"), r.gate("other", "gate")
	turns := []*msg.Turn{r.ask("!hold gate; say one"), r.ask("two")}
	for _, text := range []string{"!hold gate; say other", "three"} {
		turns = append(turns, r.ask(text, group("other"), chat("telegram:2")))
	}
	r.until("the other group's message is marked", func() bool { return r.marks(turns[3]) == "👀" })
	if got := r.marks(turns[1]); got != "" {
		t.Errorf("marks %q", got)
	}
	mine()
	others()
	r.answered(turns...)
}
