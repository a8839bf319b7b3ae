package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
)

// An update that comes too late is in the log, and in no other turn.
func TestUpdates_LongAfterTheResponse_AreLogged(t *testing.T) {
	t.Parallel()
	s := fake(t).open()
	s.Send(agenttest.First("1", "", "later and last"))
	s.WantAnswer("1", "first")
	for end := time.Now().Add(maxWait); !strings.Contains(s.Log.String(), "said after the end of the turn, and not shown:  and last"); {
		if time.Now().After(end) {
			t.Fatal("it is not in the log")
		}
		<-time.After(10 * time.Millisecond)
	}
	s.Send(agenttest.Further("2", "say more"))
	s.WantAnswer("2", "more")
	s.wantExit(0)
}

// Texts as numbers, numbers as texts, and objects that are null: the parts that make sense count.
func TestUpdates_OtherForms_AreUnderstoodOrLeftOut(t *testing.T) {
	t.Parallel()
	s := fake(t, "loose").open()
	s.Send(agenttest.First("1", "", "say hello"), agenttest.Further("2", "error -32000 who are you"))
	s.WantAnswer("1", "hello!")
	s.WantError("2", agentproto.KindPermanent, "no valid credentials (who are you)")
	s.wantExit(1)
	var last agentproto.Usage
	for _, e := range s.Events {
		if e.Usage != nil {
			last = *e.Usage
		}
	}
	if want := (agentproto.Usage{Input: 10, Output: 7, ContextUsed: 50, ContextSize: 100, CostUSD: 0.5}); last != want {
		t.Errorf("usage %+v, want %+v", last, want)
	}
}

// The cost of a session before its first prompt is not the cost of a turn.
func TestUpdates_CostBeforeTheSessionIsNamed_IsNotOfTheTurn(t *testing.T) {
	t.Parallel()
	s := fake(t, "early").open()
	s.Send(agenttest.First("1", "", "tool look"))
	s.WantAnswer("1", "I look.\n\nIt is done.")
	s.wantExit(0)
	for _, e := range s.Events {
		if e.Usage != nil && e.Usage.CostUSD > 0.25 {
			t.Errorf("usage %+v", *e.Usage)
		}
	}
}

// Agents that resume a session silently count its cost from its beginning, or from their own start.
func TestUpdates_CostOfAResumedSession_IsCountedOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, fault string
		forget      bool // the kept cost
		want        float64
	}{
		{"of the session", "total-cost", false, 0.25},
		{"of the session, unknown", "total-cost", true, 0},
		{"of the program", "no-load", false, 0.25},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := fake(t, tt.fault)
			home := t.TempDir()
			g.environ = []string{"HOME=" + home}
			session := ""
			for turn, want := range []float64{0.5, tt.want, tt.want} {
				s := g.open()
				s.Send(agenttest.First(strconv.Itoa(turn), session, "tool look"))
				f := s.WantAnswer(strconv.Itoa(turn), "I look.\n\nIt is done.")
				if session == "" {
					session = f.NewSessionID
					s.Send(agenttest.Further("again", "tool look"))
					s.WantAnswer("again", "I look.\n\nIt is done.")
				}
				s.wantExit(0)
				cost := map[string]float64{}
				for _, e := range s.Events {
					if e.Usage != nil {
						cost[e.TurnID] = e.Usage.CostUSD
					}
				}
				sum := 0.0
				for _, c := range cost {
					sum += c
				}
				if sum != want {
					t.Errorf("run %d: cost %v, want %v", turn, cost, want)
				}
				if tt.forget {
					if err := os.RemoveAll(home + "/.cache"); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

func TestUpdates_ReplayAtResume_FeedsNothing(t *testing.T) {
	t.Parallel()
	g := fake(t, "replays")
	s := g.open()
	s.Send(agenttest.First("1", "", "say hello"))
	f := s.WantAnswer("1", "hello")
	s.wantExit(0)
	s = g.open()
	s.Send(agenttest.First("2", f.NewSessionID, "slow 0.3 say more"))
	s.WantAnswer("2", "more")
	s.wantExit(0)
}

// Updates of a turn that the agent cancels late do not count for the next one.
func TestUpdates_AfterLateCancel_AreOfNoTurn(t *testing.T) {
	t.Parallel()
	s := fake(t, "late-cancel").open()
	s.Send(agenttest.First("1", "", "tool long"))
	s.busy()
	s.Send(agentproto.Interrupt{}, agenttest.Further("2", "slow 0.3 say more"))
	s.WantAnswer("2", "more")
	s.wantExit(0)
	if strings.Contains(s.Log.String(), "is terminated") {
		t.Error("the agent was ended")
	}
}

// The text that an agent wrote before it exits is the answer, and the next turn has another process with the same
// session.
func TestTurn_AgentExitsWithAnAnswer_NextTurnResumes(t *testing.T) {
	t.Parallel()
	s := fake(t).open()
	s.Send(agenttest.First("1", "", "last word"), agenttest.Further("2", "recall"))
	s.WantAnswer("1", "word")
	s.WantAnswer("2", "Before: last word")
	s.wantExit(0)
}

// Commands and addresses may have passwords in them.
func TestTurn_TitlesOfTools_HaveNoArguments(t *testing.T) {
	t.Parallel()
	s := fake(t).open()
	s.Send(agenttest.First("1", "", "command mysql -p'example-pass' -e 'select 1'"))
	s.WantAnswer("1", "done")
	s.wantExit(0)
	titles, inputs := "", ""
	for _, e := range s.Events {
		if e.Tool != nil {
			titles += fmt.Sprintf("%s: %s\n", e.Tool.ID, e.Tool.Title)
			inputs += fmt.Sprintf("%s: %s\n", e.Tool.ID, e.Tool.Input)
		}
	}
	// Only groups that want it show the input.
	const command = "mysql -p'example-pass' -e 'select 1'"
	if want := "c: " + command + "\nc: " + command + "\nd: " + command + "\nf: \n"; inputs != want {
		t.Errorf("inputs %s, want %s", inputs, want)
	}
	if want := "c: Run a command\nc: Run a command\nd: Look into the database\nf: Fetch a page\n"; titles != want {
		t.Errorf("got %s, want %s", titles, want)
	}
}
