package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/config/configtest"
	"arizuko/pkg/testkit/need"
)

func TestEnvironment_PageMatchesConfig(t *testing.T) {
	configtest.CheckTable(t, "../../../docs/reference/environment.md", "acp", Config{})
}

func TestRun_NextRun_ResumesSession(t *testing.T) {
	for name, faults := range map[string][]string{
		"resume":                      nil,
		"load":                        {"no-resume"},
		"no resume, though announced": {"lacks=session/resume"},
		"late replay":                 {"no-resume", "late-replay"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := fake(t, faults...)
			s := g.open()
			s.Send(agenttest.First("1", "", "say hello"), agenttest.Further("2", "say more"))
			f := s.WantAnswer("1", "hello")
			s.WantAnswer("2", "more")
			s.wantExit(0)
			if f.NewSessionID == "" {
				t.Fatal("the frame names no session")
			}
			s = g.open()
			s.Send(agenttest.First("3", f.NewSessionID, "recall"))
			if again := s.WantAnswer("3", "Before: say hello | say more"); again.NewSessionID != f.NewSessionID {
				t.Errorf("session %q became %q", f.NewSessionID, again.NewSessionID)
			}
			for _, e := range s.Events {
				if e.Text != nil && strings.Contains(*e.Text, "old answer") || e.Tool != nil {
					t.Errorf("the replay was shown: %+v", e)
				}
			}
			s.wantExit(0)
		})
	}
}

func TestRun_SessionCannotBeResumed_SaysSo(t *testing.T) {
	for _, tt := range []struct {
		faults  []string
		session string
		want    string
	}{
		{nil, "no-such-session", "Resource not found"},
		{[]string{"no-resume", "load-fails"}, "any", "cannot load"},
		{[]string{"no-resume", "no-load"}, "any", "cannot resume sessions"},
		{[]string{"lacks=session/resume", "no-load"}, "any", "Method not found"},
		{[]string{"lacks=session/load", "no-resume"}, "any", "Method not found"},
		{[]string{"dies=session/resume"}, "any", "dying of session/resume"},
	} {
		s := fake(t, tt.faults...).open()
		s.Send(agenttest.First("1", tt.session, "say hello"))
		s.WantError("1", agentproto.KindSession, tt.want)
		s.wantExit(1)
	}
}

// Its sessions end with the process, so they have no name.
func TestRun_AgentWithoutResume_NamesNoSession(t *testing.T) {
	s := fake(t, "no-resume", "no-load").open()
	s.Send(agenttest.First("1", "", "say hello"))
	if f := s.WantAnswer("1", "hello"); f.NewSessionID != "" {
		t.Errorf("got %+v", f)
	}
	s.wantExit(0)
}

// The fake ends with an error at a second prompt while it works.
func TestRun_MessagesDuringTurn_WaitForTheirTurn(t *testing.T) {
	s := fake(t).open()
	s.Send(agenttest.First("1", "", "slow 0.3 say one"), agenttest.Further("2", "say two"), agenttest.Further("3", "say three"))
	s.WantAnswer("1", "one")
	s.WantAnswer("2", "two")
	s.WantAnswer("3", "three")
	s.wantExit(0)
}

func TestRun_Steering_FoldsWhatTheAgentTakesIn(t *testing.T) {
	s := fake(t, "steering").open()
	s.Send(agenttest.First("1", "", "tool steered"))
	s.busy()
	if !slices.ContainsFunc(s.Events, func(e agentproto.Event) bool { return e.Features != nil && e.Features.Fold }) {
		t.Error("it does not announce that it folds")
	}
	s.Send(agenttest.Foldable("2", "two"), agenttest.Further("3", "say three"))
	if f := s.Next(); !slices.Equal(f.TurnIDs, []string{"1", "2"}) {
		t.Errorf("got %+v", f)
	}
	s.WantAnswer("3", "three")
	s.wantExit(0)
}

// A message that the agent may have received is not sent again: gated decides about that.
func TestRun_SteeringNotAnswered_FailsThatTurnOnly(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	s := fake(t, "steering", "mute=_session/steering").open()
	s.Send(agenttest.First("1", "", "tool muted"))
	s.busy()
	s.Send(agenttest.Foldable("2", "two"))
	s.WantAnswer("1", "I look.\n\nIt is done.")
	s.WantError("2", agentproto.KindTransient, "it may have got the message, or not")
	s.wantExit(1)
}

func TestRun_InterruptWhileSteeringIsUnanswered_EndsTheTurn(t *testing.T) {
	t.Parallel()
	s := fake(t, "steering", "mute=_session/steering").open()
	s.Send(agenttest.First("1", "", "tool muted"))
	s.busy()
	s.Send(agenttest.Foldable("2", "two"))
	s.Until("usage of the whole turn", func(e agentproto.Event) bool { return e.Usage != nil })
	s.Send(agentproto.Interrupt{}, agenttest.Further("3", "recall"))
	s.WantAnswer("3", "Before: tool muted")
	s.wantExit(0)
	if strings.Contains(s.Log.String(), "is terminated") {
		t.Error("the agent was ended")
	}
}

func TestRun_Interrupt_CancelsTheTurn(t *testing.T) {
	g := fake(t)
	s := g.open()
	s.Send(agenttest.First("1", "", "tool long"))
	s.busy()
	s.Send(agenttest.Further("2", "say never"), agentproto.Interrupt{}, agenttest.Further("3", "recall"))
	f := s.WantAnswer("3", "Before: tool long")
	s.wantExit(0)
	s = g.open()
	s.Send(agenttest.First("4", f.NewSessionID, "recall"))
	s.WantAnswer("4", "Before: tool long | recall")
	s.wantExit(0)
}

// An agent that works on is ended, and the next turn has another process with the same session.
func TestRun_InterruptIgnored_EndsTheAgent(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	g := fake(t, "no-cancel")
	s := g.open()
	s.Send(agenttest.First("1", "", "say hello"))
	f := s.WantAnswer("1", "hello")
	s.Send(agenttest.Further("2", "tool slow"), agenttest.Further("3", "slow 600 say never"))
	s.WantAnswer("2", "I look.\n\nIt is done.")
	s.Send(agentproto.Interrupt{}, agenttest.Further("4", "recall"))
	if again := s.WantAnswer("4", "Before: say hello | tool slow"); again.NewSessionID != f.NewSessionID {
		t.Errorf("session %q became %q", f.NewSessionID, again.NewSessionID)
	}
	s.wantExit(0)
}

func TestRun_InterruptDuringStart_EndsTheAgent(t *testing.T) {
	s := fake(t, "mute=session/new").open()
	s.Send(agenttest.First("1", "", "say never"), agentproto.Interrupt{})
	s.wantExit(0)
}

// A user can stop a turn of an agent that says nothing that can be read.
func TestRun_HalfALine_CanBeStopped(t *testing.T) {
	t.Parallel()
	s := fake(t).open()
	s.Send(agenttest.First("1", "", "say hello"), agenttest.Further("2", "hostile half a line"))
	s.WantAnswer("1", "hello")
	s.Send(agentproto.Interrupt{}, agenttest.Further("3", "recall"))
	if f := s.Next(); !strings.HasPrefix(f.Result, "Before: say hello") {
		t.Errorf("got %+v", f)
	}
	s.wantExit(0)
}

func TestRun_KilledBridge_NextRunResumes(t *testing.T) {
	g := fake(t)
	s := g.open()
	s.Send(agenttest.First("1", "", "say hello"))
	f := s.WantAnswer("1", "hello")
	s.Send(agenttest.Further("2", "slow 600 say never"))
	if err := s.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitNone(t, s.folder) // its agent reads the end of its input
	s = g.open()
	s.Send(agenttest.First("2", f.NewSessionID, "recall"))
	s.WantAnswer("2", "Before: say hello")
	s.wantExit(0)
}

func TestRun_AgentKilledBetweenTurns_NextTurnResumes(t *testing.T) {
	s := fake(t).open()
	s.Send(agenttest.First("1", "", "say hello"))
	s.WantAnswer("1", "hello")
	kill(t, s.folder, syscall.SIGKILL)
	for !strings.Contains(s.Log.String(), "between turns: signal: killed") { // it would get the turn otherwise
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // of another process
	}
	s.Send(agenttest.Further("2", "recall"))
	s.WantAnswer("2", "Before: say hello")
	s.wantExit(0)
}

// kill sends a signal to the fake agent that runs in a folder.
func kill(t *testing.T, folder string, signal syscall.Signal) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		to, err := os.Readlink(link)
		program, _ := os.Readlink(filepath.Join(filepath.Dir(link), "exe"))
		if err != nil || to != folder || program != fakeAgent {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("no agent runs")
}

func TestRun_AgentStaysAtEndOfInput_IsEndedWithItsProcesses(t *testing.T) {
	for _, fault := range []string{"stays", "stubborn"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := fake(t, fault).open()
			s.Send(agenttest.First("1", "", "say hello"))
			s.WantAnswer("1", "hello")
			s.wantExit(0)
		})
	}
}

func TestRun_Terminated_EndsTheAgent(t *testing.T) {
	s := fake(t, "stubborn").open()
	s.Send(agenttest.First("1", "", "tool long"))
	s.busy()
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.WantError("1", agentproto.KindTransient, "terminated")
	s.wantExit(1)
}

func TestRun_Noise_IsLogged(t *testing.T) {
	s := fake(t, "noise").open()
	s.Send(agenttest.First("1", "", "odd"), agenttest.Further("2", "files"), agenttest.Further("3", "files"))
	s.WantAnswer("1", "fine")
	s.WantAnswer("2", "files: error -32601")
	s.WantAnswer("3", "files: error -32601")
	s.wantExit(0)
	for _, want := range []string{"not a message: Welcome", `not a message: {"jsonrpc":"2.0","method":`, "not a message: [1,2]", `not a message: {"level":"error"`, `not a message: {"error":`, "a line on stderr", "a response to no request: 4711"} {
		if !strings.Contains(s.Log.String(), want) {
			t.Errorf("the log has no %q", want)
		}
	}
}

func TestRun_SystemText_ReachesTheModel(t *testing.T) {
	in := agenttest.First("1", "", "setup")
	in.System = "Be kind."
	s := fake(t, "system").open()
	s.Send(in)
	if f := s.Next(); !strings.Contains(f.Result, `system "Be kind."`) {
		t.Errorf("got %+v", f)
	}
	s.wantExit(0)

	in.Prompt = agenttest.Prompt("prompt")
	g := fake(t)
	s = g.open()
	s.Send(in, agenttest.Further("2", "prompt"))
	f := s.WantAnswer("1", in.System+in.Prompt)
	s.WantAnswer("2", agenttest.Prompt("prompt"))
	s.wantExit(0)
	in.SessionID = f.NewSessionID
	s = g.open()
	s.Send(in)
	s.WantAnswer("1", in.Prompt)
	s.wantExit(0)
}
