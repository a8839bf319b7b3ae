package pages_test

import (
	"fmt"
	"testing"
	"time"

	"arizuko/pkg/testkit/browser"
)

// keys: lists and pages can be reached by keys, which do nothing while the operator types, and a click shows dates.
func keys(t *testing.T, b *backend, p *browser.Tab) {
	html, err := b.pages.Fragment("messages.html", sampleMessages(time.Now().UnixMilli()))
	if err != nil {
		t.Fatal(err)
	}
	b.facts = string(html)
	p.Visit(b.url + "/")
	p.Wait(`document.querySelector("#facts time").title`)
	// As one event, whose default can be prevented: TypeKeys sends the character as another one.
	press := func(key string) {
		browser.Eval[bool](p, fmt.Sprintf(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true, cancelable: true})) || true`, key))
	}
	focused := `document.activeElement.getAttribute("href")`
	for _, step := range []struct{ press, want string }{
		{"j", "/messages/81234567"}, {"j", "/messages/81234566"}, {"j", "/messages/81234565"}, {"j", "/messages/81234565"}, {"k", "/messages/81234566"},
	} {
		press(step.press)
		expect(t, "the focus after "+step.press, browser.Eval[string](p, focused), step.want)
	}
	press("/")
	expect(t, "the focus after /", browser.Eval[string](p, `document.activeElement.id`), "search")
	p.TypeKeys("gm?")
	expect(t, "what was typed", browser.Eval[string](p, `document.activeElement.value`), "gm?")
	expect(t, "dialogs", browser.Eval[int](p, `document.querySelectorAll("dialog").length`), 0)
	browser.Eval[bool](p, `(document.activeElement.blur(), true)`)
	press("?")
	p.Wait(`document.querySelector("dialog[open]")?.textContent.includes("g mMessages")`)
	p.CheckContrast()
	p.Click("dialog button")
	p.Wait(`!document.querySelector("dialog")`)
	p.Click("#facts time")
	p.Wait(`document.querySelector("#facts time").textContent === document.querySelector("#facts time").title`)
	press("d")
	p.Wait(`/now|ago/.test(document.querySelector("#facts time").textContent)`)
	press("g")
	press("m")
	p.Wait(`location.pathname === "/messages"`)
}
