package pages_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"arizuko/pkg/testkit/browser"
)

// upgrade: the server has another version of the worker; the pages go over to it.
func upgrade(t *testing.T, server *backend, b *browser.Browser) {
	all := visited(t, server, b, 3, chat, "/")
	server.set(func() { server.worker = "/assets/next/worker.js"; server.cuts++ })
	for _, p := range all {
		p.Wait(connection + ` === "There is a new version. Reload the page to use it."`)
	}
	server.say("", "<p>from the new version</p>")
	server.set(func() { server.facts = "<p>new</p>" })
	all[0].Wait(countOf(".message", 1))
	all[1].Wait(`document.querySelector("#facts").textContent === "new"`)
	expect(t, "the link", browser.Eval[int](all[1], `document.querySelectorAll("#connection a").length`), 1)
	server.wantStreams(t, 1)
	visited := b.Open(t)
	visited.Visit(server.url + chat)
	visited.Wait(countOf(".message", 1))
	server.wantStreams(t, 1)
	for _, p := range append(all, visited) {
		p.Close()
	}
	server.wantStreams(t, 0)
}

func hiddenView(t *testing.T, server *backend, b *browser.Browser) {
	p := b.Open(t)
	p.Prepare(quickHidden)
	server.facts = `<p id="first">1</p>`
	p.Visit(server.url + "/")
	p.Wait(isLive)
	browser.Eval[bool](p, `(document.querySelector("#first").mine = true)`)
	server.set(func() {}) // nothing has changed
	p.Do(chromedp.Sleep(1500 * time.Millisecond))
	expect(t, "what is shown stays", browser.Eval[bool](p, `document.querySelector("#first").mine`), true)
	browser.Eval[bool](p, `hide(true)`)
	p.WaitLayout()
	before := get(server, func() int { return server.fetches })
	server.set(func() { server.facts = "<p>2</p>" })
	p.Do(chromedp.Sleep(1500 * time.Millisecond))
	expect(t, "requests of a hidden page", get(server, func() int { return server.fetches })-before, 0)
	browser.Eval[bool](p, `hide(false)`)
	p.Wait(`document.querySelector("#facts").textContent === "2"`)

	// A storm of changes costs a request a second.
	before = get(server, func() int { return server.fetches })
	start := time.Now()
	for i := range 100 {
		server.set(func() { server.facts = fmt.Sprintf("<p>storm %d</p>", i) })
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // a real browser
	}
	p.Wait(`document.querySelector("#facts").textContent === "storm 99"`)
	if got, most := get(server, func() int { return server.fetches })-before, 2+int(time.Since(start)/time.Second); got > most {
		t.Errorf("%d requests, want at most %d", got, most)
	}
}

func viewThatIsGone(t *testing.T, server *backend, b *browser.Browser) {
	p := visited(t, server, b, 1, "/")[0]
	server.set(func() { server.broken = true })
	p.Wait(connection + ` === "This page is not up to date: refused with 404."`)
	server.set(func() { server.broken = false; server.facts = "<p>back</p>" })
	p.Wait(isLive)
	expect(t, "the page", browser.Eval[string](p, `document.querySelector("#facts").textContent`), "back")

	p.Visit(server.url + chat)
	p.Wait(isLive)
	server.set(func() { server.fail = func() bool { return true } })
	server.say("", "<p>later</p>")
	p.Wait(connection + ` === "This page is not up to date: refused with 500."`)
	server.set(func() { server.fail = nil })
	p.Wait(countOf(".message", 1))
	p.Wait(isLive)
}

// storm: whatever breaks while rows are written, each page shows each row once, in order.
func storm(t *testing.T, server *backend, b *browser.Browser) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	all := visited(t, server, b, 3, chat)
	alone := b.Open(t)
	alone.Prepare(noWorker)
	alone.Visit(server.url + chat)
	alone.Wait(isLive)
	all = append(all, alone)
	server.set(func() { server.fail = func() bool { return random.IntN(4) == 0 } })
	var want []string
	for i := range 150 {
		text := fmt.Sprintf("row %d", i)
		want = append(want, text)
		server.say("", "<p>"+text+"</p>")
		switch random.IntN(20) {
		case 0:
			server.set(func() { server.cuts++ })
		case 1:
			server.set(func() { server.down = !server.down })
		case 2:
			browser.Eval[bool](all[random.IntN(4)], `(dispatchEvent(new Event("online")), document.dispatchEvent(new Event("visibilitychange")))`)
		case 3:
			all[random.IntN(3)].Do(chromedp.Reload())
		}
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) //nolint:forbidigo // a real browser
	}
	server.set(func() { server.down, server.fail = false, nil })
	for i, p := range all {
		p.Wait(isLive)
		p.Wait(`document.querySelector(".log").lastElementChild?.querySelector(".body").textContent === "row 149"`)
		// A page that was reloaded begins with the newest rows.
		got := p.MessageBodies(".log .message")
		if len(got) < 50 || !slices.Equal(got, want[len(want)-len(got):]) {
			t.Errorf("page %d: %d rows: %q", i, len(got), got)
		}
	}
	server.wantStreams(t, 2)
}
