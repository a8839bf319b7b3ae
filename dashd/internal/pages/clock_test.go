package pages_test

import (
	"fmt"
	"testing"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/status"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/browser"
)

// TestTimes_BrowserClockIsWrong_ServersCounts: how long ago something was does not depend on the clock of a phone.
func TestTimes_BrowserClockIsWrong_ServersCounts(t *testing.T) {
	site, b := newSite(t), browser.Start(t)
	words := func(ahead time.Duration) []string {
		p := b.Open(t)
		p.Prepare(fmt.Sprintf(`((now) => { Date.now = () => now() + %d; })(Date.now.bind(Date))`, ahead.Milliseconds()))
		p.Visit(site + "/sample/engagement")
		p.Wait(`document.getElementById("connection").textContent === "Live"`)
		return browser.Eval[[]string](p, `[...document.querySelectorAll("time")].map((e) => e.textContent)`)
	}
	want := words(0)
	if len(want) == 0 {
		t.Fatal("the page shows no time")
	}
	for _, ahead := range []time.Duration{-3 * time.Hour, 3 * time.Hour} {
		expect(t, fmt.Sprintf("times with a clock that is %s ahead", ahead), words(ahead), want)
	}
}

// TestView_BrowserClockIsSetBack_StaysLive: a page that is open goes on to follow the server.
func TestView_BrowserClockIsSetBack_StaysLive(t *testing.T) {
	b := newBackend(t)
	set := func(chat string) {
		html, err := b.pages.Fragment("overview.html", pages.Overview{Facts: status.Facts{Now: 1, RunningCount: 1, Running: []*msg.Turn{{ID: 1, ChatJID: chat}}}})
		if err != nil {
			t.Fatal(err)
		}
		b.set(func() { b.facts = string(html) })
	}
	set("web:first")
	p := browser.Start(t).Open(t)
	p.Visit(b.url + "/")
	p.Wait(`document.getElementById("connection").textContent === "Live"`)
	set("web:second")
	p.Wait(`document.querySelector("#facts").textContent.includes("web:second")`)
	browser.Eval[bool](p, `((now) => { Date.now = () => now() - 3_600_000; return true; })(Date.now.bind(Date))`)
	set("web:third")
	p.Wait(`document.querySelector("#facts").textContent.includes("web:third")`)
}
