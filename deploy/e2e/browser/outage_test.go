package browser_test

import (
	"fmt"
	"testing"

	"arizuko/pkg/testkit/browser"
)

func daemonsKilled(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	var lines []string
	for n, daemon := range []string{"dashd", "gated", "routd", "dashd"} {
		before, after := fmt.Sprintf("before %d", n), fmt.Sprintf("after %d", n)
		p.SendMessage(before)
		i.Kill(daemon)
		p.SendMessage(after)
		for _, text := range []string{before, after} {
			p.has("< " + text)
			lines = append(lines, "> "+text)
		}
	}
	shown := browser.Eval[[]string](p.Tab, chatLines)
	equal(t, "the number of lines", len(shown), 2*len(lines))
	equal(t, "the lines of the user", only(shown, "> "), lines)
	p.Do(reload)
	p.WaitConnected()
	equal(t, "after a reload", browser.Eval[[]string](p.Tab, chatLines), shown)
}

// only returns the lines that begin with a mark.
func only(lines []string, mark string) (found []string) {
	for _, line := range lines {
		if line[:len(mark)] == mark {
			found = append(found, line)
		}
	}
	return found
}

func stoppedAndStarted(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	p.SendMessage("one")
	p.shows("> one", "< one")
	i.stop()
	p.Wait(`document.querySelector("#connection").textContent.includes("Reconnecting")`)
	p.SendMessage("two")
	p.Wait(`document.querySelector(".pending")`)
	i.launch()
	p.shows("> one", "< one", "> two", "< two")
	p.Do(reload)
	p.WaitConnected()
	p.shows("> one", "< one", "> two", "< two")
}
