package pages_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"arizuko/pkg/testkit/browser"
)

// preview is what a page shows of the work on an answer, "" for nothing.
const preview = `[...document.querySelectorAll(".panel:not([hidden]) .progress")].filter(e => !e.hidden).map(e => [...e.querySelectorAll(".sender, .line, li, .body")].map(part => part.textContent).filter(Boolean).join(" ")).join("|")`

// at is when the work n was stored: before any message of the test.
func at(n int64) int64 { return time.Now().UnixMilli() - 60_000 + n }

// workLive: the answer grows, and the message takes its place in one step.
func workLive(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	b.set(func() {
		b.typing = []string{""}
		b.work = []work{{TurnID: 7, State: "running", UpdatedAt: at(1), Plan: []step{{"Read the log", "completed"}, {"Write", "in_progress"}}, Tools: []tool{{"1", "Read app.log", "running"}}}}
	})
	p.Wait(preview + ` === "Ada ● Read the log, done ◐ Write, under way ◐ Read app.log, running"`)
	p.Wait(`document.querySelector(".progress-spoken").textContent === "Read app.log"`)
	p.CheckContrast()
	b.set(func() { b.work[0].HTML, b.work[0].UpdatedAt = "<p>One</p><p>Tw</p>", at(2) })
	p.Wait(`document.querySelector(".progress .body p:nth-child(2)")?.textContent === "Tw"`)
	browser.Eval[bool](p, `(document.querySelector(".progress .body p").isKept = true, true)`)
	b.set(func() { b.work[0].HTML, b.work[0].UpdatedAt = "<p>One</p><p>Two</p>", at(3) })
	p.Wait(`document.querySelector(".progress .body p:nth-child(2)")?.textContent === "Two"`)
	expect(t, "what has not changed", browser.Eval[bool](p, `document.querySelector(".progress .body p").isKept === true`), true)
	expect(t, "what is read out", browser.Eval[string](p, `document.querySelector(".progress-spoken").textContent`), "Read app.log")

	// At no moment the answer is shown twice, or not at all.
	browser.Eval[bool](p, `(window.counts = new Set(), new MutationObserver(() => counts.add([...document.querySelectorAll(".message:not([hidden]) .body")].filter(e => e.textContent.includes("Two")).length))
		.observe(document.getElementById("panels"), {childList: true, subtree: true, characterData: true, attributes: true}), true)`)
	turn := int64(7)
	b.set(func() {
		b.add(row{Direction: "out", Sender: "agent:acme/eng", SenderName: "Ada", HTML: "<p>One</p><p>Two</p>", TurnID: &turn})
		b.typing, b.work = nil, nil
	})
	p.Wait(countOf(".log .message.out", 1))
	p.Wait(countOf(".progress", 0))
	expect(t, "how often it was shown", browser.Eval[[]int](p, `[...counts]`), []int{1})
	expect(t, "the button", browser.Eval[bool](p, `document.querySelector(".stop").hidden`), true)

	b.set(func() { b.work = []work{{TurnID: 8, State: "running", UpdatedAt: at(4), HTML: "<p>lost</p>"}} })
	p.Wait(countOf(".progress", 1))
	b.set(func() { b.work = nil }) // the turn has failed
	p.Wait(countOf(".progress", 0))
	p.Wait(`document.querySelector(".progress-spoken").textContent === ""`)
}

// workReadOut: a screen reader reads whole sentences while they are written, at most every ten seconds, each once.
func workReadOut(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	write := func(n int64, html string) {
		b.set(func() { b.work = []work{{TurnID: 7, State: "running", UpdatedAt: at(n), HTML: html}} })
	}
	spoken := func(want string) {
		t.Helper()
		p.Wait(`document.querySelector(".progress-spoken").textContent.trim() === "` + want + `"`)
	}
	write(1, "<p>One. Two is</p>")
	spoken("One.")
	write(2, "<p>One. Two is here. Th</p>")
	p.Wait(preview + `.includes("Th")`)
	spoken("One.") // too soon
	browser.Eval[bool](p, `(window.now = Date.now, Date.now = () => now() + 11_000, true)`)
	write(3, "<p>One. Two is here. Three i</p>")
	spoken("Two is here.")
	turn := int64(7)
	b.set(func() {
		b.add(row{Direction: "out", SenderName: "Ada", HTML: "<p>One. Two is here. Three is last</p>", TurnID: &turn})
		b.work = nil
	})
	p.Wait(countOf(`.log .message.out .body[aria-live=off]`, 1))
	spoken("Three is last")
	b.say("", "<p>Read by the log.</p>")
	p.Wait(countOf(`.log .message.out .body:not([aria-live])`, 1))
}

func workHostile(t *testing.T, b *backend, p *browser.Tab) {
	p.Resize(320, 700)
	p.Visit(b.url + chat)
	p.WaitConnected()
	b.set(func() {
		b.work = []work{{TurnID: 7, State: "running", UpdatedAt: at(1),
			HTML: "<p>" + strings.Repeat("w", 3000) + "</p><pre><code>" + strings.Repeat("x ", 2000) + "</code></pre>",
			Plan: []step{{hostile, "in_progress"}, {strings.Repeat("p", 200), "odd"}}, Tools: []tool{{"1", hostile, "running"}, {strings.Repeat("i", 128), "", "failed"}}}}
	})
	p.Wait(countOf(".progress .body pre[tabindex='0']", 1))
	p.CheckFits()
	p.CheckContrast()
	expect(t, "titles", browser.Eval[[]string](p, `[...document.querySelectorAll(".progress li:first-child bdi")].map(e => e.textContent)`), []string{hostile, hostile})
	expect(t, "scripts that ran", browser.Eval[bool](p, `"hit" in window`), false)
}

// workOverReload: a page that is opened in the middle of a turn shows it; one that loses its connection shows it no longer.
func workOverReload(t *testing.T, b *backend, p *browser.Tab) {
	b.set(func() {
		b.work = []work{{TurnID: 7, Topic: "#deploy", State: "running", UpdatedAt: at(1), HTML: "<p>half</p>"}}
	})
	p.Visit(b.url + chat + "#deploy")
	p.Wait(preview + ` === "Ada half"`)
	p.Do(chromedp.Reload())
	p.Wait(preview + ` === "Ada half"`)
	b.set(func() { b.down = true })
	p.Wait(isReconnecting)
	p.Wait(countOf(".progress", 0))
	b.set(func() { b.down = false })
	p.Wait(preview + ` === "Ada half"`)
}

func workInALine(t *testing.T, b *backend, p *browser.Tab) {
	b.set(func() {
		b.shows = "status"
		b.work = []work{{TurnID: 7, State: "running", UpdatedAt: at(1), RunningMS: 9_000, Tools: []tool{{"1", "Read app.log", "running"}}}}
	})
	p.Visit(b.url + chat)
	p.Wait(countOf(".progress", 1))
	expect(t, "before ten seconds", browser.Eval[string](p, preview), "")
	p.Wait(preview + ` === "Ada Read app.log"`)
	b.set(func() { b.work[0].State, b.work[0].UpdatedAt, b.work[0].RunningMS = "requires_action", at(2), 12_000 })
	p.Wait(preview + ` === "Ada Waits for you"`)
	b.set(func() { b.typing = []string{""} })
	p.Wait(`document.querySelector(".panel:not([hidden]) .typing").textContent === "Ada is working…"`)
	b.set(func() { b.work[0].UpdatedAt = at(3) })
	p.Wait(`document.querySelector(".panel:not([hidden]) .typing").textContent === "Ada waits for your answer."`)
}

func workNotShown(t *testing.T, b *backend, p *browser.Tab) {
	b.set(func() { b.shows, b.typing = "off", []string{""} })
	p.Visit(b.url + chat)
	p.Wait(`document.querySelector(".panel:not([hidden]) .typing").textContent`)
	for n := range int64(5) {
		b.set(func() { b.work = []work{{TurnID: 7, State: "running", UpdatedAt: at(n)}} })
		b.say("", fmt.Sprintf("<p>%d</p>", n))
		p.Wait(countOf(".message.out:not(.progress)", int(n)+1))
	}
	b.set(func() { b.work = nil })
	if looks := get(b, func() int { return b.looks }); looks > 5 {
		t.Errorf("%d requests", looks)
	}
}

func stopButton(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat + "#deploy")
	p.WaitConnected()
	expect(t, "while nothing runs", browser.Eval[bool](p, `document.querySelector(".panel:not([hidden]) .stop").checkVisibility()`), false)
	b.set(func() { b.typing = []string{"#deploy"} })
	p.Wait(`document.querySelector(".panel:not([hidden]) .stop").checkVisibility()`)
	p.Click(".panel:not([hidden]) .stop")
	p.Wait(countOf(".log .message.in", 1))
	expect(t, "posts", get(b, func() string { return b.posts[0].Topic + "|" + b.posts[0].Text }), "#deploy|/stop")
	b.set(func() { b.typing = nil })
	p.Wait(`document.querySelector(".panel:not([hidden]) .stop").hidden`)
	expect(t, "the focus", browser.Eval[string](p, `document.activeElement.role`), "tabpanel")
}
