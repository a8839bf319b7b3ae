// Package browser drives a real Chromium in tests: one browser, a tab for each test. The test fails
// at an uncaught error of a page's script, at a dialog, at a violation of its content security policy,
// and at a request to another machine.
package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"iter"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"

	"arizuko/pkg/testkit/need"
)

// timeout is how long a test waits for a page.
const timeout = 30 * time.Second

// testHost resolves to this machine. Unlike its addresses it is not a secure context, as a page from
// another machine.
const testHost = "chat.test"

// fontsConf leaves Chromium only the fonts of `make setup`, so that measurements depend on no others.
//
//go:embed fonts.conf
var fontsConf []byte

// Browser is one Chromium, which tests may share.
type Browser struct {
	ctx context.Context //nolint:containedctx // chromedp's handle of the browser
}

// Start starts Chromium until the end of the test. The test fails if it is not installed, and is
// skipped with -short.
func Start(t *testing.T) *Browser {
	t.Helper()
	need.Program(t, "chromium-headless-shell", "chromium-headless-shell")
	fonts := filepath.Join(t.TempDir(), "fonts.conf")
	if err := os.WriteFile(fonts, fontsConf, 0o600); err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium-headless-shell"),
		chromedp.DisableGPU, chromedp.Env("FONTCONFIG_FILE="+fonts),
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

// Tab is a page of the browser. Its methods fail the test if they fail.
type Tab struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // chromedp's handle of the tab
}

// Open opens a tab of 1280 by 800, in a new window.
func (b *Browser) Open(t *testing.T) *Tab {
	t.Helper()
	return b.open(t)
}

// OpenIsolated opens a tab in a new profile, without cookies.
func (b *Browser) OpenIsolated(t *testing.T) *Tab {
	t.Helper()
	return b.open(t, chromedp.WithNewBrowserContext())
}

// SharedWorker attaches to the shared worker of a site, such as "http://127.0.0.1:8080".
func (b *Browser) SharedWorker(t *testing.T, site string) *Tab {
	t.Helper()
	return b.worker(t, "shared_worker", site)
}

// ServiceWorker attaches to the service worker of a site.
func (b *Browser) ServiceWorker(t *testing.T, site string) *Tab {
	t.Helper()
	return b.worker(t, "service_worker", site)
}

func (b *Browser) worker(t *testing.T, kind, site string) *Tab {
	t.Helper()
	targets, err := chromedp.Targets(b.ctx)
	if err != nil {
		t.Fatalf("list the targets: %v", err)
	}
	for _, target := range targets {
		if target.Type == kind && strings.HasPrefix(target.URL, site+"/") {
			ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithTargetID(target.TargetID))
			t.Cleanup(cancel)
			return &Tab{t, ctx}
		}
	}
	t.Fatalf("%s has no %s", site, kind)
	return nil
}

// Push delivers a message to the service worker of the tab's site, as a push service does.
func (p *Tab) Push(site, data string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	updates := chromedp.Events(ctx, serviceworker.WorkerRegistrationUpdated)
	if _, err := chromedp.Call(ctx, serviceworker.Enable, cdp.Empty{}); err != nil {
		p.t.Fatalf("find the service worker: %v", err)
	}
	for e, err := range updates {
		if err != nil {
			p.t.Fatalf("find the service worker: %v", err)
		}
		for _, r := range e.Registrations {
			if r.ScopeURL != site+"/" || r.IsDeleted {
				continue
			}
			message := serviceworker.DeliverPushMessageParams{Origin: site, RegistrationID: r.RegistrationID, Data: data}
			if _, err := chromedp.Call(ctx, serviceworker.DeliverPushMessage, message); err != nil {
				p.t.Fatalf("push %s: %v", data, err)
			}
			return
		}
	}
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
			t.Errorf("content security policy violated: %s", e.Entry.Text)
		}
	})
	watch(&watching, chromedp.Events(ctx, network.RequestWillBeSent), func(e network.EventRequestWillBeSent) {
		if !isLocal(e.Request.URL) {
			t.Errorf("request to another host: %.200s", e.Request.URL)
		}
	})
	watch(&watching, chromedp.Events(ctx, page.JavascriptDialogOpening), func(e page.EventJavascriptDialogOpening) {
		t.Errorf("the page opened a dialog: %s", e.Message)
		// Else the page waits for an answer. It may be gone by now.
		_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	})
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	return &Tab{t, ctx}
}

// watch calls handle with each event until the page is closed.
func watch[E any](watching *sync.WaitGroup, events iter.Seq2[E, error], handle func(E)) {
	watching.Go(func() {
		for e, err := range events {
			if err != nil {
				return
			}
			handle(e)
		}
	})
}

// isLocal reports whether a URL is on this machine.
func isLocal(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "data" || u.Scheme == "about" || u.Hostname() == testHost || ip != nil && ip.IsLoopback()
}

// IgnoreCSP turns the content security policy of pages off.
func (p *Tab) IgnoreCSP() {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true}); err != nil {
		p.t.Fatalf("ignore the content security policy: %v", err)
	}
}

// Do runs actions in the page.
func (p *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("browser: %v\n%s", err, p.Text("body"))
	}
}

// Prepare runs a script in each document that the tab loads from now on, before the scripts of the document.
func (p *Tab) Prepare(script string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
		p.t.Fatalf("prepare %s: %v", script, err)
	}
}

// Close closes the tab, as a user does.
func (p *Tab) Close() {
	p.t.Helper()
	if err := chromedp.Cancel(p.ctx); err != nil {
		p.t.Fatalf("close the tab: %v", err)
	}
}

// Crash crashes the process that renders the page. Only Close may be called afterwards.
func (p *Tab) Crash() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Second)
	defer cancel()
	_, _ = chromedp.Call(ctx, page.Crash, cdp.Empty{}) // its process is gone: there is no answer
}

// SetOffline emulates a machine without a network, for the requests of the page itself.
func (p *Tab) SetOffline(offline bool) {
	p.t.Helper()
	rule := &network.Conditions{Offline: offline, DownloadThroughput: -1, UploadThroughput: -1}
	requests := network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{rule}}
	if _, err := chromedp.Call(p.ctx, network.EmulateNetworkConditionsByRule, requests); err != nil {
		p.t.Fatalf("emulate the network: %v", err)
	}
	state := network.OverrideNetworkStateParams{Offline: offline, DownloadThroughput: -1, UploadThroughput: -1}
	if _, err := chromedp.Call(p.ctx, network.OverrideNetworkState, state); err != nil {
		p.t.Fatalf("emulate the network: %v", err)
	}
}

// Visit loads a URL.
func (p *Tab) Visit(url string) { p.t.Helper(); p.Do(chromedp.Navigate(url)) }

// Resize sets the size of the page, in CSS pixels.
func (p *Tab) Resize(width, height int64) {
	p.t.Helper()
	p.Do(chromedp.EmulateViewport(width, height))
}

// SetColorScheme emulates the preference "light" or "dark".
func (p *Tab) SetColorScheme(scheme string) {
	p.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		p.t.Fatalf("emulate the colour scheme: %v", err)
	}
}

// TypeKeys types keys into the focused element; see package kb for keys without a character.
func (p *Tab) TypeKeys(keys string) {
	p.t.Helper()
	p.Do(chromedp.KeyEvent(keys))
}

// PressEnter presses Enter as a keyboard does: as one event, whose default can be prevented.
// chromedp sends the line break as a separate event, which a page cannot prevent.
func (p *Tab) PressEnter(modifiers ...chromedp.Modifier) {
	p.t.Helper()
	key := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter",
		Text: "\r", WindowsVirtualKeyCode: 13}
	chromedp.KeyModifiers(modifiers...)(&key)
	if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, key); err != nil {
		p.t.Fatalf("press Enter: %v", err)
	}
}

// Click clicks the element of a CSS selector.
func (p *Tab) Click(css string) {
	p.t.Helper()
	p.Do(chromedp.Click(chromedp.CSS(css)))
}

// Follow calls do, which loads another page or reloads this one, and waits until it is loaded.
func (p *Tab) Follow(do func()) {
	p.t.Helper()
	Eval[bool](p, `window.left = true`)
	do()
	p.Wait(`!window.left && document.readyState === "complete"`)
}

// WaitConnected waits until a chat page has loaded its history and receives events.
func (p *Tab) WaitConnected() {
	p.t.Helper()
	// fetched once the stream is open
	p.Wait(`performance.getEntriesByType("resource").some(e => e.name.includes("/topics"))`)
	p.Wait(`document.querySelector('.panel:not([hidden]) .log')?.ariaBusy === "false"`)
}

// SendMessage types a message into a chat page, and sends it.
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

// Await is the value to which a JavaScript promise resolves.
func Await[T any](p *Tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("await %s: %v", expression, err)
	}
	return v
}

// Wait waits until a JavaScript expression is true, also across navigations.
func (p *Tab) Wait(expression string) {
	p.t.Helper()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		// An error means that the page is navigating, or that the expression is not ready.
		v, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && v {
			return
		}
		select {
		case <-poll.C:
		case <-deadline.C:
			p.t.Fatalf("not true within the timeout: %s: %v\n%s", expression, err, p.Text("body"))
		}
	}
}

// WaitLayout waits until scripts have received the events of the last scroll and layout.
func (p *Tab) WaitLayout() {
	p.t.Helper()
	Await[bool](p, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// Text is the text of an element.
func (p *Tab) Text(css string) string {
	p.t.Helper()
	return Eval[string](p, `document.querySelector(`+encode(css)+`)?.innerText ?? "(nothing)"`)
}

// MessageBodies are the texts of the matching messages in the open panel, in their order.
func (p *Tab) MessageBodies(css string) []string {
	p.t.Helper()
	return Eval[[]string](p, `[...document.querySelectorAll('.panel:not([hidden]) `+css+
		` .body')].map(e => e.textContent)`)
}

// CheckFits fails the test if the page scrolls sideways.
func (p *Tab) CheckFits() {
	p.t.Helper()
	wide := Eval[[]string](p,
		`[document.documentElement, document.body, ...document.querySelectorAll("main, .panel, .topics")]
		.filter(e => e.scrollWidth > e.clientWidth && e.clientWidth).map(e => e.tagName + "." + e.className + " " + e.scrollWidth + " > " + e.clientWidth)`)
	if len(wide) > 0 {
		p.t.Errorf("scrolls sideways: %v", wide)
	}
}

//go:embed contrast.js
var contrastScript string

// CheckContrast fails the test if a text has less contrast than WCAG AA requires.
func (p *Tab) CheckContrast() {
	p.t.Helper()
	for _, poor := range Eval[[]string](p, contrastScript) {
		p.t.Errorf("poor contrast: %s", poor)
	}
}

// Screenshot writes a PNG file.
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

// WithTest is the tab with failures reported to another test, such as a subtest.
func (p *Tab) WithTest(t *testing.T) *Tab { return &Tab{t, p.ctx} }

// encode writes a string as JavaScript.
func encode(text string) string {
	b, _ := json.Marshal(text) // a string can be encoded
	return string(b)
}
