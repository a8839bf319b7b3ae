package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/need"
)

// outages are the ways in which routd does not answer.
var outages = []struct {
	name       string
	begin, end func(*harness.Fixture)
}{
	{"killed", func(f *harness.Fixture) { f.Kill(harness.Routd) }, func(f *harness.Fixture) { f.Restart(harness.Routd) }},
	{"suspended", func(f *harness.Fixture) { f.Suspend(harness.Routd) }, func(f *harness.Fixture) { f.Resume(harness.Routd) }},
}

func TestRoutdOutage_RowsWaitCommandsWork(t *testing.T) {
	for _, outage := range outages {
		t.Run(outage.name, func(t *testing.T) {
			f := start(t, harness.Options{})
			f.Answer(f.Say("telegram:5", "before"))
			outage.begin(f)
			waiting := []int64{f.Say("telegram:5", "one"), f.Say("telegram:5", "#deploy two"), f.Say("telegram:6", "three")}
			f.WantReply(f.Say("telegram:5", "/ping"), "pong")
			waiting = append(waiting, f.Say("web:main", "are you there?")) // a chat whose address names its group
			for _, id := range waiting {
				if m := f.Row(id); m.Disposition != "" {
					t.Errorf("%q is decided during the outage: %s/%s", m.Content, m.Disposition, m.Reason)
				}
			}
			f.WantReply(f.Say("telegram:7", "/stop"), "stopped")
			fresh := f.Say("telegram:8", "/new #other four") // whose session it ends is for routd to say
			if m := f.Row(fresh); m.Disposition != "" {
				t.Errorf("/new is decided during the outage: %s/%s", m.Disposition, m.Reason)
			}
			outage.end(f)
			f.WantEchoes("telegram:8", "four")
			f.WantEchoes("telegram:6", "three")
			f.WantEchoes("telegram:5", "before", "one", "two")
			f.WantEchoes("web:main", "are you there?")
		})
	}
}

func TestRoutdOutage_CommandBehindPageOfRows_IsAnswered(t *testing.T) {
	f := start(t, harness.Options{})
	f.Kill(harness.Routd)
	var sent []string
	for i := range 1200 {
		sent = append(sent, fmt.Sprintf("row %d", i))
	}
	f.Put(texts("telegram:5", sent...)...)
	f.WantReply(f.Say("telegram:5", "/ping"), "pong")
	f.Restart(harness.Routd)
	f.WantEchoes("telegram:5", sent...)
}

func TestRoutdOutage_Repeated_AllRowsAnsweredInOrder(t *testing.T) {
	f := start(t, harness.Options{})
	var sent []string
	for i := range 6 {
		outage := outages[i%2]
		outage.begin(f)
		for range 5 {
			sent = append(sent, fmt.Sprintf("row %d", len(sent)))
			f.Say("telegram:5", sent[len(sent)-1])
		}
		outage.end(f)
		sent = append(sent, fmt.Sprintf("row %d", len(sent)))
		f.Say("telegram:5", sent[len(sent)-1])
	}
	f.WantEchoes("telegram:5", sent...)
}

func TestGatedKilled_DuringRuns_AnswersEachOnceInOrder(t *testing.T) {
	f := start(t, harness.Options{})
	sent := map[string][]string{}
	say := func(i int) {
		chat := []string{"telegram:1", "telegram:2", "telegram:3", "web:main", "web:other", "web:main/eng"}[i%6]
		text := fmt.Sprintf("slow 0.02 row %d", i)
		sent[chat] = append(sent[chat], text)
		f.Say(chat, text)
	}
	const rounds, each = 6, 36
	for round := range rounds {
		for i := range each {
			say(round*each + i)
		}
		answered := round*each + each/3
		f.Until("some rows to be answered", func() bool {
			return len(f.Query(`SELECT 1 FROM messages WHERE source = 'agent' AND direction = 'out'
				UNION ALL SELECT 1 FROM messages WHERE turn_id IN (SELECT id FROM turns WHERE state = 'done')`)) >= answered
		})
		f.Kill(harness.Gated)
		say(rounds*each + round) // while it is down
		f.StartDaemon(harness.Gated)
	}
	for chat, texts := range sent {
		f.WantEchoes(chat, texts...)
	}
	for _, line := range f.Query(`SELECT id, attempts, state, reason FROM turns WHERE attempts > 0 OR reason <> 'answered'`) {
		t.Errorf("turn %s", line)
	}
}

func TestGatedKilled_RoutdSuspended_AnswersAfterwards(t *testing.T) {
	f := start(t, harness.Options{})
	f.Suspend(harness.Routd)
	f.Put(texts("telegram:5", "one", "two")...)
	f.Kill(harness.Gated)
	f.StartDaemon(harness.Gated)
	f.Put(texts("telegram:5", "three")...)
	f.Resume(harness.Routd)
	f.WaitReady(harness.Gated)
	f.WantEchoes("telegram:5", "one", "two", "three")
}

func TestGatedStopped_DuringRun_LeavesNoAgentAndResumes(t *testing.T) {
	f := start(t, harness.Options{})
	f.WaitRunning(f.Say("telegram:5", "until go nearly done"))
	f.Say("telegram:5", "next")
	if code := f.Stop(harness.Gated); code != 0 {
		t.Errorf("gated ended with exit code %d", code)
	}
	if left := f.Agents(); len(left) > 0 {
		t.Errorf("agents still run: %v", left)
	}
	f.Restart(harness.Gated)
	f.LetGo("main", "go")
	f.WantEchoes("telegram:5", "until go nearly done", "next")
}

func TestDatabaseLocked_ByOtherProcess_AnswersAfterwards(t *testing.T) {
	for _, held := range []time.Duration{3 * time.Second, 12 * time.Second} { // shorter and longer than the daemons' busy timeout
		t.Run(held.String(), func(t *testing.T) {
			if held > 10*time.Second {
				need.Verify(t)
			}
			f := start(t, harness.Options{})
			f.Suspend(harness.Gated)
			f.Put(texts("telegram:5", "one", "two", "/ping")...)
			f.Put(texts("web:main", "three")...)
			tx, err := f.DB.Begin() // immediate
			f.OK(err)
			if storetest.Server() != "" {
				_, err := tx.Exec(`SELECT pg_advisory_xact_lock(hashtext('arizuko.write'))`)
				f.OK(err)
			}
			f.Resume(harness.Gated)
			<-time.After(held) // the duration of the lock under test
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			f.WantEchoes("telegram:5", "one", "two")
			f.WantEchoes("web:main", "three")
			if log := f.Log(harness.Gated); held > 10*time.Second && !strings.Contains(log, "write lock") {
				t.Errorf("the log does not name the write lock:\n%s", log)
			}
		})
	}
}

// onMessages names the table of a trigger where a server wants that.
func onMessages() string {
	if storetest.Server() == "" {
		return ""
	}
	return ` ON messages`
}

// poison makes the decision of a row fail where a condition holds, until the trigger poison is dropped.
func poison(f *harness.Fixture, condition string) {
	f.T.Helper()
	if storetest.Server() == "" {
		f.Exec(`CREATE TRIGGER poison BEFORE UPDATE OF disposition ON messages WHEN ` + condition + ` BEGIN SELECT RAISE(ABORT, 'poisoned'); END`)
		return
	}
	f.Exec(`CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE integrity_constraint_violation USING MESSAGE = ''poisoned''; END'`)
	f.Exec(`CREATE TRIGGER poison BEFORE UPDATE OF disposition ON messages FOR EACH ROW WHEN (` + condition + `) EXECUTE FUNCTION poison()`)
}

func TestPoisonRow_DropFails_StopsNoOther(t *testing.T) {
	f := start(t, harness.Options{})
	poison(f, `old.content = 'poison'`)
	rows := f.Put(texts("telegram:5", "one", "poison", "two")...)
	f.AllowUndecided(rows[1])
	f.Put(texts("telegram:6", "unharmed")...)
	f.WantEchoes("telegram:6", "unharmed")
	f.WantEchoes("telegram:5", "one", "two")
	f.Say("telegram:5", "three")
	f.WantEchoes("telegram:5", "one", "two", "three")
	f.Exec(`DROP TRIGGER poison` + onMessages())
	f.Stop(harness.Gated)
	f.Restart(harness.Gated)
	f.WantDecision(rows[1], msg.Routed, msg.ReasonRoute)
	f.WaitIdle()
	f.Exec(`UPDATE turns SET topic = '#late' WHERE id = ?`, f.Turn(rows[1]).ID) // it is out of order, which the invariants would report
	if got := f.Echoes("telegram:5"); !slices.Equal(got, []string{"one", "two", "three", "poison"}) {
		t.Errorf("echoes %q", got)
	}
}
