package agents

import (
	"strings"
	"testing"
	"time"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

func withOperator(cfg *Config) { cfg.Operators = map[string]bool{"telegram:77": true} }

// spends is an event of a cost.
func spends(usd string) string { return `event {"type":"usage","cost_usd":` + usd + `}; ` }

// questions are the open questions about budgets that a chat reads.
func (r *harness) questions(turns ...*msg.Turn) (open []*msg.Ask) {
	r.t.Helper()
	for _, t := range turns {
		for _, a := range must[[]*msg.Ask](r)(r.st.TurnAsks(r.t.Context(), t.ID)) {
			if a.State == msg.AskOpen && msg.IsBudget(a.AskID) {
				open = append(open, a)
			}
		}
	}
	return open
}

// answerBudget answers the open question about a turn's budget, as a press of a button does.
func (r *harness) answerBudget(t *msg.Turn, option int) {
	r.t.Helper()
	open := r.questions(t)
	if len(open) == 0 {
		r.t.Fatalf("turn %d has no open question about its budget", t.ID)
	}
	r.choose(open[0], option)
	r.m.Revived()
}

// wantOver waits until a turn has ended since a budget is used up.
func (r *harness) wantOver(t *msg.Turn) {
	r.t.Helper()
	if now := r.await(t, msg.TurnCancelled); now.Reason != msg.ReasonOverBudget {
		r.t.Errorf("turn %+v", now)
	}
}

func TestBudget_TurnUsesItUp_EndsWithWhatItHasAndGoesOnIfRaised(t *testing.T) {
	t.Parallel()
	r := newHarness(t, withOperator, impatient)
	r.configure("main", `{"budget":{"turn_usd":0.5}}`)
	r.gate("main", "gate")
	asked := r.ask(`!once event {"type":"text","text":"as far as I am"}; ` + "once " + spends("0.6") + "once hold gate; say done")
	r.wantOver(asked)
	got := strings.Join(r.replies(asked), "\n")
	for _, words := range []string{"as far as I am", "this answer has used its budget, $0.60 of $0.50. Raise it to $1.10 and go on?", "Raise it"} {
		if !strings.Contains(got, words) {
			t.Errorf("the chat does not read %q:\n%s", words, got)
		}
	}
	r.answerBudget(asked, 1)
	r.await(asked, msg.TurnDone)
	if replies := r.replies(asked); replies[len(replies)-1] != "done" {
		t.Errorf("replies %q", replies)
	}
	rows := must[[]factrows.AuditRow](r)(factrows.Audit(t.Context(), r.st.Reader, factrows.AuditQuery{What: "raise budget", Limit: 9}))
	if len(rows) != 1 || rows[0].Who != "telegram:77" {
		t.Errorf("audit %+v", rows)
	}
}

func TestBudget_DayIsUsedUp_TurnsAreAskedIfRaised(t *testing.T) {
	t.Parallel()
	r := newHarness(t, withOperator)
	r.configure("main", `{"budget":{"day_usd":1},"roles":{"operate":["telegram:8"]}}`)
	diff(t, "within it", r.answered(r.ask("!"+spends("1.25")+"say one")), []string{"one"})
	second, third := r.ask("two"), r.ask("three")
	elsewhere := r.ask("four", chat("telegram:2"))
	for _, asked := range []*msg.Turn{second, third, elsewhere} {
		r.wantOver(asked)
	}
	if got := strings.Join(r.replies(second), ""); !strings.Contains(got, "This group has used today's budget, $1.25 of $1.00. Raise it to $2.25") {
		t.Errorf("the chat reads %q", got)
	}
	if got := r.replies(third); len(got) != 0 {
		t.Errorf("it reads again %q", got)
	}
	diff(t, "another group", r.answered(r.ask("hi", group("other"), chat("telegram:3"))), []string{"re: hi"})
	if who := r.questions(second)[0].Who; !who.May("telegram:8") || !who.May("telegram:77") || who.May("telegram:9") {
		t.Errorf("the budget may be raised by %+v", who)
	}
	r.answerBudget(second, 1)
	for _, asked := range []*msg.Turn{second, third, elsewhere} {
		r.await(asked, msg.TurnDone)
	}
	if got := r.replies(third); len(got) != 1 || got[0] != "re: three" {
		t.Errorf("replies %q", got)
	}
}

// Where no operator can answer, the chat has a notice.
func TestBudget_NoOperatorOnThePlatform_ChatIsNotified(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.configure("main", `{"budget":{"day_usd":1}}`)
	r.answered(r.ask("!" + spends("2") + "say one"))
	asked := r.ask("two")
	r.wantOver(asked)
	if got := strings.Join(r.replies(asked), ""); !strings.Contains(got, "Operators can raise it in the group's config.") {
		t.Errorf("the chat reads %q", got)
	}
	r.configure("main", `{"budget":{"day_usd":5}}`)
	diff(t, "raised there", r.answered(r.ask("three")), []string{"re: three"})
}

// The other turns of the run are asked again, and the next day has a budget of its own.
func TestBudget_OtherTurnsAndTheNextDay_GoOn(t *testing.T) {
	t.Parallel()
	r := newHarness(t, withOperator, impatient)
	r.configure("main", `{"budget":{"turn_usd":0.5,"day_usd":1}}`)
	open := r.gate("main", "gate")
	r.gate("main", "never")
	first := r.ask("!hold gate; " + spends("0.75") + "hold never; say one")
	second := r.ask("two")
	open()
	r.wantOver(first)
	diff(t, "the other turn", r.answered(second), []string{"re: two"})
	r.answered(r.ask("!" + spends("0.3") + "say three"))
	r.wantOver(r.ask("four"))
	r.ahead.Add((24 * time.Hour).Milliseconds())
	diff(t, "the next day", r.answered(r.ask("five")), []string{"re: five"})
}

// A turn that may not begin starts no agent, and makes no run that a later session reads of.
func TestBudget_DayIsUsedUp_NoAgentStarts(t *testing.T) {
	t.Parallel()
	r := newHarness(t, withOperator, idle(time.Millisecond))
	r.configure("main", `{"budget":{"day_usd":1}}`)
	r.answered(r.ask("!" + spends("2") + "say one"))
	asked := r.ask("two", topic("#fresh"))
	r.wantOver(asked)
	if now := r.turn(asked.ID); now.RunID != 0 || now.Error != "the budget of the group for "+r.m.env.today()+" is used up: $2.00 of $1.00" {
		t.Errorf("turn %+v", now)
	}
	r.wantOver(r.ask("three", topic("#fresh"))) // the lane goes on
}

// A frame without a turn's id after the agent was stopped is no answer to the turn that waits behind.
func TestBudget_AgentAnswersAfterTheStop_AnswerIsForNoOtherTurn(t *testing.T) {
	t.Parallel()
	r := newHarness(t, withOperator, func(cfg *Config) { cfg.Graces.Fail = 2 * time.Second })
	r.configure("main", `{"budget":{"turn_usd":0.5}}`)
	open := r.gate("main", "gate")
	first := r.ask("!hold gate; " + spends("0.75") + "until interrupt; anon too late; exit 0")
	second := r.ask("two")
	open()
	r.wantOver(first)
	diff(t, "the other turn", r.answered(second), []string{"re: two"})
	if got := strings.Join(r.replies(first), ""); strings.Contains(got, "too late") {
		t.Errorf("the chat reads %q", got)
	}
}

// The configuration may change while the turn is under way.
func TestBudget_RaisedInTheConfigMeanwhile_TurnGoesOn(t *testing.T) {
	t.Parallel()
	r := newHarness(t, withOperator, impatient)
	r.configure("main", `{"budget":{"turn_usd":0.5}}`)
	begin, goOn, end := r.gate("main", "begin"), r.gate("main", "go-on"), r.gate("main", "end")
	asked := r.ask("!hold begin; " + spends("0.75") + "hold go-on; " + spends("0.8") + "hold end; say done")
	r.configure("main", `{"budget":{"turn_usd":5}}`)
	begin()
	r.until("the usage is stored", func() bool { return r.usage(asked).CostUSD == 0.75 })
	r.ahead.Add(time.Minute.Milliseconds()) // it has had time enough to answer
	goOn()
	r.until("it is stored again", func() bool { return r.usage(asked).CostUSD == 0.8 })
	end()
	diff(t, "the turn", r.answered(asked), []string{"done"})
}

// A question about a turn says nothing about the day.
func TestBudget_TurnThenDay_ChatReadsOfBoth(t *testing.T) {
	t.Parallel()
	r := newHarness(t, withOperator, impatient)
	r.configure("main", `{"budget":{"turn_usd":0.5,"day_usd":1}}`)
	r.gate("main", "never")
	first := r.ask("!" + spends("0.6") + "hold never")
	r.wantOver(first)
	r.answered(r.ask("!" + spends("0.45") + "say two"))
	third, fourth := r.ask("three"), r.ask("four", topic("#other"))
	r.wantOver(third)
	r.wantOver(fourth)
	if got := r.questions(first); len(got) != 1 {
		t.Errorf("%d open questions about the turn", len(got))
	}
	if got := r.questions(third, fourth); len(got) != 1 {
		t.Errorf("%d open questions about the day", len(got))
	}
	r.answerBudget(third, 1)
	r.await(third, msg.TurnDone)
	r.await(fourth, msg.TurnDone)
	if now := r.turn(first.ID); now.State != msg.TurnCancelled {
		t.Errorf("with the day's budget raised a turn that has used up its own is asked again: %+v", now)
	}
}

// After a no the chat is notified again an hour later, though messages come all the time.
func TestBudget_NoWasAnswered_ChatReadsOfItOnceAnHour(t *testing.T) {
	t.Parallel()
	noon := time.FixedZone("noon", 12*3600-int(time.Now().Unix()%86400))
	r := newHarness(t, withOperator, func(cfg *Config) { cfg.Location = noon })
	r.configure("main", `{"budget":{"day_usd":1}}`)
	r.answered(r.ask("!" + spends("2") + "say one"))
	asked := r.ask("two")
	r.wantOver(asked)
	r.answerBudget(asked, 2)
	var notified []int
	for i := range 5 {
		next := r.ask("more")
		r.wantOver(next)
		if len(r.replies(next)) > 0 {
			notified = append(notified, i)
			r.answerBudget(next, 2)
		}
		r.ahead.Add((25 * time.Minute).Milliseconds())
	}
	diff(t, "notified at", notified, []int{3})
	if now := r.turn(asked.ID); now.State != msg.TurnCancelled {
		t.Errorf("turn %+v", now)
	}
}
