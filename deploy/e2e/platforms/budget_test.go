package platforms

import (
	"testing"

	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/testkit/need"
)

// An operator raises the budget of the day by the button, and gated is killed at each step.
func TestBudget_GatedKilledMeanwhile_TurnIsAnsweredOnce(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	for _, point := range []fp.Point{fp.PutAsk.Before(), fp.PutAsk.After(), fp.AnswerAsk.Before(), fp.AnswerAsk.After()} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			start(t, newTelegram()).raiseBudget(point)
		})
	}
}

func (f *fixture) raiseBudget(point fp.Point) {
	in := f.NewThread("costs")
	f.SetGroup("main", `{"rate":0,"budget":{"day_usd":0.5}}`)
	f.ask(in, "spend 1 first")
	f.waitAnswer("spend 1 first")
	f.WaitIdle()
	f.Kill("gated")
	f.Instance.Env = append(f.Instance.Env, "OPERATORS="+f.Value(`SELECT sender FROM messages WHERE content = 'spend 1 first'`))
	f.StartDaemon("gated", "FAILPOINT="+string(point))
	f.ask(in, "second")
	asks := point == fp.PutAsk.Before() || point == fp.PutAsk.After()
	if asks {
		f.waitKilled("gated")
		f.Restart("gated")
	}
	const question = "This group has used today's budget, $1.00 of $0.50. Raise it to $1.50 and go on?"
	message := f.waitArrival(question).ID
	f.waitDelivered(in, "%"+question)
	f.wantPressAnswer(in, f.press(in, message, "Raise it", true), "Only operators may answer this.")
	f.press(in, message, "Raise it", false)
	if !asks {
		f.waitKilled("gated")
		f.Restart("gated")
	}
	f.waitAnswer("second")
	f.wantNoButtons(in, message)
	f.WaitIdle()
	if got := f.presses(); got != "dropped choice_denied, observed chosen" {
		f.T.Errorf("presses: %s", got)
	}
	if got := f.Value(`SELECT group_concat(detail) FROM audit WHERE what = 'raise budget'`); got != "group main on "+f.Value(`SELECT max(day) FROM spend`)+" by $1.00" {
		f.T.Errorf("raised %q", got)
	}
	f.wantOneAnswerEach([]string{"spend 1 first", "second"})
}
