package browser_test

import (
	"testing"

	"arizuko/pkg/testkit/browser"
	"arizuko/pkg/testkit/need"
)

// `make test` runs one scenario of each kind, `make verify` all. The scenarios share one browser. Each has an instance, and its own cookies and localStorage.
func TestWebChat_InBrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	gate, verify := need.Full, need.Verify
	for _, scenario := range []struct {
		name string
		run  func(*testing.T, *browser.Browser)
		when func(testing.TB)
	}{
		{"the first login leads to the first answer", firstAnswer, gate},
		{"a password logs in", passwordLogsIn, verify},
		{"a login ends and no text is lost", loginEnds, gate},
		{"topics run in parallel", topicsInParallel, gate},
		{"an answer grows while daemons are killed and the browser is offline", liveAnswerOverKills, verify},
		{"a question is answered once, by keyboard", questionButtons, gate},
		{"daemons are killed around the answer to a question", questionWhileKilled, verify},
		{"a reload during a turn", reloadDuringTurn, gate},
		{"a turn is taken back, and done again", turnTakenBack, gate},
		{"a message is sent again", messageSentAgain, gate},
		{"commands are answered", commandsAreAnswered, gate},
		{"files reach the agent", filesReachAgent, gate},
		{"each daemon is killed", daemonsKilled, gate},
		{"daemons are restarted by an operator", restarted, gate},
		{"the launcher is stopped and restarted", stoppedAndStarted, verify},
		{"routes are edited, tested, compared and saved", routesEdited, verify},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			scenario.when(t)
			t.Parallel()
			scenario.run(t, b)
		})
	}
}
