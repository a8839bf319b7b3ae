package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/msg"
)

// outages are the ways in which routd may not answer.
var outages = []struct {
	name        string
	begin, stop func(*Suite)
}{
	{"dead", func(s *Suite) { s.Kill(Routd) }, func(s *Suite) { s.Restart(Routd) }},
	{"hanging", func(s *Suite) { s.Hang(Routd) }, func(s *Suite) { s.Resume(Routd) }},
}

func TestWithoutRoutdRowsWaitAndCommandsGoOn(t *testing.T) {
	for _, outage := range outages {
		t.Run(outage.name, func(t *testing.T) {
			s := start(t, Options{})
			s.Answer(s.Say("telegram:5", "before"))
			outage.begin(s)
			waiting := []int64{s.Say("telegram:5", "one"), s.Say("telegram:5", "#deploy two"), s.Say("telegram:6", "three")}
			s.Replies(s.Say("telegram:5", "/ping"), "pong")
			s.Answer(s.Say("web:main", "are you there?"))
			s.Answer(s.Put(msg.Message{ChatJID: "web:main", Topic: "#a", Content: "and here?"})[0])
			isFor(t, s.hears("web:main", "#b inline too", "inline too"), "main", "#b")
			for _, id := range waiting {
				if m := s.Row(id); m.Disposition != "" {
					t.Errorf("%q did not wait: %s/%s", m.Content, m.Disposition, m.Reason)
				}
			}
			s.Replies(s.Say("telegram:5", "/new"), "new session") // of the group that answered last
			s.Say("telegram:5", "four")
			outage.stop(s)
			s.HasHeard("telegram:6", "three")
			s.HasHeard("telegram:5", "before", "one", "four", "two")
		})
	}
}

func TestWithoutRoutdCommandsBehindAPageOfRowsGoOn(t *testing.T) {
	s := start(t, Options{})
	s.Kill(Routd)
	var sent []string
	for i := range 1200 {
		sent = append(sent, fmt.Sprintf("row %d", i))
	}
	s.Put(texts("telegram:5", sent...)...)
	s.Replies(s.Say("telegram:5", "/ping"), "pong")
	s.Restart(Routd)
	s.HasHeard("telegram:5", sent...)
}

func TestRoutdMayComeAndGo(t *testing.T) {
	s := start(t, Options{})
	var sent []string
	for i := range 6 {
		outage := outages[i%2]
		outage.begin(s)
		for range 5 {
			sent = append(sent, fmt.Sprintf("row %d", len(sent)))
			s.Say("telegram:5", sent[len(sent)-1])
		}
		outage.stop(s)
		sent = append(sent, fmt.Sprintf("row %d", len(sent)))
		s.Say("telegram:5", sent[len(sent)-1])
	}
	s.HasHeard("telegram:5", sent...)
}

func TestGatedKilledInTheMiddleOfRuns(t *testing.T) {
	s := start(t, Options{})
	sent := map[string][]string{}
	say := func(i int) {
		chat := []string{"telegram:1", "telegram:2", "telegram:3", "web:main", "web:other", "web:main/eng"}[i%6]
		text := fmt.Sprintf("slow 0.02 row %d", i)
		sent[chat] = append(sent[chat], text)
		s.Say(chat, text)
	}
	const rounds, each = 6, 36
	for round := range rounds {
		for i := range each {
			say(round*each + i)
		}
		answered := round*each + each/3
		s.Until("some of it is answered", func() bool {
			return len(s.lines(`SELECT 1 FROM messages WHERE source = 'agent' AND direction = 'out'
				UNION ALL SELECT 1 FROM messages WHERE turn_id IN (SELECT id FROM turns WHERE state = 'done')`)) >= answered
		})
		s.Kill(Gated)
		say(rounds*each + round) // while it is down
		s.StartDaemon(Gated)
	}
	for chat, texts := range sent {
		s.HasHeard(chat, texts...)
	}
	for _, line := range s.lines(`SELECT id, attempts, state, reason FROM turns WHERE attempts > 0 OR reason <> 'answered'`) {
		t.Errorf("turn %s", line)
	}
}

func TestGatedKilledWhileRoutdHangs(t *testing.T) {
	s := start(t, Options{})
	s.Hang(Routd)
	s.Put(texts("telegram:5", "one", "two")...)
	s.Kill(Gated)
	s.StartDaemon(Gated)
	s.Put(texts("telegram:5", "three")...)
	s.Resume(Routd)
	s.WaitReady(Gated)
	s.HasHeard("telegram:5", "one", "two", "three")
}

func TestGatedStoppedInTheMiddleOfARun(t *testing.T) {
	s := start(t, Options{})
	s.Runs(s.Say("telegram:5", "slow 1 nearly done"))
	s.Say("telegram:5", "next")
	if code := s.Stop(Gated); code != 0 {
		t.Errorf("gated ended with %d", code)
	}
	if left := s.strays(); len(left) > 0 {
		t.Errorf("agents are left running: %v", left)
	}
	s.Restart(Gated)
	s.HasHeard("telegram:5", "slow 1 nearly done", "next")
}

func TestAnotherProcessHoldsTheDatabase(t *testing.T) {
	for _, held := range []time.Duration{3 * time.Second, 12 * time.Second} { // within and beyond the daemons' patience
		t.Run(held.String(), func(t *testing.T) {
			s := start(t, Options{})
			s.Hang(Gated)
			s.Put(texts("telegram:5", "one", "two", "/ping")...)
			s.Put(texts("web:main", "three")...)
			tx, err := s.db.Begin() // immediate
			if err != nil {
				t.Fatal(err)
			}
			s.Resume(Gated)
			<-time.After(held) // what the test is about, not a guess when something is done
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			s.HasHeard("telegram:5", "one", "two")
			s.HasHeard("web:main", "three")
			if log := s.Log(Gated); held > 10*time.Second && !strings.Contains(log, "write lock") {
				t.Errorf("nothing in the log tells an operator why:\n%s", log)
			}
		})
	}
}

func TestARowThatCannotBeRoutedIsDropped(t *testing.T) {
	s := start(t, Options{})
	s.Exec(`CREATE TRIGGER poison BEFORE UPDATE OF disposition ON messages WHEN old.content = 'poison' AND new.disposition = 'routed'
		BEGIN SELECT RAISE(ABORT, 'poisoned'); END`)
	rows := s.Put(texts("telegram:5", "one", "poison", "two")...)
	s.Put(texts("telegram:6", "unharmed")...)
	s.Becomes(rows[1], msg.Dropped, msg.ReasonBadRow)
	s.HasHeard("telegram:5", "one", "two")
	s.HasHeard("telegram:6", "unharmed")
	if !strings.Contains(s.Log(Gated), "poisoned") {
		t.Error("the log does not say why")
	}
}

func TestARowThatCannotEvenBeDroppedStopsNobody(t *testing.T) {
	s := start(t, Options{})
	s.Exec(`CREATE TRIGGER poison BEFORE UPDATE OF disposition ON messages WHEN old.content = 'poison'
		BEGIN SELECT RAISE(ABORT, 'poisoned'); END`)
	rows := s.Put(texts("telegram:5", "one", "poison", "two")...)
	s.MayWait(rows[1])
	s.Put(texts("telegram:6", "unharmed")...)
	s.HasHeard("telegram:6", "unharmed")
	s.HasHeard("telegram:5", "one", "two")
	s.Say("telegram:5", "three")
	s.HasHeard("telegram:5", "one", "two", "three")
	s.Exec(`DROP TRIGGER poison`)
	s.Stop(Gated)
	s.Restart(Gated)
	s.Becomes(rows[1], msg.Routed, msg.ReasonRoute)
	s.Settle()
	s.Exec(`UPDATE turns SET topic = '#late' WHERE id = ?`, s.Turn(rows[1]).ID) // it is out of order, and says so
	if got := s.Heard("telegram:5"); !slices.Equal(got, []string{"one", "two", "three", "poison"}) {
		t.Errorf("heard %q", got)
	}
}
