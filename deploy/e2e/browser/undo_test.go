package browser_test

import (
	"fmt"
	"testing"

	"arizuko/pkg/testkit/browser"
)

// notes is a JavaScript expression: the marks of the messages of the open panel.
const notes = `[...document.querySelectorAll(".panel:not([hidden]) .log .message .note")].map((e) => e.textContent).join("|")`

// answeredWith waits until a command, or a button, has an answer that begins with some words.
func (p *page) answeredWith(words string) {
	p.t.Helper()
	p.Wait(`[...document.querySelectorAll(".panel:not([hidden]) .out .body")].some((e) => e.innerText.startsWith(` + quoted(words) + `))`)
}

// messageSentAgain: the turn of one's last message is taken back, and the message sent once more, as it was and edited.
func messageSentAgain(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	p.SendMessage("hello")
	p.shows("> hello", "< hello")
	p.Wait(`document.querySelector(".message:has(.again)")?.dataset.id === "1"`)
	p.Click(".again button")
	p.Wait(`[...document.querySelectorAll(".in .body")].map((e) => e.textContent).join() === "hello,hello" && ` + notes + `.startsWith("taken back|deleted")`)
	p.Wait(`[...document.querySelectorAll(".in")].at(-1).matches(":has(.again)") && !!document.querySelector(".message:has(.again) + .agent")`)
	p.Click(".again button:nth-of-type(2)")
	p.TypeKeys(" there")
	p.PressEnter()
	p.answeredWith("You said: hello there")
	equal(t, "the undos", fmt.Sprint(i.Query(`SELECT redo, state FROM undos ORDER BY id`)), "[0 done 0 done]")
}

// turnTakenBack: a turn is taken back by the button under its answer, done again by a command, and taken back on its page.
func turnTakenBack(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	p.SendMessage("hello")
	p.shows("> hello", "< hello")
	p.Wait(`(e => e && getComputedStyle(e).pointerEvents === "auto")(document.querySelector(".panel:not([hidden]) .undo"))`) // not at once
	p.Click(".panel:not([hidden]) .undo button")
	p.answeredWith("Taken back: turn 1 (“hello”).")
	p.Wait(notes + ` === "taken back|deleted|"`)
	p.Wait(`!document.querySelector(".undo")`)
	p.SendMessage("/redo")
	p.answeredWith("Done again: turn 1 (“hello”).")
	p.Wait(notes + ` === "|deleted||||"`)

	p.Visit(fmt.Sprintf("%s/turns/1", i.url))
	p.says("#undo + ul", "was done again by operator (web:operator)")
	p.Follow(func() { p.Click(`form[action$="/undo"] button`) })
	p.says("main", "Turn 1 is being taken back.")
	p.says(`form[action$="/redo"]`, "Redo")
	p.says("#undo + ul li:last-child", "was taken back by web:operator")
	p.Visit(fmt.Sprintf("%s/turns", i.url))
	p.says("tbody tr", "taken back")
	equal(t, "the undos", fmt.Sprint(i.Query(`SELECT redo, state FROM undos ORDER BY id`)), "[0 done 1 done 0 done]")
}
