package browser_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/testkit/browser"
)

// page is a tab of the browser that shows something of an instance.
type page struct {
	*browser.Tab
	t *testing.T
}

// logIn opens the link that the launcher has printed, which leads to the chat with main.
func (i *instance) logIn(b *browser.Browser) *page {
	i.t.Helper()
	p := i.open(b)
	p.Visit(i.link)
	p.WaitConnected()
	return p
}

// open makes a tab; the cookies of a login go for all tabs of the instance.
func (i *instance) open(b *browser.Browser) *page { return &page{b.Open(i.t), i.t} }

// visitChat opens the chat with a group, in a topic or "".
func (p *page) visitChat(i *instance, folder, topic string) {
	p.t.Helper()
	p.Visit(i.url + "/chat/" + folder + topic)
	p.WaitConnected()
}

// talk is an expression: the lines of the open panel, "> " before what people wrote and "< "
// before answers. Of an echo of the demo agent the texts remain.
const talk = `[...document.querySelectorAll(".panel:not([hidden]) .message")].flatMap((e) => {
	const text = e.querySelector(".body").innerText.trim();
	if (e.classList.contains("in")) return ["> " + text];
	const said = text.split("\n").filter((line) => line.includes("You said: "));
	return said.length ? said.map((line) => "< " + line.replace("You said: ", "")) : ["< " + text];
})`

// shows waits until the open panel has exactly these lines.
func (p *page) shows(lines ...string) {
	p.t.Helper()
	p.Wait("document.querySelectorAll('.panel:not([hidden]) .message').length > 0 && " +
		"(" + talk + ").length >= " + fmt.Sprint(len(lines)) + " && !document.querySelector('.pending')")
	equal(p.t, "the conversation", browser.Eval[[]string](p.Tab, talk), lines)
}

// has waits for a line in the open panel.
func (p *page) has(line string) {
	p.t.Helper()
	p.Wait("(" + talk + ").includes(" + quoted(line) + ")")
}

// says waits until the text of what a selector finds includes something.
func (p *page) says(css, text string) {
	p.t.Helper()
	p.Wait("document.querySelector(" + quoted(css) + ")?.innerText.includes(" + quoted(text) + ")")
}

// working is an expression: the tabs in which an agent is at work.
const working = `[...document.querySelectorAll("[role=tab].working")].map(e => e.textContent.split(",")[0]).sort().join(" ")`

// showsWorking waits until the tabs in which an agent is at work are these.
func (p *page) showsWorking(tabs string) {
	p.t.Helper()
	p.Wait(working + " === " + quoted(tabs))
}

// tab opens the tab of a topic as people do: its name in the box.
func (p *page) tab(topic string) {
	p.t.Helper()
	name := topic
	if name == "" {
		topic, name = "#", "main"
	}
	p.SendMessage(topic)
	p.Wait(`[...document.querySelectorAll("[role=tab]")].some(e => e.ariaSelected === "true" && e.textContent.split(",")[0] === ` + quoted(name) + `)`)
	p.Wait(`document.querySelector('.panel:not([hidden]) .log')?.ariaBusy === "false"`)
}

// equal fails the test unless got is what was wanted.
func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// quoted writes a string as JavaScript.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a string can always be encoded
	return string(b)
}
