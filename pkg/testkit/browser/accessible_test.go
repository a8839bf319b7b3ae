package browser_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/testkit/browser"
)

// wellMade has everything that the checks ask for.
const wellMade = `<!doctype html><html lang="en"><title>Well made</title>
<style>a, button, input { display: inline-block; min-width: 30px; min-height: 30px; border: 1px solid } [aria-current] { border: 3px solid Highlight } :focus-visible { outline: 2px solid }</style>
<nav aria-label="Main"><a href="/" aria-current="page">Home</a> <a href="/turns">Turns</a></nav>
<main><h1>Turns</h1><h2>Failed</h2>
<form><p class="problem" id="why">No such turn.</p><label for="id">Turn</label> <input id="id" aria-invalid="true" aria-describedby="why"> <button aria-label="Retry turn 1">Retry</button> <button aria-label="Retry turn 2">Retry</button></form>
<table aria-label="Turns"><tr><th>Turn</th><th>State</th></tr><tr><td>1</td><td>failed</td></tr></table>
<svg role="img" aria-label="Turns a minute"><rect width="9" height="9"/></svg>
</main></html>`

// Each check finds the one thing that is wrong with a page which is else well made.
func TestTab_Problems_Found(t *testing.T) {
	b := browser.Start(t)
	p := b.Open(t)
	checks := map[string]func(*browser.Tab) []string{
		"reader": (*browser.Tab).ReaderProblems, "markup": (*browser.Tab).MarkupProblems, "target": (*browser.Tab).TargetProblems,
		"keyboard": (*browser.Tab).KeyboardProblems, "cut": (*browser.Tab).CutProblems,
		"forced": func(p *browser.Tab) []string {
			p.EmulateMedia("forced-colors", "active")
			defer p.EmulateMedia()
			return p.ForcedColorProblems()
		},
	}
	for _, test := range []struct{ name, check, old, new, want string }{
		{"well made", "", "", "", ""},
		{"a button without a name", "reader", `<button aria-label="Retry turn 2">Retry</button>`, `<button></button>`, "a button has no name"},
		{"two buttons of one name", "reader", `"Retry turn 2"`, `"Retry turn 1"`, `button "Retry turn 1" has the name of another button`},
		{"a name without the words on the button", "reader", `"Retry turn 2"`, `"Second turn"`, `button "Second turn" does not say its words "retry"`},
		{"links of one name to two pages", "reader", `<a href="/turns">Turns</a>`, `<a href="/turns">Home</a>`, `link "Home" has the name of `},
		{"a level left out", "reader", `<h2>Failed</h2>`, `<h3>Failed</h3>`, `heading "Failed" has level 3 after 1`},
		{"a table without a name", "reader", `<table aria-label="Turns">`, `<table>`, "a table has no name: turn state 1 failed"},
		{"a table without header cells", "reader", `<th>State</th>`, `<td>State</td>`, `table "Turns" has 0 headers over 2 columns`},
		{"a picture without a name", "reader", `aria-label="Turns a minute"`, ``, "a picture has no name"},
		{"an error beside its field", "markup", `aria-describedby="why"`, ``, `input#id "" is invalid and does not say why`},
		{"an error that is not read", "markup", `aria-invalid="true"`, ``, `p#why "No such turn." is not read aloud`},
		{"a label that is not there", "markup", `for="id"`, ``, `input#id "" has no label`},
		{"two current pages", "markup", `<a href="/turns">`, `<a href="/turns" aria-current="page">`, "2 links of the navigation are current"},
		{"an order of its own", "markup", `<button aria-label="Retry turn 2">`, `<button tabindex="3" aria-label="Retry turn 2">`, `button "Retry turn 2" changes the order of the focus`},
		{"a small button", "target", `min-height: 30px;`, `height: 20px; width: 46px;`, `button "Retry turn 1" is 46 by 20`},
		{"a button that is not reached", "keyboard", `<button aria-label="Retry turn 2">`, `<button tabindex="2" aria-label="Retry turn 2">`, `button "Retry turn 2" is not reached`},
		{"a focus that is not seen", "keyboard", `outline: 2px solid`, `outline: 0`, `a "Home" does not show the focus`},
		{"a trap", "keyboard", `</html>`, `<script>id.onkeydown = (e) => e.preventDefault()</script>`, `input#id "" keeps the focus`},
		{"a focus that goes back", "keyboard", `</html>`, `<script>document.querySelector("button").addEventListener("keydown", (e) => { e.preventDefault(); id.focus() }, { once: true })</script>`, `input#id "" comes after button`},
		{"a text that is cut", "cut", `<h1>Turns</h1>`, `<h1 style="width: 20px; overflow: hidden">Turns</h1>`, `"Turns" is cut by h1 "Turns"`},
		{"a text beside the page", "cut", `<h2>Failed</h2>`, `<h2 style="margin-left: -40px">Failed</h2>`, `"Failed" is beside the page`},
		{"a current link like others", "forced", `[aria-current] {`, `.none {`, `a "Home" looks like those that are not current`},
		{"a button without an edge", "forced", `border: 1px solid }`, `border: 0 }`, `button "Retry turn 1" has no border`},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := p.WithTest(t)
			page := strings.Replace(wellMade, test.old, test.new, 1)
			if test.check != "" && page == wellMade {
				t.Fatal("the page is not changed")
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, page) // fails only once the client is gone
			}))
			defer server.Close()
			for name, problems := range checks {
				if test.check != "" && name != test.check {
					continue
				}
				p.Visit(server.URL)
				found := problems(p)
				if test.check == "" && len(found) > 0 {
					t.Errorf("%s: %q", name, found)
				}
				if test.check != "" && !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, test.want) }) {
					t.Errorf("found %q, want %q", found, test.want)
				}
			}
		})
	}
}
