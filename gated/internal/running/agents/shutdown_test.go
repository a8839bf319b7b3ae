package agents

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestShutdown(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	ready, open := r.gate("main", "ready"), r.gate("main", "gate")
	working := r.ask("!hold ready; session s1; until eof; hold gate; say bye; exit 0")
	ready()
	piped, queued := r.ask("piped"), r.ask("queued", chat("telegram:2"))
	stopped := make(chan struct{})
	go func() {
		r.stop()
		close(stopped)
	}()
	open() // which it comes to when its input has ended
	<-stopped
	diff(t, "the answer under way", r.replies(working), []string{"bye"})
	for _, asked := range []*msg.Turn{piped, queued} {
		if now := r.turn(asked.ID); now.State != msg.TurnQueued || now.Attempts != 0 {
			t.Errorf("turn %+v", now)
		}
	}
	late := r.ask("late") // the gateway may still be at it
	if late.State != msg.TurnQueued {
		t.Errorf("late turn %+v", late)
	}
	r.start()
	diff(t, "after the restart", r.answered(piped, queued, late), []string{"re: piped", "re: queued", "re: late"})
	if s := r.session("main", ""); s != "s1" {
		t.Errorf("session %q", s)
	}
}

func TestShutdown_AgentIgnoresEOF_IsKilled(t *testing.T) {
	t.Parallel()
	r := newHarness(t, impatient)
	r.gate("main", "never")
	ready := r.gate("main", "ready")
	asked := r.ask("!ignore-term; hold ready; hold never")
	ready()
	r.stop()
	if now := r.turn(asked.ID); now.State != msg.TurnQueued || now.Attempts != 0 {
		t.Errorf("turn %+v", now)
	}
	if left := r.runs(); len(left) != 0 {
		t.Errorf("runs %+v", left)
	}
}

// leftBehind stores the leftovers of a gated that was killed: turns, and a run that has taken the first ones.
func (r *harness) leftBehind(taken int, texts ...string) (run msg.Run, turns []*msg.Turn) {
	r.t.Helper()
	run = msg.Run{Folder: "main", ChatJID: "telegram:1", Runtime: "process"}
	for _, text := range texts {
		asked := newTurn()
		r.store(asked, &msg.Message{Content: text})
		turns = append(turns, asked)
	}
	r.write(func(tx *store.Tx) error {
		err := rows.StartRun(tx, &run, turns[0].ID)
		for _, asked := range turns[1:taken] {
			if err == nil {
				err = rows.TakeTurn(tx, asked.ID, run.ID, 1)
			}
		}
		return err
	})
	return run, turns
}

func TestRecover_KilledGated_RequeuesOpenTurns(t *testing.T) {
	t.Parallel()
	r := newHarness(t, impatient)
	r.stop()

	// A gated that was killed leaves a run with its process, one turn
	// answered in part, one asked, one piped, one queued.
	row, turns := r.leftBehind(2, "part", "asked", "queued")
	var orphan *runtime.Proc
	r.write(func(tx *store.Tx) error {
		reply := rows.Reply{RunID: row.ID, TurnID: turns[0].ID, Text: "half", Sender: "agent:main"}
		return gatedtest.AnswerTurn(tx, reply, r.cfg.Now().UnixMilli())
	})
	dir := t.TempDir()
	frame := "printf '%s\\n' '" + agentproto.FrameStart + "' '{\"status\":\"ok\"}' '" + agentproto.FrameEnd + "'"
	orphan, err := runtime.Process{Temp: t.TempDir(), AsRoot: true}.Start(t.Context(), runtime.Spec{
		RunID: row.ID, Command: "trap '' TERM; " + frame + "; sleep 1000; sleep 1000", Dir: dir, LogPath: filepath.Join(dir, "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if ev := <-orphan.Events(); ev.Frame == nil { // it ignores SIGTERM from here on
		t.Fatalf("the orphan: %+v", ev)
	}
	r.write(func(tx *store.Tx) error { return rows.RecordProcess(tx, row.ID, orphan.PID(), orphan.PIDStart(), "") })

	r.start()
	select {
	case ev := <-orphan.Events():
		if ev.Exit == nil || ev.Exit.Signal != syscall.SIGKILL {
			t.Errorf("the orphan: %+v", ev)
		}
	case <-time.After(patience):
		t.Fatal("the orphan is still there")
	}
	if now := r.await(turns[0], msg.TurnDone); now.Reason != msg.ReasonInterrupted {
		t.Errorf("turn %+v", now)
	}
	diff(t, "answers", r.answered(turns...), []string{"half", "re: asked", "re: queued"})
	if now := r.turn(turns[1].ID); now.Attempts != 0 {
		t.Errorf("turn %+v", now)
	}
	for _, want := range []string{`msg="recovered runs of the previous gated" count=1`, `msg="found lanes with queued turns" count=1`} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("no %s in\n%s", want, r.log)
		}
	}
}

// An agent that ignores the end of its input and SIGTERM ends before gated abandons it.
func TestDefaultGraces_FitIntoShutdown(t *testing.T) {
	t.Parallel()
	if g := defaultGraces(); 2*max(g.EOF, g.Fail) >= maxShutdown || g.Orphan <= 0 {
		t.Errorf("%+v do not fit into %s", g, maxShutdown)
	}
}
