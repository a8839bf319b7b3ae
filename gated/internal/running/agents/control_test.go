package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestStop_RunningAgent_CancelsTurnsOfTheChat(t *testing.T) {
	tests := []struct {
		name, script string
		graces       func(*Config)
	}{
		{"an agent that stops", "until interrupt; anonerror stopped", patient},
		{"one that answers all the same", "until interrupt; say too late", patient},
		{"one that breaks", "until interrupt; print " + fmt.Sprintf("%q", rawFrame("{")), patient},
		{"one that crashes", "until interrupt; exit 3", patient},
		// It is killed once it has had time to read the interrupt.
		{"one that will not stop", "ignore-term; hold never", func(cfg *Config) {
			cfg.Graces = Graces{EOF: 3 * time.Second, Fail: 3 * time.Second, Orphan: time.Second}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, tt.graces, attempts(1))
			r.gate("main", "never")
			ready := r.gate("main", "ready")
			r.answered(r.ask("!session s1; say hi"))
			turns := []*msg.Turn{r.ask("!hold ready; " + tt.script), r.ask("piped"), r.ask("waiting", topic("#x"))}
			ready()
			r.cancelChat("telegram:1")
			for _, asked := range turns {
				if now := r.turn(asked.ID); now.State != msg.TurnCancelled || now.Reason != msg.ReasonCancelled {
					t.Errorf("turn %+v", now)
				}
			}
			diff(t, "the next turn", r.answered(r.ask("hello")), []string{"re: hello"})
			for _, asked := range turns {
				diff(t, "answers", r.replies(asked), []string(nil))
			}
			all := r.inputs("main")
			interrupts := slices.DeleteFunc(slices.Clone(all), func(g given) bool { return g.input != (agentproto.Interrupt{}) })
			if len(interrupts) != 1 {
				t.Errorf("%d interrupts", len(interrupts))
			}
			if s := all[len(all)-1].start(); s.SessionID != "s1" {
				t.Errorf("went on in session %q", s.SessionID)
			}
		})
	}
}

// The runs of a group serve its chats one after another: a /stop of one ends neither a run that works for
// another, nor turns that wait for that run.
func TestStop_RunWorksForOtherChat_GoesOn(t *testing.T) {
	t.Parallel()
	r := newHarness(t, attempts(1))
	ready, open := r.gate("main", "ready"), r.gate("main", "gate")
	asked := r.ask("!more half; hold ready; hold gate; say 1", chat("telegram:2"))
	ready()
	piped, waiting := r.ask("2", chat("telegram:2")), r.ask("3", chat("telegram:3"))
	stopped := r.ask("4", chat("telegram:1"))
	r.cancelChat("telegram:1")
	open()
	diff(t, "answers", r.answered(asked, piped, waiting), []string{"half / 1", "re: 2", "re: 3"})
	for _, asked := range []*msg.Turn{asked, piped, waiting} {
		if done := r.turn(asked.ID); done.Attempts != 0 || done.Reason != msg.ReasonAnswered {
			t.Errorf("turn %+v", done)
		}
	}
	if now := r.turn(stopped.ID); now.State != msg.TurnCancelled {
		t.Errorf("turn %+v", now)
	}
	all := r.inputs("main")
	if all[0].pid != all[1].pid || slices.ContainsFunc(all, func(g given) bool { return g.input == (agentproto.Interrupt{}) }) {
		t.Error("the run was interrupted")
	}
}

func TestStop_OtherGroupsWorkForTheChat_StopsThem(t *testing.T) {
	t.Parallel()
	r := newHarness(t, impatient)
	r.gate("main/child", "never")
	ready := r.gate("main/child", "ready")
	asked := r.ask("!hold ready; hold never", group("main/child"))
	ready()
	r.cancelChat("telegram:1")
	diff(t, "the child's next turn", r.answered(r.ask("hi", group("main/child"), chat("telegram:2"))), []string{"re: hi"})
	if now := r.turn(asked.ID); now.State != msg.TurnCancelled {
		t.Errorf("turn %+v", now)
	}
}

func TestStop_WebTopic_StopsThatTopicOnly(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	tab := func(name string) func(*msg.Turn) {
		return func(t *msg.Turn) { t.ChatJID, t.Topic = "web:main", name }
	}
	one, two := r.gate("main", "one"), r.gate("main", "two")
	first, second := r.ask("!hold one; say 1", tab("#one")), r.ask("!hold two; say 2", tab("#two"))
	one()
	name := "#one"
	cancelled, _ := r.stopRows(rows.Stop{ChatJID: "web:main", Topic: &name})
	r.m.Stop(cancelled)
	two()
	diff(t, "the other tab", r.answered(second), []string{"2"})
	r.until("the tab's run is gone", func() bool { return r.m.live.get(first.RunID) == nil })
}

func TestCancel_PipedTurn(t *testing.T) {
	for _, script := range []string{"say forged", "anon forged", "error nope", "anonerror nope"} {
		t.Run(script, func(t *testing.T) {
			r := newHarness(t, attempts(1))
			open := r.gate("main", "gate")
			first := r.ask("!hold gate; session s1; say 1")
			r.await(first, msg.TurnRunning)
			second := r.ask("!" + script)
			third := r.ask("!say 3")
			r.cancel(second)
			open()
			diff(t, "answers", r.answered(first, third), []string{"1", "3"})
			diff(t, "answers of the cancelled turn", r.replies(second), []string(nil))
			if s := r.session("main", ""); s != "s1" {
				t.Errorf("session %q", s)
			}
			r.answered(r.ask("more"))
			if all := r.inputs("main"); all[0].pid != all[len(all)-1].pid {
				t.Error("the run did not go on")
			}
		})
	}
}

func TestCancel_QueuedAndRunningTurns(t *testing.T) {
	t.Parallel()
	r := newHarness(t, impatient)
	r.gate("main", "never")
	ready := r.gate("main", "ready")
	running := r.ask("!hold ready; hold never")
	ready()
	piped := r.ask("piped")
	queued, next := r.ask("queued", chat("telegram:2")), r.ask("next", chat("telegram:3"))
	r.cancel(queued)
	r.cancel(r.turn(running.ID))
	diff(t, "answers", r.answered(piped, next), []string{"re: piped", "re: next"})
	for _, asked := range []*msg.Turn{running, queued} {
		if answers := r.replies(asked); len(answers) != 0 {
			t.Errorf("cancelled turn %d answered %q", asked.ID, answers)
		}
	}
}

// TestCancel_RunIsStarting_IsAppliedLate cancels a turn after its run was stored
// and before the run was live.
func TestCancel_RunIsStarting_IsAppliedLate(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.gate("main", "never")
	asked := newTurn()
	r.store(asked, &msg.Message{Content: "!hold never"})
	late := r.startCancelled(asked)
	late.inbox.control(ctlReread) // as start does
	late.serve(asked)
	if late.agent.phase != phaseInterrupted {
		t.Error("the run of a cancelled turn was not interrupted")
	}
}

func TestNew_LiveRun_NextTurnStartsFreshSession(t *testing.T) {
	tests := []struct {
		name, ending string
		fresh        bool // the turn under way is asked again, in the new session
	}{
		{"answered", "session s2", false},
		{"answered at the end of the input", "until eof", false},
		{"not answered", "exit 1", true}, // which costs no attempt
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newHarness(t, attempts(1))
			r.answered(r.ask("!session s1; say 1"))
			ready, open := r.gate("main", "ready"), r.gate("main", "gate")
			under := r.ask("!once hold ready; once hold gate; once " + tt.ending + "; say 2")
			ready()
			first := r.last().pid
			r.reset("main", "")
			next := r.ask("!session s3; say 3")
			if next.State != msg.TurnQueued {
				t.Errorf("the next turn is %s", next.State)
			}
			open()
			diff(t, "answers", r.answered(under, next), []string{"2", "3"})
			r.noneDoubled([]*msg.Turn{under, next})
			if s := r.session("main", ""); s != "s3" {
				t.Errorf("session %q", s)
			}
			var requeued bool
			for _, g := range r.inputs("main") {
				if g.start().SessionID != "" {
					t.Errorf("process %d went on in session %q", g.pid, g.start().SessionID)
				}
				requeued = requeued || g.pid != first && g.start().TurnID == fmt.Sprint(under.ID)
			}
			if requeued != tt.fresh {
				t.Errorf("asked again: %v", requeued)
			}
		})
	}
}

func TestNew_AgentIgnoresEOF_IsKilled(t *testing.T) {
	t.Parallel()
	r := newHarness(t, impatient)
	r.gate("main", "never")
	ready, open := r.gate("main", "ready"), r.gate("main", "gate")
	under := r.ask("!hold ready; hold gate; say 1; hold never")
	ready()
	r.reset("main", "")
	next := r.ask("2")
	open()
	diff(t, "answers", r.answered(under, next), []string{"1", "re: 2"})
}

// TestNew_TurnBeforeIt_KeepsOldSession: a turn asked before /new belongs to the old
// session.
func TestNew_TurnBeforeIt_KeepsOldSession(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	for range 20 {
		r.answered(r.ask("!session s1; say hi"))
		before := r.inputs("main")
		last := r.ask("one more")
		r.reset("main", "")
		r.answered(last)
		all := r.inputs("main")
		if g := all[len(all)-1]; g.pid != before[len(before)-1].pid {
			t.Fatal("it was asked in a new session")
		}
		if s := r.session("main", ""); s != "" {
			t.Fatalf("session %q", s)
		}
	}
}

// TestRun_ClosedInTheDatabaseOnly_GetsNoTurn resets a run's session without the
// manager's knowledge.
func TestRun_ClosedInTheDatabaseOnly_GetsNoTurn(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	open := r.gate("main", "gate")
	first := r.ask("!hold gate; say 1")
	r.await(first, msg.TurnRunning)
	r.write(func(tx *store.Tx) error {
		_, err := rows.ResetSession(tx, "main", "", r.cfg.Now().UnixMilli())
		return err
	})
	next := r.ask("2")
	open()
	diff(t, "answers", r.answered(first, next), []string{"1", "re: 2"})
}

func TestIdle_AgentsAreClosed(t *testing.T) {
	t.Parallel()
	r := newHarness(t, idle(time.Millisecond))
	asked := r.ask("hi")
	r.answered(asked)
	r.noRun()
	log := must[[]rows.PastSession](r)(rows.PastSessions(t.Context(), r.st.Reader, "main", "", 1000, 1))
	if log[0].Result != "ok" {
		t.Errorf("session log %+v", log)
	}
}

func TestDelegated_TurnsShareNoRun(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	open := r.gate("main", "gate")
	delegated := func(name string) func(*msg.Turn) {
		return func(t *msg.Turn) { t.Kind, t.Topic = msg.Delegated, name }
	}
	first := r.ask("!hold gate; say 1", delegated("#d1"))
	r.await(first, msg.TurnRunning)
	second, own := r.ask("2", delegated("#d2")), r.ask("3")
	if second.State != msg.TurnQueued || own.State != msg.TurnQueued {
		t.Errorf("turns %s and %s after one that runs alone", second.State, own.State)
	}
	open()
	diff(t, "answers", r.answered(first, second, own), []string{"1", "re: 2", "re: 3"})
	pids := slices.Compact(r.processes("main"))
	if len(pids) != 3 {
		t.Errorf("processes %v", pids)
	}
}

func TestMaxAgents(t *testing.T) {
	t.Parallel()
	r := newHarness(t, func(cfg *Config) { cfg.MaxAgents = 1 })
	open := r.gate("a", "gate")
	first := r.ask("!hold gate; say 1", group("a"))
	r.await(first, msg.TurnRunning)
	second := r.ask("2", group("b"), chat("telegram:2"))
	open()
	diff(t, "answers", r.answered(first, second), []string{"1", "re: 2"})
	if a, b := r.turn(first.ID), r.turn(second.ID); b.StartedAt < a.EndedAt {
		t.Errorf("the second started at %d, the first ended at %d", b.StartedAt, a.EndedAt)
	}
}

func TestAgent_RunsInItsFolder(t *testing.T) {
	t.Parallel()
	r := newHarness(t, command(`printf '%s' "$(pwd -P)" > where; `+shFrame("ok")))
	r.answered(r.ask("hi", group("acme/eng")))
	where := readFile(t, r.cfg.Groups, "acme+eng", "where")
	if real, err := filepath.EvalSymlinks(filepath.Join(r.cfg.Groups, "acme+eng")); err != nil || where != real {
		t.Errorf("the agent ran in %q, want %q, %v", where, real, err)
	}
	if info, err := os.Stat(where); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder %v, %v", info, err)
	}
}

// TestStop_CrossesLastFrame_NextTurnIsAnswered: the run answers between the /stop's
// commit and the signal.
func TestStop_CrossesLastFrame_NextTurnIsAnswered(t *testing.T) {
	t.Parallel()
	r := newHarness(t, impatient)
	open := r.gate("main", "gate")
	stopped := r.ask("!hold gate; say late")
	r.until("the agent has the prompt", func() bool {
		_, err := os.Stat(filepath.Join(r.cfg.Groups, "main", "inputs.log"))
		return err == nil && len(r.inputs("main")) == 1
	})
	cancelled, _ := r.stopRows(rows.Stop{ChatJID: stopped.ChatJID})
	open()
	r.until("the frame is discarded", func() bool { return strings.Contains(r.log.String(), "frame discarded") })
	r.m.Stop(cancelled)
	diff(t, "the next turn", r.answered(r.ask("next")), []string{"re: next"})
}

// The queue closes a run that it takes for idle: the run works on a turn, whose /stop is committed, by the time it
// comes to it.
func TestStop_CrossesCloseOfIdleRun_InterruptsIt(t *testing.T) {
	t.Parallel()
	r := newHarness(t, patient)
	ready := r.gate("main", "ready")
	asked := r.ask("!hold ready; until interrupt; say too late")
	ready()
	cancelled, _ := r.stopRows(rows.Stop{ChatJID: asked.ChatJID})
	r.handled(cancelled[0].RunID, ctlClose)
	r.m.Stop(cancelled)
	diff(t, "the next turn", r.answered(r.ask("hello")), []string{"re: hello"})
	if !slices.ContainsFunc(r.inputs("main"), func(g given) bool { return g.input == (agentproto.Interrupt{}) }) {
		t.Error("the agent was not interrupted")
	}
}

// A run that answers its last turns is not hurried by a signal from when it was idle.
func TestNew_CrossesCloseOfIdleRun_TurnGoesOn(t *testing.T) {
	t.Parallel()
	r := newHarness(t, impatient, attempts(1))
	ready, open := r.gate("main", "ready"), r.gate("main", "gate")
	asked := r.ask("!hold ready; hold gate; say done")
	ready()
	run := r.turn(asked.ID).RunID
	r.handled(run, ctlDrain)
	r.handled(run, ctlClose)
	<-time.After(5 * r.cfg.Graces.EOF)
	open()
	diff(t, "answer", r.answered(asked), []string{"done"})
	if n := len(r.inputs("main")); n != 1 {
		t.Errorf("the agent was given %d lines, want the prompt alone", n)
	}
}

// startCancelled stores a run of a turn, then a /stop. The run is not served.
func (r *harness) startCancelled(t *msg.Turn) *run {
	r.t.Helper()
	row := msg.Run{Folder: t.Folder, ChatJID: t.ChatJID, Runtime: "process"}
	r.write(func(tx *store.Tx) error { return rows.StartRun(tx, &row, t.ID) })
	r.cancelChat(t.ChatJID)
	setup, err := r.m.groups.setup(t.Folder)
	if err != nil {
		r.t.Fatal(err)
	}
	return newRun(r.m, row, setup)
}

// A turn that was stored for a run may be cancelled before the run takes it: then its agent must not get it.
func TestCancel_StoredTurnNotTaken_IsNotPrompted(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	asked := newTurn()
	r.store(asked, &msg.Message{Content: "!say 1"})
	began := r.startCancelled(asked)
	for name, take := range map[string]func(*run){
		"it takes the turn first":      func(late *run) { late.take(<-late.inbox.stored) },
		"it looks at the change first": (*run).reread,
		"it has looked at the change before": func(late *run) {
			<-late.inbox.signals[ctlReread]
			late.take(<-late.inbox.stored)
		},
	} {
		late := newRun(r.m, began.row, began.setup)
		if err := late.agent.launch(); err != nil {
			t.Fatal(err)
		}
		late.prompts.started = true
		late.inbox.give(asked)
		late.inbox.control(ctlReread)
		take(late)
		if n := len(late.turns.unanswered) + len(late.turns.prompted) + len(late.inbox.stored); n != 0 {
			t.Errorf("%s: %d turns", name, n)
		}
		late.agent.proc.Stop(time.Second)
		for ev := range late.agent.proc.Events() {
			if ev.Exit != nil {
				break
			}
		}
	}
}
