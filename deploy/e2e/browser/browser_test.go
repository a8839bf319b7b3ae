package browser_test

import (
	"testing"

	"arizuko/pkg/testkit/browser"
)

// The scenarios share one browser. Each has an instance, and its own cookies and localStorage.
func TestWebChat_InBrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	for _, scenario := range []struct {
		name string
		run  func(*testing.T, *browser.Browser)
	}{
		{"the first login leads to the first answer", firstAnswer},
		{"a link works once", linkWorksOnce},
		{"a password logs in", passwordLogsIn},
		{"a login ends and no text is lost", loginEnds},
		{"everything works by keyboard", keyboardOnly},
		{"topics run in parallel", topicsInParallel},
		{"an answer grows", liveAnswer},
		{"a question is answered once, by keyboard", questionButtons},
		{"daemons are killed around the answer to a question", questionWhileKilled},
		{"a question fits a phone", questionOnPhone},
		{"a prefix writes to another topic", prefixedTopic},
		{"a reload during a turn", reloadDuringTurn},
		{"commands are answered", commandsAreAnswered},
		{"two pages show the same", twoPagesInSync},
		{"a second group has its own chat", secondGroup},
		{"a long message", longMessage},
		{"files reach the agent", filesReachAgent},
		{"history loads on scrolling up", historyOnScroll},
		{"hostile text stays text", hostileText},
		{"each daemon is killed", daemonsKilled},
		{"dashd is suspended", daemonSuspended},
		{"the launcher is stopped and restarted", stoppedAndStarted},
		{"the overview is live", overviewIsLive},
		{"every page fits a phone and dark mode", everyPageFits},
		{"a conversation", conversation},
		{"routes are edited, tested, compared and saved", routesEdited},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()
			scenario.run(t, b)
		})
	}
}
