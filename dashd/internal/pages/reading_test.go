package pages_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"arizuko/pkg/testkit/browser"
	"arizuko/pkg/testkit/need"
)

// sizes are the widths at which every page is used: a phone and a desktop.
var sizes = []struct {
	name  string
	width int64
}{{"phone", 375}, {"desktop", 1280}}

// TestPages_KeyboardAndReader_CanUseEverything opens every page as users do who have no mouse, a screen reader, large text, little
// width or colours of their own, `make test` on a phone.
func TestPages_KeyboardAndReader_CanUseEverything(t *testing.T) {
	b := browser.Start(t)
	site, p := newSite(t), b.Open(t)
	for _, page := range allLooks() {
		for _, size := range sizes {
			t.Run(page.name+"-"+size.name, func(t *testing.T) {
				if size.name != "phone" {
					need.Verify(t)
				}
				p := p.WithTest(t)
				p.Resize(size.width, 800)
				visit(p, site, page)
				checkLooks(t, p)
				report(t, "reader", p.ReaderProblems())
				report(t, "markup", p.MarkupProblems())
				report(t, "target", p.TargetProblems())
				report(t, "keyboard", p.KeyboardProblems())
				invalid := browser.Eval[int](p, `document.querySelectorAll("[aria-invalid=true]").length`)
				expect(t, "a field is marked as wrong", invalid > 0, slices.Contains(refusedSamples, page.name))
				p.EmulateMedia("forced-colors", "active")
				report(t, "forced colours", p.ForcedColorProblems())
				p.EmulateMedia()
			})
		}
		t.Run(page.name+"-large", func(t *testing.T) { largeText(p.WithTest(t), t, site, page) })
	}
}

// refusedSamples show a form with a field that was refused.
var refusedSamples = []string{"access-refused", "group", "window-messages", "route-editor", "login"}

func visit(p *browser.Tab, site string, page look) {
	p.Visit(site + page.path)
	p.Wait(page.ready)
}

func report(t *testing.T, kind string, problems []string) {
	t.Helper()
	for _, each := range problems {
		t.Errorf("%s: %s", kind, each)
	}
}

// largeText: nothing is lost with text twice as large, at a zoom of 200 % or 400 % of a window of 1280 pixels.
func largeText(p *browser.Tab, t *testing.T, site string, page look) {
	need.Verify(t)
	for _, zoom := range []struct {
		width  int64
		script string
	}{{1280, `document.documentElement.style.fontSize = "200%"`}, {640, `""`}, {320, `""`}} {
		p.Resize(zoom.width, 800)
		visit(p, site, page)
		browser.Eval[string](p, zoom.script)
		p.WaitLayout()
		p.CheckFits()
		report(t, fmt.Sprintf("at a width of %d", zoom.width), p.CutProblems())
	}
}

// TestPages_PhoneMenu_ByKeyboard: the menu opens and closes without a mouse, covers nothing once the focus has left it, and gives
// the focus back.
func TestPages_PhoneMenu_ByKeyboard(t *testing.T) {
	p := browser.Start(t).Open(t)
	p.Resize(375, 800)
	p.Visit(newSite(t) + "/sample/turns")
	isOpen := func() bool { return browser.Eval[bool](p, `document.getElementById("menu").open`) }
	focus := func() string { return browser.Eval[string](p, `document.activeElement.textContent`) }
	p.Do(chromedp.Focus(chromedp.CSS("#menu summary")))
	for name, key := range map[string]string{"Enter": kb.Enter, "Space": " "} {
		p.TypeKeys(key)
		expect(t, "open after "+name, isOpen(), true)
		p.TypeKeys(key)
		expect(t, "open after a second "+name, isOpen(), false)
	}
	p.TypeKeys(" ")
	p.TypeKeys(kb.Tab)
	expect(t, "the first link", focus(), "Overview")
	p.TypeKeys(kb.Escape)
	expect(t, "open after Escape", isOpen(), false)
	expect(t, "the focus after Escape", focus(), "Menu")
	p.TypeKeys(" ")
	for range browser.Eval[int](p, `document.querySelectorAll("#menu a").length`) {
		p.TypeKeys(kb.Tab)
		expect(t, "open on its links", isOpen(), true)
	}
	p.TypeKeys(kb.Tab)
	expect(t, "behind the last link", focus(), "Log out")
	expect(t, "open behind it", isOpen(), false)
	p.Click("#menu summary")
	expect(t, "open after a press", isOpen(), true)
	p.Do(chromedp.MouseClickXY(370, 700))
	expect(t, "open after a press elsewhere", isOpen(), false)
}

// TestPages_LessMotion_NothingMoves: what moves while an agent works stands still for users who want that.
func TestPages_LessMotion_NothingMoves(t *testing.T) {
	need.Verify(t)
	p := browser.Start(t).Open(t)
	site := newSite(t)
	moving := `document.getAnimations().filter((a) => a.playState === "running").length`
	for _, page := range allLooks() {
		p := p.WithTest(t)
		p.EmulateMedia("prefers-reduced-motion", "no-preference")
		visit(p, site, page)
		if page.name == "chat" {
			p.Wait(moving + ` > 0`)
		}
		p.EmulateMedia("prefers-reduced-motion", "reduce")
		p.WaitLayout()
		expect(t, page.name+": what moves", browser.Eval[int](p, moving), 0)
	}
}
