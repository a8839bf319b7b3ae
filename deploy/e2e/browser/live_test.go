package browser_test

import (
	"fmt"
	"net/http"
	"testing"

	"arizuko/pkg/testkit/browser"
)

// grows is a JavaScript expression: the open panel shows an answer that is being written, and how far it is.
const grows = `document.querySelector(".panel:not([hidden]) .progress .body")?.textContent.includes("You said")`

// noPreview is a JavaScript expression: nothing of the work on an answer is left.
const noPreview = `!document.querySelector(".progress") && document.querySelector(".stop").hidden && !document.querySelector(".panel:not([hidden]) .typing").textContent`

// liveAnswerOverKills: while an answer grows on seven pages, daemons are killed, a page is reloaded, and the browser goes
// offline. In the end each page shows one answer, and nothing else of it.
func liveAnswerOverKills(t *testing.T, b *browser.Browser) {
	i := start(t)
	all := []*page{i.logIn(b)}
	for range 6 {
		p := i.open(b)
		p.visitChat(i, "main", "")
		all = append(all, p)
	}
	p := all[0]
	everywhere := func(expression string) {
		t.Helper()
		for _, each := range all {
			each.Wait(expression)
		}
	}
	const order = "work stream until go on"
	p.SendMessage(order)
	everywhere(grows)
	i.Kill("dashd")
	everywhere(grows)
	i.Until("dashd to be ready", func() bool {
		answer, err := http.Get(i.url + "/readyz")
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	})
	p.Do(reload)
	p.WaitConnected()
	p.Wait(grows)
	for runs, killed := range [][]string{{"gated"}, {"gated", "dashd"}} { // the agent dies with gated, and begins again
		for _, daemon := range killed {
			i.Kill(daemon)
		}
		i.Until("the agent to begin again", func() bool { return i.Query(`SELECT count(*) FROM runs`)[0] == fmt.Sprint(runs+2) })
		everywhere(grows)
	}

	network := append([]*browser.Tab{b.SharedWorker(t, i.url)}, tabs(all)...) // what one session sets, another may not unset
	setOffline := func(offline bool) {
		t.Helper()
		for _, each := range network {
			each.SetOffline(offline)
		}
	}
	setOffline(true)
	everywhere(`document.querySelector("#connection").textContent.includes("offline")`)
	everywhere(`!document.querySelector(".progress")`)
	i.letGo("go")
	i.Until("the answer", func() bool { return len(i.Query(`SELECT 1 FROM turns WHERE state = 'done'`)) == 1 })
	setOffline(false)
	for _, each := range all {
		each.shows("> "+order, "< "+order)
		each.Wait(noPreview)
	}
	equal(t, "answers", i.Query(`SELECT count(*) FROM messages WHERE direction = 'out'`), []string{"1"})
}

func tabs(all []*page) (tabs []*browser.Tab) {
	for _, p := range all {
		tabs = append(tabs, p.Tab)
	}
	return tabs
}
