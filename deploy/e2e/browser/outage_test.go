package browser_test

import (
	"fmt"
	"syscall"
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
		i.kill(daemon)
		p.SendMessage(after)
		for _, text := range []string{before, after} {
			p.has("< " + text)
			lines = append(lines, "> "+text)
		}
	}
	said := browser.Eval[[]string](p.Tab, talk)
	equal(t, "what is shown", len(said), 2*len(lines))
	equal(t, "what people wrote", only(said, "> "), lines)
	p.Do(reload)
	p.WaitConnected()
	equal(t, "after a reload", browser.Eval[[]string](p.Tab, talk), said)
}

// only are the lines that begin with a mark.
func only(lines []string, mark string) (found []string) {
	for _, line := range lines {
		if line[:len(mark)] == mark {
			found = append(found, line)
		}
	}
	return found
}

func daemonSleeps(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	i.hang("dashd")
	p.SendMessage("while it sleeps")
	p.Wait(`document.querySelector(".pending")`)
	i.signal("dashd", syscall.SIGCONT)
	p.shows("> while it sleeps", "< while it sleeps")
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
