package pages_test

import (
	"net/http"
	"testing"

	"arizuko/pkg/testkit/browser"
)

// undoButton: it is under an answer until its time is over or the answer is deleted; the messages of the turn are marked.
func undoButton(t *testing.T, b *backend, p *browser.Tab) {
	turn := int64(7)
	answer := func(forMS int64) {
		b.set(func() {
			b.add(row{Direction: "out", Topic: "#deploy", Sender: "agent:acme/eng", SenderName: "Ada", HTML: "<p>done</p>", TurnID: &turn, UndoMS: forMS})
		})
	}
	const last = `document.querySelector(".panel:not([hidden]) .log .message:last-child .undo`
	p.Visit(b.url + chat + "#deploy")
	p.WaitConnected()
	b.set(func() {
		b.add(row{Direction: "in", Topic: "#deploy", Sender: operator, SenderName: "Operator", Content: "deploy"})
		b.deny = http.StatusConflict
	})
	answer(600_000)
	p.Wait(last + `") && getComputedStyle(` + last + `")).pointerEvents === "auto"`) // not at once
	p.Click(".panel:not([hidden]) .undo button")
	p.Wait(last + ` span")?.textContent === "refused with 409"`)
	p.CheckContrast()
	b.set(func() { b.deny = 0 })
	p.Click(".panel:not([hidden]) .undo button")
	p.Wait(last + ` span")?.textContent === "Sent"`)
	expect(t, "what is taken back", get(b, func() []int64 { return b.undone }), []int64{7, 7})
	b.set(func() {
		b.rows[0].Undone, b.rows[1].Deleted, b.rows[1].UndoMS = true, true, 0
		change := b.rows[1]
		change.Change = int64(len(b.rows) + 1)
		b.rows = append(b.rows, change)
	})
	p.Wait(`[...document.querySelectorAll(".panel:not([hidden]) .log .message .note")].map((e) => e.textContent).join() === "taken back,deleted"`)
	expect(t, "buttons", browser.Eval[int](p, `document.querySelectorAll(".undo").length`), 0)
	expect(t, "the focus", browser.Eval[string](p, `document.activeElement.role`), "tabpanel")

	browser.Eval[bool](p, `(window.states = [], new MutationObserver((all) => all.forEach(({addedNodes, removedNodes}) => {
		if ([...addedNodes].some((e) => e.querySelector?.(".undo"))) states.push("shown");
		if ([...removedNodes].some((e) => e.className === "undo")) states.push("gone");
	})).observe(document.querySelector(".panel:not([hidden]) .log"), {childList: true, subtree: true}), true)`)
	answer(300)
	p.Wait(`states.join() === "shown,gone"`)
}
