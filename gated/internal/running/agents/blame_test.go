package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// hourly is a backoff that no test waits for: it moves the clock.
func hourly(cfg *Config) { cfg.Backoff = func(int) time.Duration { return time.Hour } }

// TestBlame_FrameNamesTurn_ThatTurnPays: the agent cannot do its second task.
// The turn before it keeps its attempts, and the one that failed is retried alone.
func TestBlame_FrameNamesTurn_ThatTurnPays(t *testing.T) {
	t.Parallel()
	r := newHarness(t, attempts(2), hourly)
	open := r.gate("main", "gate")
	innocent := r.ask(announce + "once hold gate; once errornext; say fine")
	r.await(innocent, msg.TurnRunning)
	poison := r.ask("poison")
	third := r.ask("!say third", func(t *msg.Turn) { t.Place = "elsewhere" })
	for _, piped := range []*msg.Turn{poison, third} {
		r.await(piped, msg.TurnRunning)
	}
	open()
	r.until("the named turn has paid", func() bool { return r.turn(poison.ID).Attempts == 1 })
	diff(t, "answer of the innocent turn", r.answered(innocent), []string{"fine"})
	if now := r.turn(innocent.ID); now.Attempts != 0 {
		t.Errorf("turn %+v", now)
	}
	r.ahead.Add(time.Hour.Milliseconds())
	diff(t, "answers", r.answered(poison, third), []string{"re: poison", "third"})
	pids := map[string]int{}
	for _, g := range r.inputs("main") {
		if s := g.start(); s.TurnID != "" {
			pids[s.TurnID] = g.pid
		}
	}
	if pids[fmt.Sprint(poison.ID)] == 0 || pids[fmt.Sprint(poison.ID)] == pids[fmt.Sprint(innocent.ID)] {
		t.Errorf("turns were started by processes %v", pids)
	}
}

func TestErrorKinds(t *testing.T) {
	tests := []struct {
		kind     string
		session  string // afterwards
		attempts int
		state    msg.TurnState
	}{
		{"", "", 1, msg.TurnQueued},
		{"session", "", 1, msg.TurnQueued},
		{"transient", "s1", 1, msg.TurnQueued},
		{"permanent", "s1", 1, msg.TurnFailed},
		{"of a later version", "", 1, msg.TurnQueued},
	}
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, attempts(2), hourly)
			r.answered(r.ask("!session s1; say hi"))
			asked := r.ask("!kind " + tt.kind + "; error overloaded")
			var now *msg.Turn
			r.until("it has failed", func() bool {
				now = r.turn(asked.ID)
				return now.Attempts == tt.attempts
			})
			if now.State != tt.state || r.session("main", "") != tt.session {
				t.Errorf("turn %+v, session %q", now, r.session("main", ""))
			}
			lost := slices.ContainsFunc(r.replies(asked), func(text string) bool { return strings.HasPrefix(text, "(I have lost our earlier conversation") })
			if lost != (tt.session == "") {
				t.Errorf("the chat reads %q", r.replies(asked))
			}
			if tt.state == msg.TurnQueued && (now.WaitsFor != msg.WaitsRetry || now.Error != "overloaded") {
				t.Errorf("turn %+v", now)
			}
		})
	}
}

func TestTransientError_RetryAfter_IsHonoured(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	asked := r.ask("!once kind transient 600; once error overloaded; say fine")
	r.until("it has failed", func() bool { return r.turn(asked.ID).Attempts == 1 })
	if wait := r.turn(asked.ID).NotBefore - r.cfg.Now().UnixMilli(); wait < 590_000 || wait > 600_000 {
		t.Errorf("it waits for %d ms", wait)
	}
	r.ahead.Add((10 * time.Minute).Milliseconds())
	diff(t, "notice and answer", r.answered(asked), []string{"Your message waits: the agent can go on in 10m0s. I will answer then. / fine"})
}

// TestErrorFrame_WithResult_IsAnAnswer: the result is sent, and nothing is asked again.
func TestErrorFrame_WithResult_IsAnAnswer(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.answered(r.ask("!session s1; say hi"))
	asked := r.ask("!partial so far")
	next := r.ask("go on")
	diff(t, "answers", r.answered(asked, next), []string{"so far", "re: go on"})
	if done := r.turn(asked.ID); done.Reason != msg.ReasonPartial || done.Error != "ran out of time" || done.ErrorKind != msg.ErrorSession {
		t.Errorf("turn %+v", done)
	}
	if s := r.session("main", ""); s != "s1" {
		t.Errorf("session %q", s)
	}
	if all := r.inputs("main"); all[0].pid != all[len(all)-1].pid {
		t.Error("the run did not go on")
	}
}

// TestApology_SecondFailureWithinTheHour_IsSilent: a chat reads of a failure once.
func TestApology_SecondFailureWithinTheHour_IsSilent(t *testing.T) {
	t.Parallel()
	r := newHarness(t, attempts(1))
	r.onlyNotice(r.await(r.ask("!error one"), msg.TurnFailed))
	second := r.await(r.ask("!error two"), msg.TurnFailed)
	if second.Reason != msg.ReasonAlreadyTold || len(r.replies(second)) != 0 {
		t.Errorf("turn %+v, the chat reads %q", second, r.replies(second))
	}
	r.onlyNotice(r.await(r.ask("!error in another thread", place("thread")), msg.TurnFailed))
	delegated := r.await(r.ask("!exit 3", group("main/child"), func(t *msg.Turn) { t.Kind = msg.Delegated }), msg.TurnFailed)
	if len(r.replies(delegated)) != 0 { // its answers go to the same chat
		t.Errorf("the chat reads %q", r.replies(delegated))
	}
	other := r.await(r.ask("!error three", chat("telegram:2"), group("other")), msg.TurnFailed)
	r.onlyNotice(other)
	permanent := r.await(r.ask("!kind permanent; error four"), msg.TurnFailed)
	r.onlyNotice(permanent)
	r.answered(r.ask("hello"))
	r.ahead.Add(time.Hour.Milliseconds())
	r.onlyNotice(r.await(r.ask("!error five"), msg.TurnFailed))
}

// TestFailingGroup_IsProbed: after three failures alike the group's turns wait, and
// an answer ends that.
func TestFailingGroup_IsProbed(t *testing.T) {
	t.Parallel()
	var reported atomic.Pointer[[]string]
	r := newHarness(t, attempts(1), func(cfg *Config) {
		cfg.Probe = time.Hour
		cfg.Report = func(all []string) { reported.Store(&all) }
	})
	for i := range 3 {
		r.await(r.ask(fmt.Sprintf("!error key no %d is wrong", i)), msg.TurnFailed)
	}
	waits := r.ask("!error still wrong")
	r.until("it waits", func() bool { return r.turn(waits.ID).WaitsFor == msg.WaitsProbe })
	r.until("operators see it", func() bool {
		all := reported.Load()
		return all != nil && len(*all) == 1 && strings.Contains((*all)[0], "turns of group main fail alike")
	})
	diff(t, "another group", r.answered(r.ask("hi", group("other"), chat("telegram:9"))), []string{"re: hi"})
	behind := r.ask("fine", chat("telegram:2"))

	r.stop()
	r.start() // which knows of it
	r.until("both wait", func() bool {
		return r.turn(waits.ID).WaitsFor == msg.WaitsProbe && r.turn(behind.ID).WaitsFor == msg.WaitsProbe
	})
	r.ahead.Add(time.Hour.Milliseconds())
	r.await(waits, msg.TurnFailed)
	if now := r.turn(behind.ID); now.State != msg.TurnQueued {
		t.Errorf("a second turn was tried: %+v", now)
	}
	r.ahead.Add(time.Hour.Milliseconds())
	diff(t, "the next probe", r.answered(behind), []string{"re: fine"})
	diff(t, "after the answer", r.answered(r.ask("and now")), []string{"re: and now"})
	r.until("operators see that", func() bool { return len(*reported.Load()) == 0 })
}

// fullDisk is a machine on which nothing can be started for some time.
type fullDisk struct {
	runtime.Process
	full atomic.Bool
}

// newFullDisk is an option of the harness: its disk is full, and each wait for that a minute.
func newFullDisk() (disk *fullDisk, use func(*Config)) {
	disk = &fullDisk{}
	disk.full.Store(true)
	return disk, func(cfg *Config) {
		disk.Process = cfg.Runtimes[groupconfig.Process].(runtime.Process)
		cfg.Runtimes = map[groupconfig.Runtime]runtime.Runtime{groupconfig.Process: disk}
		cfg.Machine = func(int) time.Duration { return time.Minute }
	}
}

func (d *fullDisk) Start(ctx context.Context, s runtime.Spec) (*runtime.Proc, error) {
	if d.full.Load() {
		return nil, &runtime.MachineError{Err: errors.Join(errors.New("open run.log"), syscall.ENOSPC)}
	}
	return d.Process.Start(ctx, s)
}

// TestMachineFails_TurnWaits_UsesNoAttempt: the disk is full for some minutes.
func TestMachineFails_TurnWaits_UsesNoAttempt(t *testing.T) {
	t.Parallel()
	disk, full := newFullDisk()
	var reported atomic.Pointer[[]string]
	r := newHarness(t, attempts(1), full, func(cfg *Config) {
		cfg.Report = func(all []string) { reported.Store(&all) }
	})
	asked := r.ask("hi")
	waits := func() bool { return r.turn(asked.ID).WaitsFor == msg.WaitsMachine }
	r.until("it waits", waits)
	if now := r.turn(asked.ID); now.Attempts != 0 || now.ErrorKind != msg.ErrorMachine || !strings.Contains(now.Error, "no space left on device") {
		t.Errorf("turn %+v", now)
	}
	r.until("operators see it", func() bool {
		all := reported.Load()
		return all != nil && len(*all) == 1 && strings.Contains((*all)[0], "no agent can be started as process since")
	})
	for minute := 1; minute <= 4; minute++ {
		before := r.turn(asked.ID).NotBefore
		r.ahead.Add(time.Minute.Milliseconds())
		r.until("it waits again", func() bool { return waits() && r.turn(asked.ID).NotBefore > before })
		if notices := r.replies(asked); (len(notices) == 1) != (minute >= 2) {
			t.Errorf("after %d minutes the chat reads %q", minute, notices)
		}
	}
	disk.full.Store(false)
	r.ahead.Add(time.Minute.Milliseconds())
	if answers := r.answered(asked)[0]; !strings.HasSuffix(answers, " / re: hi") {
		t.Errorf("answers %q", answers)
	}
	if done := r.turn(asked.ID); done.Attempts != 0 {
		t.Errorf("turn %+v", done)
	}
	r.until("operators see that", func() bool { return len(*reported.Load()) == 0 })
}

// TestMachineFails_EscalatedTurnWaits_AskerGetsNoAnswer: a notice that a turn waits is not its answer.
func TestMachineFails_EscalatedTurnWaits_AskerGetsNoAnswer(t *testing.T) {
	t.Parallel()
	_, full := newFullDisk()
	r := newHarness(t, full)
	root := newTurn()
	r.store(root, &msg.Message{Content: "root"})
	escalated := newTurn(group("boss"), chat("group:boss"))
	escalated.Kind, escalated.RootTurnID, escalated.Depth = msg.Delegated, root.ID, 1
	r.store(escalated, &msg.Message{Content: "can you?", ForwardedFrom: &msg.ReturnAddress{
		Kind: msg.Escalation, ChatJID: "telegram:1", Folder: "main", TurnID: root.ID, RootTurnID: root.ID, Depth: 1}})
	r.m.Dispatch(escalated)
	for range 4 {
		before := r.turn(escalated.ID).NotBefore
		r.ahead.Add(time.Minute.Milliseconds())
		r.until("it waits again", func() bool { return r.turn(escalated.ID).NotBefore > before })
	}
	if rows, err := rows.Undecided(t.Context(), r.st.Reader, "telegram:1", 0, 100); err != nil || len(rows) != 0 {
		t.Errorf("%d answers to the asker, %v", len(rows), err)
	}
}

// panicking is a runtime with a mistake, in the first start.
type panicking struct {
	runtime.Process
	once *sync.Once
}

func (p panicking) Start(ctx context.Context, s runtime.Spec) (*runtime.Proc, error) {
	p.once.Do(func() { panic("no such field") })
	return p.Process.Start(ctx, s)
}

// TestPanic_CostsTheTurn: a panic while one turn is handled fails that turn, and the others are answered.
func TestPanic_CostsTheTurn(t *testing.T) {
	redacting := func(text string) func(*Config) {
		return func(cfg *Config) {
			cfg.Redact = func(s string) string {
				if strings.Contains(s, text) {
					panic("no such text")
				}
				return s
			}
		}
	}
	for name, tt := range map[string]struct {
		script, problem string
		cause           func(*Config)
	}{
		"in a frame":          {"!say boom", "no such text", redacting("boom")},
		"in an error frame":   {"!error boom", "no such text", redacting("boom")},
		"at the end of a run": {"!exit 3", "no such text", redacting("ended without an answer")},
		"in the agent's start": {"hi", "no such field", func(cfg *Config) {
			process := cfg.Runtimes[groupconfig.Process].(runtime.Process)
			cfg.Runtimes = map[groupconfig.Runtime]runtime.Runtime{groupconfig.Process: panicking{process, &sync.Once{}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, impatient, tt.cause)
			failed := r.await(r.ask(tt.script), msg.TurnFailed)
			if !strings.Contains(failed.Error, "panic: "+tt.problem) || !strings.Contains(failed.Error, "agents.(*run)") {
				t.Errorf("failed with %q", failed.Error)
			}
			r.onlyNotice(failed)
			diff(t, "the next turn", r.answered(r.ask("hello")), []string{"re: hello"})
			r.until("its run has ended", func() bool { return len(r.runs()) <= 1 })
			r.stop()
			for line := range strings.Lines(r.log.String()) {
				if strings.Contains(line, "panic while") && !strings.Contains(line, tt.problem) {
					t.Errorf("another panic: %s", line)
				}
			}
		})
	}
}

func TestPanic_WhilePromptIsBuilt_CostsTheTurn(t *testing.T) {
	t.Parallel()
	r := newHarness(t, func(cfg *Config) { cfg.Location = nil }) // which time.In refuses by a panic
	failed := r.await(r.ask("hi"), msg.TurnFailed)
	if !strings.Contains(failed.Error, "panic:") {
		t.Errorf("failed with %q", failed.Error)
	}
}

// TestFiles_TurnWaitsForThem: a turn starts when none of its rows' files is pending
// any more, or after its time.
func TestFiles_TurnWaitsForThem(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	photo := &msg.Message{Content: "what is this?", PendingFiles: 1, Attachments: []msg.Attachment{{Ref: "x", Name: "cat.jpg"}}}
	waits := newTurn()
	waits.WaitsFor, waits.NotBefore = msg.WaitsFiles, r.cfg.Now().Add(time.Minute).UnixMilli()
	r.store(waits, photo)
	r.m.Dispatch(waits)
	r.m.Poked() // for something else
	diff(t, "another chat", r.answered(r.ask("hi", chat("telegram:2"))), []string{"re: hi"})
	if now := r.turn(waits.ID); now.State != msg.TurnQueued {
		t.Fatalf("turn %+v", now)
	}
	r.write(func(tx *store.Tx) error {
		return tx.PutFiles(photo.ID, []msg.Attachment{{Name: "cat.jpg", Error: "too large"}})
	})
	r.m.Poked()
	diff(t, "with its files", r.answered(waits), []string{"re: what is this?"})

	late := newTurn()
	late.WaitsFor, late.NotBefore = msg.WaitsFiles, r.cfg.Now().Add(time.Minute).UnixMilli()
	r.store(late, &msg.Message{Content: "and this?", PendingFiles: 1})
	r.m.Dispatch(late)
	r.ahead.Add(time.Minute.Milliseconds())
	diff(t, "without its files", r.answered(late), []string{"re: and this?"})
}

// TestStop_Backlog_IsCarriedOutInPages: more turns wait than one commit cancels, and
// a restart does not keep the rest.
func TestStop_Backlog_IsCarriedOutInPages(t *testing.T) {
	t.Parallel()
	r := newHarness(t, impatient, timeout(time.Hour)) // a slow disk takes its time for the backlog
	r.gate("main", "never")
	ready := r.gate("main", "ready")
	running := r.ask("!hold ready; hold never")
	ready()
	const backlog = 1200
	var last *msg.Turn
	for range backlog {
		last = newTurn()
		last.Place = "x" // takes in no rows: the size is unknown
		r.store(last, &msg.Message{Content: "more"})
	}
	r.m.Dispatch(last)
	cancelled, more := r.stopRows(rows.Stop{ChatJID: "telegram:1"})
	if !more || len(cancelled) >= backlog || cancelled[0].ID != running.ID {
		t.Fatalf("%d turns cancelled at once, more %t", len(cancelled), more)
	}
	after := newTurn()
	r.store(after, &msg.Message{Content: "after"})
	r.stop()
	r.start()
	diff(t, "written after the stop", r.answered(after), []string{"re: after"})
	r.until("the rest is cancelled", func() bool { return r.turn(last.ID).State == msg.TurnCancelled })
	r.until("the stop is over", func() bool { return len(must[[]rows.Stop](r)(rows.Stops(t.Context(), r.st.Reader, ""))) == 0 })
	for _, g := range r.inputs("main") {
		if slices.Contains(texts(g.prompt.Messages), "more") {
			t.Error("a stopped turn was asked")
		}
	}
}
