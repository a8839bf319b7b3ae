package pages_test

import (
	"net/http"
	"testing"

	"arizuko/pkg/testkit/browser"
)

// undoShown is whether the open tab has the button Undo.
const undoShown = `document.querySelector(".panel:not([hidden]) .undo").checkVisibility()`

// undoButton: it is under the last answer of its topic until it is pressed, a newer turn begins, or its time is over; the
// messages of the turn are marked.
func undoButton(t *testing.T, b *backend, p *browser.Tab) {
	turn := int64(7)
	answers := func(undo ...undoable) {
		b.set(func() {
			b.undo, b.typing = undo, nil
			b.add(row{Direction: "out", Topic: "#deploy", Sender: "agent:acme/eng", SenderName: "Ada", HTML: "<p>done</p>", TurnID: &turn})
		})
	}
	p.Visit(b.url + chat + "#deploy")
	p.WaitConnected()
	b.set(func() {
		b.add(row{Direction: "in", Topic: "#deploy", Sender: operator, SenderName: "Operator", Content: "deploy"})
		b.typing = []string{"#deploy"}
	})
	p.Wait(`document.querySelector(".panel:not([hidden]) .stop").checkVisibility()`)
	expect(t, "while the turn runs", browser.Eval[bool](p, undoShown), false)
	answers(undoable{TurnID: 7, Topic: "#deploy", LeftMS: 600_000})
	p.Wait(undoShown)
	p.CheckContrast()
	expect(t, "other topics", browser.Eval[int](p, `[...document.querySelectorAll(".undo")].filter((e) => !e.hidden).length`), 1)

	b.set(func() { b.deny = http.StatusConflict })
	p.Click(".panel:not([hidden]) .undo")
	p.Wait(`document.querySelector(".panel:not([hidden]) .refused-undo").textContent === "refused with 409"`)
	p.CheckContrast()
	b.set(func() { b.deny = 0 })
	answers(undoable{TurnID: 7, Topic: "#deploy", LeftMS: 600_000})
	p.Wait(undoShown)
	p.Click(".panel:not([hidden]) .undo")
	p.Wait(`!` + undoShown)
	expect(t, "the focus", browser.Eval[string](p, `document.activeElement.role`), "tabpanel")
	p.Wait(`document.querySelector(".panel:not([hidden]) .refused-undo").textContent === ""`)
	expect(t, "what is taken back", get(b, func() []int64 { return b.undone }), []int64{7, 7})
	b.set(func() {
		b.undo, b.rows[0].Undone, b.rows[1].Deleted = nil, true, true
		change := b.rows[1]
		change.Change = int64(len(b.rows) + 1)
		b.rows = append(b.rows, change)
	})
	p.Wait(`[...document.querySelectorAll(".panel:not([hidden]) .log .message")].map((e) => e.querySelector(".note").textContent).join() === "taken back,deleted,"`)

	answers(undoable{TurnID: 8, Topic: "#deploy", LeftMS: 600_000})
	p.Wait(undoShown)
	b.set(func() { b.undo, b.typing = nil, []string{"#deploy"} })
	p.Wait(`!` + undoShown)

	browser.Eval[bool](p, `(window.states = [], new MutationObserver(() => states.push(document.querySelector(".panel:not([hidden]) .undo").hidden))
		.observe(document.querySelector(".panel:not([hidden]) .undo"), {attributes: true}), true)`)
	answers(undoable{TurnID: 9, Topic: "#deploy", LeftMS: 300})
	p.Wait(`states.join() === "false,true"`)
}
