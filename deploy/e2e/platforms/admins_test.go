package platforms

import "testing"

// Only those who administer a chat on its platform ask and operate where the roles say so.
func TestRoles_PlatformAdmins(t *testing.T) {
	onEachPlatform(t, func(f *fixture) {
		f.SetGroup("main", `{"rate":0,"roles":{"ask":"platform admins","operate":["platform admins"]},"budget":{"day_usd":0.5}}`)
		in := f.NewThread("costs")
		if f.info.Platform == "slack" { // where Bob owns nothing yet
			f.ask(in, "not yet")
			f.Until("the message to be dropped", func() bool {
				return f.Value(`SELECT reason FROM messages WHERE content = 'not yet' AND disposition = 'dropped'`) == "no_access"
			})
			f.Until("the events to be confirmed", f.AllAcknowledged)
		}
		f.Appoint(in)
		f.Until("the events to be confirmed", f.AllAcknowledged)
		f.ask(in, "spend 1 first")
		f.waitAnswer("spend 1 first")
		f.WaitIdle()
		f.ask(in, "second")
		const question = "This group has used today's budget, $1.00 of $0.50. Raise it to $1.50 and go on?"
		message := f.waitArrival(question).ID
		f.waitDelivered(in, "%"+question)
		f.wantPressAnswer(in, f.press(in, message, "Raise it", true),
			"Only operators and the users who operate this group (platform admins) may answer this.")
		f.wantPressAnswer(in, f.press(in, message, "Raise it", false), "")
		f.waitAnswer("second")
		f.WaitIdle()
		if got := f.presses(); got != "dropped choice_denied, observed chosen" {
			f.T.Errorf("presses: %s", got)
		}
	})
}
