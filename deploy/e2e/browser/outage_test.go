package browser_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

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

// restarted restarts daemons in the two ways that operators have: by a button of the overview, and by doctor.
func restarted(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	deaf := func(name string) (pid int) {
		if err := os.Remove(filepath.Join(i.Instance.Data, "run", name+".sock")); err != nil {
			t.Fatal(err)
		}
		return i.Processes(name)[0]
	}
	again := func(name string, pid int) {
		i.Until(name+" to run again", func() bool {
			now := i.Processes(name)
			status, _ := i.Instance.Readiness(t.Context(), name)
			return status == http.StatusOK && len(now) == 1 && now[0] != pid
		})
	}
	pid := deaf("gated")
	p.Visit(i.url + "/")
	p.Wait(`document.querySelector("form[action='/daemons/gated/restart'] button")`)
	p.Do(chromedp.Click("form[action='/daemons/gated/restart'] button"))
	p.says(".notice", "gated is starting again.")
	again("gated", pid)
	pid = deaf("routd")
	out, _ := i.Instance.Command("dashd", "doctor", "--fix").CombinedOutput() // onbod does not run, which is a problem
	if s := string(out); !strings.Contains(s, "restart routd, since pokes do not reach routd") || !strings.Contains(s, "dashd: 1 problem, 0 warnings") {
		t.Error(s)
	}
	again("routd", pid)
	p.visitChat(i, "main", "")
	p.SendMessage("still there?")
	p.shows("> still there?", "< still there?")
}
