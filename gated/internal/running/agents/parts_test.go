package agents

import (
	"slices"
	"testing"
	"time"

	"arizuko/gated/internal/running/queue"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
)

func TestPhase_Reach_NeverGoesBack(t *testing.T) {
	t.Parallel()
	var p phase
	for i, tt := range []struct{ to, before, after phase }{
		{phaseDraining, phaseServing, phaseDraining},
		{phaseFailed, phaseDraining, phaseFailed},
		{phaseClosing, phaseFailed, phaseFailed},
		{phaseInterrupted, phaseFailed, phaseInterrupted},
		{phaseShuttingDown, phaseInterrupted, phaseInterrupted},
	} {
		if before := p.reach(tt.to); before != tt.before || p != tt.after {
			t.Errorf("step %d: from %d to %d, want from %d to %d", i, before, p, tt.before, tt.after)
		}
	}
}

func TestTurns_Addressees_AreThoseOfTheRun(t *testing.T) {
	t.Parallel()
	ts := turns{row: &msg.Run{ID: 9, Folder: "main"}, prompted: map[int64]int64{1: 10, 2: 20, 3: 30}}
	for id := range int64(3) {
		ts.unanswered = append(ts.unanswered, &msg.Turn{ID: id + 1})
	}
	diff(t, "removed", ids(ts.remove(&msg.Turn{ID: 1}, &msg.Turn{ID: 1}, &msg.Turn{ID: 7})), []int64{1})
	for name, tt := range map[string]struct {
		frame agentproto.Frame
		want  []int64
	}{
		"none named":         {agentproto.Frame{}, []int64{2}},
		"one":                {agentproto.Frame{TurnID: "3"}, []int64{3}},
		"answered before":    {agentproto.Frame{TurnID: "1"}, []int64{1}},
		"of another run":     {agentproto.Frame{TurnID: "4"}, nil},
		"no number":          {agentproto.Frame{TurnID: "x"}, nil},
		"several":            {agentproto.Frame{TurnIDs: []string{"3", "1", "2"}}, []int64{2, 3}},
		"several, all ended": {agentproto.Frame{TurnIDs: []string{"4", "1"}}, []int64{1}},
	} {
		if got := ids(ts.addressees(tt.frame)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	diff(t, "removed", ids(ts.remove(ts.unanswered[1], ts.unanswered[0])), []int64{3, 2})
	diff(t, "none named, all answered", ids(ts.addressees(agentproto.Frame{})), []int64{3})
}

func TestTurns_Fold_OnlyWhereTheAgentCan(t *testing.T) {
	t.Parallel()
	one, two := &msg.Turn{ID: 1, Kind: msg.Conversation}, &msg.Turn{ID: 2, Kind: msg.Conversation}
	for name, tt := range map[string]struct {
		turns turns
		want  bool
	}{
		"two":               {turns{folds: true, unanswered: []*msg.Turn{one, two}}, true},
		"one":               {turns{folds: true, unanswered: []*msg.Turn{one}}, false},
		"the agent cannot":  {turns{unanswered: []*msg.Turn{one, two}}, false},
		"of another thread": {turns{folds: true, unanswered: []*msg.Turn{one, {ID: 3, Kind: msg.Conversation, Place: "t"}}}, false},
	} {
		if got := tt.turns.fold(); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestQuestions_SetWaiting_SaysWhenTheRunBeginsAndEndsToWait(t *testing.T) {
	t.Parallel()
	q := questions{open: map[int64]asking{5: {turn: 1, id: "q", hash: "h"}}}
	for i, tt := range []struct {
		turns   []int64
		changed bool
	}{{nil, false}, {[]int64{1}, true}, {[]int64{1, 2}, false}, {nil, true}} {
		if got := q.setWaiting(tt.turns); got != tt.changed {
			t.Errorf("step %d: changed is %t", i, got)
		}
	}
	diff(t, "answer", q.close(5, agentproto.Answer{Option: "yes"}), agentproto.Answer{TurnID: "1", AskID: "q", PayloadHash: "h", Option: "yes"})
	if q.any() {
		t.Error("a closed question is open")
	}
}

func TestOverrun_Left_CountsFromTheFirstLook(t *testing.T) {
	t.Parallel()
	var o overrun
	start := time.Now()
	for i, tt := range []struct {
		turn  int64
		after time.Duration
		want  time.Duration
	}{{1, 0, budgetGrace}, {1, time.Second, budgetGrace - time.Second}, {2, time.Second, budgetGrace}, {2, 4 * time.Second, -time.Second}} {
		if got := o.left(tt.turn, start.Add(tt.after)); got != tt.want {
			t.Errorf("step %d: %s, want %s", i, got, tt.want)
		}
	}
}

func TestProgressList_Changed_IsWhatIsNotStored(t *testing.T) {
	t.Parallel()
	l := progressList{turns: map[int64]*progress{}}
	for id := range int64(3) {
		l.turns[id] = newProgress("web:main", time.Now())
	}
	diff(t, "at first", l.changed(), []int64{0, 1, 2})
	l.stored()
	diff(t, "stored", l.changed(), []int64(nil))
	l.turns[1].said = "so far"
	l.textSent(1)
	l.textSent(2) // has no text
	diff(t, "its text was sent", l.changed(), []int64{1})
	l.setWaiting([]int64{2}, nil)
	diff(t, "waits", l.turns[2].row.State, agentproto.StatusRequiresAction)
	l.setWaiting(nil, []int64{2})
	diff(t, "waits no more", l.turns[2].row.State, agentproto.StatusRunning)
}

func TestLiveRuns_Closing_NoneStarts(t *testing.T) {
	t.Parallel()
	l := &liveRuns{byID: map[int64]*run{}}
	newRun := func(id int64) *run { return &run{runInfo: &runInfo{row: msg.Run{ID: id}}, inbox: newMailbox()} }
	first, second := newRun(1), newRun(2)
	l.add(first)
	started := make(chan queue.Turn, 2)
	l.carryOut(queue.Actions{Start: []queue.Turn{{ID: 7}}, Pipe: []queue.Piped{{RunID: 1, Turn: queue.Turn{ID: 8}}}, Close: []int64{1, 3}},
		func(t queue.Turn) { started <- t })
	l.shutdown()
	l.add(second)
	l.carryOut(queue.Actions{Start: []queue.Turn{{ID: 9}}}, func(t queue.Turn) { started <- t })
	l.wg.Wait()
	if got := <-started; got.ID != 7 || len(started) != 0 {
		t.Errorf("turn %d was started, and %d more", got.ID, len(started))
	}
	if piped := <-first.inbox.piped; piped.ID != 8 || len(first.inbox.signals[ctlClose]) != 1 {
		t.Errorf("the first run got %+v", piped)
	}
	for _, r := range []*run{first, second} {
		if len(r.inbox.signals[ctlShutdown]) != 1 {
			t.Errorf("run %d does not shut down", r.row.ID)
		}
	}
}

func TestFreshLanes_Receive_EmptiesThem(t *testing.T) {
	t.Parallel()
	f := &freshLanes{ready: make(chan struct{}, 1), lanes: map[string]bool{}}
	f.add("a")
	f.add("b")
	f.add("a")
	<-f.ready
	diff(t, "lanes", slices.Sorted(slices.Values(f.receive())), []string{"a", "b"})
	diff(t, "then", f.receive(), []string(nil))
}
