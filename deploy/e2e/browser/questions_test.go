package browser_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"arizuko/pkg/testkit/browser"
)

// buttons is a JavaScript expression: the labels of the buttons of open questions in the open panel.
const buttons = `[...document.querySelectorAll(".panel:not([hidden]) .message .choices button")].map((e) => e.textContent)`

// button is a JavaScript expression: the button of an open question with a label.
func button(label string) string {
	return `[...document.querySelectorAll(".panel:not([hidden]) .message .choices button")].find((e) => e.textContent === ` + quoted(label) + `)`
}

// asks waits until the open panel has the buttons of a question.
func (p *page) asks(labels ...string) {
	p.t.Helper()
	p.Wait(`JSON.stringify(` + buttons + `) === ` + quoted(`["`+strings.Join(labels, `","`)+`"]`))
}

// answered waits until the question is shown as answered with an option, without buttons.
func (p *page) answered(option string) {
	p.t.Helper()
	p.asksNothing()
	p.Wait(`[...document.querySelectorAll(".panel:not([hidden]) .out .body")].some((e) => e.innerText.includes(` + quoted(option+" — answered by") + `))`)
}

func (p *page) asksNothing() {
	p.t.Helper()
	p.Wait(buttons + `.length === 0`)
}

// asked are the questions in the rows, with the presses that were decided.
func (i *instance) asked() []string {
	i.T.Helper()
	return i.Query(`SELECT a.state || ' ' || ifnull(a.option, '-') || ' ' || ifnull(a.answered_by, '-') || ' ' ||
		(SELECT count(*) FROM messages p WHERE p.verb = 'answer' AND p.reason = 'chosen' AND json_extract(p.content, '$.ask') = a.id) FROM asks a ORDER BY a.id`)
}

// questionButtons: a question is answered by keyboard, once, and every page sees its end.
func questionButtons(t *testing.T, b *browser.Browser) {
	i := start(t)
	p, other := i.logIn(b), &page{b.OpenIsolated(t), t}
	other.Visit(strings.TrimSpace(i.Run("dashd", "login")))
	other.says("h1", "Web chat")
	other.visitChat(i, "main", "")
	p.SendMessage("ask_user red green blue")
	for _, each := range []*page{p, other} {
		each.asks("red", "green", "blue")
	}
	equal(t, "what a screen reader does not find", strings.Join(p.ReaderProblems(), "; "), "")
	browser.Eval[bool](other.Tab, `(window.late = `+button("red")+`) !== undefined`)
	for n := 0; !browser.Eval[bool](p.Tab, `document.activeElement === `+button("green")); n++ {
		if n > 60 {
			t.Fatal("the Tab key does not reach the button")
		}
		p.TypeKeys(kb.Tab)
	}
	p.PressEnter()
	for _, each := range []*page{p, other} {
		each.answered("green")
		each.has("< ask_user red green blue")
		each.says(".panel:not([hidden]) .log", "Answer: green (answered)")
	}
	equal(t, "the element with the focus after it", browser.Eval[bool](p.Tab, `document.activeElement.matches(".panel")`), true)

	// A button that a page still shows.
	browser.Eval[bool](other.Tab, `(window.said = window.late.parentElement.querySelector("[role=status]"), window.late.click(), true)`)
	other.Wait(`window.said.textContent === "the question is closed"`)
	equal(t, "questions", i.asked(), []string{"answered green web:operator 1"})

	p.Do(reload)
	p.WaitConnected()
	p.answered("green")
}

// questionWhileKilled: presses are stored while the daemons around them die.
func questionWhileKilled(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)

	// dashd dies between the press and the answer.
	p.SendMessage("ask_user one two")
	p.asks("one", "two")
	i.Suspend("gated")
	p.Click(fmt.Sprintf(".panel:not([hidden]) .choices button:nth-of-type(%d)", 2))
	p.says(".panel:not([hidden]) .choices [role=status]", "Sent")
	i.Kill("dashd")
	i.Signal("gated", syscall.SIGCONT)
	p.answered("two")
	p.has("< ask_user one two")

	// gated dies before it decides.
	p.SendMessage("ask_user three four")
	p.asks("three", "four")
	i.Suspend("gated")
	p.Click(".panel:not([hidden]) .choices button")
	p.says(".panel:not([hidden]) .choices [role=status]", "Sent")
	i.Kill("gated")
	p.answered("three")
	p.has("< ask_user three four")

	// dashd cannot be reached at the press, which the page says; the user presses again.
	p.SendMessage("ask_user five six")
	p.asks("five", "six")
	i.Suspend("dashd")
	p.Click(".panel:not([hidden]) .choices button")
	i.Kill("dashd")
	const said = `document.querySelector(".panel:not([hidden]) .choices [role=status]")?.textContent`
	presses := 1
	for ; ; presses++ {
		p.Wait(said + ` !== ""`)
		if text := browser.Eval[*string](p.Tab, said+` ?? null`); text == nil || *text == "Sent" {
			break
		}
		if presses == 50 {
			t.Fatal("no press is stored")
		}
		p.Click(".panel:not([hidden]) .choices button")
	}
	if presses == 1 {
		t.Error("the page does not say that the first press was not stored")
	}
	p.answered("five")
	p.has("< ask_user five six")
	equal(t, "questions", i.asked(), []string{"answered two web:operator 1", "answered three web:operator 1", "answered five web:operator 1"})
}
