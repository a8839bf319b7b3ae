package pages_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/testkit/browser"
	"arizuko/pkg/testkit/need"
)

// longTexts are names and texts that are hard to fit: they go on without a blank, or from the right to the left.
var longTexts = map[string]string{
	"one word":      strings.Repeat("W", 200),
	"right to left": strings.Repeat("مجموعة الهندسة ", 10) + strings.Repeat("ش", 80),
}

// TestPages_LongTexts_Fit shows every page with the same long text in each field that users, agents and platforms write.
func TestPages_LongTexts_Fit(t *testing.T) {
	site := newLongSite(t)
	p := browser.Start(t).Open(t)
	shown := slices.CompactFunc(samples(), func(a, b sample) bool { return a.template == b.template }) // their hostile data is the same
	for _, size := range sizes {
		for name, text := range longTexts {
			for _, s := range shown {
				t.Run(fmt.Sprintf("%s, %s, %s", s.name, name, size.name), func(t *testing.T) {
					if size.name != "phone" || name != "one word" {
						need.Verify(t)
					}
					p := p.WithTest(t)
					p.Resize(size.width, 800)
					p.Visit(site + "/" + s.name + "/" + text)
					browser.Eval[bool](p, `(document.querySelectorAll("details:not(.menu)").forEach((d) => d.open = true), true)`)
					p.WaitLayout()
					p.CheckFits()
					report(t, "cut", p.CutProblems())
				})
			}
		}
	}
}

// TestChat_LongName_LeavesRoomForMessages: the name of a group takes two lines at most.
func TestChat_LongName_LeavesRoomForMessages(t *testing.T) {
	b := newBackend(t)
	b.set(func() { b.name = longTexts["one word"] })
	p := browser.Start(t).Open(t)
	p.Resize(375, 760)
	p.Visit(b.url + chat)
	p.WaitConnected()
	if height := browser.Eval[int](p, `Math.round(document.querySelector("h1").getBoundingClientRect().height)`); height > 60 {
		t.Errorf("the name is %d px high", height)
	}
	p.CheckFits()
}

// TestChat_GatedIsDown_IsSaid: a user who writes while nothing can answer reads so, and no longer once something can.
func TestChat_GatedIsDown_IsSaid(t *testing.T) {
	b := newBackend(t)
	b.set(func() { b.stopped = true })
	p := browser.Start(t).Open(t)
	p.Visit(b.url + chat)
	p.Wait(`document.getElementById("paused").innerText.includes("gated is not running")`)
	p.CheckContrast()
	b.set(func() { b.stopped = false })
	p.Wait(`!document.getElementById("paused").checkVisibility()`)
}

// newLongSite serves each sample below its name, with the text that follows in the address.
func newLongSite(t *testing.T) string {
	t.Helper()
	b := newBackend(t)
	mux := http.NewServeMux()
	for _, s := range samples() {
		mux.HandleFunc("/"+s.name+"/{text}", func(w http.ResponseWriter, r *http.Request) {
			text := r.PathValue("text")
			view(t, b.pages, w, s, s.hostile(text), pages.View{Title: text, Login: operator, Notice: text, Problem: text, Up: []pages.Link{{Path: "/", Text: text}}})
		})
	}
	mux.Handle("/assets/", b.handler)
	server := httptest.NewServer(pages.Secure(mux))
	t.Cleanup(server.Close)
	return server.URL
}
