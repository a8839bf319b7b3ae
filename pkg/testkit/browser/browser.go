// Package browser drives a real Chromium in tests: one browser, a tab for each test. An
// error that no script of a page catches fails the test, and so do anything that the page's
// content policy forbids and any request to another machine.
package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"iter"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"arizuko/pkg/testkit/need"
)

// patience is how long a test waits for the page to get somewhere.
const patience = 30 * time.Second

// testHost is a name for this machine: what an address of it may do as a secure context, a page
// from another machine may not.
const testHost = "chat.test"

// Browser is one Chromium, which tests may share.
type Browser struct{ ctx context.Context }

// Start starts it until the end of the test. Without one installed the test fails; with -short it is
// skipped.
func Start(t *testing.T) *Browser {
	t.Helper()
	need.Program(t, "chromium", "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.DisableGPU,
		chromedp.Flag("host-resolver-rules", "MAP "+testHost+" 127.0.0.1"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root with it
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewContext(ctx)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("stop chromium: %v", err)
		}
	})
	return &Browser{ctx}
}

// Tab is one page of the browser. Any trouble fails the test.
type Tab struct {
	t   *testing.T
	ctx context.Context
}

// Open makes a tab of 1280 by 800, in a window of its own.
func (b *Browser) Open(t *testing.T) *Tab {
	t.Helper()
	return b.open(t)
}

// OpenIsolated makes a tab in a profile of its own, without anybody's cookies.
func (b *Browser) OpenIsolated(t *testing.T) *Tab {
	t.Helper()
	return b.open(t, chromedp.WithNewBrowserContext())
}

func (b *Browser) open(t *testing.T, options ...chromedp.ContextOption) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, options...)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 800)); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	var watching sync.WaitGroup
	watch(&watching, chromedp.Events(ctx, runtime.ExceptionThrown), func(e runtime.EventExceptionThrown) {
		t.Errorf("uncaught in the page: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	})
	watch(&watching, chromedp.Events(ctx, log.EntryAdded), func(e log.EventEntryAdded) {
		if strings.Contains(e.Entry.Text, "Content Security Policy") {
			t.Errorf("forbidden in the page: %s", e.Entry.Text)
		}
	})
	watch(&watching, chromedp.Events(ctx, network.RequestWillBeSent), func(e network.EventRequestWillBeSent) {
		if !isLocal(e.Request.URL) {
			t.Errorf("asked of another host: %.200s", e.Request.URL)
		}
	})
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	return &Tab{t, ctx}
}

// watch tells of each event until the page is closed.
func watch[E any](watching *sync.WaitGroup, events iter.Seq2[E, error], tell func(E)) {
	watching.Go(func() {
		for e, err := range events {
			if err != nil {
				return
			}
			tell(e)
		}
	})
}

// isLocal tells whether what an address names is on this machine.
func isLocal(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "data" || u.Scheme == "about" || u.Hostname() == testHost || ip != nil && ip.IsLoopback()
}

// Do runs steps in the page.
func (p *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("in the page: %v\n%s", err, p.Text("body"))
	}
}

// Visit goes to an address.
func (p *Tab) Visit(url string) { p.t.Helper(); p.Do(chromedp.Navigate(url)) }

// Resize makes the page that large, in CSS pixels.
func (p *Tab) Resize(width, height int64) {
	p.t.Helper()
	p.Do(chromedp.EmulateViewport(width, height))
}

// SetColorScheme has the page shown "light" or "dark".
func (p *Tab) SetColorScheme(light string) {
	p.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: light}}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		p.t.Fatalf("emulate the colour scheme: %v", err)
	}
}

// TypeKeys types keys into what has the focus; see package kb for those without a character.
func (p *Tab) TypeKeys(keys string) {
	p.t.Helper()
	p.Do(chromedp.KeyEvent(keys))
}

// PressEnter presses PressEnter the way a keyboard does: as one event, whose default can be prevented.
// chromedp sends the line break as an event of its own, which arrives whatever the page says.
func (p *Tab) PressEnter(modifiers ...chromedp.Modifier) {
	p.t.Helper()
	key := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13}
	chromedp.KeyModifiers(modifiers...)(&key)
	if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, key); err != nil {
		p.t.Fatalf("press Enter: %v", err)
	}
}

// Click clicks what a CSS selector finds.
func (p *Tab) Click(css string) {
	p.t.Helper()
	p.Do(chromedp.Click(chromedp.CSS(css)))
}

// Follow does what leads to another page, or to this one anew, and waits until that is there.
func (p *Tab) Follow(do func()) {
	p.t.Helper()
	Eval[bool](p, `window.left = true`)
	do()
	p.Wait(`!window.left && document.readyState === "complete"`)
}

// WaitConnected waits until a chat page has its history and a stream.
func (p *Tab) WaitConnected() {
	p.t.Helper()
	p.Wait(`performance.getEntriesByType("resource").some(e => e.name.includes("/topics"))`) // fetched once it is open
	p.Wait(`document.querySelector('.panel:not([hidden]) .log')?.ariaBusy === "false"`)
}

// SendMessage sends a message the way people do.
func (p *Tab) SendMessage(text string) {
	p.t.Helper()
	p.Do(chromedp.Focus(chromedp.ID("text")))
	p.TypeKeys(text)
	p.PressEnter()
}

// Eval is the value of a JavaScript expression.
func Eval[T any](p *Tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return v
}

// Await is the value that a JavaScript promise is kept with.
func Await[T any](p *Tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("await %s: %v", expression, err)
	}
	return v
}

// Wait waits until a JavaScript expression is true, over navigations as well.
func (p *Tab) Wait(expression string) {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		// An error tells that the page is on its way to another one, or that it is false yet.
		v, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && v {
			return
		}
		select {
		case <-look.C:
		case <-deadline.C:
			p.t.Fatalf("never true: %s: %v\n%s", expression, err, p.Text("body"))
		}
	}
}

// WaitLayout waits until what has been scrolled and laid out has been told to the scripts.
func (p *Tab) WaitLayout() {
	p.t.Helper()
	Await[bool](p, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// Text is what an element says.
func (p *Tab) Text(css string) string {
	p.t.Helper()
	return Eval[string](p, `document.querySelector(`+encode(css)+`)?.innerText ?? "(nothing)"`)
}

// MessageBodies are the texts of the messages in the open panel that match, in their order.
func (p *Tab) MessageBodies(css string) []string {
	p.t.Helper()
	return Eval[[]string](p, `[...document.querySelectorAll('.panel:not([hidden]) `+css+` .body')].map(e => e.textContent)`)
}

// CheckFits fails the test if the page can be scrolled sideways.
func (p *Tab) CheckFits() {
	p.t.Helper()
	wide := Eval[[]string](p, `[document.documentElement, document.body, ...document.querySelectorAll("main, .panel, .topics")]
		.filter(e => e.scrollWidth > e.clientWidth && e.clientWidth).map(e => e.tagName + "." + e.className + " " + e.scrollWidth + " > " + e.clientWidth)`)
	if len(wide) > 0 {
		p.t.Errorf("scrolls sideways: %v", wide)
	}
}

//go:embed contrast.js
var contrastScript string

// CheckContrast fails the test if a text has less contrast than WCAG AA wants.
func (p *Tab) CheckContrast() {
	p.t.Helper()
	for _, poor := range Eval[[]string](p, contrastScript) {
		p.t.Errorf("poor contrast: %s", poor)
	}
}

// Screenshot writes a screenshot to a file.
func (p *Tab) Screenshot(path string) {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatalf("screenshot: %v", err)
	}
	if err := os.WriteFile(path, png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// WithTest has the tab's failures count for another test: a part of its own.
func (p *Tab) WithTest(t *testing.T) *Tab { return &Tab{t, p.ctx} }

// encode writes a string as JavaScript.
func encode(text string) string {
	b, _ := json.Marshal(text) // a string can always be encoded
	return string(b)
}
