package browser_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/testkit/browser"
)

var reload = chromedp.Reload()

// page is a tab of the browser that shows a page of an instance.
type page struct {
	*browser.Tab
	t testing.TB
}

// logIn opens the link that the launcher has printed, to the chat with main.
func (i *instance) logIn(b *browser.Browser) *page {
	i.T.Helper()
	p := i.open(b)
	p.Visit(i.link)
	p.WaitConnected()
	return p
}

// open opens a tab. All tabs of an instance share cookies.
func (i *instance) open(b *browser.Browser) *page { return &page{b.Open(i.t), i.t} }

// visitChat opens the chat with a group, in a topic or "".
func (p *page) visitChat(i *instance, folder, topic string) {
	p.t.Helper()
	p.Visit(i.url + "/chat/" + folder + topic)
	p.WaitConnected()
}

// chatLines is a JavaScript expression: the lines of the open panel, "> " before messages of users and
// "< " before answers. Echoes of the demo agent are reduced to the echoed texts.
const chatLines = `[...document.querySelectorAll(".panel:not([hidden]) .message:not(.progress)")].flatMap((e) => {
	const text = e.querySelector(".body").innerText.trim();
	if (e.classList.contains("in")) return ["> " + text];
	const echoes = text.split("\n").filter((line) => line.includes("You said: "));
	return echoes.length ? echoes.map((line) => "< " + line.replace("You said: ", "")) : ["< " + text];
})`

// shows waits until the open panel has exactly these lines.
func (p *page) shows(lines ...string) {
	p.t.Helper()
	p.Wait("document.querySelectorAll('.panel:not([hidden]) .message').length > 0 && " +
		"(" + chatLines + ").length >= " + fmt.Sprint(len(lines)) + " && !document.querySelector('.pending')")
	equal(p.t, "the conversation", browser.Eval[[]string](p.Tab, chatLines), lines)
}

// has waits until the open panel has a line.
func (p *page) has(line string) {
	p.t.Helper()
	p.Wait("(" + chatLines + ").includes(" + quoted(line) + ")")
}

// says waits until the text of the selected element contains a text.
func (p *page) says(css, text string) {
	p.t.Helper()
	p.Wait("document.querySelector(" + quoted(css) + ")?.innerText.includes(" + quoted(text) + ")")
}

// working is a JavaScript expression: the tabs of topics in which an agent works.
const working = `[...document.querySelectorAll("[role=tab].working")].map(e => e.textContent.split(",")[0]).sort().join(" ")`

// showsWorking waits until exactly these tabs show that an agent works.
func (p *page) showsWorking(tabs string) {
	p.t.Helper()
	p.Wait(working + " === " + quoted(tabs))
}

// tab opens the tab of a topic as users do, by writing its name.
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

// equal fails the test unless two values are equal.
func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// quoted is a string as a JavaScript literal.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a string can always be encoded
	return string(b)
}
