package browser_test

import (
	"testing"

	"arizuko/pkg/testkit/browser"
)

// TestInTheBrowser is one test so that its parts share one browser. Each has an instance of its
// own, and so cookies and a localStorage.
func TestInTheBrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	for _, scenario := range []struct {
		name string
		run  func(*testing.T, *browser.Browser)
	}{
		{"the first login leads to the first answer", firstAnswer},
		{"a link works once", linkWorksOnce},
		{"a password opens the door", passwordOpens},
		{"a login that ends loses nothing", loginEnds},
		{"the keyboard is enough", keyboardIsEnough},
		{"topics go on in parallel", topicsInParallel},
		{"a prefix leads to another topic", prefixLeadsElsewhere},
		{"a reload in the middle of an answer", reloadInTheMiddle},
		{"commands are answered", commandsAreAnswered},
		{"two pages stay in step", twoPagesInStep},
		{"a second group has a chat of its own", secondGroup},
		{"a message may be long", longMessage},
		{"history loads further up", historyFurtherUp},
		{"hostile text is text", hostileText},
		{"each daemon is killed", daemonsKilled},
		{"a daemon sleeps", daemonSleeps},
		{"everything is stopped and started again", stoppedAndStarted},
		{"the overview is live", overviewIsLive},
		{"every page suits a phone and the dark", everyPageFits},
		{"a conversation", conversation},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()
			scenario.run(t, b)
		})
	}
}
